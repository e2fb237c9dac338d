// RMSNorm, LayerNorm and L2Normalization, forward and backward.
//
// A row is walked by a warp or, where it is long, by a block, once for every sum and once more for the result: after
// the first walk it comes from the cache. Sums are float32. Gradients of parameters are column sums in a kernel of
// their own, which reads x and dy again.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm_launch.h"

#include "kernels/cuda/elementwise_launch.h"
#include "kernels/cuda/launch.h"

#include <cuda_runtime.h>

#include "kernels/cuda/device/elementwise.h"

namespace fuseline::cuda {

namespace {

using namespace device;

/// Rows of more columns get a block each: a warp would need more than four packets of each lane.
constexpr std::int64_t kMaxWarpCols = 1024;

/// Blocks that a multiprocessor holds at least. Asked for more, ptxas spills registers on sm_100a.
constexpr int kResidentBlocks = 2;

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

template <int kRowThreads, int kVector>
__global__ void __launch_bounds__(kBlockThreads) normForward(const __grid_constant__ NormForward norm) {
  const NormProblem& problem = norm.problem;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= problem.rows) return;  // a whole warp: longer rows have blocks of their own
  const RowFactors factors = measureRow<kRowThreads, kVector>(norm, row);
  if (threadIdx.x == 0 && norm.mean) norm.mean[row] = factors.mean;
  if (threadIdx.x == 0 && norm.rstd) norm.rstd[row] = factors.rstd;
  forEachPacket<kRowThreads, kVector>(problem.cols, [&](std::int64_t col, int count) {
    float x[kVector];
    float gamma[kVector];
    float beta[kVector] = {};
    loadNormalized<kVector>(norm, row * problem.cols + col, count, false, x);
    loadGamma<kVector>(problem, norm.gamma, col, count, gamma);
    if (norm.beta) loadElements<kVector>(problem.parameter, norm.beta, col, count, beta);
#pragma unroll
    for (int v = 0; v < kVector; ++v) x[v] = (x[v] - factors.mean) * factors.rstd * gamma[v] + beta[v];
    storeElements<kVector>(problem.y, norm.y, row * problem.cols + col, count, x);
  });
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

/// dx = rstd (g - mean(g) - xhat mean(g xhat)) + extra, with g = dy gamma; only LayerNorm has the first mean.
template <int kRowThreads, int kVector>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
    normBackward(const __grid_constant__ NormBackward norm) {
  const NormProblem& problem = norm.problem;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= problem.rows) return;
  const RowFactors factors = factorsOf(norm, row);
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
  const float meanG = problem.kind == NormKind::Layer ? sums[0] / divisorOf(problem) : 0.0f;
  const float meanGx = sums[1] / divisorOf(problem);
  forEachPacket<kRowThreads, kVector>(problem.cols, [&](std::int64_t col, int count) {
    float xhat[kVector];
    float g[kVector];
    float extra[kVector] = {};
    loadScaled<kVector>(norm, row, col, count, factors, xhat, g);
    if (norm.extra) loadElements<kVector>(problem.x, norm.extra, row * problem.cols + col, count, extra);
#pragma unroll
    for (int v = 0; v < kVector; ++v) g[v] = factors.rstd * (g[v] - meanG - xhat[v] * meanGx) + extra[v];
    storeElements<kVector>(problem.x, norm.dx, row * problem.cols + col, count, g);
  });
}

/// dgamma = sum of dy xhat, dbeta = sum of dy, over rows.
template <int kVector>
class ParameterGradients {
 public:
  static constexpr int kMaxColumnSums = 2;
  explicit __device__ ParameterGradients(const NormBackward& norm) : m_norm(norm) {}

  __device__ int numColumnSums() const { return kMaxColumnSums; }
  __device__ int numRowSums() const { return 0; }
  __device__ const float (&columnSum(int s) const)[kVector] { return m_values[s]; }
  __device__ const float (&rowSum(int) const)[kVector] { return m_values[0]; }

