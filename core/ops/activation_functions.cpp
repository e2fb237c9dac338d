// One scalar function after the other. The formulas are those of TransformerEngine's kernels.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_functions.h"

#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <cmath>

namespace fuseline::functions {

namespace {

constexpr double kQuick = 1.702;

using Builder = ElementwiseBuilder;

ValueIndex scaled(Builder& e, ValueIndex x, double factor) { return e.mul(x, e.constant(factor)); }

ValueIndex positivePart(Builder& e, ValueIndex x) { return e.binary(Opcode::Max, x, e.constant(0.0)); }

/// 1 where x is at most `limit`, else 0.
ValueIndex isAtMost(Builder& e, ValueIndex x, double limit) {
  return e.binary(Opcode::Sub, e.constant(1.0), e.binary(Opcode::Less, e.constant(limit), x));
}

/// 1 where x is at least `limit`, else 0.
ValueIndex isAtLeast(Builder& e, ValueIndex x, double limit) {
  return e.binary(Opcode::Sub, e.constant(1.0), e.binary(Opcode::Less, x, e.constant(limit)));
}

double isAtMost(double x, double limit) { return 1.0 - reference::less(limit, x); }

double isAtLeast(double x, double limit) { return 1.0 - reference::less(x, limit); }

/// Below this factor silu(factor x) / factor would leave the range of float32.
constexpr double kLeastFactor = 1e-6;

/// x sigmoid(factor x) as silu(factor x) / factor, which has the limit 0 at -inf where the plain expression is infinity
/// times zero. For factors near zero or negative, which have another limit, the plain expression.
double timesSigmoid(double x, double factor) {
  if (factor < kLeastFactor) return x * reference::sigmoid(factor * x);
  return reference::silu(factor * x) / factor;
}

ValueIndex timesSigmoid(Builder& e, ValueIndex x, double factor) {
  if (factor < kLeastFactor) return e.mul(x, e.unary(Opcode::Sigmoid, scaled(e, x, factor)));
  return scaled(e, e.unary(Opcode::Silu, scaled(e, x, factor)), 1.0 / factor);
}

/// An expression that is one opcode.
auto only(Opcode opcode) {
  return [opcode](Builder& e, ValueIndex x) { return e.unary(opcode, x); };
}

/// sigmoid(-x), which is 1 - sigmoid(x) without cancellation.
ValueIndex complement(Builder& e, ValueIndex x) { return e.unary(Opcode::Sigmoid, e.unary(Opcode::Neg, x)); }

ValueIndex tanhOf(Builder& e, ValueIndex x, double beta) { return e.unary(Opcode::Tanh, scaled(e, x, 1.0 / beta)); }

/// 1 - t^2
ValueIndex tanhSlope(Builder& e, ValueIndex t) { return e.binary(Opcode::Sub, e.constant(1.0), e.mul(t, t)); }

/// (1 - t^2) s + beta t s (1 - s) with t = tanh(x / beta), s = sigmoid(x).
ValueIndex situSlope(Builder& e, ValueIndex x, double beta) {
  const ValueIndex t = tanhOf(e, x, beta);
  const ValueIndex s = e.unary(Opcode::Sigmoid, x);
  const ValueIndex ofSigmoid = e.mul(scaled(e, t, beta), complement(e, x));
  return e.mul(s, e.add(tanhSlope(e, t), ofSigmoid));
}

double situSlope(double x, double beta) {
  const double t = std::tanh(x / beta);
  const double s = reference::sigmoid(x);
  return (1.0 - t * t) * s + beta * t * s * (1.0 - s);
}

}  // namespace

ScalarFunction sigmoid() {
  return {
      .value = reference::sigmoid,
      .slope = [](double x) { return reference::sigmoid(x) * (1.0 - reference::sigmoid(x)); },
      .valueExpression = only(Opcode::Sigmoid),
      .slopeExpression = [](Builder& e, ValueIndex x) { return e.mul(e.unary(Opcode::Sigmoid, x), complement(e, x)); },
      .valueFlops = 4,
      .slopeFlops = 6};
}

ScalarFunction gelu() {
  return {.value = reference::gelu,
          .slope = reference::geluGrad,
          .valueExpression = only(Opcode::Gelu),
          .slopeExpression = only(Opcode::GeluGrad),
          .valueFlops = 8,
          .slopeFlops = 14};
}

ScalarFunction exactGelu() {
  return {.value = reference::exactGelu,
          .slope = reference::exactGeluGrad,
          .valueExpression = only(Opcode::ExactGelu),
          .slopeExpression = only(Opcode::ExactGeluGrad),
          .valueFlops = 5,
          .slopeFlops = 10};
}

ScalarFunction geluOf(const Attributes& attributes) { return isExactGelu(attributes) ? exactGelu() : gelu(); }

ScalarFunction quickGelu() {
  return {.value = [](double x) { return timesSigmoid(x, kQuick); },
          .slope = [](double x) { return reference::siluGrad(kQuick * x); },
          .valueExpression = [](Builder& e, ValueIndex x) { return timesSigmoid(e, x, kQuick); },
          .slopeExpression = [](Builder& e, ValueIndex x) { return e.unary(Opcode::SiluGrad, scaled(e, x, kQuick)); },
          .valueFlops = 6,
          .slopeFlops = 9};
}

ScalarFunction relu() {
  return {.value = [](double x) { return reference::maximum(x, 0.0); },
          .slope = [](double x) { return reference::less(0.0, x); },
          .valueExpression = positivePart,
          .slopeExpression = [](Builder& e, ValueIndex x) { return e.binary(Opcode::Less, e.constant(0.0), x); },
          .valueFlops = 1,
          .slopeFlops = 1};
}

ScalarFunction squaredRelu() {
  return {.value = [](double x) { return std::pow(reference::maximum(x, 0.0), 2); },
          .slope = [](double x) { return reference::maximum(2.0 * x, 0.0); },
          .valueExpression =
              [](Builder& e, ValueIndex x) {
                const ValueIndex positive = positivePart(e, x);
                return e.mul(positive, positive);
              },
          .slopeExpression = [](Builder& e, ValueIndex x) { return positivePart(e, scaled(e, x, 2.0)); },
          .valueFlops = 2,
          .slopeFlops = 2};
}

/// 2 b (1 - t^2), t = tanh(max(x, 0) / limit), b = limit t.
ScalarFunction softClampedSquaredRelu(double limit) {
  const auto tanhOfPositive = [=](double x) { return std::tanh(reference::maximum(x, 0.0) / limit); };
  return {.value = [=](double x) { return std::pow(limit * tanhOfPositive(x), 2); },
          .slope =
              [=](double x) {
                const double t = tanhOfPositive(x);
                return 2.0 * limit * t * (1.0 - t * t);
              },
          .valueExpression =
              [=](Builder& e, ValueIndex x) {
                const ValueIndex clamped = scaled(e, tanhOf(e, positivePart(e, x), limit), limit);
                return e.mul(clamped, clamped);
              },
          .slopeExpression =
              [=](Builder& e, ValueIndex x) {
                const ValueIndex t = tanhOf(e, positivePart(e, x), limit);
                return e.mul(scaled(e, t, 2.0 * limit), tanhSlope(e, t));
              },
          .valueFlops = 5,
          .slopeFlops = 7};
}

ScalarFunction silu() {
  return {.value = reference::silu,
          .slope = reference::siluGrad,
          .valueExpression = only(Opcode::Silu),
          .slopeExpression = only(Opcode::SiluGrad),
          .valueFlops = 4,
          .slopeFlops = 8};
}

ScalarFunction clampedSilu(double limit, double alpha) {
  const auto clamped = [limit](Builder& e, ValueIndex x) { return e.binary(Opcode::Min, x, e.constant(limit)); };
  return {
      .value = [=](double x) { return timesSigmoid(reference::minimum(x, limit), alpha); },
      .slope = [=](double x) { return isAtMost(x, limit) * reference::siluGrad(alpha * reference::minimum(x, limit)); },
      .valueExpression = [=](Builder& e, ValueIndex x) { return timesSigmoid(e, clamped(e, x), alpha); },
      .slopeExpression =
          [=](Builder& e, ValueIndex x) {
            const ValueIndex slope = e.unary(Opcode::SiluGrad, scaled(e, clamped(e, x), alpha));
            return e.mul(isAtMost(e, x, limit), slope);
          },
      .valueFlops = 7,
      .slopeFlops = 13};
}

ScalarFunction clampedLinear(double limit, double offset) {
  return {.value = [=](double x) { return reference::minimum(reference::maximum(x, -limit), limit) + offset; },
          .slope = [=](double x) { return isAtLeast(x, -limit) * isAtMost(x, limit); },
          .valueExpression =
              [=](Builder& e, ValueIndex x) {
                const ValueIndex above = e.binary(Opcode::Max, x, e.constant(-limit));
                return e.add(e.binary(Opcode::Min, above, e.constant(limit)), e.constant(offset));
              },
          .slopeExpression = [=](Builder& e,
                                 ValueIndex x) { return e.mul(isAtLeast(e, x, -limit), isAtMost(e, x, limit)); },
          .valueFlops = 3,
          .slopeFlops = 5};
}

ScalarFunction situGate(double beta) {
  return {.value = [=](double x) { return beta * std::tanh(x / beta) * reference::sigmoid(x); },
          .slope = [=](double x) { return situSlope(x, beta); },
          .valueExpression =
              [=](Builder& e, ValueIndex x) {
                return e.mul(scaled(e, tanhOf(e, x, beta), beta), e.unary(Opcode::Sigmoid, x));
              },
          .slopeExpression = [=](Builder& e, ValueIndex x) { return situSlope(e, x, beta); },
          .valueFlops = 8,
          .slopeFlops = 13};
}

ScalarFunction softLimit(double beta) {
  return {.value = [=](double x) { return beta * std::tanh(x / beta); },
          .slope = [=](double x) { return 1.0 - std::pow(std::tanh(x / beta), 2); },
          .valueExpression = [=](Builder& e, ValueIndex x) { return scaled(e, tanhOf(e, x, beta), beta); },
          .slopeExpression = [=](Builder& e, ValueIndex x) { return tanhSlope(e, tanhOf(e, x, beta)); },
          .valueFlops = 3,
          .slopeFlops = 4};
}

}  // namespace fuseline::functions
