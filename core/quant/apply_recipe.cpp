// Annotates ops with quantizers.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/apply_recipe.h"

#include "core/ops/grouped_form.h"
#include "core/quant/attention_quantizers.h"
#include "core/quant/quantizer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

constexpr std::array kTypes = {TensorType::Input, TensorType::Weight, TensorType::GradOutput};

TensorQuantizers& quantizersOf(LinearQuantizers& quantizers, TensorType type) {
  if (type == TensorType::Input) return quantizers.input;
  return type == TensorType::Weight ? quantizers.weight : quantizers.gradOutput;
}

/// A transform cancels in wgrad only if both of its operands have it.
void clearLoneTransform(LinearQuantizers& quantizers) {
  const auto isTransformed = [](const TensorQuantizers& tensor) {
    return tensor.columnwise && tensor.columnwise->transformsColumnwise;
  };
  if (isTransformed(quantizers.input) && isTransformed(quantizers.gradOutput)) return;
  for (TensorQuantizers* tensor : {&quantizers.input, &quantizers.gradOutput})
    if (tensor->columnwise) tensor->columnwise->transformsColumnwise = false;
}

/// A Quantize has no weight, and only the quantizers that its attributes request. Whether a transform cancels is up to
/// the op that reads the quantized tensor.
LinearQuantizers ofQuantize(LinearQuantizers quantizers, const Node& node) {
  quantizers.weight = {};
  if (!node.attributes.boolean("forward")) quantizers.input = {};
  if (!node.attributes.boolean("backward")) quantizers.gradOutput = {};
  return quantizers;
}

/// Recipes without the fields always promote.
SplitAccumulators splitAccumulatorsOf(const Recipe& recipe, bool isOfTensorScale) {
  const auto isSplit = [&](const char* field) {
    return !recipe.definition().field(field) || recipe.fields().boolean(field);
  };
  const bool isFpropSplit = !recipe.definition().isCustom || !isOfTensorScale;  // te.ops has constants: fprop adds fast
  return {.fprop = isFpropSplit && isSplit("split_accumulator_fprop"),
          .dgrad = isSplit("split_accumulator_dgrad"),
          .wgrad = isSplit("split_accumulator_wgrad")};
}

/// Backward then has nothing but the stored tensor to read.
void storeWeight(LinearQuantizers& quantizers, const Recipe& recipe) {
  quantizers.storesWeight = recipe.definition().field(kQuantizedModelInit) &&
                            recipe.fields().boolean(kQuantizedModelInit) && quantizers.weight.any();
  if (quantizers.storesWeight && !quantizers.weight.columnwise) quantizers.weight.isDequantizedInBackward = true;
}

LinearQuantizers fromRecipe(const Recipe& recipe, const Node& node) {
  LinearQuantizers quantizers;
  const auto isAt = [&](const std::string& place) { return node.isAt(place); };
  for (const OperandRole role : operandRoles()) {
    TensorQuantizers& tensor = quantizersOf(quantizers, role.tensor);
    const auto spec = recipe.quantizerFor(role, isAt);
    (directionOf(role) == Usage::Rowwise ? tensor.rowwise : tensor.columnwise) = spec;
  }
  for (const OperandRole role :
       {OperandRole{TensorType::Input, GemmRole::Wgrad}, {TensorType::Weight, GemmRole::Dgrad}})
    quantizersOf(quantizers, role.tensor).isDequantizedInBackward = recipe.isDequantized(role, isAt);
  quantizers.hasEverySlot = recipe.definition().isCustom;
  if (node.operation->isView) return ofQuantize(quantizers, node);
  clearLoneTransform(quantizers);
  storeWeight(quantizers, recipe);
  const auto& input = quantizers.input.rowwise;
  quantizers.splitAccumulators = splitAccumulatorsOf(recipe, input && input->scaling == Scaling::PerTensor);
  return quantizers;
}

