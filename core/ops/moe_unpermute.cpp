// MoEUnpermute: the results of a token's experts, weighted and added.
// SPDX-License-Identifier: Apache-2.0
#include "core/numerics/random.h"
#include "core/ops/moe_form.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

namespace fuseline::ops {

namespace {
namespace moe_unpermute_parts {

constexpr const char* kName = "MoEUnpermute";
constexpr int kRowIdMap = 1;  // slots of its inputs
constexpr int kProbs = 2;

bool mergesProbs(const Attributes& attributes) { return attributes.boolean("merging_probs"); }

Result<OperationSpecs> infer(const Attributes& attributes, Specs inputs) {
  const TensorSpec& x = inputs[0];
  const Shape& map = inputs[kRowIdMap].shape;
  if (x.shape.empty() || map.empty())
    return Error{fmt::format("{}: x has the shape {} and row_id_map the shape {}; both need a last axis.", kName,
                             toString(x.shape), toString(map))};
  if (mergesProbs(attributes) && inputs[kProbs].shape != map)
    return Error{fmt::format(
        "{}: probs has the shape {}, but row_id_map has the shape {}; expected one probability per token and expert.",
        kName, toString(inputs[kProbs].shape), toString(map))};
  TensorSpec y{x.dtype, map};
  y.shape.back() = x.cols();
  return OperationSpecs{.outputs = {y}};
}

/// A multiply-add for each element of a row that a token has; backward a product for each and a dot product.
FlopCount flops(const Attributes& attributes, Specs inputs) {
  const std::int64_t elements =
      saturatedProduct(std::min(inputs[0].rows(), inputs[kRowIdMap].numElements()), inputs[0].cols());
  if (!mergesProbs(attributes)) return {.forward = elements, .backward = 0};
  return {.forward = saturatedProduct(2, elements), .backward = saturatedProduct(3, elements)};
}

/// f(slot, row, token) for each slot that has a row. Throws for a row that does not exist.
template <class Function>
void forEachRow(const ReferenceTensor& map, std::int64_t numRows, Function f) {
  const Result<std::vector<std::int64_t>> slots =
      slotsOfRows(std::vector<std::int64_t>(map.values.begin(), map.values.end()), numRows);
  if (!slots) throw std::invalid_argument(slots.error().message);
  for (std::size_t slot = 0; slot < map.values.size(); ++slot)
    if (map.values[slot] >= 0.0)
      f(slot, static_cast<std::int64_t>(map.values[slot]), static_cast<std::int64_t>(slot) / map.cols());
}

ReferenceForward forward(const Attributes& attributes, References inputs, References) {
  const ReferenceTensor& x = inputs[0];
  Shape shape = inputs[kRowIdMap].shape;
  shape.back() = x.cols();
  ReferenceTensor y = referenceZeros(std::move(shape));
  forEachRow(inputs[kRowIdMap], x.rows(), [&](std::size_t slot, std::int64_t row, std::int64_t token) {
    const double prob = mergesProbs(attributes) ? inputs[kProbs].values[slot] : 1.0;
    const std::span<double> sum = referenceRow(y, token, x.cols());
    std::ranges::transform(sum, referenceRow(x, row, x.cols()), sum.begin(),
                           [prob](double a, double b) { return a + prob * b; });
  });
  return {.outputs = {std::move(y)}};
}

/// The map and the probabilities for dx, x for dprobs. The shape of dx is state.
OperationContext saveContext(const SaveArguments& arguments) {
  const GradientNeeds& needs = arguments.needs;
  const bool merges = mergesProbs(arguments.attributes);
  OperationContext context;
  if (!needs.anyInput()) return context;
  context.tensors.push_back({OperandKind::Input, kRowIdMap});
  if (merges && needs.inputs[0]) context.tensors.push_back({OperandKind::Input, kProbs});
  if (merges && needs.inputs[kProbs]) context.tensors.push_back({OperandKind::Input, 0});
  context.state.set("shape", arguments.inputs[0].shape);
  return context;
}

ReferenceTensor inputGradient(const SavedValues& saved, const ReferenceTensor& dy, bool merges) {
  ReferenceTensor dx = referenceZeros(saved.state().integers("shape"));
  forEachRow(saved.input(kRowIdMap), dx.rows(), [&](std::size_t slot, std::int64_t row, std::int64_t token) {
    const double prob = merges ? saved.input(kProbs).values[slot] : 1.0;
    std::ranges::transform(referenceRow(dy, token, dy.cols()), referenceRow(dx, row, dy.cols()).begin(),
                           [prob](double value) { return prob * value; });
  });
  return dx;
}

ReferenceTensor probsGradient(const SavedValues& saved, const ReferenceTensor& dy) {
  const ReferenceTensor& x = saved.input();
  ReferenceTensor dprobs = referenceZeros(saved.input(kRowIdMap).shape);
  forEachRow(saved.input(kRowIdMap), x.rows(), [&](std::size_t slot, std::int64_t row, std::int64_t token) {
    const std::span<const double> ofRow = referenceRow(x, row, x.cols());
    dprobs.values[slot] =
        std::inner_product(ofRow.begin(), ofRow.end(), referenceRow(dy, token, dy.cols()).begin(), 0.0);
  });
  return dprobs;
}

ReferenceBackward backward(const Attributes& attributes, const SavedValues& saved, References gradOutputs) {
  const bool merges = mergesProbs(attributes);
  ReferenceBackward gradients{.inputs = std::vector<ReferenceTensor>(merges ? 3 : 2)};
  if (!saved.has({OperandKind::Input, kRowIdMap})) return gradients;
  if (!merges || saved.has({OperandKind::Input, kProbs}))
    gradients.inputs[0] = inputGradient(saved, gradOutputs[0], merges);
  if (merges && saved.has({OperandKind::Input, 0})) gradients.inputs[kProbs] = probsGradient(saved, gradOutputs[0]);
  return gradients;
}

/// Different rows in random order; as many as there are.
Tensor drawMap(const DrawArguments& arguments) {
  const TensorSpec& spec = arguments.inputs[kRowIdMap];
  std::vector<double> keys(static_cast<std::size_t>(arguments.inputs[0].rows()));
  RandomStream(arguments.seed, arguments.name).uniforms(0, keys);
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t row) { return keys[row]; });
  std::vector<double> rows(static_cast<std::size_t>(spec.numElements()), -1.0);
  std::transform(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), rows.size())),
                 rows.begin(), [](std::size_t row) { return static_cast<double>(row); });
  return Tensor::fromDoubles(spec, rows);
}

