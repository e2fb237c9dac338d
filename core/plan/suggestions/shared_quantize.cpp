// Tensors that several linear ops quantize alike, each for itself: one Quantize op does it for all.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/suggestions/section_edits.h"
#include "core/plan/suggestions/sources.h"
#include "core/plan/suggestions/written_op.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

using Readers = std::vector<const Node*>;

/// Without delayed scaling a plan quantizes the tensor once anyway.
bool quantizesInput(const Node& node) {
  return node.operation->isQuantizable && !node.operation->isView && node.quantizers.input.isDelayed();
}

/// Those of a value that quantize it as the first one does. Fewer than two: nothing to share.
Readers alikeReaders(const Graph& graph, const Value& value) {
  Readers readers;
  for (const Use& use : value.uses) {
    const Node& node = graph.node(use.node);
    const bool isInput = use.slot == 0 && quantizesInput(node);
    if (isInput && (readers.empty() || node.quantizers.input == readers.front()->quantizers.input))
      readers.push_back(&node);
  }
  return readers;
}

class SharedQuantizes {
 public:
  explicit SharedQuantizes(const SuggestionContext& context)
      : m_document(context.document), m_graph(context.analysis.graph()) {}

  std::vector<Proposal> all() {
    for (const Value& value : m_graph.values()) propose(value);
    return std::move(m_proposals);
  }

 private:
  void propose(const Value& value) {
    const Readers readers = alikeReaders(m_graph, value);
    const bool isQuantized = value.producer >= 0 && m_graph.node(value.producer).operation->name == "Quantize";
    if (readers.size() < 2 || isQuantized) return;
    const std::optional<WrittenOp> first = ownerOp(m_document, *readers.front());
    if (!first || !m_seen.insert(first->text()).second) return;
    SectionEdits edits(*first->section);
    const std::optional<Wire> source = edits.wireTo({first->id, inputOf(*readers.front())});
    if (!source) return;
    const std::string id = edits.addOp("quantize", "Quantize", Json::object());
    std::vector<std::string> names;
    for (const Node* reader : readers)
      if (std::optional<std::string> name = redirect(edits, *reader, *first, *source, id)) names.push_back(*name);
    if (names.size() < 2) return;
    edits.add({source->from, {id, "x"}});
    const std::string label = fmt::format("Quantize {} once for {}{}", toString(source->from), fmt::join(names, ", "),
                                          first->block.empty() ? "" : " of block " + first->block);
    m_proposals.push_back(
        {.source = "shared_quantize",
         .node = readers.front()->owner,
         .repair = {label, first->inPlace(edits.group(label))},
         .caution = first->cautionWith(
             "These layers then consume the same quantized tensor. Its values are rounded to its dtype before they are "
             "quantized; without this edit, norms and activations quantize their float32 results.")});
  }

  /// The op of the document that now reads the Quantize; nothing: it is not wired to the source itself.
  std::optional<std::string> redirect(SectionEdits& edits, const Node& reader, const WrittenOp& first,
                                      const Wire& source, const std::string& quantize) const {
    const std::optional<WrittenOp> op = ownerOp(m_document, reader);
    if (!op || !op->isBeside(first)) return std::nullopt;
    const std::optional<Wire> wire = edits.wireTo({op->id, inputOf(reader)});
    if (!wire || wire->from != source.from) return std::nullopt;
    edits.remove(*wire);
    edits.add({{quantize, "y"}, wire->to});
    return op->id;
  }

  static const std::string& inputOf(const Node& node) { return node.operation->inputs.front().name; }

  const PipelineDocument& m_document;
  const Graph& m_graph;
  std::set<std::string> m_seen;  // an op of a block is in each of its instances
  std::vector<Proposal> m_proposals;
};

}  // namespace

std::vector<Proposal> suggestion_sources::shared_quantize(const SuggestionContext& context) {
  return SharedQuantizes(context).all();
}

}  // namespace fuseline
