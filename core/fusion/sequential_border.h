// The borders of nested Sequentials, which no fusion crosses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/diagnostic.h"
#include "core/graph/graph.h"

#include <string>

namespace fuseline {

/// Is one of the ops in a Sequential that the other is not in?
bool hasBorderBetween(const Graph& graph, NodeId from, NodeId to);

/// "Between fc (BasicLinear) and bias (Bias) is the border of inner, which is a nested Sequential; no fusion crosses
/// it."
std::string borderText(const Graph& graph, NodeId from, NodeId to);

/// Switches off, at their definitions, all Sequentials with a border between the two ops.
Repair withoutBorders(const Graph& graph, NodeId from, NodeId to);

}  // namespace fuseline
