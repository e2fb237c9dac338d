// Edits of nodes that are composed from smaller ones: add, insert, splice, replace, repeat, remove and bypass. All are
// pure functions from a document to one undoable edit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/edit/links.h"
#include "core/graph/graph.h"
#include "core/support/result.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// Palette names of the two entries that are no ops.
inline constexpr std::string_view kInputEntry = "Input";
inline constexpr std::string_view kOutputEntry = "Output";

/// An edit and the id of the node it adds.
struct NodeEdit {
  Edit edit;
  std::string id;
};

/// Adds an unconnected node at a place.
NodeEdit addNode(const PipelineDocument& document, std::string_view entry, std::optional<Position> position);
/// Adds an op after `after` and moves the consumers of `after` to the new op; without consumers, the only output that
/// is not connected yet is connected to it. Empty `after`: after the last op. Required attributes follow from the
/// tensor there.
NodeEdit insertAfter(const PipelineDocument& document, const Graph& graph, std::string_view entry,
                     const std::string& after);
/// Adds a node at a place, connected to the main output of `beside`. Only pipeline outputs move to the new op; other
/// consumers of `beside` stay.
NodeEdit addBeside(const PipelineDocument& document, const Graph& graph, std::string_view entry,
                   const std::string& beside, const Position& position);
/// The document that editing begins with: one input and one output, not connected yet.
PipelineDocument newPipeline();
/// Inserts a new op into a wire. Without a position it is placed after the wire's source, and nodes there make room.
NodeEdit splice(const PipelineDocument& document, const Graph& graph, std::string_view entry, const Link& link,
                std::optional<Position> position);

/// A wire that begins at a port and whose other end is still loose.
struct LooseWire {
  Endpoint at;
  bool isFromOutput = true;
};
/// Adds a node of this entry and joins the wire to it. Errors: none of its ports would take the wire.
Result<NodeEdit> addAtWire(const PipelineDocument& document, const Graph& graph, std::string_view entry,
                           const LooseWire& wire, std::optional<Position> position);

/// Another op in an op's place, with its id, its wires and the attributes that both have.
/// Errors: a wire would have no port to go to, or one of the ops is not known.
Result<Edit> replaceOp(const PipelineDocument& document, const Graph& graph, const std::string& id,
                       std::string_view entry);

struct RepeatedOp {
  Edit edit;
  std::vector<std::string> ids;  // of all in the row
};
/// Repeats an op, or an instance of a block, in a chain of N copies, each connected to the one before; consumers of the
/// op move to the last one. count: at least 2.
/// Errors: there is no such op, or it has more than one input or output with a wire.
Result<RepeatedOp> repeatOp(const PipelineDocument& document, const std::string& id, int count);

enum class Reconnect { No, Yes };
/// Handling of outputs connected to a removed op. The outputs of a block are ports of its instances.
enum class OrphanedOutputs { Removed, Kept };
Edit removeNodes(const PipelineDocument& document, const std::set<std::string>& ids, const std::vector<Link>& links,
                 Reconnect reconnect, OrphanedOutputs outputs = OrphanedOutputs::Removed);

/// Bypasses the chosen ops, or uses them again where all of them are bypassed.
/// Errors: nothing is chosen, or an op cannot be bypassed, with the reason.
Result<Edit> toggleBypass(const PipelineDocument& document, const std::set<std::string>& ids);

}  // namespace fuseline
