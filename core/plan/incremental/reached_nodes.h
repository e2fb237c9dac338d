// Finds the nodes of a document that an edit leaves as they are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"

#include <set>
#include <string>

namespace fuseline {

/// Inputs, ops and outputs of the document whose tensors, problems or fusions may differ between two analyses without
/// errors. ops: those whose nodes or fusions differ, see SplicedReport.
std::set<std::string> reachedNodes(const Analysis& earlier, const Analysis& later, const PipelineDocument& document,
                                   std::set<std::string> ops);

}  // namespace fuseline
