// Follows a tensor, or a gradient, through the ops that pass it on, and finds consumers that need it after it was
// overwritten.
// SPDX-License-Identifier: Apache-2.0
#include "core/graph/in_place_hazards.h"

#include "core/ops/catalog.h"
#include "core/ops/external.h"
#include "core/ops/shared_attributes.h"
#include "core/support/to_index.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

namespace fuseline {

namespace {

using Values = std::set<ValueId>;
using Nodes = std::set<NodeId>;
using Names = std::span<const std::string_view>;

bool isOneOf(const Node& node, Names names) { return std::ranges::find(names, node.operation->name) != names.end(); }

bool isAdd(const Node& node) { return node.operation->name == "AddExtraInput"; }
bool isSave(const Node& node) { return node.operation->name == "MakeExtraOutput"; }
bool mayBeInPlace(const Node& node) { return isAdd(node) || isSave(node); }
bool isInPlace(const Node& node) { return mayBeInPlace(node) && node.attributes.boolean("in_place"); }

/// Ops of TransformerEngine that return their input tensor, at least sometimes: on one rank, without a recipe, outside
/// training.
bool isSame(const Node& node) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "MakeExtraOutput", "Identity", "Reshape", "Quantize", "Dropout", "AllGather", "ReduceScatter", "AllReduce"};
  return isOneOf(node, kNames);
}

/// Ops whose outputs are parts of their input tensor, or show it several times.
bool returnsViews(const Node& node) {
  static constexpr std::array<std::string_view, 2> kNames = {"Split", "Expand"};
  return isOneOf(node, kNames);
}

/// The gradients of its inputs are parts of that of its output.
bool returnsViewsOfGradient(const Node& node) { return node.operation->name == "Concat"; }

/// Ops that return their incoming gradient. MakeExtraOutput is handled separately.
bool hasSameGradient(const Node& node) { return (isSame(node) && !isSave(node)) || node.operation->name == "Bias"; }

/// They look at no element of the gradient.
bool onlyPassesGradient(const Node& node) {
  static constexpr std::array<std::string_view, 3> kNames = {"AddExtraInput", "Identity", "Reshape"};
  return isOneOf(node, kNames);
}

/// PyTorch's autograd may then pass on one tensor everywhere: float() of float32 is the tensor itself.
bool isTorchInFloat32(const Graph& graph, const Node& node) {
  const bool isTorch = node.operation->name == "Formula" || isExactGelu(node.attributes) ||
                       !builtinOperations().find(node.operation->name);
  return isTorch && graph.value(node.outputs[0]).spec.dtype == DType::F32;
}

bool isRead(const Graph& graph, ValueId value) {
  return graph.value(value).isOutput || !graph.value(value).uses.empty();
}

/// All values that are one tensor in forward, or whose gradients are one tensor in backward. `apart`: nodes whose
/// in_place is ignored.
class SharedTensor {
 public:
  SharedTensor(const Graph& graph, NodeId writer, const Nodes& apart)
      : m_graph(graph), m_writer(writer), m_apart(apart), m_isGradient(isSave(graph.node(writer))) {
    add(m_isGradient ? graph.node(writer).outputs[1] : graph.node(writer).inputs[1]);
  }
  const Values& values() const { return m_values; }
  bool contains(ValueId value) const { return m_values.contains(value); }

 private:
  void add(ValueId value) {
    std::vector<ValueId> waiting = {value};
    while (!waiting.empty()) {
      const ValueId next = waiting.back();
      waiting.pop_back();
      if (!m_values.insert(next).second) continue;
      if (const NodeId producer = m_graph.value(next).producer; producer >= 0) append(producer, next, waiting);
      for (const Use& use : m_graph.value(next).uses) append(use.node, next, waiting);
    }
  }

  /// The writer's own output is the tensor after the write.
  void append(NodeId id, ValueId value, std::vector<ValueId>& waiting) const {
    if (id == m_writer) return;
    const std::vector<ValueId> same = m_isGradient ? sameGradient(id) : sameTensor(id);
    if (std::ranges::find(same, value) != same.end()) waiting.insert(waiting.end(), same.begin(), same.end());
  }

