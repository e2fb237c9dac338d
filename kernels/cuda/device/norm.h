// What kernels of norms share: walks along rows, sums over them, and the result of one packet.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/elementwise.h"
#include "kernels/cuda/device/norm_data.h"

#include <cstdint>

namespace fuseline::cuda::device {

/// Adds over the threads of a row; every thread gets the sums. All threads of a block that share rows call it.
template <int kRowThreads, int kCount>
__device__ void sumOverRow(float (&sums)[kCount]) {
  for (int i = 0; i < kCount; ++i) sums[i] = sumOverLanes(sums[i], kWarpLanes);
  if constexpr (kRowThreads > kWarpLanes) {
    constexpr int kWarps = kRowThreads / kWarpLanes;
    __shared__ float shared[kCount][kWarps];
    for (int i = 0; i < kCount; ++i)
      if (threadIdx.x % kWarpLanes == 0) shared[i][threadIdx.x / kWarpLanes] = sums[i];
    __syncthreads();
    for (int i = 0; i < kCount; ++i) {
      sums[i] = 0.0f;
      for (int warp = 0; warp < kWarps; ++warp) sums[i] += shared[i][warp];
    }
    __syncthreads();
  }
}

/// f(col, count) for the packets of a thread.
template <int kRowThreads, int kVector, class Function>
__device__ void forEachPacket(std::int64_t cols, Function f) {
  for (std::int64_t col = static_cast<std::int64_t>(threadIdx.x) * kVector; col < cols; col += kRowThreads * kVector)
    f(col, cols - col < kVector ? static_cast<int>(cols - col) : kVector);
}

/// What is normalized: x, or the rounded sum, from where it was stored if it was.
template <int kVector>
__device__ void loadNormalized(const NormForward& norm, std::int64_t index, int count, bool isFirst,
                               float (&x)[kVector]) {
  const NormAddend& addend = norm.addend;
  if (!addend.rightData) return loadElements<kVector>(norm.problem.x, norm.x, index, count, x);
  if (!isFirst && addend.sum) return loadElements<kVector>(norm.problem.x, addend.sum, index, count, x);
  float right[kVector];
  loadElements<kVector>(addend.left, norm.x, index, count, x);
  loadElements<kVector>(addend.right, addend.rightData, index, count, right);
#pragma unroll
  for (int v = 0; v < kVector; ++v) x[v] = roundedTo(norm.problem.x, x[v] + right[v]);
  if (addend.sum) storeElements<kVector>(norm.problem.x, addend.sum, index, count, x);
}

/// gamma as it multiplies; 1 where there is none.
template <int kVector>
__device__ void loadGamma(const NormProblem& problem, const void* gamma, std::int64_t col, int count,
                          float (&out)[kVector]) {
  if (gamma) loadElements<kVector>(problem.parameter, gamma, col, count, out);
#pragma unroll
  for (int v = 0; v < kVector; ++v) out[v] = gamma ? out[v] + (problem.isGammaZeroCentred ? 1.0f : 0.0f) : 1.0f;
}

struct RowFactors {
  float mean = 0.0f;
  float rstd = 0.0f;
};

/// By what the sums of a row are divided.
inline __device__ float divisorOf(const NormProblem& problem) {
  return problem.kind == NormKind::L2 ? 1.0f : static_cast<float>(problem.cols);
}

template <int kRowThreads, int kVector>
__device__ RowFactors measureRow(const NormForward& norm, std::int64_t row) {
  const NormProblem& problem = norm.problem;
  const std::int64_t first = row * problem.cols;
  const bool isCentred = problem.kind == NormKind::Layer;
  RowFactors factors;
  if (isCentred) {
    float sum[1] = {};
    forEachPacket<kRowThreads, kVector>(problem.cols, [&](std::int64_t col, int count) {
      float x[kVector];
      loadNormalized<kVector>(norm, first + col, count, true, x);
#pragma unroll
      for (int v = 0; v < kVector; ++v)
        if (v < count) sum[0] += x[v];
    });
    sumOverRow<kRowThreads>(sum);
    factors.mean = sum[0] / static_cast<float>(problem.cols);
  }
  float squares[1] = {};
  forEachPacket<kRowThreads, kVector>(problem.cols, [&](std::int64_t col, int count) {
    float x[kVector];
    loadNormalized<kVector>(norm, first + col, count, !isCentred, x);
#pragma unroll
    for (int v = 0; v < kVector; ++v)
      if (v < count) squares[0] += (x[v] - factors.mean) * (x[v] - factors.mean);
  });
  sumOverRow<kRowThreads>(squares);
  factors.rstd = 1.0f / sqrtf(squares[0] / divisorOf(problem) + problem.eps);
  return factors;
}

/// xhat and dy gamma of one packet.
template <int kVector>
__device__ void loadScaled(const NormBackward& norm, std::int64_t row, std::int64_t col, int count,
                           const RowFactors& factors, float (&xhat)[kVector], float (&g)[kVector]) {
  const NormProblem& problem = norm.problem;
  float gamma[kVector];
  loadElements<kVector>(problem.x, norm.x, row * problem.cols + col, count, xhat);
  loadElements<kVector>(problem.y, norm.dy, row * problem.cols + col, count, g);
  loadGamma<kVector>(problem, norm.gamma, col, count, gamma);
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    xhat[v] = (xhat[v] - factors.mean) * factors.rstd;
    g[v] *= gamma[v];
  }
}

