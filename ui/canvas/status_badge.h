// A small sign on the lower edge of a node: whether it was run, and what came of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"
#include "ui/timings/node_status.h"

#include <QPainter>

namespace fuseline::ui {

/// Told by sign and color: an empty disc with a dash, a blue triangle, a green tick, an amber tilde, a red cross.
void paintStatusBadge(QPainter& painter, QPointF centre, NodeStatus status, const Theme& theme);

}  // namespace fuseline::ui
