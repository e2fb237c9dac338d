// Automatic layout: a layered drawing from left to right, made by Graphviz, and by lanes where that would take long.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "ui/canvas/node_look.h"

#include <map>
#include <string>
#include <vector>

namespace fuseline::ui {

using NodePositions = std::map<std::string, Position>;

/// Nodes that stay together, with room for a frame around them.
using NodeGroup = std::vector<std::string>;

/// Top left corners on the grid, for every node. Main wires are kept straight, extra ones bend around them. What is far
/// wider than high is broken into rows. groups: each inside of others or apart from them, outer ones first; ids without
/// a look are nothing to it.
NodePositions autoLayout(const PipelineDocument& document, const std::vector<NodeLook>& looks,
                         const std::vector<NodeGroup>& groups = {});

}  // namespace fuseline::ui