inline __device__ RowFactors factorsOf(const NormBackward& norm, std::int64_t row) {
  return {norm.mean ? norm.mean[row] : 0.0f, norm.rstd[row]};
}

/// y of one packet, in float32.
template <int kVector>
__device__ void normalizePacket(const NormForward& norm, std::int64_t row, std::int64_t col, int count,
                                const RowFactors& factors, float (&y)[kVector]) {
  const NormProblem& problem = norm.problem;
  float gamma[kVector];
  float beta[kVector] = {};
  loadNormalized<kVector>(norm, row * problem.cols + col, count, false, y);
  loadGamma<kVector>(problem, norm.gamma, col, count, gamma);
  if (norm.beta) loadElements<kVector>(problem.parameter, norm.beta, col, count, beta);
#pragma unroll
  for (int v = 0; v < kVector; ++v) y[v] = (y[v] - factors.mean) * factors.rstd * gamma[v] + beta[v];
}

/// mean(g) and mean(g xhat) of a row, with g = dy gamma; only LayerNorm has the first.
struct GradientMeans {
  float g = 0.0f;
  float gx = 0.0f;
};

/// All threads of the row call it and get the means.
template <int kRowThreads, int kVector>
__device__ GradientMeans measureGradient(const NormBackward& norm, std::int64_t row, const RowFactors& factors) {
  const NormProblem& problem = norm.problem;
  float sums[2] = {};
  forEachPacket<kRowThreads, kVector>(problem.cols, [&](std::int64_t col, int count) {
    float xhat[kVector];
    float g[kVector];
    loadScaled<kVector>(norm, row, col, count, factors, xhat, g);
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      if (v >= count) continue;
      sums[0] += g[v];
      sums[1] += g[v] * xhat[v];
    }
  });
  sumOverRow<kRowThreads>(sums);
  return {problem.kind == NormKind::Layer ? sums[0] / divisorOf(problem) : 0.0f, sums[1] / divisorOf(problem)};
}

/// dx of one packet, in float32: rstd (g - mean(g) - xhat mean(g xhat)) + extra.
template <int kVector>
__device__ void gradientPacket(const NormBackward& norm, std::int64_t row, std::int64_t col, int count,
                               const RowFactors& factors, const GradientMeans& means, float (&dx)[kVector]) {
  const NormProblem& problem = norm.problem;
  float xhat[kVector];
  float extra[kVector] = {};
  loadScaled<kVector>(norm, row, col, count, factors, xhat, dx);
  if (norm.extra) loadElements<kVector>(problem.x, norm.extra, row * problem.cols + col, count, extra);
#pragma unroll
  for (int v = 0; v < kVector; ++v) dx[v] = factors.rstd * (dx[v] - means.g - xhat[v] * means.gx) + extra[v];
}

}  // namespace fuseline::cuda::device