  bool worksInPlace(NodeId id) const { return isInPlace(m_graph.node(id)) && !m_apart.contains(id); }

  std::vector<ValueId> sameTensor(NodeId id) const {
    const Node& node = m_graph.node(id);
    if (isAdd(node)) return worksInPlace(id) ? std::vector{node.inputs[1], node.outputs[0]} : std::vector<ValueId>();
    const bool isOfFirst = isSame(node) || returnsViews(node);
    if (!isOfFirst && !isTorchInFloat32(m_graph, node)) return {};
    std::vector<ValueId> same = isOfFirst ? std::vector{node.inputs[0]} : node.inputs;
    same.insert(same.end(), node.outputs.begin(), node.outputs.end());
    return same;
  }

  std::vector<ValueId> sameGradient(NodeId id) const {
    const Node& node = m_graph.node(id);
    if (isSave(node)) return sameGradientOfSave(id);
    if (hasSameGradient(node)) return {node.inputs[0], node.outputs[0]};
    if (!isAdd(node) && !returnsViewsOfGradient(node) && !isTorchInFloat32(m_graph, node)) return {};
    std::vector<ValueId> same = node.inputs;
    same.push_back(node.outputs[0]);
    return same;
  }

  /// The sum of two gradients is a separate tensor.
  std::vector<ValueId> sameGradientOfSave(NodeId id) const {
    const Node& node = m_graph.node(id);
    if (!isRead(m_graph, node.outputs[1])) return {node.inputs[0], node.outputs[0], node.outputs[1]};
    return worksInPlace(id) ? std::vector{node.inputs[0], node.outputs[1]} : std::vector<ValueId>();
  }

  const Graph& m_graph;
  NodeId m_writer;
  const Nodes& m_apart;
  bool m_isGradient;
  Values m_values;
};

// ---- forward

/// A linear op with quantizers keeps the quantized input in place of its input.
bool keepsItself(const Node& node, SavedTensor saved) {
  const TensorQuantizers& input = node.quantizers.input;
  const bool keepsCodes = input.columnwise || input.isDequantizedInBackward;
  return saved.kind == OperandKind::Output || (saved.kind == OperandKind::Input && !(saved.slot == 0 && keepsCodes));
}

std::optional<ValueId> keptFor(const Node& node, const SharedTensor& tensor) {
  for (const SavedTensor& saved : node.context.tensors) {
    if (!keepsItself(node, saved)) continue;
    const auto& slots = saved.kind == OperandKind::Output ? node.outputs : node.inputs;
    if (const ValueId value = slots[static_cast<std::size_t>(saved.slot)]; tensor.contains(value)) return value;
  }
  return std::nullopt;
}

/// The linear op whose GEMM would add directly into the extra input: that of ForwardLinearBiasAdd or
/// ForwardLinearScaleAdd.
const Node* linearBefore(const Graph& graph, NodeId add) {
  static constexpr std::array<std::string_view, 2> kBetween = {"Bias", "ConstantScale"};
  NodeId id = graph.value(graph.node(add).inputs[0]).producer;
  while (id >= 0 && isOneOf(graph.node(id), kBetween)) id = graph.value(graph.node(id).inputs[0]).producer;
  return id >= 0 && graph.node(id).operation->name == "BasicLinear" ? &graph.node(id) : nullptr;
}

DType dtypeOf(const Graph& graph, ValueId value) { return graph.value(value).spec.dtype; }

/// By node: does this one depend on it? The modules of an export run in an order of their own, so an op that comes
/// earlier in the graph may run later.
std::vector<bool> upstreamOf(const Graph& graph, NodeId node) {
  std::vector<bool> isUpstream(graph.nodes().size());
  isUpstream[toIndex(node)] = true;
  for (NodeId each = node; each >= 0; --each) {
    if (!isUpstream[toIndex(each)]) continue;
    for (const ValueId input : graph.node(each).inputs)
      if (const NodeId producer = graph.value(input).producer; producer >= 0) isUpstream[toIndex(producer)] = true;
  }
  return isUpstream;
}