  __device__ void evaluate(const Grid& grid, const Position& at) {
    const RowFactors factors = factorsOf(m_norm, at.row);
    const std::int64_t index = at.row * grid.cols + at.col;
    loadElements<kVector>(m_norm.problem.x, m_norm.x, index, at.count, m_values[0]);
    loadElements<kVector>(m_norm.problem.y, m_norm.dy, index, at.count, m_values[1]);
#pragma unroll
    for (int v = 0; v < kVector; ++v) m_values[0][v] = (m_values[0][v] - factors.mean) * factors.rstd * m_values[1][v];
  }

 private:
  const NormBackward& m_norm;
  float m_values[kMaxColumnSums][kVector];
};

template <int kVector>
__global__ void __launch_bounds__(kBlockThreads)
    normParameterGradients(const __grid_constant__ NormBackward norm, Grid grid, float* parts) {
  ParameterGradients<kVector> gradients(norm);
  walkGrid<ParameterGradients<kVector>, kVector>(gradients, grid, parts, nullptr);
}

bool isVectorizable(const NormProblem& problem) { return problem.cols % kVectorWidth == 0; }

/// Blocks of one long row, or of several rows of a warp each.
template <class Norm>
void launchRows(void (*warpVector)(Norm), void (*warpScalar)(Norm), void (*blockVector)(Norm),
                void (*blockScalar)(Norm), const Norm& norm, Stream stream) {
  const bool isLong = norm.problem.cols > kMaxWarpCols;
  const unsigned rowThreads = isLong ? kBlockThreads : kWarpLanes;
  const unsigned rowsPerBlock = kBlockThreads / rowThreads;
  const auto blocks = static_cast<unsigned>((norm.problem.rows + rowsPerBlock - 1) / rowsPerBlock);
  const bool isVector = isVectorizable(norm.problem);
  const auto kernel = isLong ? (isVector ? blockVector : blockScalar) : (isVector ? warpVector : warpScalar);
  launch(kernel, dim3(blocks), dim3(rowThreads, rowsPerBlock), 0, stream, norm);
}

ElementwiseShape gradientShape(const NormProblem& problem, int numMultiprocessors) {
  return elementwiseShape(problem.rows, problem.cols, isVectorizable(problem), true, numMultiprocessors);
}

void sumColumns(const NormProblem& problem, const float* parts, unsigned blocks, void* to, Stream stream) {
  if (!to) return;
  launchPartSums({.parts = parts,
                  .items = problem.cols,
                  .terms = blocks,
                  .termStride = problem.cols,
                  .to = {.data = to, .element = problem.parameter},
                  .cols = problem.cols},
                 stream);
}

}  // namespace

void launchNormForward(const NormForward& norm, Stream stream) {
  if (norm.problem.rows == 0 || norm.problem.cols == 0) return;
  launchRows<NormForward>(normForward<kWarpLanes, kVectorWidth>, normForward<kWarpLanes, 1>,
                          normForward<kBlockThreads, kVectorWidth>, normForward<kBlockThreads, 1>, norm, stream);
}

std::int64_t numNormParts(const NormProblem& problem, int numMultiprocessors) {
  return 2 * std::int64_t{gradientShape(problem, numMultiprocessors).blocksY} * problem.cols;
}

void launchNormBackward(const NormBackward& norm, int numMultiprocessors, float* parts, Stream stream) {
  const NormProblem& problem = norm.problem;
  if (problem.cols == 0) return;
  if (norm.dx && problem.rows > 0)
    launchRows<NormBackward>(normBackward<kWarpLanes, kVectorWidth>, normBackward<kWarpLanes, 1>,
                             normBackward<kBlockThreads, kVectorWidth>, normBackward<kBlockThreads, 1>, norm, stream);
  if (!norm.dgamma && !norm.dbeta) return;
  const ElementwiseShape shape = gradientShape(problem, numMultiprocessors);
  const unsigned blocks = problem.rows > 0 ? shape.blocksY : 0;
  const auto kernel = shape.vector == 1 ? normParameterGradients<1> : normParameterGradients<kVectorWidth>;
  if (blocks > 0)
    launch(kernel, dim3(shape.blocksX, blocks), dim3(shape.threadsX, shape.threadsY()), 0, stream, norm, shape.grid,
           parts);
  sumColumns(problem, parts, blocks, norm.dgamma, stream);
  sumColumns(problem, parts + std::int64_t{blocks} * problem.cols, blocks, norm.dbeta, stream);
}

}  // namespace fuseline::cuda