/// The matrix of one group, where there are several in one tensor.
TensorSpec weightSpec(const TensorSpec& parameter) {
  const Shape& shape = parameter.shape;
  return {parameter.dtype, {shape[shape.size() - 2], shape.back()}};
}

TensorSpec specOf(const Graph& graph, NodeId id, TensorType type) {
  if (type == TensorType::Input) return graph.spec(id, OperandKind::Input, 0);
  return type == TensorType::Weight ? weightSpec(graph.spec(id, OperandKind::Parameter, 0))
                                    : graph.spec(id, OperandKind::Output, 0);
}

/// Does a GEMM of the graph read this quantized tensor? The consumers of a Quantize's outputs are not known here.
bool isRead(const Graph& graph, NodeId id, TensorType type, Usage direction) {
  const Node& node = graph.node(id);
  const bool isOfForward = type != TensorType::GradOutput && direction == Usage::Rowwise;
  if (isOfForward || graph.pass() != ExecutionMode::Training) return isOfForward;
  if (node.operation->isView) return true;
  const bool isOfWgrad = type == TensorType::Input || (type == TensorType::GradOutput && direction != Usage::Rowwise);
  return isOfWgrad ? node.needs.anyParameter() : node.needs.inputs[0];
}

/// Required multiples of a tensor's rows and columns for the GEMMs that read its quantized tensors.
BlockShape multiplesFor(const Graph& graph, NodeId id, TensorType type, const TensorQuantizers& quantizers) {
  const Node& node = graph.node(id);
  BlockShape multiples{1, 1};
  for (const Usage direction : {Usage::Rowwise, Usage::Columnwise}) {
    const std::optional<QuantizerSpec>& spec = quantizers.of(direction);
    // Without a GEMM one scale does for a tensor of any shape.
    const bool isAnyShape = spec && node.operation->isView && spec->scaling == Scaling::PerTensor;
    if (!spec || isAnyShape || !isRead(graph, id, type, direction)) continue;
    const BlockShape wanted = gemmMultiples(spec->scaling, direction);
    multiples = {std::max(multiples.rows, wanted.rows), std::max(multiples.cols, wanted.cols)};
  }
  return multiples;
}

/// The first tensor of the op that does not fit its scaling.
struct Misfit {
  TensorType type;
  TensorSpec spec;
  BlockShape multiples;
};

std::optional<Misfit> misfitOf(const Graph& graph, NodeId id, const LinearQuantizers& quantizers) {
  LinearQuantizers wanted = quantizers;
  for (const TensorType type : kTypes) {
    const BlockShape multiples = multiplesFor(graph, id, type, quantizersOf(wanted, type));
    if (multiples == BlockShape{1, 1}) continue;
    const TensorSpec spec = specOf(graph, id, type);
    if (spec.rows() % multiples.rows != 0 || spec.cols() % multiples.cols != 0) return Misfit{type, spec, multiples};
  }
  return std::nullopt;
}

std::string paddedText(const Misfit& misfit) {
  return fmt::format("[{}, {}]", roundedUp(misfit.spec.rows(), misfit.multiples.rows),
                     roundedUp(misfit.spec.cols(), misfit.multiples.cols));
}

/// "multiples of 16", "multiples of 8 x 16".
std::string multiplesText(const BlockShape& multiples) {
  if (multiples.rows == multiples.cols) return fmt::format("multiples of {}", multiples.rows);
  return fmt::format("multiples of {} x {}", multiples.rows, multiples.cols);
}

Diagnostic misfitWarning(const Node& node, const Misfit& misfit, const Recipe& recipe) {
  return {
      .severity = Severity::Warning,
      .code = "recipe-shape",
      .node = node.owner,
      .message = fmt::format("{} stays in {}: its {} is {} x {}, but {} needs {}. Pad it to {} to quantize it.",
                             node.id, dtypeName(misfit.spec.dtype), roleName(misfit.type), misfit.spec.rows(),
                             misfit.spec.cols(), recipe.name(), multiplesText(misfit.multiples), paddedText(misfit))};
}

