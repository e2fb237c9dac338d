// The modules of an exported pipeline, and what goes into and comes out of the whole.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/te/te_operation.h"

#include <string>
#include <vector>

namespace fuseline {

/// One line of forward(), and what makes the module that it calls.
struct TeModule {
  TeSequence sequence;
  std::string name;  // "layers"
  std::vector<TeOperation> operations;
  std::vector<std::string> operationNames;
};

/// TransformerEngine asks for a process group where an op may communicate.
bool isParallel(const std::vector<TeModule>& modules);

/// Those of the whole pipeline, without what modules make and read in between.
std::vector<ValueId> outerInputs(const Graph& graph);
std::vector<GraphOutput> outerOutputs(const Graph& graph);

}  // namespace fuseline
