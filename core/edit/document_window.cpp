// Cuts windows out of documents: ops and wires of the document are looked at once.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/document_window.h"

#include "core/document/block_operation.h"
#include "core/edit/apply_edit.h"
#include "core/edit/links.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace fuseline {

namespace {

class DocumentWindow {
 public:
  DocumentWindow(const PipelineDocument& document, const Graph& graph, std::unordered_set<std::string_view> ops)
      : m_document(document), m_graph(graph), m_owners(std::move(ops)) {}

  std::optional<PipelineDocument> make() && {
    if (!takeOps() || !takeWires()) return std::nullopt;
    EditGroup parts;
    for (const auto& [name, value] : m_document.symbols().items()) parts.edits.emplace_back(SetSymbol{name, value});
    parts.edits.emplace_back(SetRecipe{m_document.recipe()});
    parts.edits.emplace_back(SetFusion{m_document.fusion()});
    for (const DocumentInput& input : m_inputs) parts.edits.emplace_back(AddInput{input});
    for (const DocumentOp* op : m_ops) parts.edits.emplace_back(AddOp{*op});
    for (const Wire& wire : m_wires) parts.edits.emplace_back(AddWire{wire});
    for (const Endpoint& from : m_outputs) parts.edits.emplace_back(AddOutput{{.id = freeName(), .from = from}});
    PipelineDocument window;
    return applyEdit(window, parts) ? std::optional(std::move(window)) : std::nullopt;
  }

 private:
  bool isInside(std::string_view op) const { return m_owners.contains(op); }

  bool takeOps() {
    for (const DocumentOp& op : m_document.ops()) {
      if (!isInside(op.id)) continue;
      if (!blockNameOf(op).empty()) return false;
      m_ops.push_back(&op);
      m_names.insert(op.id);
    }
    return m_ops.size() == m_owners.size();
  }

  bool takeWires() {
    std::set<Endpoint> readOutside;
    for (const Wire& wire : m_document.wires()) {
      if (isInside(wire.to.node)) {
        const std::optional<Endpoint> from = isInside(wire.from.node) ? wire.from : inputFor(wire.from);
        if (!from) return false;
        m_wires.push_back({*from, wire.to});
      } else if (isInside(wire.from.node)) {
        readOutside.insert(wire.from);
      }
    }
    for (const DocumentOutput& output : m_document.outputs())
      if (isInside(output.from.node)) readOutside.insert(output.from);
    m_outputs.assign(readOutside.begin(), readOutside.end());
    return true;
  }

  /// An input with the tensor at this place.
  std::optional<Endpoint> inputFor(const Endpoint& outside) {
    const auto [known, isNew] = m_inputFor.try_emplace(outside);
    if (!isNew) return Endpoint{known->second, {}};
    const Value* value = valueAt(m_graph, outside);
    const DocumentOp* op = m_document.findOp(outside.node);
    if (!value || (op && (op->isBypassed() || value->producer < 0))) return std::nullopt;
    known->second = freeName();
    m_inputs.push_back({.id = known->second,
                        .dtype = std::string(dtypeName(value->spec.dtype)),
                        .shape = Json(value->spec.shape),
                        .requiresGradient = value->needsGradient});
    return Endpoint{known->second, {}};
  }

  std::string freeName() {
    std::string name = freeId(m_names, "tensor");
    m_names.insert(name);
    return name;
  }

  const PipelineDocument& m_document;
  const Graph& m_graph;
  std::unordered_set<std::string_view> m_owners;
  std::unordered_set<std::string> m_names;
  std::vector<const DocumentOp*> m_ops;
  std::vector<Wire> m_wires;
  std::map<Endpoint, std::string> m_inputFor;
  std::vector<DocumentInput> m_inputs;
  std::vector<Endpoint> m_outputs;
};

}  // namespace

std::optional<PipelineDocument> windowOf(const PipelineDocument& document, const Graph& graph,
                                         const std::vector<NodeId>& nodes) {
  std::unordered_set<std::string_view> ops;
  for (const NodeId id : nodes) ops.insert(graph.node(id).owner);
  return DocumentWindow(document, graph, std::move(ops)).make();
}

std::optional<PipelineDocument> windowOf(const PipelineDocument& document, const Graph& graph,
                                         const std::set<std::string>& ops) {
  std::unordered_set<std::string_view> known;
  for (const DocumentOp& op : document.ops())
    if (ops.contains(op.id)) known.insert(op.id);
  return DocumentWindow(document, graph, std::move(known)).make();
}

}  // namespace fuseline
