// MoEPermute: a copy of each token for each of its experts, ordered by expert.
// SPDX-License-Identifier: Apache-2.0
#include "core/numerics/random.h"
#include "core/ops/grouped_form.h"
#include "core/ops/moe_form.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

namespace fuseline::ops {

namespace {
namespace moe_permute_parts {

constexpr const char* kName = "MoEPermute";
constexpr double kMostExperts = 4096;

Shape tokensOf(const Shape& shape) { return shape.empty() ? shape : Shape{shape.begin(), shape.end() - 1}; }

Result<OperationSpecs> infer(const Attributes& attributes, Specs inputs) {
  const PermuteForm form = permuteForm(attributes);
  const TensorSpec& x = inputs[0];
  const TensorSpec& indices = inputs[PermuteForm::kIndices];
  if (x.shape.empty() || indices.shape.empty() || tokensOf(x.shape) != tokensOf(indices.shape))
    return Error{
        fmt::format("{}: x has the shape {}, but indices has the shape {}; expected the same axes except the last "
                    "(token width in x, experts per token in indices).",
                    kName, toString(x.shape), toString(indices.shape))};
  return OperationSpecs{.outputs = {{x.dtype, {form.numRows(indices.numElements()), x.cols()}},
                                    {DType::I64, indices.shape},
                                    {DType::I64, {form.numExperts}}}};
}

/// Backward adds the rows of each token.
FlopCount flops(const Attributes&, Specs inputs) {
  return {.forward = 0, .backward = saturatedProduct(inputs[PermuteForm::kIndices].cols(), inputs[0].numElements())};
}

/// Throws for an index that is no expert: it is known at run time only.
ReferenceForward forward(const Attributes& attributes, References inputs, References) {
  const PermuteForm form = permuteForm(attributes);
  const ReferenceTensor& x = inputs[0];
  const ReferenceTensor& indices = inputs[PermuteForm::kIndices];
  const Result<Permutation> made =
      permutationOf(form, std::vector<std::int64_t>(indices.values.begin(), indices.values.end()));
  if (!made) throw std::invalid_argument(made.error().message);
  ReferenceTensor y = referenceZeros({form.numRows(static_cast<std::int64_t>(indices.values.size())), x.cols()});
  for (std::size_t slot = 0; slot < made->rowIdMap.size(); ++slot)
    if (made->rowIdMap[slot] >= 0)
      std::ranges::copy(referenceRow(x, static_cast<std::int64_t>(slot) / indices.cols(), x.cols()),
                        referenceRow(y, made->rowIdMap[slot], x.cols()).begin());
  return {.outputs = {std::move(y),
                      {indices.shape, {made->rowIdMap.begin(), made->rowIdMap.end()}},
                      {{form.numExperts}, {made->splitSizes.begin(), made->splitSizes.end()}}}};
}

/// Only where the rows went.
OperationContext saveContext(const SaveArguments& arguments) {
  if (!arguments.needs.inputs[0]) return {};
  return {.tensors = {{OperandKind::Output, PermuteForm::kRowIdMap}}};
}

ReferenceBackward backward(const Attributes&, const SavedValues& saved, References gradOutputs) {
  ReferenceBackward gradients{.inputs = {{}, {}}};
  if (!saved.has({OperandKind::Output, PermuteForm::kRowIdMap})) return gradients;
  const ReferenceTensor& map = saved.output(PermuteForm::kRowIdMap);
  const ReferenceTensor& dy = gradOutputs[0];
  Shape shape = tokensOf(map.shape);
  shape.push_back(dy.cols());
  ReferenceTensor dx = referenceZeros(std::move(shape));
  for (std::size_t slot = 0; slot < map.values.size(); ++slot) {
    if (map.values[slot] < 0.0) continue;
    const std::span<double> sum = referenceRow(dx, static_cast<std::int64_t>(slot) / map.cols(), dy.cols());
    std::ranges::transform(sum, referenceRow(dy, static_cast<std::int64_t>(map.values[slot]), dy.cols()), sum.begin(),
                           std::plus<>());
  }
  gradients.inputs[0] = std::move(dx);
  return gradients;
}

/// Every expert as often as any other.
Tensor inTurn(const TensorSpec& spec, std::size_t numExperts) {
  std::vector<double> indices(static_cast<std::size_t>(spec.numElements()));
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<double>(i % numExperts);
  return Tensor::fromDoubles(spec, indices);
}

/// Different experts for each token: in turn, or with its share as the probability of each.
Tensor drawIndices(const DrawArguments& arguments) {
  const TensorSpec& spec = arguments.inputs[PermuteForm::kIndices];
  const auto numExperts = static_cast<std::size_t>(permuteForm(arguments.attributes).numExperts);
  if (arguments.attributes.text("distribution") == "even") return inTurn(spec, numExperts);
  const auto topk = static_cast<std::size_t>(spec.cols());
  const RandomStream stream(arguments.seed, arguments.name);
  const auto shares = groupShares(arguments.attributes, numExperts);
  std::vector<double> indices, keys(numExperts);
  std::vector<std::size_t> order(numExperts);
  for (std::int64_t token = 0; token < spec.rows(); ++token) {
    stream.uniforms(static_cast<std::uint64_t>(token) * numExperts, keys);
    // The smallest of exponential variables is that of an expert with the probability of its rate.
    for (std::size_t expert = 0; shares && expert < numExperts; ++expert)
      keys[expert] = -std::log1p(-keys[expert]) / (*shares)[expert];
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t expert) { return keys[expert]; });
    for (std::size_t slot = 0; slot < topk; ++slot) indices.push_back(static_cast<double>(order[slot % numExperts]));
  }
  return Tensor::fromDoubles(spec, indices);
}

std::vector<AttributeSpec> attributes() {
  std::vector<AttributeSpec> all = {
      {.name = "num_experts",
       .type = AttributeType::Integer,
       .defaultValue = std::int64_t{1},
       .minimum = 1,
       .maximum = kMostExperts,
       .unit = "experts",
       .help = "Experts, E."},
      {.name = "align_size",
       .type = AttributeType::Integer,
       .defaultValue = std::int64_t{1},
       .minimum = 1,
       .maximum = kMostExperts,
       .unit = "rows",
       .help = "The rows of each expert are padded with zeros to a multiple of this number. Recipes need 16 (FP8, "
               "NVFP4) or 32 (MXFP8). 1 pads nothing."}};
  std::ranges::move(distributionAttributes("indices"), std::back_inserter(all));
  return all;
}

OperationCall exampleCall(std::int64_t elements, DType dtype) {
  constexpr std::int64_t kWidth = 1024;
  constexpr std::int64_t kExperts = 16;
  constexpr std::int64_t kTopk = 2;
  const std::int64_t tokens = std::max<std::int64_t>(1, elements / kWidth);
  OperationCall call{.attributes = defaultAttributes({.attributes = attributes()})};
  call.attributes.set("num_experts", kExperts);
  call.inputs = {{.dtype = dtype, .shape = {tokens, kWidth}}, {.dtype = DType::I64, .shape = {tokens, kTopk}}};
  return call;
}

}  // namespace moe_permute_parts
}  // namespace

