// The functions of the elementwise language in float32, with the special cases of the CPU's: NaN stays NaN, and silu
// and gelu are 0 far below zero, also at minus infinity.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fuseline::cuda::device {

inline __device__ bool isNan(float x) { return x != x; }

inline __device__ float maximum(float a, float b) {
#ifdef __CUDA_ARCH__
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
#else
  return isNan(a) || isNan(b) ? a + b : (a < b ? b : a);
#endif
}

inline __device__ float minimum(float a, float b) {
#ifdef __CUDA_ARCH__
  float smaller;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(smaller) : "f"(a), "f"(b));
  return smaller;
#else
  return isNan(a) || isNan(b) ? a + b : (b < a ? b : a);
#endif
}

inline __device__ float less(float a, float b) { return isNan(a) || isNan(b) ? a + b : (a < b ? 1.0f : 0.0f); }

/// 1 / x for x >= 1; 0 beyond 2^126. The device's instruction is off by at most one unit in the last place; a correctly
/// rounded division takes ten more instructions.
inline __device__ float reciprocal(float x) {
#ifdef __CUDA_ARCH__
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return 1.0f / x;
#endif
}

/// Where sigmoid has reached its limit: sigmoid(-80) = 2e-35.
constexpr float kSigmoidLimit = 80.0f;
/// Where gelu has: 2u(9.5) = 76.
constexpr float kGeluLimit = 9.5f;

/// 1 / (1 + exp(minusX)) for minusX from -80 on. Far above that it is 0.
inline __device__ float sigmoidOfNegated(float minusX) { return reciprocal(1.0f + expf(minusX)); }

inline __device__ float sigmoid(float x) {
  const float y = sigmoidOfNegated(-minimum(kSigmoidLimit, x));
  return x < -kSigmoidLimit ? 0.0f : y;
}

inline __device__ float silu(float x) {
  const float y = x * sigmoidOfNegated(-minimum(kSigmoidLimit, x));
  return x < -kSigmoidLimit ? 0.0f : y;
}

/// s + x s (1 - s)
inline __device__ float siluGrad(float anyX) {
  const float x = minimum(kSigmoidLimit, anyX);
  const float s = sigmoidOfNegated(-x);
  const float slope = fmaf(x * s, 1.0f - s, s);
  return anyX < -kSigmoidLimit ? 0.0f : slope;
}

/// -2 u(x) with u = sqrt(2/pi) (x + 0.044715 x^3); gelu(x) = x sigmoid(2u), because (1 + tanh u) / 2 = sigmoid(2u).
inline __device__ float geluArgument(float x) {
  return x * fmaf(x * x, -2 * 0.035677408136300125f, -2 * 0.7978845608028654f);
}

inline __device__ float gelu(float x) {
  const float y = x * sigmoidOfNegated(geluArgument(minimum(kGeluLimit, x)));
  return x < -kGeluLimit ? 0.0f : y;
}

/// s + x s (1 - s) 2u', with 2u' = 2 sqrt(2/pi) (1 + 3 * 0.044715 x^2).
inline __device__ float geluGrad(float anyX) {
  const float x = minimum(kGeluLimit, anyX);
  const float s = sigmoidOfNegated(geluArgument(x));
  const float argumentSlope = fmaf(x * x, 2 * 0.10703222440890037f, 2 * 0.7978845608028654f);
  const float slope = fmaf(x * s * (1.0f - s), argumentSlope, s);
  return anyX < -kGeluLimit ? 0.0f : slope;
}

/// Where (1 + erf(x / sqrt(2))) / 2 has reached its limits.
constexpr float kExactGeluLimit = 15.0f;

/// (1 + erf(x / sqrt(2))) / 2
inline __device__ float normalDistribution(float x) { return 0.5f * erfcf(-0.7071067811865476f * x); }

inline __device__ float exactGelu(float x) {
  const float y = x * normalDistribution(x);
  return x < -kExactGeluLimit ? 0.0f : y;
}

/// The distribution function, and x times its density exp(-x^2 / 2) / sqrt(2 pi).
inline __device__ float exactGeluGrad(float anyX) {
  const float x = maximum(-kExactGeluLimit, minimum(kExactGeluLimit, anyX));
  return fmaf(0.3989422804014327f * x, expf(-0.5f * x * x), normalDistribution(x));
}

}  // namespace fuseline::cuda::device
