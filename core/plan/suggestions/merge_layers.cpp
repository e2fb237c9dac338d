// Linear layers that multiply one tensor: a single GEMM reads it once, and a Split gives each layer its columns.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/suggestions/section_edits.h"
#include "core/plan/suggestions/sources.h"
#include "core/plan/suggestions/written_op.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// Split has at most this number of outputs.
constexpr std::size_t kMostMerged = 64;

struct Layer {
  const Node* node = nullptr;
  WrittenOp op;
  const DocumentOp* written = nullptr;

  Endpoint input() const { return {op.id, "x"}; }
  Endpoint output() const { return {op.id, "y"}; }
  const Json& width() const { return written->attributes.at("out_features"); }
};

/// Nothing: the node is no GEMM of a Linear or BasicLinear that is whole on every rank.
std::optional<Layer> layerOf(const PipelineDocument& document, const Node& node) {
  if (node.operation->name != "BasicLinear") return std::nullopt;
  const std::optional<WrittenOp> op = ownerOp(document, node);
  if (!op) return std::nullopt;
  const auto written = std::ranges::find(op->section->ops, op->id, &DocumentOp::id);
  const Json& attributes = written->attributes;
  const bool isLinear = written->operation == "Linear" || written->operation == "BasicLinear";
  const bool isParallel = attributes.value("tensor_parallel_mode", Json("none")) != "none";
  if (!isLinear || isParallel || written->isBypassed() || !attributes.contains("out_features")) return std::nullopt;
  return Layer{&node, *op, &*written};
}

Json withoutWidth(Json attributes) {
  attributes.erase("out_features");
  return attributes;
}

bool canMerge(const Layer& first, const Layer& other) {
  return first.op.isBeside(other.op) && first.written->operation == other.written->operation &&
         first.node->quantizers == other.node->quantizers &&
         withoutWidth(first.written->attributes) == withoutWidth(other.written->attributes);
}

/// The sum of widths as a number, or as an expression where one of them is an expression.
Json sumOf(const std::vector<Layer>& layers) {
  std::int64_t sum = 0;
  std::vector<std::string> terms;
  for (const Layer& layer : layers) {
    const Json& width = layer.width();
    if (width.is_number_integer()) sum += width.get<std::int64_t>();
    terms.push_back(width.is_string() ? fmt::format("({})", width.get<std::string>()) : width.dump());
  }
  const bool areNumbers =
      std::ranges::all_of(layers, [](const Layer& each) { return each.width().is_number_integer(); });
  return areNumbers ? Json(sum) : Json(fmt::format("{}", fmt::join(terms, " + ")));
}

EditGroup merged(const std::vector<Layer>& layers, const std::string& label) {
  const Layer& first = layers.front();
  SectionEdits edits(*first.op.section);
  Json sizes = Json::array();
  for (const Layer& layer : layers) sizes.push_back(layer.width());
  const std::string split = edits.addOp("split", "Split", {{"sizes", sizes}});
  for (std::size_t i = 0; i < layers.size(); ++i)
    edits.readInstead(layers[i].output(), {split, i == 0 ? "y" : fmt::format("y{}", i)});
  edits.add({first.output(), {split, "x"}});
  edits.setAttribute(first.op.id, "out_features", sumOf(layers));
  for (auto layer = std::next(layers.begin()); layer != layers.end(); ++layer) edits.removeOp(layer->op.id);
  return edits.group(label);
}

Proposal proposalOf(const std::vector<Layer>& layers) {
  const Layer& first = layers.front();
  std::vector<std::string> names;
  for (const Layer& layer : layers) names.push_back(layer.op.id);
  const std::string label = fmt::format("Merge {} into one layer{}", fmt::join(names, ", "),
                                        first.op.block.empty() ? "" : " of block " + first.op.block);
  const std::string parameters = fmt::format(
      "The merged layer is {}. Its weight and bias have the rows of {}, in this order: concatenate weights before you "
      "load them. Under a recipe with one scale per tensor, these rows share one scale.",
      first.op.id, fmt::join(names, ", "));
  return {.source = "merge_layers",
          .node = first.node->owner,
          .kind = SuggestionKind::ChangesBehavior,
          .repair = {label, first.op.inPlace(merged(layers, label))},
          .caution = first.op.cautionWith(parameters)};
}

class Siblings {
 public:
  explicit Siblings(const SuggestionContext& context)
      : m_document(context.document), m_graph(context.analysis.graph()) {}

  std::vector<Proposal> all() {
    for (const Value& value : m_graph.values()) proposeFor(readersOf(value));
    return std::move(m_proposals);
  }

 private:
  /// Those wired to the same port of the file; the graph does not show bypassed ops in between.
  std::vector<Layer> readersOf(const Value& value) const {
    std::vector<Layer> readers;
    for (const Use& use : value.uses) {
      if (use.slot != 0) continue;
      const std::optional<Layer> layer = layerOf(m_document, m_graph.node(use.node));
      if (layer && (readers.empty() || sourceOf(*layer) == sourceOf(readers.front()))) readers.push_back(*layer);
    }
    return readers;
  }

  static std::optional<Endpoint> sourceOf(const Layer& layer) {
    const std::optional<Wire> wire = SectionEdits(*layer.op.section).wireTo(layer.input());
    return wire ? std::optional(wire->from) : std::nullopt;
  }

  void proposeFor(std::vector<Layer> readers) {
    while (readers.size() > 1) {
      const Layer first = readers.front();
      const auto others = std::stable_partition(readers.begin(), readers.end(),
                                                [&](const Layer& each) { return canMerge(first, each); });
      const std::vector<Layer> alike(readers.begin(), others);
      readers.erase(readers.begin(), others);
      if (alike.size() > 1 && alike.size() <= kMostMerged && m_seen.insert(first.op.text()).second)
        m_proposals.push_back(proposalOf(alike));
    }
  }

  const PipelineDocument& m_document;
  const Graph& m_graph;
  std::set<std::string> m_seen;  // an op of a block is in each of its instances
  std::vector<Proposal> m_proposals;
};

}  // namespace

std::vector<Proposal> suggestion_sources::merge_layers(const SuggestionContext& context) {
  return Siblings(context).all();
}

}  // namespace fuseline