std::optional<DelayedScaling> delayedScalingOf(const Recipe& recipe) {
  const std::optional<Attributes> fields = delayedFields(recipe);
  if (!fields) return std::nullopt;
  return DelayedScaling{.identity = stateIdentity(recipe),
                        .historyLength = fields->integer("amax_history_len"),
                        .margin = static_cast<int>(fields->integer("margin")),
                        .takesMostRecent = fields->text("amax_compute_algo") == "most_recent",
                        .reducesAmax = fields->boolean("reduce_amax")};
}

using NodeQuantizers = std::vector<LinearQuantizers>;

bool isQuantizedBy(const Graph& graph, const NodeQuantizers& quantizers, NodeId id, TensorType type) {
  if (id < 0 || !graph.node(id).operation->isView) return false;
  const LinearQuantizers& own = quantizers[static_cast<std::size_t>(id)];
  return (type == TensorType::Input ? own.input : own.gradOutput).any();
}

/// The only op from which a gradient of the value comes; -1: there is none, or a sum.
NodeId onlyReader(const Value& value) {
  return value.uses.size() == 1 && !value.isOutput ? value.uses.front().node : -1;
}

/// If a tensor passes two successive Quantize ops, only the first one quantizes it.
void dropSecondQuantizers(const Graph& graph, NodeQuantizers& quantizers) {
  const NodeQuantizers all = quantizers;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (!node.operation->isView) continue;
    LinearQuantizers& own = quantizers[static_cast<std::size_t>(id)];
    if (isQuantizedBy(graph, all, graph.value(node.inputs.front()).producer, TensorType::Input)) own.input = {};
    if (isQuantizedBy(graph, all, onlyReader(graph.value(node.outputs.front())), TensorType::GradOutput))
      own.gradOutput = {};
  }
}

void warnOfUnknownPlaces(const Graph& graph, const Recipe& recipe, std::vector<Diagnostic>& diagnostics) {
  for (const RoleOverride& special : recipe.overrides()) {
    const auto isThere = [&](const Node& node) { return node.operation->isQuantizable && node.isAt(special.op); };
    if (special.op.empty() || std::ranges::any_of(graph.nodes(), isThere)) continue;
    diagnostics.push_back(
        {.severity = Severity::Warning,
         .code = "recipe-override",
         .pointer = "/recipe/overrides",
         .message = fmt::format(
             "The recipe has an override for \"{}\", but the pipeline has no linear op of this name.", special.op)});
  }
}

/// An override for one op may give a GEMM two operands that do not fit each other.
void refusePairs(const Graph& graph, const Recipe& recipe, std::vector<Diagnostic>& diagnostics) {
  for (const Node& node : graph.nodes()) {
    if (!node.operation->isQuantizable || node.operation->isView) continue;
    const Verdict fits = recipe.checkGemms([&](const std::string& place) { return node.isAt(place); });
    if (!fits)
      diagnostics.push_back({.severity = Severity::Error,
                             .code = "recipe-gemm",
                             .node = node.owner,
                             .pointer = "/recipe/overrides",
                             .message = fmt::format("{}: {}", node.id, fits.reason())});
  }
}

/// True only for tensors with delayed scaling: without a backward pass there is no gradient.
bool hasState(const Graph& graph, const Node& node, TensorType type) {
  const bool hasBackward = graph.pass() == ExecutionMode::Training && node.takesPartInBackward();
  return quantizersOf(node, type).isDelayed() && (type != TensorType::GradOutput || hasBackward);
}

/// "input", "input3" of a group, "k" of an attention.
std::string tensorText(const Node& node, TensorType type, std::optional<std::int64_t> group) {
  if (group && isQuantizedAttention(node)) return node.operation->inputs[static_cast<std::size_t>(*group)].name;
  return group ? fmt::format("{}{}", roleName(type), *group) : std::string(roleName(type));
}

