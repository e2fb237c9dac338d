// RMSNorm, LayerNorm and L2Normalization, forward and backward.
//
// A row is read once: the warp, or where it is long the block, that has it holds it in registers. Longer rows and those
// that are no whole packets are read once for every sum and once more for the result, from the cache. Sums are float32.
// Backward a block of threads has many rows, and adds up the gradients of parameters as it goes.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm_launch.h"

#include "kernels/cuda/elementwise_launch.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/norm_shape.h"

#include <cuda_runtime.h>

#include "kernels/cuda/device/amax.h"
#include "kernels/cuda/device/norm.h"

namespace fuseline::cuda {

namespace {

using namespace device;

/// More threads would have too few registers for x and dy.
constexpr int kMaxGradientThreads = 512;

__device__ int runningThread() { return static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); }

/// The largest magnitude of the thread's part of y.
template <class Share>
__device__ float writeRow(const NormForward& norm, std::int64_t row, const RowFactors& factors,
                          NormalizedRow<Share>& x) {
  constexpr int kVector = Share::kVector;
  const NormProblem& problem = norm.problem;
  float largest = 0.0f;
  x.forEach([&](int, std::int64_t col, const float(&values)[kVector]) {
    float y[kVector];
    float gamma[kVector];
    float beta[kVector] = {};
    loadGamma<kVector>(problem, norm.gamma, col, gamma);
    if (norm.beta) loadElements<kVector>(problem.parameter, norm.beta, col, kVector, beta);
#pragma unroll
    for (int v = 0; v < kVector; ++v) y[v] = values[v];
    normalize<kVector>(factors, gamma, beta, y);
    storeElements<kVector>(problem.y, norm.y, row * problem.cols + col, kVector, y);
    if (norm.amax) largest = largestMagnitude<kVector>(problem.y, y, kVector, largest);
  });
  return largest;
}

template <class Share>
__device__ float normalizeRow(const NormForward& norm, std::int64_t row) {
  NormalizedRow<Share> x(norm, row);
  const RowFactors factors = measureRow<Share>(norm.problem, x);
  if (threadIdx.x == 0 && norm.mean) norm.mean[row] = factors.mean;
  if (threadIdx.x == 0 && norm.rstd) norm.rstd[row] = factors.rstd;
  return norm.y ? writeRow<Share>(norm, row, factors, x) : 0.0f;
}

/// Only whole warps have no row: longer rows have blocks of their own.
template <class Share>
__global__ void __launch_bounds__(Share::kThreads, 1) normForward(const __grid_constant__ NormForward norm) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  const float largest = row < norm.problem.rows ? normalizeRow<Share>(norm, row) : 0.0f;
  if (norm.amax) raiseAmax<Share::kThreads>(norm.amax, largest, runningThread());
}

/// dgamma = sum of dy xhat, dbeta = sum of dy, over the rows of a block. A thread adds to its own columns: only at the
/// end they wait for each other, when the sums of rows side by side are added and leave as the block's part.
template <class Share>
class ParameterSums {
 public:
  __device__ ParameterSums(const NormBackward& norm, float* shared)
      : m_norm(norm), m_cols(norm.problem.cols), m_shared(shared) {
    if (norm.parts) forEachPacket<Share>(m_cols, [&](int, std::int64_t col) { clear(col); });
  }

  __device__ void add(std::int64_t col, const float (&xhat)[Share::kVector], const float (&dy)[Share::kVector]) const {
    float products[kVector];
#pragma unroll
    for (int v = 0; v < kVector; ++v) products[v] = dy[v] * xhat[v];
    addTo(0, col, products);
    if (m_norm.dbeta) addTo(1, col, dy);
  }

