// Counts the work of single ops.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/operation_cost.h"

#include "core/fusion/step_operands.h"
#include "core/ops/catalog.h"
#include "core/ops/external.h"
#include "core/support/text.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::int64_t kExtent = 1024;

void add(Work& work, std::int64_t flops, std::int64_t bytes) {
  if (bytes == 0) return;  // a view
  work.flops += flops;
  work.bytes += bytes;
}

std::string toString(const Work& work) {
  return fmt::format("{} and {}", formatFlops(static_cast<double>(work.flops)), formatBytes(work.bytes));
}

/// A required attribute that fits x: sizes are its last axis, numbers the smallest that is legal.
AttributeValue fittingValue(const AttributeSpec& spec) {
  switch (spec.type) {
    case AttributeType::Integer:
      return spec.unit == "elements" ? kExtent : static_cast<std::int64_t>(spec.minimum.value_or(1));
    case AttributeType::IntegerList: return std::vector<std::int64_t>{kExtent};
    case AttributeType::Real: return spec.minimum.value_or(1.0);
    case AttributeType::Boolean: return false;
    case AttributeType::Text: return spec.choices.empty() ? std::string() : spec.choices.front();
  }
  return {};
}

Attributes fittingAttributes(const FusibleOperation& operation) {
  Attributes attributes = defaultAttributes(operation);
  for (const AttributeSpec& spec : operation.attributes)
    if (spec.isRequired()) attributes.set(spec.name, fittingValue(spec));
  return attributes;
}

/// Like x, or one value a row where the port has no last axis.
TensorSpec extraInput(const FusibleOperation& operation, std::size_t port) {
  TensorSpec spec = sampleInput(operation);
  if (operation.inputs[port].shape != operation.inputs[0].shape && operation.inputs[port].shape == "[...]")
    spec.shape.pop_back();
  return spec;
}

/// Appends one basic op to the chain; -1 where the sample does not fit it.
ValueId append(GraphBuilder& builder, const FusibleOperation& operation, const Attributes& attributes, ValueId main) {
  const Result<OperationPointer> own = specialised(operation, attributes);
  if (!own) return -1;
  std::vector<ValueId> inputs = {main};
  for (std::size_t port = 1; port < (*own)->inputs.size(); ++port)
    inputs.push_back(builder.addInput((*own)->inputs[port].name, extraInput(**own, port)));
  const Result<NodeId> node = builder.addNode(operation.name, operation.name, *own, attributes, std::move(inputs));
  return node ? builder.partial().node(*node).outputs.front() : -1;
}

std::vector<ExpandedOperation> partsOf(const FusibleOperation& operation) {
  const Attributes attributes = fittingAttributes(operation);
  if (!operation.isComposite()) return {{.operation = operation.name, .attributes = attributes}};
  std::vector<ExpandedOperation> parts = operation.expand(attributes);
  for (ExpandedOperation& part : parts) {
    Attributes completed = defaultAttributes(*builtinOperations().find(part.operation));
    for (const auto& [name, value] : part.attributes) completed.set(name, value);
    part.attributes = std::move(completed);
  }
  return parts;
}

}  // namespace

TensorSpec sampleInput(const FusibleOperation& operation) {
  constexpr DType kDType = DType::BF16;
  if (operation.exampleCall) return operation.exampleCall(kExtent * kExtent, kDType).inputs.front();
  return {.dtype = kDType, .shape = {kExtent, kExtent}};
}

std::int64_t backwardFlops(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const std::vector<bool>& parameters = node.needs.parameters;
  const auto numOfWeights = std::min<std::ptrdiff_t>(numWeights(node), std::ssize(parameters));
  const bool isWeightWanted = std::ranges::count(parameters.begin(), parameters.begin() + numOfWeights, true) > 0;
  const bool isInputWanted = !node.needs.inputs.empty() && node.needs.inputs.front();
  return node.operation->flops(node.attributes, graph.inputSpecs(id)).backwardFor(isInputWanted, isWeightWanted);
}

OperationCost costOf(const Graph& graph, std::span<const NodeId> nodes) {
  OperationCost cost;
  for (const NodeId id : nodes) {
    const Node& node = graph.node(id);
    const FusedOperation alone{.nodes = {id}};
    const FlopCount flops = node.operation->flops(node.attributes, graph.inputSpecs(id));
    const SavedSet saved = savedTensors(graph, std::span(&alone, node.takesPartInBackward() ? 1 : 0));
    add(cost.forward, flops.forward, trafficBytes(graph, alone, forwardOperands(graph, alone, saved)));
    if (node.takesPartInBackward())
      add(cost.backward, backwardFlops(graph, id), trafficBytes(graph, alone, backwardOperands(graph, alone)));
  }
  return cost;
}

std::string toString(const OperationCost& cost) {
  if (cost.forward.bytes == 0) return "nothing: its output is a view of its input";
  const std::string forward = "forward " + toString(cost.forward);
  return cost.backward.bytes == 0 ? forward : forward + ", backward " + toString(cost.backward);
}

namespace {

/// The training graph of a call; nothing where the op refuses it.
std::optional<Graph> graphOf(const FusibleOperation& operation, OperationCall call) {
  GraphBuilder builder;
  std::vector<ValueId> inputs;
  for (std::size_t slot = 0; slot < call.inputs.size(); ++slot)
    inputs.push_back(builder.addInput(operation.inputs[slot].name, call.inputs[slot]));
  const Result<NodeId> node =
      builder.addNode(operation.name, operation.name, operation, std::move(call.attributes), std::move(inputs));
  if (!node) return std::nullopt;
  for (const ValueId output : builder.partial().node(*node).outputs)
    builder.addOutput(builder.partial().value(output).name, output);
  return std::move(builder).finish(ExecutionMode::Training);
}

OperationCost costOfAll(const Graph& graph) {
  std::vector<NodeId> nodes(graph.nodes().size());
  std::iota(nodes.begin(), nodes.end(), 0);
  return costOf(graph, nodes);
}

/// The op, or its parts, on x.
std::optional<Graph> sampleGraph(const FusibleOperation& operation) {
  const TensorSpec x = sampleInput(operation);
  if (operation.exampleCall) return graphOf(operation, operation.exampleCall(x.numElements(), x.dtype));
  GraphBuilder builder;
  ValueId main = builder.addInput("x", x);
  for (const ExpandedOperation& part : partsOf(operation)) {
    const FusibleOperation* basic =
        part.operation == operation.name ? &operation : builtinOperations().find(part.operation);
    main = append(builder, *basic, part.attributes, main);
    if (main < 0) return std::nullopt;
  }
  builder.addOutput("y", main);
  return std::move(builder).finish(ExecutionMode::Training);
}

}  // namespace

std::optional<OperationCost> sampleCost(const FusibleOperation& operation) {
  if (isExternal(operation)) return std::nullopt;
  const std::optional<Graph> graph = sampleGraph(operation);
  return graph ? std::optional(costOfAll(*graph)) : std::nullopt;
}

}  // namespace fuseline