/// One scale serves both directions: neither may saturate.
float smallestRange(const TensorQuantizers& quantizers) {
  float range = std::numeric_limits<float>::infinity();
  for (const auto& quantizer : {quantizers.rowwise, quantizers.columnwise})
    if (quantizer) range = std::min(range, maxFinite(quantizer->format));
  return range;
}

QuantizerState stateOf(const Graph& graph, NodeId id, TensorType type, std::int64_t group) {
  const Node& node = graph.node(id);
  const TensorQuantizers& quantizers = quantizersOf(node, type);
  QuantizerState state{.node = id, .type = type, .group = group};
  const std::string tensor = tensorText(node, type, rowGroups(node) > 0 ? std::optional(group) : std::nullopt);
  const std::string name =
      fmt::format("{}/{}/{}/{}", graph.delayedScaling()->identity, node.id, phaseName(state.pass()), tensor);
  state.scaleName = name + ".scale";
  state.historyName = name + ".amax_history";
  state.maxFinite = smallestRange(quantizers);
  return state;
}

void appendStates(const Graph& graph, NodeId id, TensorType type, std::vector<QuantizerState>& states) {
  const std::int64_t groups = std::max<std::int64_t>(rowGroups(graph.node(id)), 1);
  for (std::int64_t group = 0; group < groups; ++group) states.push_back(stateOf(graph, id, type, group));
}

}  // namespace

const TensorQuantizers& quantizersOf(const Node& node, TensorType type) {
  if (type == TensorType::Input) return node.quantizers.input;
  return type == TensorType::Weight ? node.quantizers.weight : node.quantizers.gradOutput;
}

std::int64_t rowGroups(const Node& node) {
  return isGrouped(node.attributes) ? node.attributes.integer("num_groups") : 0;
}

bool passesOnQuantized(const Node& node, TensorType type) {
  return node.operation->isView && quantizersOf(node, type).any();
}

bool multipliesCodes(const Node& node, bool isBackward) {
  const LinearQuantizers& quantizers = node.quantizers;
  if (node.operation->isView) return false;
  return isBackward ? quantizers.gradOutput.any() : quantizers.input.any() || quantizers.weight.any();
}

std::string quantizedName(const Node& node, TensorType type, std::optional<std::int64_t> group) {
  return fmt::format("{}.{}", node.id, tensorText(node, type, group));
}

Graph applyRecipe(Graph graph, const Recipe& recipe, std::vector<Diagnostic>& diagnostics) {
  warnOfUnknownPlaces(graph, recipe, diagnostics);
  refusePairs(graph, recipe, diagnostics);
  NodeQuantizers quantizers(graph.nodes().size());
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (isAttention(node)) quantizers[static_cast<std::size_t>(id)] = attentionQuantizers(node, recipe);
    if (!node.operation->isQuantizable) continue;
    const LinearQuantizers wanted = fromRecipe(recipe, node);
    if (const std::optional<Misfit> misfit = misfitOf(graph, id, wanted))
      diagnostics.push_back(misfitWarning(node, *misfit, recipe));
    else
      quantizers[static_cast<std::size_t>(id)] = wanted;
  }
  dropSecondQuantizers(graph, quantizers);
  return std::move(graph).withQuantizers(std::move(quantizers), delayedScalingOf(recipe));
}

Phase QuantizerState::pass() const { return type == TensorType::GradOutput ? Phase::Backward : Phase::Forward; }

std::vector<QuantizerState> quantizerStates(const Graph& graph) {
  std::vector<QuantizerState> states;
  if (!graph.delayedScaling()) return states;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id)
    for (const TensorType type : kTypes)
      if (hasState(graph, graph.node(id), type)) appendStates(graph, id, type, states);
  return states;
}

TensorSpec scaleSpec() { return {DType::F32, {1}}; }

TensorSpec historySpec(const DelayedScaling& delayed) { return {DType::F32, {delayed.historyLength, 1}}; }

}  // namespace fuseline