std::vector<AttributeSpec> attributes() {
  return {booleanAttribute("merging_probs", true,
                           "Multiplies each row by a probability, a further input, before the rows are added.")};
}

Result<FusibleOperation> specialise(const Attributes& given) {
  std::vector<Port> inputs = {{"x", "[R, H]", "Rows in the order of the experts."},
                              {.name = "row_id_map",
                               .shape = "[..., k]",
                               .help = "The rows of each token, i64, from MoEPermute; -1: none. Not given: different "
                                       "rows in random order.",
                               .elements = PortElements::Counts,
                               .draw = drawMap}};
  if (mergesProbs(given)) inputs.push_back({"probs", "[..., k]", "From TopKRouter."});
  return BasicOperation{
      .name = kName,
      .category = "Mixture of experts",
      .summary = "Adds the results of each token's experts, weighted by their probabilities.",
      .formula = "y[t] = the sum of probs[t, i] x[row_id_map[t, i]] over the token's experts i",
      .derivative =
          "dx[row_id_map[t, i]] = probs[t, i] dy[t]; dprobs[t, i] = the dot product of dy[t] and that row of x",
      .source = "TransformerEngine moe_unpermute, map_type index",
      .details =
          "The sum is in float32, in the order of the token's experts, and rounded once. A token without experts "
          "gets 0,\nand so do the gradients of unused rows.",
      .keywords = {"moe", "mixture of experts", "unpermute", "combine", "gather", "merge", "token"},
      .inputs = std::move(inputs),
      .outputs = {{"y", "[..., H]", "A row for each token."}},
      .attributes = attributes(),
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveContext,
      .backwardCompute = backward,
  };
}

OperationCall exampleCall(std::int64_t elements, DType dtype) {
  constexpr std::int64_t kWidth = 1024;
  constexpr std::int64_t kTopk = 2;
  const std::int64_t tokens = std::max<std::int64_t>(1, elements / kWidth / kTopk);
  OperationCall call{.attributes = defaultAttributes({.attributes = attributes()})};
  call.inputs = {{.dtype = dtype, .shape = {tokens * kTopk, kWidth}},
                 {.dtype = DType::I64, .shape = {tokens, kTopk}},
                 {.dtype = dtype, .shape = {tokens, kTopk}}};
  return call;
}

}  // namespace moe_unpermute_parts
}  // namespace

BasicOperation moe_unpermute() {
  using namespace moe_unpermute_parts;
  return structuredOperation(attributes(), specialise, exampleCall);
}

}  // namespace fuseline::ops
