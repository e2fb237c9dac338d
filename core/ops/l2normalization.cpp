// L2 normalization: y = x / sqrt(sum(x^2) + eps), over the last axis.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/operation.h"
#include "core/ops/reference_math.h"

#include <cmath>
#include <numeric>

namespace fuseline::ops {

namespace {
namespace l2normalization_parts {

// By element.
constexpr std::int64_t kForwardFlops = 3;
constexpr std::int64_t kBackwardFlops = 6;

Shape withoutLastAxis(const Shape& shape) { return {shape.begin(), shape.end() - 1}; }

Result<OperationSpecs> infer(const Attributes&, std::span<const TensorSpec> inputs) {
  const TensorSpec& x = inputs[0];
  if (x.shape.empty())
    return Error{"L2Normalization: x is a scalar, but its last axis is to be normalized; it needs at least one axis."};
  return OperationSpecs{.outputs = {x}, .residuals = {{.dtype = DType::F32, .shape = withoutLastAxis(x.shape)}}};
}

FlopCount flops(const Attributes&, std::span<const TensorSpec> inputs) {
  const std::int64_t elements = inputs[0].numElements();
  return {.forward = kForwardFlops * elements, .backward = kBackwardFlops * elements};
}

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

ReferenceForward forward(const Attributes& attributes, std::span<const ReferenceTensor> inputs,
                         std::span<const ReferenceTensor>) {
  const ReferenceTensor& x = inputs[0];
  ReferenceTensor y = referenceZeros(x.shape);
  ReferenceTensor rnorm = referenceZeros(withoutLastAxis(x.shape));
  for (std::size_t row = 0; row < rnorm.values.size(); ++row) {
    const auto xRow = referenceRow(x, static_cast<std::int64_t>(row), x.cols());
    const auto yRow = referenceRow(y, static_cast<std::int64_t>(row), x.cols());
    const double r = rnorm.values[row] = 1.0 / std::sqrt(dot(xRow, xRow) + attributes.real("eps"));
    for (std::size_t j = 0; j < xRow.size(); ++j) yRow[j] = r * xRow[j];
  }
  return {.outputs = {y}, .residuals = {rnorm}};
}

OperationContext saveContext(const SaveArguments& arguments) {
  if (!arguments.needs.inputs[0]) return {};
  return {.tensors = {{OperandKind::Input, 0}, {OperandKind::Residual, 0}}};
}

/// One row: dx = r (dy - sum(dy xh) xh), with xh = r x.
void backwardRow(std::span<const double> x, std::span<const double> dy, double r, std::span<double> dx) {
  const double sum = r * dot(dy, x);
  for (std::size_t j = 0; j < x.size(); ++j) dx[j] = r * (dy[j] - sum * r * x[j]);
}

ReferenceBackward backward(const Attributes&, const SavedValues& saved, std::span<const ReferenceTensor> gradOutputs) {
  const ReferenceTensor& x = saved.input();
  ReferenceTensor dx = referenceZeros(x.shape);
  const std::vector<double>& rnorm = saved.residual().values;
  for (std::size_t i = 0; i < rnorm.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    backwardRow(referenceRow(x, row, x.cols()), referenceRow(gradOutputs[0], row, x.cols()), rnorm[i],
                referenceRow(dx, row, x.cols()));
  }
  return {.inputs = {dx}};
}

}  // namespace l2normalization_parts
}  // namespace

BasicOperation l2normalization() {
  using namespace l2normalization_parts;
  return {
      .name = "L2Normalization",
      .category = "Normalization",
      .summary = "Scales every row to unit length. There is no weight.",
      .formula = "y = r x, r = 1 / sqrt(sum(x^2) + eps)",
      .derivative = "dx = r (dy - sum(dy xh) xh), xh = r x",
      .source =
          "TransformerEngine te.ops.L2Normalization, without seq_length and micro_batch_size, which only warm up "
          "its just-in-time kernels",
      .keywords = {"norm", "normalize", "unit length", "qk norm", "euclidean"},
      .inputs = {{"x", "[..., H]", "Every row, the last axis, is normalized."}},
      .outputs = {{"y", "[..., H]", "The shape and dtype of x."}},
      .residuals = {{"rnorm", "[...]", "1 / sqrt(sum(x^2) + eps), in f32."}},
      .attributes = {{.name = "eps",
                      .type = AttributeType::Real,
                      .defaultValue = 1e-6,
                      .minimum = 0.0,
                      .help = "Added under the square root, for rows near zero."}},
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveContext,
      .backwardCompute = backward,
  };
}

}  // namespace fuseline::ops