/// The op that returns views of the tensor, which no GEMM adds to, and whose other parts may be read later.
const Node* viewing(const Graph& graph, const SharedTensor& tensor) {
  for (const ValueId value : tensor.values())
    if (const NodeId producer = graph.value(value).producer; producer >= 0 && returnsViews(graph.node(producer)))
      return &graph.node(producer);
  return nullptr;
}

/// The same of a gradient.
const Node* viewingGradient(const Graph& graph, const SharedTensor& tensor) {
  for (const ValueId value : tensor.values())
    for (const Use& use : graph.value(value).uses)
      if (returnsViewsOfGradient(graph.node(use.node))) return &graph.node(use.node);
  return nullptr;
}

/// The op whose output the sum would overwrite although it is a view of a tensor from before: another
/// te.ops.Sequential, which autograd forbids.
const Node* returnsView(const Graph& graph, NodeId sum, const SharedTensor& tensor) {
  const NodeId producer = graph.value(graph.node(sum).inputs[1]).producer;
  if (producer < 0 || graph.pass() != ExecutionMode::Training) return nullptr;
  const Node& node = graph.node(producer);
  const bool isView = (isSame(node) && !isSave(node)) || (isAdd(node) && tensor.contains(node.inputs[1]));
  return isView ? &node : nullptr;
}

std::optional<std::string> hazardOfSum(const Graph& graph, NodeId sum, const SharedTensor& tensor) {
  const auto nameOf = [&](ValueId value) { return graph.value(value).name; };
  for (const Node& node : graph.nodes())
    if (const auto value = keptFor(node, tensor))
      return fmt::format("{} keeps that tensor, {}, for backward", node.id, nameOf(*value));
  const Node* const linear = linearBefore(graph, sum);
  if (linear && dtypeOf(graph, linear->outputs[0]) != dtypeOf(graph, graph.node(sum).inputs[1]))
    return fmt::format("the GEMM of {}, which would add to it, produces {}, not {}", linear->id,
                       dtypeName(dtypeOf(graph, linear->outputs[0])),
                       dtypeName(dtypeOf(graph, graph.node(sum).inputs[1])));
  if (linear && !linear->quantizers.input.rowwise && tensor.contains(linear->inputs[0]))
    return fmt::format("{} consumes that tensor, {}, while its GEMM adds to it", linear->id, nameOf(linear->inputs[0]));
  if (const Node* const view = returnsView(graph, sum, tensor))
    return fmt::format("autograd raises where another te.ops.Sequential overwrites the view that {} returns", view->id);
  if (const Node* const view = viewing(graph, tensor))
    return fmt::format("{} returns views of that tensor, {}", view->id, nameOf(view->inputs[0]));
  const std::vector<bool> isUpstream = upstreamOf(graph, sum);
  for (const ValueId value : tensor.values()) {
    if (graph.value(value).producer < 0 && isOfExternal(nameOf(value)))
      return fmt::format("{} may keep that tensor, {}, for backward", externalOf(nameOf(value)), nameOf(value));
    if (graph.value(value).isOutput) return fmt::format("that tensor, {}, is an output", nameOf(value));
    for (const Use& use : graph.value(value).uses)
      if (!isUpstream[toIndex(use.node)] && !isSame(graph.node(use.node)))
        return fmt::format("{} still needs that tensor, {}", graph.node(use.node).id, nameOf(value));
  }
  return std::nullopt;
}

// ---- backward

/// All nodes whose backward pass is over when that of `node` begins, and itself.
Nodes descendantsOf(const Graph& graph, NodeId node) {
  Nodes found = {node};
  for (NodeId next = node + 1; next < static_cast<NodeId>(graph.nodes().size()); ++next)
    if (std::ranges::any_of(graph.node(next).inputs,
                            [&](ValueId input) { return found.contains(graph.value(input).producer); }))
      found.insert(next);
  return found;
}