BasicOperation moe_permute() {
  using namespace moe_permute_parts;
  return {
      .name = kName,
      .category = "Mixture of experts",
      .summary = "Copies each token once for each of its experts, in the order of the experts.",
      .formula = "y[row_id_map[t, i]] = x[t]; the other rows are 0",
      .derivative = "dx[t] = the sum of dy[row_id_map[t, i]] over the token's experts i",
      .source = "TransformerEngine moe_permute and moe_permute_and_pad_with_probs, map_type index",
      .details =
          "Rows are ordered by expert, then by token. The rows of an expert are known only at run time, so y is sized "
          "for the worst\ncase, and split_sizes gives the rows of each expert. Unused rows are 0 and belong to the "
          "last "
          "expert, so that the\nsizes always add up.",
      .keywords = {"moe", "mixture of experts", "permute", "dispatch", "scatter", "token", "sort", "pad", "grouped"},
      .inputs = {{"x", "[..., H]", "A row for each token."},
                 {.name = "indices",
                  .shape = "[..., k]",
                  .help = "The experts of each token, i64; -1 drops one. Not given: drawn from distribution.",
                  .elements = PortElements::Counts,
                  .draw = drawIndices}},
      .outputs = {{"y", "[R, H]", "R = k T for T tokens; with align_size, the worst case of rows after padding."},
                  {.name = "row_id_map",
                   .shape = "[..., k]",
                   .help = "Row of y for each token and each of its experts, i64; -1: dropped.",
                   .elements = PortElements::Counts},
                  {.name = "split_sizes",
                   .shape = "[E]",
                   .help = "Rows of each expert, i64, for GroupedLinear.",
                   .elements = PortElements::Counts}},
      .attributes = attributes(),
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveContext,
      .backwardCompute = backward,
      .exampleCall = exampleCall,
  };
}

}  // namespace fuseline::ops
