// Root-mean-square normalization: y = x / sqrt(mean(x^2) + eps) * gamma, over the trailing axes.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/normalization.h"
#include "core/ops/operation.h"
#include "core/ops/reference_math.h"

#include <cmath>

namespace fuseline::ops {

namespace {
namespace rmsnorm_parts {

constexpr int kNumStatistics = 1;  // rstd

// By element.
constexpr std::int64_t kForwardFlops = 4;
constexpr std::int64_t kBackwardFlops = 9;

Result<OperationSpecs> infer(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  return inferNormalization("RMSNorm", attributes, inputs[0], 1, kNumStatistics);
}

FlopCount flops(const Attributes&, std::span<const TensorSpec> inputs) {
  const std::int64_t elements = inputs[0].numElements();
  return {.forward = kForwardFlops * elements, .backward = kBackwardFlops * elements};
}

double reciprocalRootMeanSquare(std::span<const double> x, double eps) {
  double sumOfSquares = 0.0;
  for (const double value : x) sumOfSquares += value * value;
  return 1.0 / std::sqrt(sumOfSquares / static_cast<double>(x.size()) + eps);
}

ReferenceForward forward(const Attributes& attributes, std::span<const ReferenceTensor> inputs,
                         std::span<const ReferenceTensor> parameters) {
  const ReferenceTensor& x = inputs[0];
  const std::int64_t n = normalizedSize(attributes);
  const std::vector<double> gamma = effectiveGamma(attributes, parameters[0]);
  ReferenceTensor y = referenceZeros(x.shape);
  ReferenceTensor rstd = referenceZeros(statisticsShape(attributes, x.shape));
  for (std::size_t row = 0; row < rstd.values.size(); ++row) {
    const auto xRow = referenceRow(x, static_cast<std::int64_t>(row), n);
    const auto yRow = referenceRow(y, static_cast<std::int64_t>(row), n);
    const double r = rstd.values[row] = reciprocalRootMeanSquare(xRow, attributes.real("eps"));
    for (std::size_t j = 0; j < xRow.size(); ++j) yRow[j] = gamma[j] * r * xRow[j];
  }
  return {.outputs = {y}, .residuals = {rstd}};
}

OperationContext saveContext(const SaveArguments& arguments) { return saveNormalization(arguments, kNumStatistics); }

/// One row: dx = r (q - mean(q xh) xh) and dgamma += dy xh, with xh = r x and q = gamma dy.
void backwardRow(std::span<const double> x, std::span<const double> dy, std::span<const double> gamma, double r,
                 std::span<double> dx, std::span<double> dgamma) {
  double sum = 0.0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    sum += gamma[j] * dy[j] * r * x[j];
    dgamma[j] += dy[j] * r * x[j];
  }
  const double mean = sum / static_cast<double>(x.size());
  for (std::size_t j = 0; j < x.size(); ++j) dx[j] = r * (gamma[j] * dy[j] - mean * r * x[j]);
}

ReferenceBackward backward(const Attributes& attributes, const SavedValues& saved,
                           std::span<const ReferenceTensor> gradOutputs) {
  const std::int64_t n = normalizedSize(attributes);
  const std::vector<double> gamma = effectiveGamma(attributes, saved.parameter());
  ReferenceTensor dx = referenceZeros(saved.input().shape);
  ReferenceTensor dgamma = referenceZeros(saved.parameter().shape);
  const std::vector<double>& rstd = saved.residual().values;
  for (std::size_t i = 0; i < rstd.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    backwardRow(referenceRow(saved.input(), row, n), referenceRow(gradOutputs[0], row, n), gamma, rstd[i],
                referenceRow(dx, row, n), dgamma.values);
  }
  return {.inputs = {dx}, .parameters = {dgamma}};
}

}  // namespace rmsnorm_parts
}  // namespace

BasicOperation rmsnorm() {
  using namespace rmsnorm_parts;
  return {
      .name = "RMSNorm",
      .category = "Normalization",
      .summary = "Scales every row to unit root mean square, then by a learned weight.",
      .formula = "y = gamma r x, r = 1 / sqrt(mean(x^2) + eps)",
      .derivative = "dx = r (q - mean(q xh) xh), q = gamma dy, xh = r x; dgamma = dy xh, summed over all rows",
      .source = "Zhang & Sennrich 2019, arXiv:1910.07467",
      .keywords = {"norm", "normalize", "root mean square", "llama"},
      .inputs = {{"x", "[..., H]", "H stands for normalized_shape, which may be several axes."}},
      .parameters = {{"weight", "[H]", "Gamma, or gamma - 1 with zero_centered_gamma.", initialiseGamma}},
      .outputs = {{"y", "[..., H]", "The shape of x, the dtype of the weight."}},
      .residuals = {{"rstd", "[...]", "1 / sqrt(mean(x^2) + eps), in f32."}},
      .attributes = normalizationAttributes(),
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveContext,
      .backwardCompute = backward,
  };
}

}  // namespace fuseline::ops
