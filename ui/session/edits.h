// Edits that the window composes from smaller ones: connect, insert, splice, remove, duplicate, copy and paste.
// All are pure functions from a document to one undoable edit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/plan/analysis.h"

#include <QPoint>
#include <QSet>
#include <QString>

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fuseline::ui {

/// Palette names of the two entries that are no ops.
inline constexpr std::string_view kInputEntry = "Input";
inline constexpr std::string_view kOutputEntry = "Output";

/// A connection as the canvas shows it: a wire, or the link from an op to a pipeline output (`to` is its id).
struct Link {
  Endpoint from;
  Endpoint to;
  bool isOutput = false;
  bool operator==(const Link&) const = default;
};
std::vector<Link> linksOf(const PipelineDocument& document);
/// The link that ends at this port; nullopt when nothing does.
std::optional<Link> linkInto(const PipelineDocument& document, const Endpoint& to);

/// An edit and the id of the node it adds.
struct NodeEdit {
  Edit edit;
  std::string id;
};

/// May these two ports be joined? A wire that is already at `to` would be replaced. Refuses with a sentence.
Verdict linkVerdict(const PipelineDocument& document, const Endpoint& from, const Endpoint& to);
/// The nodes that `node` reads from, however far, and itself; or with Downstream, those that read from it.
enum class Direction { Upstream, Downstream };
std::set<std::string> reachable(const PipelineDocument& document, const std::string& node, Direction direction);
/// What would be wrong with shapes or dtypes if they were joined; empty when all is well. Runs a trial lowering.
std::string linkWarning(const PipelineDocument& document, const Endpoint& from, const Endpoint& to);
Edit linkEdit(const PipelineDocument& document, const Endpoint& from, const Endpoint& to);
Edit unlinkEdit(const PipelineDocument& document, const Link& link);

/// Adds an unconnected node at a place. Required attributes are guessed from `source`, the tensor it is meant for.
NodeEdit addNode(const PipelineDocument& document, std::string_view entry, std::optional<Position> position);
/// Adds an op behind `after` and moves what read from `after` to the new op. Empty `after`: behind the last op.
NodeEdit insertAfter(const PipelineDocument& document, const Graph& graph, std::string_view entry,
                     const std::string& after);
/// Puts a new op into a wire. Without a position it stands behind the wire's source, and what stands there moves on.
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
/// An op, or an instance of a block, so many times in a row, each reading what the one before it writes; what read the
/// op reads the last one. count: 2 at least.
/// Errors: there is no such op, or it has more than one input or output with a wire.
Result<RepeatedOp> repeatOp(const PipelineDocument& document, const std::string& id, int count);

enum class Reconnect { No, Yes };
/// What becomes of outputs that read a removed op. Those of a block are ports that its instances are wired at.
enum class OrphanedOutputs { Removed, Kept };
Edit removeNodes(const PipelineDocument& document, const QSet<QString>& ids, const std::vector<Link>& links,
                 Reconnect reconnect, OrphanedOutputs outputs = OrphanedOutputs::Removed);

/// Bypasses the chosen ops, or uses them again where all of them are bypassed.
/// Errors: nothing is chosen, or an op cannot be bypassed, with the reason.
Result<Edit> toggleBypass(const PipelineDocument& document, const QSet<QString>& ids);

/// The chosen ops and the wires among them, and the chosen frames, as text: a piece of the file format with "fragment":
/// true.
QString copyFragment(const PipelineDocument& document, const QSet<QString>& ids,
                     const std::vector<std::string>& frames = {});
struct FragmentEdit {
  Edit edit;
  QSet<QString> ids;
  std::vector<std::string> frames = {};
};
/// Pastes ops and frames with fresh ids, moved by `offset`. Of a whole pipeline inputs, outputs and new symbols, too;
/// it goes below what is there, and brings its recipe and its choice of fusions into an empty document. A block that
/// means something else than the one of its name gets a name that is free. Errors: the text holds neither ops nor
/// frames.
Result<FragmentEdit> pasteFragment(const PipelineDocument& document, const QString& text, QPoint offset);

/// The tensor at an output port of the document; nullptr when it could not be inferred.
const Value* valueAt(const Graph& graph, const Endpoint& endpoint);

}  // namespace fuseline::ui
