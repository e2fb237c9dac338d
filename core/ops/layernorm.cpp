// Layer normalization: y = (x - mean) / sqrt(var + eps) * gamma + beta, over the trailing axes.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/normalization.h"
#include "core/ops/operation.h"
#include "core/ops/reference_math.h"

#include <cmath>
#include <numeric>

namespace fuseline::ops {

namespace {
namespace layernorm_parts {

constexpr int kNumStatistics = 2;  // mean, rstd

// By element.
constexpr std::int64_t kForwardFlops = 8;
constexpr std::int64_t kBackwardFlops = 13;

Result<OperationSpecs> infer(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  return inferNormalization("LayerNorm", attributes, inputs[0], 2, kNumStatistics);
}

FlopCount flops(const Attributes&, std::span<const TensorSpec> inputs) {
  const std::int64_t elements = inputs[0].numElements();
  return {.forward = kForwardFlops * elements, .backward = kBackwardFlops * elements};
}

Initialisation initialiseBeta(const Attributes&, const TensorSpec&) { return {}; }

double meanOf(std::span<const double> x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

double reciprocalDeviation(std::span<const double> x, double mean, double eps) {
  double sumOfSquares = 0.0;
  for (const double value : x) sumOfSquares += (value - mean) * (value - mean);
  return 1.0 / std::sqrt(sumOfSquares / static_cast<double>(x.size()) + eps);
}

ReferenceForward forward(const Attributes& attributes, std::span<const ReferenceTensor> inputs,
                         std::span<const ReferenceTensor> parameters) {
  const ReferenceTensor& x = inputs[0];
  const std::vector<double> gamma = effectiveGamma(attributes, parameters[0]);
  const std::vector<double>& beta = parameters[1].values;
  const std::int64_t n = normalizedSize(attributes);
  ReferenceTensor y = referenceZeros(x.shape);
  ReferenceTensor mean = referenceZeros(statisticsShape(attributes, x.shape));
  ReferenceTensor rstd = mean;
  for (std::size_t row = 0; row < mean.values.size(); ++row) {
    const auto xRow = referenceRow(x, static_cast<std::int64_t>(row), n);
    const auto yRow = referenceRow(y, static_cast<std::int64_t>(row), n);
    const double mu = mean.values[row] = meanOf(xRow);
    const double r = rstd.values[row] = reciprocalDeviation(xRow, mu, attributes.real("eps"));
    for (std::size_t j = 0; j < xRow.size(); ++j) yRow[j] = gamma[j] * (r * (xRow[j] - mu)) + beta[j];
  }
  return {.outputs = {y}, .residuals = {mean, rstd}};
}

OperationContext saveContext(const SaveArguments& arguments) { return saveNormalization(arguments, kNumStatistics); }

struct RowStatistics {
  double mean;
  double rstd;
};

/// One row: dx = r (q - mean(q xh) xh - mean(q)) and dgamma += dy xh, with xh = r (x - mean) and q = gamma dy.
void backwardRow(std::span<const double> x, std::span<const double> dy, std::span<const double> gamma,
                 RowStatistics row, std::span<double> dx, std::span<double> dgamma) {
  double sumQ = 0.0;
  double sumQxh = 0.0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const double xh = row.rstd * (x[j] - row.mean);
    sumQ += gamma[j] * dy[j];
    sumQxh += gamma[j] * dy[j] * xh;
    dgamma[j] += dy[j] * xh;
  }
  const auto n = static_cast<double>(x.size());
  for (std::size_t j = 0; j < x.size(); ++j) {
    const double xh = row.rstd * (x[j] - row.mean);
    dx[j] = row.rstd * (gamma[j] * dy[j] - (sumQxh / n * xh + sumQ / n));
  }
}

void addRow(std::span<double> sums, std::span<const double> row) {
  for (std::size_t j = 0; j < row.size(); ++j) sums[j] += row[j];
}

ReferenceBackward backward(const Attributes& attributes, const SavedValues& saved,
                           std::span<const ReferenceTensor> gradOutputs) {
  const std::int64_t n = normalizedSize(attributes);
  const std::vector<double> gamma = effectiveGamma(attributes, saved.parameter());
  ReferenceTensor dx = referenceZeros(saved.input().shape);
  ReferenceTensor dgamma = referenceZeros(saved.parameter().shape);
  ReferenceTensor dbeta = dgamma;
  for (std::size_t i = 0; i < saved.residual(0).values.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    const auto dyRow = referenceRow(gradOutputs[0], row, n);
    backwardRow(referenceRow(saved.input(), row, n), dyRow, gamma,
                {.mean = saved.residual(0).values[i], .rstd = saved.residual(1).values[i]}, referenceRow(dx, row, n),
                dgamma.values);
    addRow(dbeta.values, dyRow);
  }
  return {.inputs = {dx}, .parameters = {dgamma, dbeta}};
}

}  // namespace layernorm_parts
}  // namespace

BasicOperation layernorm() {
  using namespace layernorm_parts;
  return {
      .name = "LayerNorm",
      .category = "Normalization",
      .summary = "Shifts and scales every row to mean 0 and variance 1, then by a learned weight and bias.",
      .formula = "y = gamma r (x - mean) + beta, r = 1 / sqrt(var + eps), mean and var over the row",
      .derivative =
          "dx = r (q - mean(q xh) xh - mean(q)), q = gamma dy, xh = r (x - mean); dgamma = dy xh and "
          "dbeta = dy, both summed over all rows",
      .source = "Ba, Kiros & Hinton 2016, arXiv:1607.06450",
      .keywords = {"norm", "normalize", "standardize", "gpt"},
      .inputs = {{"x", "[..., H]", "H stands for normalized_shape, which may be several axes."}},
      .parameters = {{"weight", "[H]", "Gamma, or gamma - 1 with zero_centered_gamma.", initialiseGamma},
                     {"bias", "[H]", "Beta.", initialiseBeta}},
      .outputs = {{"y", "[..., H]", "The shape of x, the dtype of the weight."}},
      .residuals = {{"mean", "[...]", "Mean of the row, in f32."}, {"rstd", "[...]", "1 / sqrt(var + eps), in f32."}},
      .attributes = normalizationAttributes(),
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveContext,
      .backwardCompute = backward,
  };
}

}  // namespace fuseline::ops
