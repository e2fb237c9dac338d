// The options of AdamW, one element of it, and what is the same for all elements of a step. Usable in device code: no
// library calls.
// Source: Loshchilov & Hutter 2019, arXiv:1711.05101; the order of operations is that of torch.optim.AdamW.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuseline {

/// The learning rate after its warm-up: constant, or falling to 0 on a line or on half a cosine. Names and formulas are
/// those of transformers.get_scheduler.
enum class LearningRateSchedule : std::uint8_t { Constant, Linear, Cosine };

/// The options of torch.optim.AdamW, with its names and defaults, then those of clip_grad_norm_ and of the schedule.
struct AdamW {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weightDecay = 1e-2;
  double maxGradNorm = 0.0;  // 0: gradients are not clipped
  LearningRateSchedule schedule = LearningRateSchedule::Constant;
  std::int64_t warmupSteps = 0;    // in which the learning rate rises from 0
  std::int64_t trainingSteps = 0;  // after which it is 0; not used by a constant one

  bool clipsGradients() const { return maxGradNorm > 0.0; }
  bool operator==(const AdamW&) const = default;
};

/// cos(pi x) for x in [0, 1], by the Taylor series of the sine around 1/2, to the last bits of a double.
constexpr double cosineOfPi(double x) {
  constexpr double kPi = 3.14159265358979323846;
  constexpr int kTerms = 12;
  const double y = kPi * (0.5 - x);
  double sum = y;
  double term = y;
  for (int n = 1; n <= kTerms; ++n) {
    term *= -y * y / (2.0 * n * (2.0 * n + 1.0));
    sum += term;
  }
  return sum;
}

/// t: the number of the update, from 1 on.
constexpr double learningRateAt(const AdamW& options, std::int64_t t) {
  const std::int64_t step = t - 1;
  if (step < options.warmupSteps)
    return options.lr * static_cast<double>(step) / static_cast<double>(options.warmupSteps);
  if (options.schedule == LearningRateSchedule::Constant) return options.lr;
  if (step >= options.trainingSteps) return 0.0;
  const double progress = static_cast<double>(step - options.warmupSteps) /
                          static_cast<double>(options.trainingSteps - options.warmupSteps);
  if (options.schedule == LearningRateSchedule::Linear) return options.lr * (1.0 - progress);
  return options.lr * 0.5 * (1.0 + cosineOfPi(progress));
}

/// base^exponent by repeated squaring, in the same order on every device.
constexpr double integerPower(double base, std::int64_t exponent) {
  double power = 1.0;
  for (double square = base; exponent > 0; exponent >>= 1, square *= square)
    if ((exponent & 1) != 0) power *= square;
  return power;
}

/// Follows from the options alone.
template <class Real>
struct AdamWTerms {
  Real beta1Rest = 0;  // 1 - beta1
  Real beta2 = 0;
  Real beta2Rest = 0;  // 1 - beta2
  Real eps = 0;
};

/// Shared by all elements of one step.
template <class Real>
struct AdamWCorrections {
  Real stepSize = 0;         // lr / (1 - beta1^t)
  Real rootCorrection2 = 1;  // sqrt(1 - beta2^t)
  Real decay = 1;            // 1 - lr weight_decay
  Real gradientScale = 1;    // below 1 where gradients are clipped
};

template <class Real>
constexpr AdamWTerms<Real> adamWTerms(const AdamW& options) {
  return {.beta1Rest = static_cast<Real>(1.0 - options.beta1),
          .beta2 = static_cast<Real>(options.beta2),
          .beta2Rest = static_cast<Real>(1.0 - options.beta2),
          .eps = static_cast<Real>(options.eps)};
}

/// As torch.nn.utils.clip_grad_norm_; a norm that is not a number stays one. squares: the sum of all gradients'
/// squares.
template <class Root>
constexpr double gradientScale(const AdamW& options, double squares, const Root& root) {
  if (!options.clipsGradients()) return 1.0;
  const double scale = options.maxGradNorm / (root(squares) + 1e-6);
  return scale >= 1.0 ? 1.0 : scale;
}

/// t: the number of the update, from 1 on. squares: of all gradients, if they are clipped. root: a square root in
/// float64.
template <class Real, class Root>
constexpr AdamWCorrections<Real> adamWCorrections(const AdamW& options, std::int64_t t, double squares,
                                                  const Root& root) {
  const double lr = learningRateAt(options, t);
  return {.stepSize = static_cast<Real>(lr / (1.0 - integerPower(options.beta1, t))),
          .rootCorrection2 = static_cast<Real>(root(1.0 - integerPower(options.beta2, t))),
          .decay = static_cast<Real>(1.0 - lr * options.weightDecay),
          .gradientScale = static_cast<Real>(gradientScale(options, squares, root))};
}

/// w: the parameter, or its float32 copy. m, v: the moments of its gradient g. root: a square root of Real.
template <class Real, class Root>
constexpr void updateByAdamW(const AdamWTerms<Real>& terms, const AdamWCorrections<Real>& corrections, Real g, Real& w,
                             Real& m, Real& v, const Root& root) {
  g = corrections.gradientScale * g;
  m = m + terms.beta1Rest * (g - m);
  v = terms.beta2 * v + terms.beta2Rest * (g * g);
  const Real denominator = root(v) / corrections.rootCorrection2 + terms.eps;
  w = corrections.decay * w - corrections.stepSize * (m / denominator);
}

}  // namespace fuseline
