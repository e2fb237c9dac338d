// Double-precision loops of the ops' reference implementations.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reference_math.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace fuseline {

namespace {

const double kSqrtTwoOverPi = std::sqrt(2.0 / std::numbers::pi);
constexpr double kGeluCubic = 0.044715;

/// target += factor * source.
void addScaled(std::span<double> target, double factor, std::span<const double> source) {
  for (std::size_t i = 0; i < target.size(); ++i) target[i] += factor * source[i];
}

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// The limits of gelu and silu and of their slopes, where the formulas multiply infinity by zero.
double valueAtInfinity(double x) { return std::max(x, 0.0); }
double slopeAtInfinity(double x) { return x > 0.0 ? 1.0 : 0.0; }

Shape withLastExtent(Shape shape, std::int64_t extent) {
  shape.back() = extent;
  return shape;
}

}  // namespace

ReferenceTensor referenceZeros(Shape shape) {
  const auto size = static_cast<std::size_t>(numElements(shape));
  return {.shape = std::move(shape), .values = std::vector<double>(size, 0.0)};
}

std::span<const double> referenceRow(const ReferenceTensor& tensor, std::int64_t row, std::int64_t width) {
  return std::span(tensor.values).subspan(static_cast<std::size_t>(row * width), static_cast<std::size_t>(width));
}

std::span<double> referenceRow(ReferenceTensor& tensor, std::int64_t row, std::int64_t width) {
  return std::span(tensor.values).subspan(static_cast<std::size_t>(row * width), static_cast<std::size_t>(width));
}

ReferenceTensor columnSums(const ReferenceTensor& x) {
  ReferenceTensor sums = referenceZeros({x.cols()});
  for (std::int64_t row = 0; row < x.rows(); ++row) addScaled(sums.values, 1.0, referenceRow(x, row, x.cols()));
  return sums;
}

ReferenceTensor multiplyTransposed(const ReferenceTensor& x, const ReferenceTensor& w) {
  const std::int64_t N = w.shape[0];
  const std::int64_t K = w.shape[1];
  ReferenceTensor y = referenceZeros(withLastExtent(x.shape, N));
  for (std::int64_t row = 0; row < x.rows(); ++row) {
    const std::span<double> yRow = referenceRow(y, row, N);
    for (std::int64_t n = 0; n < N; ++n)
      yRow[static_cast<std::size_t>(n)] = dot(referenceRow(x, row, K), referenceRow(w, n, K));
  }
  return y;
}

ReferenceTensor multiply(const ReferenceTensor& dy, const ReferenceTensor& w) {
  const std::int64_t N = w.shape[0];
  const std::int64_t K = w.shape[1];
  ReferenceTensor dx = referenceZeros(withLastExtent(dy.shape, K));
  for (std::int64_t row = 0; row < dy.rows(); ++row) {
    const std::span<const double> dyRow = referenceRow(dy, row, N);
    for (std::int64_t n = 0; n < N; ++n)
      addScaled(referenceRow(dx, row, K), dyRow[static_cast<std::size_t>(n)], referenceRow(w, n, K));
  }
  return dx;
}

ReferenceTensor outerProductSum(const ReferenceTensor& dy, const ReferenceTensor& x) {
  const std::int64_t N = dy.cols();
  const std::int64_t K = x.cols();
  ReferenceTensor dw = referenceZeros({N, K});
  for (std::int64_t row = 0; row < dy.rows(); ++row) {
    const std::span<const double> dyRow = referenceRow(dy, row, N);
    for (std::int64_t n = 0; n < N; ++n)
      addScaled(referenceRow(dw, n, K), dyRow[static_cast<std::size_t>(n)], referenceRow(x, row, K));
  }
  return dw;
}

namespace reference {

double maximum(double a, double b) { return std::isnan(a) || a > b ? a : b; }

double minimum(double a, double b) { return std::isnan(a) || a < b ? a : b; }

double less(double a, double b) { return std::isunordered(a, b) ? a + b : (a < b ? 1.0 : 0.0); }

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double gelu(double x) {
  if (std::isinf(x)) return valueAtInfinity(x);
  return 0.5 * x * (1.0 + std::tanh(kSqrtTwoOverPi * x * (1.0 + kGeluCubic * x * x)));
}

double geluGrad(double x) {
  if (std::isinf(x)) return slopeAtInfinity(x);
  const double t = std::tanh(kSqrtTwoOverPi * x * (1.0 + kGeluCubic * x * x));
  return 0.5 * x * (1.0 - t * t) * kSqrtTwoOverPi * (1.0 + 3.0 * kGeluCubic * x * x) + 0.5 * (1.0 + t);
}

double exactGelu(double x) {
  return std::isinf(x) ? valueAtInfinity(x) : 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
}

double exactGeluGrad(double x) {
  if (std::isinf(x)) return slopeAtInfinity(x);
  const double density = std::numbers::inv_sqrtpi / std::numbers::sqrt2 * std::exp(-0.5 * x * x);
  return 0.5 * std::erfc(-x / std::numbers::sqrt2) + x * density;
}

double silu(double x) { return std::isinf(x) ? valueAtInfinity(x) : x * sigmoid(x); }

double siluGrad(double x) {
  if (std::isinf(x)) return slopeAtInfinity(x);
  const double s = sigmoid(x);
  return x * s * (1.0 - s) + s;
}

}  // namespace reference

}  // namespace fuseline
