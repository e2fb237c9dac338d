// Splits the last axis into several tensors, such as a packed projection into queries, keys and values.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>

namespace fuseline::ops {

namespace {
namespace split_parts {

constexpr const char* kName = "Split";
constexpr std::size_t kMostOutputs = 64;

std::string refusalText(const std::vector<std::int64_t>& sizes, std::string_view reason) {
  return fmt::format("{}: sizes is {}, but {}", kName, toString(sizes), reason);
}

Result<OperationSpecs> infer(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const TensorSpec& x = inputs[0];
  const std::vector<std::int64_t>& sizes = attributes.integers("sizes");
  const std::int64_t width = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  if (x.shape.empty() || width != x.cols())
    return Error{refusalText(sizes, x.shape.empty()
                                        ? "x is a scalar; it needs at least one axis."
                                        : fmt::format("the last axis of x has {} elements; the sizes must add up to "
                                                      "that.",
                                                      x.cols()))};
  OperationSpecs specs;
  for (const std::int64_t size : sizes) {
    specs.outputs.push_back(x);
    specs.outputs.back().shape.back() = size;
  }
  return specs;
}

FlopCount flops(const Attributes&, std::span<const TensorSpec>) { return {}; }

ReferenceForward forward(const Attributes& attributes, References inputs, References) {
  const ReferenceTensor& x = inputs[0];
  ReferenceForward result;
  std::size_t first = 0;
  for (const std::int64_t size : attributes.integers("sizes")) {
    Shape shape = x.shape;
    shape.back() = size;
    ReferenceTensor& y = result.outputs.emplace_back(referenceZeros(std::move(shape)));
    for (std::int64_t row = 0; row < x.rows(); ++row)
      std::ranges::copy(referenceRow(x, row, x.cols()).subspan(first, static_cast<std::size_t>(size)),
                        referenceRow(y, row, size).begin());
    first += static_cast<std::size_t>(size);
  }
  return result;
}

ReferenceBackward backward(const Attributes&, const SavedValues&, References gradOutputs) {
  Shape shape = gradOutputs[0].shape;
  shape.back() = 0;
  for (const ReferenceTensor& dy : gradOutputs) shape.back() += dy.cols();
  ReferenceTensor dx = referenceZeros(std::move(shape));
  std::size_t first = 0;
  for (const ReferenceTensor& dy : gradOutputs) {
    for (std::int64_t row = 0; row < dx.rows(); ++row)
      std::ranges::copy(referenceRow(dy, row, dy.cols()),
                        referenceRow(dx, row, dx.cols()).subspan(first, static_cast<std::size_t>(dy.cols())).begin());
    first += static_cast<std::size_t>(dy.cols());
  }
  return {.inputs = {std::move(dx)}};
}

/// y, y1, y2 ...
std::vector<Port> outputsOf(std::size_t count) {
  std::vector<Port> outputs;
  for (std::size_t i = 0; i < count; ++i)
    outputs.push_back({i == 0 ? "y" : fmt::format("y{}", i), "[..., N]", "Its width is its entry in sizes."});
  return outputs;
}

Result<FusibleOperation> specialise(const Attributes& given) {
  const std::size_t count = given.has("sizes") ? given.integers("sizes").size() : 2;
  if (count == 0 || count > kMostOutputs)
    return Error{.message = fmt::format("{}: sizes has {} entries; expected 1 to {}, one for each output.", kName,
                                        count, kMostOutputs),
                 .subject = "sizes"};
  return BasicOperation{
      .name = kName,
      .category = "Structure",
      .summary =
          "Splits the last axis into several tensors, such as a packed projection into queries, keys and values.",
      .formula = "y, y1, y2 ... = the columns of x, one piece after another",
      .derivative = "dx = dy, dy1, dy2 ... side by side",
      .source = "TransformerEngine SplitAlongDim, for the last axis",
      .keywords = {"split", "chunk", "slice", "qkv", "packed", "attention", "unbind"},
      .inputs = {{"x", "[..., H]", "H is the sum of the sizes."}},
      .outputs = outputsOf(count),
      .attributes = {{.name = "sizes",
                      .type = AttributeType::IntegerList,
                      .minimum = 1,
                      .maximum = 1 << 24,
                      .unit = "elements",
                      .help = "Widths of the outputs y, y1, y2 and so on. Their sum is the last axis of x."}},
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveNothing,
      .backwardCompute = backward,
  };
}

/// Packed queries, keys and values of four heads to a group.
OperationCall exampleCall(std::int64_t elements, DType dtype) {
  const std::vector<std::int64_t> sizes = {1024, 256, 256};
  OperationCall call;
  call.attributes.set("sizes", sizes);
  call.inputs = {{.dtype = dtype, .shape = {std::max<std::int64_t>(1, elements / 1536), 1536}}};
  return call;
}

}  // namespace split_parts
}  // namespace

BasicOperation split() {
  using namespace split_parts;
  return structuredOperation({}, specialise, exampleCall);
}

}  // namespace fuseline::ops
