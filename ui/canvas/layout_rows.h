// Breaks a drawing that is far wider than high into rows, as text is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/metrics.h"
#include "ui/canvas/places/auto_layout.h"

namespace fuseline::ui {

/// Drawings of this width stay one row.
inline constexpr int kWidestRowPx = 16 * kNodePitchPx;

/// Each row holds whole columns of the drawing. It ends where few wires would lead back, and before an op that begins
/// something: a norm, or a branch; seldom between ops that might be fused.
void breakIntoRows(NodePositions& positions, const PipelineDocument& document, const std::vector<NodeLook>& looks);

}  // namespace fuseline::ui
