// Searches upstream from multiplications for the producers of their factors.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_gates.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>

namespace fuseline {

namespace {

struct Gate {
  std::size_t product = 0;
  std::size_t activation = 0;
  std::size_t first = 0;   // the layer that is activated
  std::size_t second = 0;  // the other
};

/// A layer whose second half of columns is activated, and whose first half multiplies it.
struct Halves {
  std::size_t product = 0;
  std::size_t activation = 0;
  std::size_t split = 0;
  std::size_t layer = 0;
};

class GateSearch {
 public:
  GateSearch(std::vector<ImportedOperation>& operations, const OnnxReading& graph, const TensorUses& uses)
      : m_operations(operations), m_graph(graph), m_uses(uses) {
    for (std::size_t i = 0; i < operations.size(); ++i) m_makers.emplace(operations[i].tensor, i);
  }

  void run() {
    for (std::size_t i = 0; i < m_operations.size(); ++i)
      if (const std::optional<Gate> gate = gateAt(i))
        join(*gate);
      else if (const std::optional<Halves> halves = halvesAt(i))
        swap(*halves);
    std::vector<ImportedOperation> left;
    for (std::size_t i = 0; i < m_operations.size(); ++i)
      if (!m_gone.contains(i)) left.push_back(std::move(m_operations[i]));
    m_operations = std::move(left);
  }

 private:
  const FoundOperation& found(std::size_t index) const { return m_operations[index].found; }

  std::optional<Gate> gateAt(std::size_t product) const {
    const FoundOperation& formula = found(product);
    if (formula.operation != "Formula" || formula.attributes.value("y", "") != "x * b") return std::nullopt;
    const std::string &x = formula.inputs[0].second, &b = formula.inputs[1].second;
    const std::optional<Gate> gate = gateOf(product, x, b);
    return gate ? gate : gateOf(product, b, x);
  }

  std::optional<Gate> gateOf(std::size_t product, const std::string& activated, const std::string& other) const {
    const auto activation = onlyMaker(activated);
    if (!activation || gatedForm(found(*activation)).empty()) return std::nullopt;
    const auto first = onlyMaker(found(*activation).inputs[0].second);
    const auto second = onlyMaker(other);
    if (!first || !second || !areAlike(*first, *second)) return std::nullopt;
    return Gate{product, *activation, *first, *second};
  }

  std::optional<Halves> halvesAt(std::size_t product) const {
    const FoundOperation& formula = found(product);
    if (formula.operation != "Formula" || formula.attributes.value("y", "") != "x * b") return std::nullopt;
    const std::string &x = formula.inputs[0].second, &b = formula.inputs[1].second;
    const std::optional<Halves> halves = halvesOf(product, x, b);
    return halves ? halves : halvesOf(product, b, x);
  }

  std::optional<Halves> halvesOf(std::size_t product, const std::string& activated, const std::string& other) const {
    const auto activation = onlyMaker(activated);
    const auto split = onlyMaker(other);
    if (!activation || !split || gatedForm(found(*activation)).empty()) return std::nullopt;
    const FoundOperation& parts = found(*split);
    if (parts.operation != "Split" || parts.outputs.size() != 2 || m_graph.source(other) != parts.outputs[0]) return {};
    const std::string& second = m_graph.source(found(*activation).inputs[0].second);
    const auto uses = m_uses.find(second);
    if (second != parts.outputs[1] || uses == m_uses.end() || uses->second != 1) return std::nullopt;
    const auto layer = onlyMaker(parts.inputs[0].second);
    const Json& sizes = parts.attributes["sizes"];
    if (!layer || found(*layer).operation != "Linear" || sizes.size() != 2 || sizes[0] != sizes[1]) return std::nullopt;
    return Halves{product, *activation, *split, *layer};
  }

  void swap(const Halves& halves) {
    ImportedOperation& layer = m_operations[halves.layer];
    layer.found.note = "the halves of its columns are in the other order, because the gate activates the first half.";
    for (FoundWeight& weight : layer.found.weights) weight.areHalvesSwapped = true;
    m_operations[halves.product].found = FoundOperation{.operation = gatedForm(found(halves.activation)),
                                                        .attributes = gatedAttributes(found(halves.activation)),
                                                        .inputs = {{"x", layer.tensor}}};
    m_gone.insert({halves.activation, halves.split});
  }

  /// Nothing: others read it, too, or it is no op.
  std::optional<std::size_t> onlyMaker(const std::string& tensor) const {
    const auto maker = m_makers.find(m_graph.source(tensor));
    const auto uses = m_uses.find(m_graph.source(tensor));
    return maker == m_makers.end() || uses == m_uses.end() || uses->second != 1 ? std::nullopt
                                                                                : std::optional(maker->second);
  }

  bool areAlike(std::size_t one, std::size_t other) const {
    const FoundOperation &a = found(one), &b = found(other);
    const auto isAlike = [](const FoundWeight& left, const FoundWeight& right) {
      return left.parameter == right.parameter && left.isTransposed == right.isTransposed;
    };
    return one != other && a.operation == "Linear" && b.operation == "Linear" &&
           canDouble(a.attributes["out_features"].get<std::int64_t>()) && a.attributes == b.attributes &&
           a.dtype == b.dtype && m_graph.source(a.inputs[0].second) == m_graph.source(b.inputs[0].second) &&
           std::ranges::equal(a.weights, b.weights, isAlike);
  }

  static bool canDouble(std::int64_t extent) {
    return extent > 0 && extent <= std::numeric_limits<std::int64_t>::max() / 2;
  }

  void join(const Gate& gate) {
    ImportedOperation& layer = m_operations[gate.first];
    ImportedOperation& product = m_operations[gate.product];
    layer.found.note = "two layers of the model that form a gate became one layer.";
    layer.found.attributes["out_features"] = 2 * layer.found.attributes["out_features"].get<std::int64_t>();
    for (std::size_t i = 0; i < layer.found.weights.size(); ++i)
      layer.found.weights[i].below = std::make_shared<FoundWeight>(found(gate.second).weights[i]);
    product.found = FoundOperation{.operation = gatedForm(found(gate.activation)),
                                   .attributes = gatedAttributes(found(gate.activation)),
                                   .inputs = {{"x", layer.tensor}},
                                   .note = found(gate.activation).note};
    m_gone.insert({gate.activation, gate.second});
  }

  std::vector<ImportedOperation>& m_operations;
  const OnnxReading& m_graph;
  const TensorUses& m_uses;
  std::map<std::string, std::size_t> m_makers;
  std::set<std::size_t> m_gone;
};

}  // namespace

void joinGates(std::vector<ImportedOperation>& operations, const OnnxReading& graph, const TensorUses& uses) {
  GateSearch(operations, graph, uses).run();
}

}  // namespace fuseline
