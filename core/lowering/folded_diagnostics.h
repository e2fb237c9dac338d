// Diagnostics of the instances of a block, said once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/diagnostic.h"
#include "core/graph/graph.h"

#include <vector>

namespace fuseline {

/// The diagnostics in their order. Diagnostics about the same op of a block that differ only in the instance are one,
/// the first: it says how many there are and has the ops of all in `instances`.
std::vector<Diagnostic> foldInstances(const Graph& graph, const std::vector<Diagnostic>& diagnostics);

}  // namespace fuseline
