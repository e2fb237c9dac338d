// Repeats a tensor along a new axis, such as a key that all heads of an attention share.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace fuseline::ops {

namespace {
namespace expand_parts {

constexpr const char* kName = "Expand";
constexpr const char* kCount = "count";
/// Pieces of a copy: no model has more heads.
constexpr double kMostCopies = 4096;

Shape expandedShape(const Shape& x, std::int64_t count) {
  Shape y = x;
  y.insert(y.end() - 1, count);
  return y;
}

Result<OperationSpecs> infer(const Attributes& attributes, Specs inputs) {
  const TensorSpec& x = inputs[0];
  if (x.shape.empty()) return Error{fmt::format("{}: x is a scalar; it needs at least one axis.", kName)};
  return OperationSpecs{.outputs = {{x.dtype, expandedShape(x.shape, attributes.integer(kCount))}}};
}

/// Backward adds; the first of the copies needs no addition.
FlopCount flops(const Attributes& attributes, Specs inputs) {
  return {.forward = 0, .backward = saturatedProduct(attributes.integer(kCount) - 1, inputs[0].numElements())};
}

ReferenceForward forward(const Attributes& attributes, References inputs, References) {
  const ReferenceTensor& x = inputs[0];
  const std::int64_t count = attributes.integer(kCount);
  ReferenceTensor y = referenceZeros(expandedShape(x.shape, count));
  for (std::int64_t row = 0; row < y.rows(); ++row)
    std::ranges::copy(referenceRow(x, row / count, x.cols()), referenceRow(y, row, x.cols()).begin());
  return {.outputs = {std::move(y)}};
}

ReferenceBackward backward(const Attributes& attributes, const SavedValues&, References gradOutputs) {
  const ReferenceTensor& dy = gradOutputs[0];
  const std::int64_t count = attributes.integer(kCount);
  Shape shape = dy.shape;
  shape.erase(shape.end() - 2);
  ReferenceTensor dx = referenceZeros(std::move(shape));
  for (std::int64_t row = 0; row < dy.rows(); ++row) {
    const std::span<double> sum = referenceRow(dx, row / count, dy.cols());
    std::ranges::transform(sum, referenceRow(dy, row, dy.cols()), sum.begin(), std::plus<>());
  }
  return {.inputs = {std::move(dx)}};
}

std::vector<AttributeSpec> attributes() {
  return {{.name = kCount,
           .type = AttributeType::Integer,
           .minimum = 1,
           .maximum = kMostCopies,
           .unit = "copies",
           .help = "Extent of the new axis, N."}};
}

/// The rotated part of a key, for the heads of DeepSeek-V3.
OperationCall exampleCall(std::int64_t elements, DType dtype) {
  constexpr std::int64_t kHeads = 128;
  constexpr std::int64_t kChannels = 64;
  OperationCall call;
  call.attributes.set(kCount, kHeads);
  call.inputs = {{.dtype = dtype, .shape = {std::max<std::int64_t>(1, elements / (kHeads * kChannels)), kChannels}}};
  return call;
}

}  // namespace expand_parts
}  // namespace

BasicOperation expand() {
  using namespace expand_parts;
  return {
      .name = kName,
      .category = "Structure",
      .summary = "Repeats a tensor along a new axis before the last one, such as a key that all heads share.",
      .formula = "y[..., n, :] = x[..., :]",
      .derivative = "dx = the sum of dy over the new axis",
      .source = "torch.Tensor.expand after unsqueeze(-2)",
      .keywords = {"expand", "repeat", "broadcast", "tile", "mla", "unsqueeze", "heads"},
      .inputs = {{"x", "[..., D]", "The tensor to repeat."}},
      .outputs = {{"y", "[..., N, D]", "N copies of each row."}},
      .attributes = attributes(),
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveNothing,
      .backwardCompute = backward,
      .exampleCall = exampleCall,
  };
}

}  // namespace fuseline::ops