  /// All threads of the block call it.
  __device__ void write() const {
    if (!m_norm.parts || !m_norm.hasSharedSums) return;
    __syncthreads();
    for (int s = 0; s < numSums(); ++s)
      for (std::int64_t col = runningThread(); col < m_cols; col += Share::kThreads) {
        float sum = 0.0f;
        for (unsigned y = 0; y < blockDim.y; ++y) sum += m_shared[sharedIndex(y, s, col)];
        m_norm.parts[partIndex(s, col)] = sum;
      }
  }

 private:
  static constexpr int kVector = Share::kVector;
  static constexpr int kAccess = kVector < 4 ? kVector : 4;  // floats that are accessed together
  using Access = Packet<float, kAccess>;

  __device__ int numSums() const { return m_norm.dbeta ? 2 : 1; }

  /// The halves of packets stand apart, so that the threads of a warp do not meet in a bank.
  __device__ std::int64_t sharedIndex(unsigned y, int s, std::int64_t col) const {
    constexpr int kApart = kVector / kAccess;
    const std::int64_t part = col % kVector / kAccess;
    const std::int64_t place = col / kVector * kAccess + col % kAccess;
    return (y * numSums() + s) * m_cols + part * (m_cols / kApart) + place;
  }
  __device__ std::int64_t partIndex(int s, std::int64_t col) const {
    return (static_cast<std::int64_t>(s) * gridDim.x + blockIdx.x) * m_cols + col;
  }
  // Rows that are held are never too long for shared memory, and threads of several rows never share a part.
  static_assert(!Share::isHeld || sharedSumBytes<Share>(Share::kMaxHeldCols, 2) <= kMaxSharedSumBytes ||
                Share::kThreads > kMaxGradientThreads);
  static_assert(kRowsPerBlock<Share> == 1 || sharedSumBytes<Share>(kMaxWarpCols, 2) <= kMaxSharedSumBytes);
  __device__ Access& accessAt(int s, std::int64_t col) const {
    if (Share::isHeld || m_norm.hasSharedSums)
      return *reinterpret_cast<Access*>(m_shared + sharedIndex(threadIdx.y, s, col));
    return *reinterpret_cast<Access*>(m_norm.parts + partIndex(s, col));
  }

  __device__ void clear(std::int64_t col) const {
    for (int s = 0; s < numSums(); ++s)
      for (int v = 0; v < kVector; v += kAccess) accessAt(s, col + v) = {};
  }
  __device__ void addTo(int s, std::int64_t col, const float (&values)[kVector]) const {
#pragma unroll
    for (int first = 0; first < kVector; first += kAccess) {
      Access& sums = accessAt(s, col + first);
      Access sum = sums;
#pragma unroll
      for (int v = 0; v < kAccess; ++v) sum.elements[v] += values[first + v];
      sums = sum;
    }
  }

  const NormBackward& m_norm;
  std::int64_t m_cols;
  float* m_shared;
};

/// The largest magnitude of the thread's part of dx.
template <class Share>
__device__ float writeGradient(const NormBackward& norm, std::int64_t first, const GradientRow<Share>& row,
                               const GradientMeans& means) {
  constexpr int kVector = Share::kVector;
  const NormProblem& problem = norm.problem;
  const RowReader<Share> readExtra(problem.x, norm.extra, first, problem.cols);
  float largest = 0.0f;
  row.forEach([&](int packet, std::int64_t col, const float(&xhat)[kVector], const float(&dy)[kVector]) {
    float gamma[kVector];
    float extra[kVector] = {};
    float dx[kVector];
    loadGamma<kVector>(problem, norm.gamma, col, gamma);
    if (readExtra) readExtra.take(packet, col, extra);
#pragma unroll
    for (int v = 0; v < kVector; ++v) dx[v] = dy[v];
    differentiate<kVector>(row.rstd(), means, gamma, xhat, extra, dx);
    storeElements<kVector>(problem.x, norm.dx, first + col, kVector, dx);
    if (norm.amax) largest = largestMagnitude<kVector>(problem.x, dx, kVector, largest);
  });
  return largest;
}

