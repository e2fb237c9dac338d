// Chip on a wire whose tensor is quantized.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/edit/links.h"
#include "core/graph/graph.h"

#include <QString>

namespace fuseline::ui {

/// Empty where nothing is quantized.
struct QuantizerChip {
  QString text;  // "e4m3"
  QString tip;   // what becomes of input, weight and gradient of the op at the end of the wire
};

QuantizerChip quantizerChip(const Graph& graph, const Value& value, const Link& link);

}  // namespace fuseline::ui