std::string ownerText(std::string_view owner, std::string_view kind, std::string_view name) {
  return fmt::format("that tensor is the {}gradient of {} {}", owner, kind, name);
}

/// The owner of the value's gradient outside all ops, which receives or provides it.
std::optional<std::string> ownerOfGradient(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  const auto output = std::ranges::find(graph.outputs(), id, &GraphOutput::value);
  const bool isInput = value.producer < 0;
  for (const std::string* name : {isInput ? &value.name : nullptr, value.isOutput ? &output->name : nullptr})
    if (name && isOfExternal(*name)) return fmt::format("{} may keep that tensor", externalOf(*name));
  if (value.isOutput) return ownerText("caller's ", "output", output->name);
  if (isInput && value.needsGradient) return ownerText("", "input", value.name) + ", too";
  return std::nullopt;
}

/// The linear op whose input-gradient GEMM would add directly into the gradient: that of BackwardLinearAdd.
const Node* linearBehind(const Graph& graph, NodeId save) {
  for (const Use& use : graph.value(graph.node(save).outputs[0]).uses)
    if (use.slot == 0 && graph.node(use.node).operation->name == "BasicLinear") return &graph.node(use.node);
  return nullptr;
}

std::optional<std::string> hazardOfGradientSum(const Graph& graph, NodeId save, const SharedTensor& tensor) {
  if (graph.pass() != ExecutionMode::Training) return std::nullopt;
  const Node* const linear = linearBehind(graph, save);
  if (linear && !linear->quantizers.gradOutput.any() && tensor.contains(linear->outputs[0]))
    return fmt::format("{} consumes that tensor, as the gradient of {}, while its GEMM adds to it", linear->id,
                       graph.value(linear->outputs[0]).name);
  for (const ValueId value : tensor.values())
    if (std::optional<std::string> owner = ownerOfGradient(graph, value)) return owner;
  if (const Node* const view = viewingGradient(graph, tensor))
    return fmt::format("{} returns views of that tensor, the gradient of {}", view->id,
                       graph.value(view->outputs[0]).name);
  const Nodes before = descendantsOf(graph, save);
  for (const ValueId value : tensor.values()) {
    const NodeId reader = graph.value(value).producer;
    if (reader >= 0 && !before.contains(reader) && !onlyPassesGradient(graph.node(reader)))
      return fmt::format("{} still needs that tensor, as the gradient of {}", graph.node(reader).id,
                         graph.value(value).name);
  }
  return std::nullopt;
}

std::optional<std::string> hazardOf(const Graph& graph, NodeId node, const Nodes& apart) {
  const SharedTensor tensor(graph, node, apart);
  return isAdd(graph.node(node)) ? hazardOfSum(graph, node, tensor) : hazardOfGradientSum(graph, node, tensor);
}

}  // namespace

std::vector<InPlaceHazard> inPlaceHazards(const Graph& graph) {
  std::vector<InPlaceHazard> hazards;
  Nodes apart;
  for (NodeId node = 0; node < static_cast<NodeId>(graph.nodes().size()); ++node)
    if (isInPlace(graph.node(node)))
      if (std::optional<std::string> reason = hazardOf(graph, node, apart)) {
        hazards.push_back({node, std::move(*reason)});
        apart.insert(node);
      }
  return hazards;
}

std::optional<std::string> inPlaceHazard(const Graph& graph, NodeId node) { return hazardOf(graph, node, {}); }

std::string hazardText(const Graph& graph, const InPlaceHazard& hazard) {
  const Node& node = graph.node(hazard.node);
  const std::string target =
      isAdd(node) ? "the extra input" : fmt::format("the gradient of {}", graph.value(node.outputs[1]).name);
  return fmt::format("TransformerEngine would overwrite {}, and {}", target, hazard.reason);
}

}  // namespace fuseline
