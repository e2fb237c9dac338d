// Automatic layout: a layered drawing from left to right, made by Graphviz.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "ui/canvas/node_look.h"

#include <map>
#include <string>
#include <vector>

namespace fuseline::ui {

using NodePositions = std::map<std::string, Position>;

/// Top left corners on the grid, for every node. Main wires are kept straight, extra ones bend around them. What is far
/// wider than high is broken into rows.
NodePositions autoLayout(const PipelineDocument& document, const std::vector<NodeLook>& looks);

}  // namespace fuseline::ui
