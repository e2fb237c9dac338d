// One element of AdamW, and what is the same for all elements of a step. Usable in device code: no library calls.
// Source: Loshchilov & Hutter 2019, arXiv:1711.05101; the order of operations is that of torch.optim.AdamW.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuseline {

/// base^exponent by repeated squaring, in the same order on every device.
constexpr double integerPower(double base, std::int64_t exponent) {
  double power = 1.0;
  for (double square = base; exponent > 0; exponent >>= 1, square *= square)
    if ((exponent & 1) != 0) power *= square;
  return power;
}

/// The options that every step has.
template <class Real>
struct AdamWTerms {
  Real beta1Rest = 0;  // 1 - beta1
  Real beta2 = 0;
  Real beta2Rest = 0;  // 1 - beta2
  Real decay = 1;      // 1 - lr weight_decay
  Real eps = 0;
};

/// The corrections of one step.
template <class Real>
struct AdamWCorrections {
  Real stepSize = 0;         // lr / (1 - beta1^t)
  Real rootCorrection2 = 1;  // sqrt(1 - beta2^t)
};

/// t: the number of the update, from 1 on. root: a square root in float64.
template <class Real, class Root>
constexpr AdamWCorrections<Real> adamWCorrections(double lr, double beta1, double beta2, std::int64_t t,
                                                  const Root& root) {
  return {.stepSize = static_cast<Real>(lr / (1.0 - integerPower(beta1, t))),
          .rootCorrection2 = static_cast<Real>(root(1.0 - integerPower(beta2, t)))};
}

/// w: the parameter, or its float32 copy. m, v: the moments of its gradient g. root: a square root of Real.
template <class Real, class Root>
constexpr void updateByAdamW(const AdamWTerms<Real>& terms, const AdamWCorrections<Real>& corrections, Real g, Real& w,
                             Real& m, Real& v, const Root& root) {
  m = m + terms.beta1Rest * (g - m);
  v = terms.beta2 * v + terms.beta2Rest * (g * g);
  const Real denominator = root(v) / corrections.rootCorrection2 + terms.eps;
  w = terms.decay * w - corrections.stepSize * (m / denominator);
}

}  // namespace fuseline
