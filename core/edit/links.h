// Links between ports: existing ones, possible ones, and the edits that connect and disconnect.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/graph/graph.h"
#include "core/support/result.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fuseline {

/// A connection: a wire, or the link from an op to a pipeline output (`to` is its id).
struct Link {
  Endpoint from;
  Endpoint to;
  bool isOutput = false;
  bool operator==(const Link&) const = default;
};
std::vector<Link> linksOf(const PipelineDocument& document);
/// The link that ends at this port; nullopt when nothing does.
std::optional<Link> linkInto(const PipelineDocument& document, const Endpoint& to);

/// May these two ports be joined? A wire that is already at `to` would be replaced. Refuses with a sentence.
Verdict linkVerdict(const PipelineDocument& document, const Endpoint& from, const Endpoint& to);
/// The nodes that `node` reads from, however far, and itself; or with Downstream, those that read from it.
enum class FlowDirection { Upstream, Downstream };
std::set<std::string> reachable(const PipelineDocument& document, const std::string& node, FlowDirection direction);
/// Shape or dtype problem that connecting them would cause; empty if there is none. Runs a trial lowering.
std::string linkWarning(const PipelineDocument& document, const Endpoint& from, const Endpoint& to);
Edit linkEdit(const PipelineDocument& document, const Endpoint& from, const Endpoint& to);
Edit unlinkEdit(const PipelineDocument& document, const Link& link);
/// All wires of one output to another. Errors: one of them cannot begin there.
Result<Edit> moveLinks(const PipelineDocument& document, const Endpoint& from, const Endpoint& to);

/// The tensor at an output port of the document; nullptr when it could not be inferred.
const Value* valueAt(const Graph& graph, const Endpoint& endpoint);

}  // namespace fuseline
