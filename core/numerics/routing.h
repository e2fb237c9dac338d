// Scores of a router's logits, and the order in which experts are chosen. Usable in device code.
// Source: TransformerEngine's fused router.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

namespace fuseline {

enum class RouterScore : std::uint8_t { Softmax, Sigmoid, SqrtSoftplus };

/// TransformerEngine adds it to the sum of scores that it divides by.
constexpr double kRouterEpsilon = 1e-20;

/// Does a come before b among the choices? Values fall; of equal ones the lower index comes first. NaN is the largest.
constexpr bool comesBefore(double a, std::int64_t indexOfA, double b, std::int64_t indexOfB) {
  const bool isNanA = a != a;
  const bool isNanB = b != b;
  if (isNanA != isNanB) return isNanA;
  if (!isNanA && a != b) return a > b;
  return indexOfA < indexOfB;
}

// Templates, because the compiler wants constant results of other constexpr functions; device code calls only those.

template <class Real>
constexpr Real logistic(Real x) {
  return Real{1} / (Real{1} + std::exp(-x));
}

/// ln(1 + e^x)
template <class Real>
constexpr Real softplus(Real x) {
  return x > Real{0} ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

/// Not of the softmax, which needs all logits.
template <class Real>
constexpr Real scoreOfLogit(RouterScore score, Real logit) {
  return score == RouterScore::Sigmoid ? logistic(logit) : std::sqrt(softplus(logit));
}

/// The derivative of scoreOfLogit, whose value is `score`.
template <class Real>
constexpr Real slopeOfScore(RouterScore kind, Real logit, Real score) {
  if (kind == RouterScore::Sigmoid) return score * (Real{1} - score);
  return score == Real{0} ? Real{0} : logistic(logit) / (Real{2} * score);
}

}  // namespace fuseline
