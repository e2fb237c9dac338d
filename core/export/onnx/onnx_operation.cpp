// One function an op that is not elementwise; the arithmetic is that of the ops' references.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_operation.h"

#include "core/export/onnx/onnx_attention_operation.h"
#include "core/export/onnx/onnx_model_ends.h"
#include "core/export/onnx/onnx_program.h"
#include "core/export/onnx/operations/onnx_routing.h"
#include "core/ops/grouped_form.h"
#include "core/quant/attention_quantizers.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

namespace fuseline {

namespace {

using Ints = std::vector<std::int64_t>;

// ---- normalizations, in float32

/// -2, -1 for two trailing axes.
Ints lastAxes(std::size_t count) {
  Ints axes(count);
  std::iota(axes.begin(), axes.end(), -static_cast<std::int64_t>(count));
  return axes;
}

std::size_t numNormalized(const Node& node) { return node.attributes.integers("normalized_shape").size(); }

OnnxValue gamma(OnnxGraph& graph) {
  const OnnxValue weight = graph.cast(graph.parameter(), DType::F32);
  if (!graph.operation().attributes.boolean("zero_centered_gamma")) return weight;
  return graph.add("Add", {weight, graph.number(1.0)}, "gamma");
}

/// x / sqrt(reduced(x^2) + eps), over the last axes.
OnnxValue byRoot(OnnxGraph& graph, const char* reduction, std::size_t numAxes) {
  const OnnxValue x = graph.cast(graph.input(), DType::F32);
  const OnnxValue squares = graph.add("Mul", {x, x}, "squares");
  const OnnxValue reduced = graph.add(reduction, {squares, graph.integers(lastAxes(numAxes))}, "reduced");
  const OnnxValue sum = graph.add("Add", {reduced, graph.number(graph.operation().attributes.real("eps"))}, "sum");
  return graph.add("Div", {x, graph.add("Sqrt", {sum}, "root")}, "normalized");
}

void addRmsNorm(OnnxGraph& graph, OnnxQuantization&) {
  const OnnxValue normalized = byRoot(graph, "ReduceMean", numNormalized(graph.operation()));
  graph.setOutput(0, graph.add("Mul", {normalized, gamma(graph)}, "scaled"));
}

void addL2Normalization(OnnxGraph& graph, OnnxQuantization&) { graph.setOutput(0, byRoot(graph, "ReduceSum", 1)); }

void addLayerNorm(OnnxGraph& graph, OnnxQuantization&) {
  const Node& node = graph.operation();
  const OnnxValue x = graph.cast(graph.input(), DType::F32);
  const OnnxValue beta = graph.cast(graph.parameter(1), DType::F32);
  graph.setOutput(0, graph.add("LayerNormalization", {x, gamma(graph), beta}, "normalized",
                               {{"axis", -static_cast<std::int64_t>(numNormalized(node))},
                                {"epsilon", static_cast<float>(node.attributes.real("eps"))}}));
}

// ---- linear layers

OnnxValue transposed(OnnxGraph& graph, const OnnxValue& weight) {
  return graph.add("Transpose", {weight}, "weight_transposed", {{"perm", Ints{1, 0}}});
}

/// In the weight's dtype; in float32 if an operand is quantized.
void addBasicLinear(OnnxGraph& graph, OnnxQuantization& quantization) {
  const LinearQuantizers& quantizers = graph.operation().quantizers;
  const bool isQuantized = isOnnxQuantizer(quantizers.input.rowwise) || isOnnxQuantizer(quantizers.weight.rowwise);
  const DType dtype = isQuantized ? DType::F32 : graph.outputSpec().dtype;
  const OnnxValue x = graph.cast(quantization.input(graph), dtype);
  const OnnxValue weight = graph.cast(quantization.weight(graph), dtype);
  graph.setOutput(0, graph.add("MatMul", {x, transposed(graph, weight)}, "product"));
}

/// The parameters of each group; one parameter may hold all of them.
std::vector<OnnxValue> ofGroups(OnnxGraph& graph, const GroupedParameter& parameter, std::int64_t numGroups,
                                const char* part) {
  std::vector<OnnxValue> groups;
  if (!parameter.isSingle) {
    for (int slot = 0; slot < parameter.numSlots; ++slot) groups.push_back(graph.parameter(parameter.firstSlot + slot));
    return groups;
  }
  const OnnxValue all = graph.parameter(parameter.firstSlot);
  for (std::int64_t group = 0; group < numGroups; ++group)
    groups.push_back(graph.add("Gather", {all, graph.integer(group)}, part, {{"axis", std::int64_t{0}}}));
  return groups;
}

/// value: [rows, ...], cut where the groups begin.
std::vector<OnnxValue> cut(OnnxGraph& graph, const OnnxValue& value, std::int64_t numGroups, const char* part) {
  return graph.addSeveral("Split", {value, graph.input(GroupedForm::kSplitSizes)}, static_cast<std::size_t>(numGroups),
                          part, {{"axis", std::int64_t{0}}});
}

/// Rows of the matrix [M, N] in the shape of x with a different last extent.
OnnxValue inShapeOfInput(OnnxGraph& graph, const OnnxValue& rows) {
  if (graph.inputSpec().shape.size() == 2) return rows;
  const OnnxValue leading = graph.add("Shape", {graph.input()}, "leading", {{"end", std::int64_t{-1}}});
  const OnnxValue shape =
      graph.add("Concat", {leading, graph.integers({graph.outputSpec().cols()})}, "shape", {{"axis", std::int64_t{0}}});
  return graph.add("Reshape", {rows, shape}, "shaped");
}

/// The biases of a group's rows: one for all of them, or each times its scale.
OnnxValue scaledBias(OnnxGraph& graph, const OnnxValue& bias, const OnnxValue& scales) {
  const OnnxValue column = graph.add("Unsqueeze", {scales, graph.integers({-1})}, "column");
  return graph.add("Mul", {column, bias}, "scaled_bias");
}

void addGroupedLinear(OnnxGraph& graph, OnnxQuantization&) {
  const GroupedForm form = groupedForm(graph.operation().attributes);
  const DType dtype = graph.outputSpec().dtype;
  const auto rowsOf = [&](int slot, const Ints& shape, const char* part) {
    const OnnxValue matrix = graph.add("Reshape", {graph.input(slot), graph.integers(shape)}, part);
    return graph.cast(matrix, dtype);
  };
  const OnnxValue rows = rowsOf(0, {-1, graph.inputSpec().cols()}, "matrix");
  std::vector<OnnxValue> parts = cut(graph, rows, form.numGroups, "rows");
  const std::vector<OnnxValue> weights = ofGroups(graph, form.weights, form.numGroups, "weight");
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts[i] = graph.add("MatMul", {parts[i], transposed(graph, weights[i])}, "product");
  std::vector<OnnxValue> biases;
  if (form.hasBias()) biases = ofGroups(graph, form.biases, form.numGroups, "bias");
  if (form.hasBias() && form.isBiasScaled) {
    const OnnxValue scales = rowsOf(GroupedForm::kScales, {-1}, "scales");
    const std::vector<OnnxValue> scaleParts = cut(graph, scales, form.numGroups, "scales_of");
    for (std::size_t i = 0; i < parts.size(); ++i) biases[i] = scaledBias(graph, biases[i], scaleParts[i]);
  }
  for (std::size_t i = 0; i < biases.size(); ++i) parts[i] = graph.add("Add", {parts[i], biases[i]}, "biased");
  graph.setOutput(0, inShapeOfInput(graph, graph.add("Concat", parts, "groups", {{"axis", std::int64_t{0}}})));
}

// ---- structure

void addReshape(OnnxGraph& graph, OnnxQuantization&) {
  graph.setOutput(0, graph.reshape(graph.input(), graph.inputSpec().shape, graph.outputSpec().shape, "shaped"));
}

void addSplit(OnnxGraph& graph, OnnxQuantization&) { addOnnxSplit(graph); }
void addConcat(OnnxGraph& graph, OnnxQuantization&) { addOnnxConcat(graph); }

/// ONNX's Expand repeats an axis that is there.
void addExpand(OnnxGraph& graph, OnnxQuantization&) {
  const OnnxValue row = graph.add("Unsqueeze", {graph.input(), graph.integers({-2})}, "row");
  const std::int64_t count = graph.operation().attributes.integer("count");
  graph.setOutput(0, graph.add("Expand", {row, graph.integers({count, 1})}, "rows"));
}

void addEmbedding(OnnxGraph& graph, OnnxQuantization&) { addOnnxEmbedding(graph); }
void addTiedLinear(OnnxGraph& graph, OnnxQuantization&) { addOnnxTiedLinear(graph); }

void addRouter(OnnxGraph& graph, OnnxQuantization&) { addOnnxRouter(graph); }
void addAuxLoss(OnnxGraph& graph, OnnxQuantization&) { addOnnxAuxLoss(graph); }
void addPermute(OnnxGraph& graph, OnnxQuantization&) { addOnnxPermute(graph); }
void addUnpermute(OnnxGraph& graph, OnnxQuantization&) { addOnnxUnpermute(graph); }

void addQuantize(OnnxGraph& graph, OnnxQuantization& quantization) { graph.setOutput(0, quantization.input(graph)); }

// ---- the table

struct OnnxOperation {
  std::string_view name;
  void (*add)(OnnxGraph& graph, OnnxQuantization& quantization);
};

constexpr std::array kOperations = {
    OnnxOperation{"BasicLinear", addBasicLinear}, OnnxOperation{"GroupedLinear", addGroupedLinear},
    OnnxOperation{"RMSNorm", addRmsNorm},         OnnxOperation{"LayerNorm", addLayerNorm},
    OnnxOperation{"Reshape", addReshape},         OnnxOperation{"L2Normalization", addL2Normalization},
    OnnxOperation{"Quantize", addQuantize},       OnnxOperation{"Split", addSplit},
    OnnxOperation{"Concat", addConcat},           OnnxOperation{"Embedding", addEmbedding},
    OnnxOperation{"TiedLinear", addTiedLinear},   OnnxOperation{"TopKRouter", addRouter},
    OnnxOperation{"MoEPermute", addPermute},      OnnxOperation{"MoEUnpermute", addUnpermute},
    OnnxOperation{"Expand", addExpand},           OnnxOperation{"MoEAuxLoss", addAuxLoss},
};

Error refusal(const Node& node) {
  const FusibleOperation& operation = *node.operation;
  if (operation.category == "Communication")
    return {
        fmt::format("{}: {} communicates between ranks, but an ONNX graph belongs to one process. Bypass or remove it; "
                    "on one rank it has no effect.",
                    node.id, operation.name)};
  return {fmt::format("{}: ONNX has no {}. Replace it by ops of te.ops, or by a Formula.", node.id, operation.name)};
}

}  // namespace

Result<void> addOnnxOperation(OnnxGraph& graph, OnnxQuantization& quantization) {
  const Node& node = graph.operation();
  const auto found = std::ranges::find(kOperations, node.operation->name, &OnnxOperation::name);
  if (found != kOperations.end())
    found->add(graph, quantization);
  else if (node.operation->name == "DotProductAttention")
    addOnnxAttention(graph);
  else if (node.operation->name == "RotaryPositionEmbedding")
    return addOnnxRotaryEmbedding(graph);
  else if (node.operation->name == "CrossEntropy")
    return addOnnxCrossEntropy(graph);
  else if (hasOnnxProgram(node))
    addOnnxProgram(graph);
  else
    return refusal(node);
  return {};
}

bool followsRecipeInOnnx(const Node& node) {
  const auto isHeld = [](const std::optional<QuantizerSpec>& quantizer) {
    return !quantizer || isOnnxQuantizer(quantizer);
  };
  const LinearQuantizers& quantizers = node.quantizers;
  const bool isQuantized = quantizers.input.rowwise || quantizers.weight.rowwise;
  if (node.operation->name == "GroupedLinear" || isAttention(node)) return !isQuantized;
  return isHeld(quantizers.input.rowwise) && isHeld(quantizers.weight.rowwise);
}

}  // namespace fuseline
