// Windows of documents: a few neighboring ops as a pipeline of their own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/graph/graph.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fuseline {

/// The ops of the document that these nodes of its graph came from. Tensors from outside are inputs, and tensors with
/// consumers outside are outputs. Symbols, the recipe and the switches of fusions are the document's. nullopt: an op
/// there is an instance of a block, or is next to one that has no node of its own (it is bypassed, or not executed).
std::optional<PipelineDocument> windowOf(const PipelineDocument& document, const Graph& graph,
                                         const std::vector<NodeId>& nodes);
/// The same of these ops, as far as the document has them. graph: of the document, or of one that differs from it at
/// these ops alone.
std::optional<PipelineDocument> windowOf(const PipelineDocument& document, const Graph& graph,
                                         const std::set<std::string>& ops);

}  // namespace fuseline
