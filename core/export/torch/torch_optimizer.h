// The optimizer of exported Python programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

#include <string>

namespace fuseline {

/// The class Optimizer and its settings; empty if the graph has no optimizer. Needs the import of math.
std::string optimizerClass(const Graph& graph);
/// The function compare_training, and whether there is an optimizer: HAS_OPTIMIZER.
std::string trainingProgram(const Graph& graph);

}  // namespace fuseline