template <class Share>
__device__ float differentiateRow(const NormBackward& norm, std::int64_t row, const ParameterSums<Share>& sums) {
  constexpr int kVector = Share::kVector;
  const GradientRow<Share> gradient(norm, row);
  const GradientMeans means = measureGradient<Share>(
      norm, gradient, [&](std::int64_t col, const float(&xhat)[kVector], const float(&dy)[kVector]) {
        if (norm.parts) sums.add(col, xhat, dy);
      });
  if (norm.means && threadIdx.x == 0) norm.means[row] = means;
  if (!norm.dx) return 0.0f;
  return writeGradient<Share>(norm, row * norm.problem.cols, gradient, means);
}

template <class Share>
__global__ void __launch_bounds__(Share::kThreads, kGradientBlocksAtOnce<Share>)
    normBackward(const __grid_constant__ NormBackward norm) {
  FUSELINE_DYNAMIC_SHARED(shared);
  const ParameterSums<Share> sums(norm, shared);
  float largest = 0.0f;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; row < norm.problem.rows;
       row += step)
    largest = largerOf(differentiateRow<Share>(norm, row, sums), largest);
  sums.write();
  if (norm.amax) raiseAmax<Share::kThreads>(norm.amax, largest, runningThread());
}

template <class Share>
dim3 rowThreads() {
  return dim3(Share::kRowThreads, kRowsPerBlock<Share>);
}

/// to: null: not wanted
void sumColumns(const NormBackward& norm, int sum, unsigned blocks, void* to, Stream stream) {
  if (!to) return;
  const NormProblem& problem = norm.problem;
  launchPartSums({.parts = norm.parts + std::int64_t{sum} * blocks * problem.cols,
                  .items = problem.cols,
                  .terms = blocks,
                  .termStride = problem.cols,
                  .to = {.data = to, .element = problem.parameter},
                  .cols = problem.cols},
                 stream);
}

}  // namespace

void launchNormForward(const NormForward& norm, Stream stream) {
  const NormProblem& problem = norm.problem;
  if (problem.rows == 0 || problem.cols == 0) return;
  withRowShare<1024>(problem.cols, [&]<class Share>(Share) {
    launch(normForward<Share>, dim3(rowBlocks<Share>(problem.rows)), rowThreads<Share>(), 0, stream, norm);
  });
}

std::int64_t numNormParts(const NormProblem& problem, int numMultiprocessors) {
  std::int64_t parts = 0;
  withRowShare<kMaxGradientThreads>(problem.cols, [&]<class Share>(Share) {
    parts = 2 * std::int64_t{gradientBlocks<Share>(problem.rows, numMultiprocessors)} * problem.cols;
  });
  return parts;
}

void launchNormBackward(NormBackward norm, int numMultiprocessors, Stream stream) {
  const NormProblem& problem = norm.problem;
  if (problem.cols == 0) return;
  if (!norm.dgamma && !norm.dbeta) norm.parts = nullptr;
  unsigned blocks = 0;
  withRowShare<kMaxGradientThreads>(problem.cols, [&]<class Share>(Share) {
    if (problem.rows == 0 || !(norm.dx || norm.means || norm.parts)) return;
    blocks = norm.parts ? gradientBlocks<Share>(problem.rows, numMultiprocessors) : rowBlocks<Share>(problem.rows);
    const std::size_t sumBytes = sharedSumBytes<Share>(problem.cols, norm.dbeta ? 2 : 1);
    norm.hasSharedSums = norm.parts && sumBytes <= kMaxSharedSumBytes;
    launch(normBackward<Share>, dim3(blocks), rowThreads<Share>(), norm.hasSharedSums ? sumBytes : 0, stream, norm);
  });
  sumColumns(norm, 0, blocks, norm.dgamma, stream);
  sumColumns(norm, 1, blocks, norm.dbeta, stream);
}

}  // namespace fuseline::cuda
