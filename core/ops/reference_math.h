// Double-precision building blocks of the ops' reference implementations: plain loops, no rounding.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"

#include <span>

namespace fuseline {

/// A tensor of zeros.
ReferenceTensor referenceZeros(Shape shape);

/// f(x) for every element.
template <class Function>
ReferenceTensor mapped(const ReferenceTensor& x, Function f) {
  ReferenceTensor result{.shape = x.shape, .values = x.values};
  for (double& value : result.values) value = f(value);
  return result;
}

/// f(a, b) for every pair of elements. a, b: the same shape.
template <class Function>
ReferenceTensor combined(const ReferenceTensor& a, const ReferenceTensor& b, Function f) {
  ReferenceTensor result{.shape = a.shape, .values = a.values};
  for (std::size_t i = 0; i < result.values.size(); ++i) result.values[i] = f(a.values[i], b.values[i]);
  return result;
}

/// Row `row` of a tensor that is read as [values.size() / width, width].
std::span<const double> referenceRow(const ReferenceTensor& tensor, std::int64_t row, std::int64_t width);
std::span<double> referenceRow(ReferenceTensor& tensor, std::int64_t row, std::int64_t width);

/// Sums over all rows. x: [..., H]; result: [H].
ReferenceTensor columnSums(const ReferenceTensor& x);

/// x W^T. x: [..., K], w: [N, K]; result: [..., N].
ReferenceTensor multiplyTransposed(const ReferenceTensor& x, const ReferenceTensor& w);
/// dy W. dy: [..., N], w: [N, K]; result: [..., K].
ReferenceTensor multiply(const ReferenceTensor& dy, const ReferenceTensor& w);
/// dy^T x, summed over all rows. dy: [..., N], x: [..., K]; result: [N, K].
ReferenceTensor outerProductSum(const ReferenceTensor& dy, const ReferenceTensor& x);

namespace reference {

/// As Opcode::Max, Min and Less: NaN where either operand is NaN.
double maximum(double a, double b);
double minimum(double a, double b);
double less(double a, double b);

double sigmoid(double x);
// At infinity these are their limits: f(-inf) = 0 with slope 0, f(inf) = inf with slope 1.

/// The tanh form: x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2, and its derivative.
double gelu(double x);
double geluGrad(double x);
/// x (1 + erf(x / sqrt(2))) / 2, and its derivative.
double exactGelu(double x);
double exactGeluGrad(double x);
/// x sigmoid(x), and its derivative.
double silu(double x);
double siluGrad(double x);

}  // namespace reference

}  // namespace fuseline
