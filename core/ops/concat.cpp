// Concatenates tensors along the last axis.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace fuseline::ops {

namespace {
namespace concat_parts {

constexpr const char* kName = "Concat";
constexpr const char* kWidths = "widths";
constexpr double kMostInputs = 64;

std::string portName(std::size_t slot) { return slot == 0 ? "x" : fmt::format("x{}", slot); }

Shape leadingAxes(const Shape& shape) { return {shape.begin(), shape.end() - (shape.empty() ? 0 : 1)}; }

std::optional<Error> checkInput(std::size_t slot, const TensorSpec& input, const TensorSpec& x) {
  if (input.shape.empty())
    return Error{fmt::format("{}: {} is a scalar; it needs at least one axis.", kName, portName(slot))};
  if (input.dtype != x.dtype)
    return Error{fmt::format("{}: {} is {}, but x is {}; all inputs must have one dtype.", kName, portName(slot),
                             dtypeName(input.dtype), dtypeName(x.dtype))};
  if (leadingAxes(input.shape) == leadingAxes(x.shape) && input.shape.size() == x.shape.size()) return std::nullopt;
  return Error{fmt::format("{}: {} has the shape {}, but x has the shape {}; all axes but the last must be the same.",
                           kName, portName(slot), toString(input.shape), toString(x.shape))};
}

Result<OperationSpecs> infer(const Attributes&, Specs inputs) {
  TensorSpec y = inputs[0];
  for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
    if (auto error = checkInput(slot, inputs[slot], inputs[0])) return *error;
    if (slot > 0) y.shape.back() += inputs[slot].cols();
  }
  return OperationSpecs{.outputs = {y}};
}

FlopCount flops(const Attributes&, Specs) { return {}; }

ReferenceForward forward(const Attributes&, References inputs, References) {
  Shape shape = inputs[0].shape;
  shape.back() = 0;
  for (const ReferenceTensor& input : inputs) shape.back() += input.cols();
  ReferenceTensor y = referenceZeros(std::move(shape));
  std::size_t first = 0;
  for (const ReferenceTensor& input : inputs) {
    for (std::int64_t row = 0; row < y.rows(); ++row)
      std::ranges::copy(referenceRow(input, row, input.cols()),
                        referenceRow(y, row, y.cols()).subspan(first, static_cast<std::size_t>(input.cols())).begin());
    first += static_cast<std::size_t>(input.cols());
  }
  return {.outputs = {std::move(y)}};
}

OperationContext saveContext(const SaveArguments& arguments) {
  std::vector<std::int64_t> widths;
  for (const TensorSpec& input : arguments.inputs) widths.push_back(input.cols());
  OperationContext context;
  context.state.set(kWidths, std::move(widths));
  return context;
}

ReferenceBackward backward(const Attributes&, const SavedValues& saved, References gradOutputs) {
  const ReferenceTensor& dy = gradOutputs[0];
  ReferenceBackward gradients;
  std::size_t first = 0;
  for (const std::int64_t width : saved.state().integers(kWidths)) {
    Shape shape = dy.shape;
    shape.back() = width;
    ReferenceTensor& dx = gradients.inputs.emplace_back(referenceZeros(std::move(shape)));
    for (std::int64_t row = 0; row < dy.rows(); ++row)
      std::ranges::copy(referenceRow(dy, row, dy.cols()).subspan(first, static_cast<std::size_t>(width)),
                        referenceRow(dx, row, width).begin());
    first += static_cast<std::size_t>(width);
  }
  return gradients;
}

AttributeSpec numInputsAttribute() {
  return {.name = "num_inputs",
          .type = AttributeType::Integer,
          .defaultValue = std::int64_t{2},
          .minimum = 1,
          .maximum = kMostInputs,
          .unit = "tensors",
          .help = "Inputs x, x1, x2 and so on."};
}

std::vector<Port> inputsOf(std::int64_t count) {
  std::vector<Port> inputs;
  for (std::size_t slot = 0; slot < static_cast<std::size_t>(count); ++slot)
    inputs.push_back(
        {portName(slot), "[..., N]",
         slot == 0 ? "Its columns come first." : "Shape as x, except for the last axis. Its columns follow."});
  return inputs;
}

Result<FusibleOperation> specialise(const Attributes& given) {
  return BasicOperation{
      .name = kName,
      .category = "Structure",
      .summary = "Concatenates tensors along the last axis.",
      .formula = "y = the columns of x, x1, x2 ... one after another",
      .derivative = "dx, dx1, dx2 ... = the columns of dy, one piece after another",
      .source = "torch.cat, for the last axis",
      .keywords = {"concat", "concatenate", "cat", "join", "merge", "stack", "mla"},
      .inputs = inputsOf(given.integer("num_inputs")),
      .outputs = {{"y", "[..., H]", "H is the sum of the widths; the dtype is that of the inputs."}},
      .attributes = {numInputsAttribute()},
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveContext,
      .backwardCompute = backward,
  };
}

OperationCall exampleCall(std::int64_t elements, DType dtype) {
  constexpr std::int64_t kWidth = 1024;
  OperationCall call{.attributes = defaultAttributes({.attributes = {numInputsAttribute()}})};
  call.inputs.assign(2, {.dtype = dtype, .shape = {std::max<std::int64_t>(1, elements / kWidth), kWidth}});
  return call;
}

}  // namespace concat_parts
}  // namespace

BasicOperation concat() {
  using namespace concat_parts;
  return structuredOperation({numInputsAttribute()}, specialise, exampleCall);
}

}  // namespace fuseline::ops
