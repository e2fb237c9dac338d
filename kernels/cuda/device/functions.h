// The functions of the elementwise language in float32, with the special cases of the CPU's: NaN stays NaN, and silu
// and gelu are 0 far below zero, also at minus infinity.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fuseline::cuda::device {

inline __device__ bool isNan(float x) { return x != x; }

inline __device__ float maximum(float a, float b) { return isNan(a) || isNan(b) ? a + b : (a < b ? b : a); }
inline __device__ float minimum(float a, float b) { return isNan(a) || isNan(b) ? a + b : (b < a ? b : a); }
inline __device__ float less(float a, float b) { return isNan(a) || isNan(b) ? a + b : (a < b ? 1.0f : 0.0f); }

/// Where sigmoid has reached its limit: sigmoid(-80) = 2e-35.
constexpr float kSigmoidLimit = 80.0f;
/// Where gelu has: 2u(9.5) = 76.
constexpr float kGeluLimit = 9.5f;

/// 1 / (1 + exp(minusX)) for minusX in [-80, 80]
inline __device__ float sigmoidOfNegated(float minusX) { return 1.0f / (1.0f + expf(minusX)); }

inline __device__ float sigmoid(float x) {
  if (x < -kSigmoidLimit) return 0.0f;
  return sigmoidOfNegated(-minimum(kSigmoidLimit, x));
}

inline __device__ float silu(float x) {
  if (x < -kSigmoidLimit) return 0.0f;
  return x * sigmoidOfNegated(-minimum(kSigmoidLimit, x));
}

/// s + x s (1 - s)
inline __device__ float siluGrad(float anyX) {
  if (anyX < -kSigmoidLimit) return 0.0f;
  const float x = minimum(kSigmoidLimit, anyX);
  const float s = sigmoidOfNegated(-x);
  return fmaf(x * s, 1.0f - s, s);
}

/// -2 u(x) with u = sqrt(2/pi) (x + 0.044715 x^3); gelu(x) = x sigmoid(2u), because (1 + tanh u) / 2 = sigmoid(2u).
inline __device__ float geluArgument(float x) {
  return x * fmaf(x * x, -2 * 0.035677408136300125f, -2 * 0.7978845608028654f);
}

inline __device__ float gelu(float x) {
  if (x < -kGeluLimit) return 0.0f;
  return x * sigmoidOfNegated(geluArgument(minimum(kGeluLimit, x)));
}

/// s + x s (1 - s) 2u', with 2u' = 2 sqrt(2/pi) (1 + 3 * 0.044715 x^2).
inline __device__ float geluGrad(float anyX) {
  if (anyX < -kGeluLimit) return 0.0f;
  const float x = minimum(kGeluLimit, anyX);
  const float s = sigmoidOfNegated(geluArgument(x));
  const float slope = fmaf(x * x, 2 * 0.10703222440890037f, 2 * 0.7978845608028654f);
  return fmaf(x * s * (1.0f - s), slope, s);
}

}  // namespace fuseline::cuda::device
