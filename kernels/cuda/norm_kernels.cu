// RMSNorm, LayerNorm and L2Normalization, forward and backward.
//
// A row is walked by a warp or, where it is long, by a block, once for every sum and once more for the result: after
// the first walk it comes from the cache. Sums are float32. Gradients of parameters are column sums in a kernel of
// their own, which reads x and dy again.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm_launch.h"

#include "kernels/cuda/elementwise_launch.h"
#include "kernels/cuda/norm_rows.h"

#include <cuda_runtime.h>

#include "kernels/cuda/device/amax.h"
#include "kernels/cuda/device/norm.h"

namespace fuseline::cuda {

namespace {

using namespace device;

/// Blocks that a multiprocessor holds at least. Asked for more, ptxas spills registers on sm_100a.
constexpr int kResidentBlocks = 2;

__device__ std::int64_t runningRow() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; }

__device__ int runningThread() { return static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); }

/// The largest magnitude of the thread's part of y.
template <int kRowThreads, int kVector>
__device__ float normalizeRow(const NormForward& norm, std::int64_t row) {
  const NormProblem& problem = norm.problem;
  const RowFactors factors = measureRow<kRowThreads, kVector>(norm, row);
  if (threadIdx.x == 0 && norm.mean) norm.mean[row] = factors.mean;
  if (threadIdx.x == 0 && norm.rstd) norm.rstd[row] = factors.rstd;
  float largest = 0.0f;
  forEachPacket<kRowThreads, kVector>(problem.cols, [&](std::int64_t col, int count) {
    float y[kVector];
    normalizePacket<kVector>(norm, row, col, count, factors, y);
    storeElements<kVector>(problem.y, norm.y, row * problem.cols + col, count, y);
    if (norm.amax) largest = largestMagnitude<kVector>(problem.y, y, count, largest);
  });
  return largest;
}

/// Only whole warps have no row: longer rows have blocks of their own.
template <int kRowThreads, int kVector>
__global__ void __launch_bounds__(kBlockThreads) normForward(const __grid_constant__ NormForward norm) {
  const std::int64_t row = runningRow();
  const float largest = row < norm.problem.rows ? normalizeRow<kRowThreads, kVector>(norm, row) : 0.0f;
  if (norm.amax) raiseAmax(norm.amax, largest, runningThread());
}

/// The largest magnitude of the thread's part of dx.
template <int kRowThreads, int kVector>
__device__ float differentiateRow(const NormBackward& norm, std::int64_t row) {
  const NormProblem& problem = norm.problem;
  const RowFactors factors = factorsOf(norm, row);
  const GradientMeans means = measureGradient<kRowThreads, kVector>(norm, row, factors);
  float largest = 0.0f;
  forEachPacket<kRowThreads, kVector>(problem.cols, [&](std::int64_t col, int count) {
    float dx[kVector];
    gradientPacket<kVector>(norm, row, col, count, factors, means, dx);
    storeElements<kVector>(problem.x, norm.dx, row * problem.cols + col, count, dx);
    if (norm.amax) largest = largestMagnitude<kVector>(problem.x, dx, count, largest);
  });
  return largest;
}

template <int kRowThreads, int kVector>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
    normBackward(const __grid_constant__ NormBackward norm) {
  const std::int64_t row = runningRow();
  const float largest = row < norm.problem.rows ? differentiateRow<kRowThreads, kVector>(norm, row) : 0.0f;
  if (norm.amax) raiseAmax(norm.amax, largest, runningThread());
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
                          normForward<kBlockThreads, kVectorWidth>, normForward<kBlockThreads, 1>, norm.problem, norm,
                          stream);
}

std::int64_t numNormParts(const NormProblem& problem, int numMultiprocessors) {
  return 2 * std::int64_t{gradientShape(problem, numMultiprocessors).blocksY} * problem.cols;
}

void launchNormBackward(const NormBackward& norm, int numMultiprocessors, float* parts, Stream stream) {
  const NormProblem& problem = norm.problem;
  if (problem.cols == 0) return;
  if (norm.dx && problem.rows > 0)
    launchRows<NormBackward>(normBackward<kWarpLanes, kVectorWidth>, normBackward<kWarpLanes, 1>,
                             normBackward<kBlockThreads, kVectorWidth>, normBackward<kBlockThreads, 1>, problem, norm,
                             stream);
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
