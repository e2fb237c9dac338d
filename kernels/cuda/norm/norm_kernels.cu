// RMSNorm, LayerNorm and L2Normalization, forward and backward.
//
// A row is read once: its warp, or its block if the row is long, holds it in registers. Longer rows and rows without
// whole packets are read again for every sum and for the result, from the cache. Sums are float32. In backward a block
// of threads has many rows, and accumulates the parameter gradients on the way. Rowwise quantized values are written by
// the threads that have the rows.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm/norm_launch.h"

#include "kernels/cuda/elementwise/part_sums.cuh"
#include "kernels/cuda/norm/norm_shape.h"
#include "kernels/cuda/stream/launch_in_phases.cuh"

#include <type_traits>
#include <utility>

#include <cuda_runtime.h>

#include "kernels/cuda/device/norm.h"
#include "kernels/cuda/device/row_codes.h"

namespace fuseline::cuda {

namespace {

using namespace device;

/// More threads would have too few registers for x and dy.
constexpr int kMaxGradientThreads = 512;

/// The running thread's row, or the first one of several.
__device__ std::int64_t firstRow() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; }

__device__ int runningThread() { return static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); }

/// gamma and beta of a thread's columns: if there are enough registers, gamma is requested before the sums of the row
/// are known.
template <class Share, bool kIsGammaHeld>
class ForwardParameters {
 public:
  explicit __device__ ForwardParameters(const NormForward& norm)
      : m_norm(norm), m_readGamma(norm.problem.parameter, norm.gamma, 0, norm.problem.cols) {}

  __device__ void apply(int packet, std::int64_t col, const RowFactors& factors, float (&y)[Share::kVector]) const {
    constexpr int kVector = Share::kVector;
    float gamma[kVector];
    float beta[kVector] = {};
    const NormProblem& problem = m_norm.problem;
    takeGamma(problem, m_readGamma, packet, col, gamma);
    if (m_norm.beta) loadFromRow<Share>(problem.parameter, m_norm.beta, 0, problem.cols, col, beta);
    normalize<kVector>(factors, gamma, beta, y);
  }

 private:
  const NormForward& m_norm;
  RowReader<Share, kIsGammaHeld> m_readGamma;
};

/// Besides: RowAmax or RowCodes, which take the packets of the result.
template <class Share, class Parameters, class Row, class Besides>
__device__ void writeRow(const NormForward& norm, std::int64_t row, const RowFactors& factors,
                         const Parameters& parameters, Row& x, Besides& besides) {
  constexpr int kVector = Share::kVector;
  const NormProblem& problem = norm.problem;
  x.forEachPlace([&](int packet, std::int64_t col, bool isInside, const float(&values)[kVector]) {
    float y[kVector] = {};
    if (isInside) {
#pragma unroll
      for (int v = 0; v < kVector; ++v) y[v] = values[v];
      parameters.apply(packet, col, factors, y);
      if (norm.y) storeToRow<Share>(problem.y, norm.y, row * problem.cols, problem.cols, col, y);
      clearOthers<Share>(problem.cols, col, y);
    }
    besides.take(row, col, isInside, y);
  });
}

/// isResultWanted: otherwise only the row statistics are computed
template <class Share, class Elements, bool kIsGammaHeld, class Besides>
__device__ void normalizeRow(const NormForward& norm, std::int64_t row, bool isResultWanted, Besides& besides) {
  const ForwardParameters<Share, kIsGammaHeld> parameters(norm);
  NormalizedRow<Share, Elements::kHeldAs> x(norm, row);
  const RowFactors factors = measureRow<Share>(norm.problem, x);
  if (threadIdx.x == 0 && norm.mean) norm.mean[row] = factors.mean;
  if (threadIdx.x == 0 && norm.rstd) norm.rstd[row] = factors.rstd;
  if (isResultWanted) writeRow<Share>(norm, row, factors, parameters, x, besides);
}

/// Only whole warps have no row: longer rows have separate blocks.
template <class Share, class Elements, bool kIsGammaHeld, class Besides>
__device__ void normalizeRows(const NormForward& norm, bool isResultWanted, Besides& besides) {
  const std::int64_t row = firstRow();
  if (row < norm.problem.rows) normalizeRow<Share, Elements, kIsGammaHeld>(norm, row, isResultWanted, besides);
  besides.template finish<Share::kThreads>(runningThread());
}

/// Blocks of forward that a multiprocessor has registers for. On GPUs of 8.0 the code for any elements and any rows
/// spills in a third of them.
template <class Share, class Elements>
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 860
constexpr int kForwardBlocks =
    !std::is_same_v<Elements, AnyElements> || !Share::kIsShifted ? kForwardBlocksAtOnce<Share> : 512 / Share::kThreads;
#else
constexpr int kForwardBlocks = kForwardBlocksAtOnce<Share>;
#endif

template <class Share, class Elements>
__global__ void __launch_bounds__(Share::kThreads, (kForwardBlocks<Share, Elements>))
    normForward(const __grid_constant__ NormForward wanted) {
  const NormForward norm = Elements::known(wanted);
  RowAmax besides(norm.problem.y, norm.amax);
  normalizeRows<Share, Elements, Share::isHeld && Elements::areNarrow>(norm, norm.y != nullptr, besides);
}

template <class Share, class Elements>
__global__ void __launch_bounds__(Share::kThreads, kForwardBlocksAtOnce<Share>)
    normForwardCodes(const __grid_constant__ NormForward wanted,
                     const __grid_constant__ QuantizedOutputs quantizedOutputs) {
  const NormForward norm = Elements::known(wanted);
  RowCodes besides(norm.problem.y, norm.problem.cols, quantizedOutputs);
  normalizeRows<Share, Elements, false>(norm, true, besides);
}

/// dgamma = sum of dy xhat, dbeta = sum of dy, over the rows of a block. A thread adds to its own columns: only at the
/// end they wait for each other, when the sums of rows side by side are added and leave as the block's part.
template <class Share>
class ParameterSums {
 public:
  __device__ ParameterSums(const NormBackward& norm, float* shared)
      : m_norm(norm), m_cols(norm.problem.cols), m_shared(shared) {
    if (norm.parts)
      forEachPacket<Share>(m_cols, shiftOf<Share>(firstRow(), m_cols), [&](int, std::int64_t col) { clear(col); });
    // The columns of a thread differ from row to row where a block has one at a time.
    if constexpr (Share::kIsShifted && kRowsPerBlock<Share> == 1) __syncthreads();
  }

  __device__ void add(std::int64_t col, const float (&xhat)[Share::kVector], const float (&dy)[Share::kVector]) const {
    update(0, col, [&](int v, float sum) { return fmaf(dy[v], xhat[v], sum); });
    if (m_norm.dbeta) update(1, col, [&](int v, float sum) { return sum + dy[v]; });
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
  static constexpr int kAccess = Share::kIsShifted ? 1 : 4;  // floats that are accessed together
  using Access = Packet<float, kAccess>;

  __device__ int numSums() const { return m_norm.dbeta ? 2 : 1; }

  /// The halves of packets are stored apart, or all their elements, so that the threads of a warp have no bank
  /// conflicts.
  __device__ std::int64_t sharedIndex(unsigned y, int s, std::int64_t col) const {
    const std::int64_t packets = (m_cols + kVector - 1) / kVector;
    const std::int64_t part = col % kVector / kAccess;
    const std::int64_t place = col / kVector * kAccess + col % kAccess;
    return (y * numSums() + s) * packets * kVector + part * packets * kAccess + place;
  }
  __device__ std::int64_t partIndex(int s, std::int64_t col) const {
    return (static_cast<std::int64_t>(blockIdx.x) * numSums() + s) * m_cols + col;
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
      for (int v = 0; v < kVector; v += kAccess)
        if (isElement<Share>(m_cols, col, v)) accessAt(s, col + v) = {};
  }
  /// added(v, sum)
  template <class Function>
  __device__ void update(int s, std::int64_t col, const Function& added) const {
#pragma unroll
    for (int first = 0; first < kVector; first += kAccess) {
      if (!isElement<Share>(m_cols, col, first)) continue;
      Access& sums = accessAt(s, col + first);
      Access sum = sums;
#pragma unroll
      for (int v = 0; v < kAccess; ++v) sum.elements[v] = added(first + v, sum.elements[v]);
      sums = sum;
    }
  }

  const NormBackward& m_norm;
  std::int64_t m_cols;
  float* m_shared;
};

template <class Share, class Row, class Gamma, class Besides>
__device__ void writeGradient(const NormBackward& norm, std::int64_t row, const Row& gradient,
                              const GradientMeans& means, const Gamma& readGamma, Besides& besides) {
  constexpr int kVector = Share::kVector;
  const NormProblem& problem = norm.problem;
  gradient.forEachPlace(
      [&](int packet, std::int64_t col, bool isInside, const float(&xhat)[kVector], const float(&dy)[kVector]) {
        float dx[kVector] = {};
        if (isInside) {
          float gamma[kVector];
          float extra[kVector] = {};
          takeGamma(problem, readGamma, packet, col, gamma);
          gradient.takeExtra(packet, col, extra);
#pragma unroll
          for (int v = 0; v < kVector; ++v) dx[v] = dy[v];
          differentiate<kVector>(gradient.rstd(), means, gamma, xhat, extra, dx);
          if (norm.dx) storeToRow<Share>(problem.x, norm.dx, row * problem.rowOfDx, problem.cols, col, dx);
          clearOthers<Share>(problem.cols, col, dx);
        }
        besides.take(row, col, isInside, dx);
      });
}

/// The rows of a block, one after the other.
template <class Share, class Elements, class Besides>
class RowsOfBlock {
 public:
  __device__ RowsOfBlock(const NormBackward& norm, float* shared, Besides& besides)
      : m_norm(norm),
        m_readGamma(norm.problem.parameter, norm.gamma, 0, norm.problem.cols),
        m_sums(norm, shared),
        m_besides(besides) {}

  /// If there are enough registers, the next row is requested before the current one is processed.
  __device__ void differentiate(bool isResultWanted) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
    std::int64_t row = firstRow();
    Row gradient(m_norm, row);
    for (; row < m_norm.problem.rows; row += step) {
      if constexpr (isPrompt) {
        const Row next(m_norm, row + step);
        differentiateRow(gradient, row, isResultWanted);
        gradient = next;
      } else {
        differentiateRow(gradient, row, isResultWanted);
        gradient = Row(m_norm, row + step);
      }
    }
    m_sums.write();
  }

 private:
  static constexpr bool isPrompt = Share::kHeldPackets > 1 && Elements::areNarrow;
  static constexpr int kVector = Share::kVector;
  using Row = GradientRow<Share, Elements>;

  __device__ void differentiateRow(Row& gradient, std::int64_t row, bool isResultWanted) {
    const GradientMeans means = measureGradient<Share>(
        m_norm, gradient, m_readGamma, [&](std::int64_t col, const float(&xhat)[kVector], const float(&dy)[kVector]) {
          if (m_norm.parts) m_sums.add(col, xhat, dy);
        });
    gradient.holdAsItIs();
    if (isResultWanted) writeGradient<Share>(m_norm, row, gradient, means, m_readGamma, m_besides);
  }

  const NormBackward& m_norm;
  RowReader<Share, false> m_readGamma;
  ParameterSums<Share> m_sums;
  Besides& m_besides;
};

template <class Share, class Elements, class Besides>
__device__ void differentiateRows(const NormBackward& norm, bool isResultWanted, Besides& besides) {
  FUSELINE_DYNAMIC_SHARED(shared);
  RowsOfBlock<Share, Elements, Besides>(norm, shared, besides).differentiate(isResultWanted);
  besides.template finish<Share::kThreads>(runningThread());
}

/// Blocks of backward that a multiprocessor has registers for. From 10.0 on the code for any elements spills in three
/// quarters of them.
template <class Share, class Elements>
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr int kBackwardBlocks =
    std::is_same_v<Elements, AnyElements> ? 512 / Share::kThreads : kGradientBlocksAtOnce<Share>;
#else
constexpr int kBackwardBlocks = kGradientBlocksAtOnce<Share>;
#endif

__device__ bool hasRows(const GridPhases& phases) { return !kHasGridPhases || phases.hasFirst; }

/// The parameter gradients, when the parts of all blocks are there.
template <int kThreads>
__device__ void sumAfterwards(const GridPhases& phases, const PartSums& sums) {
  if constexpr (kHasGridPhases) {
    phases.wait();
    if (!phases.hasSecond) return;
    constexpr int kItems = 16;
    for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kItems; first < sums.items;
         first += static_cast<std::int64_t>(gridDim.x) * kItems)
      sumItems<kItems, kThreads / kItems>(sums, first, runningThread());
  }
}

template <class Share, class Elements>
__global__ void __launch_bounds__(Share::kThreads, kBackwardBlocks<Share, Elements>)
    normBackward(GridPhases phases, const __grid_constant__ NormBackward wanted,
                 const __grid_constant__ PartSums sums) {
  const NormBackward norm = Elements::known(wanted);
  if (hasRows(phases)) {
    RowAmax besides(norm.problem.x, norm.amax);
    differentiateRows<Share, Elements>(norm, norm.dx != nullptr, besides);
  }
  sumAfterwards<Share::kThreads>(phases, sums);
}

template <class Share, class Elements>
__global__ void __launch_bounds__(Share::kThreads, kBackwardBlocks<Share, Elements>)
    normBackwardCodes(GridPhases phases, const __grid_constant__ NormBackward wanted,
                      const __grid_constant__ PartSums sums,
                      const __grid_constant__ QuantizedOutputs quantizedOutputs) {
  const NormBackward norm = Elements::known(wanted);
  if (hasRows(phases)) {
    RowCodes besides(norm.problem.x, norm.problem.cols, quantizedOutputs);
    differentiateRows<Share, Elements>(norm, true, besides);
  }
  sumAfterwards<Share::kThreads>(phases, sums);
}

/// launch(elements): for which the kernel of the problem was compiled.
template <class Launch>
void withElements(const NormProblem& problem, const Launch& launch) {
  using Narrow = OneElement<Element::BF16>;
  if (Narrow::fit(problem)) return launch(Narrow());
  launch(AnyElements());
}

template <class Share>
dim3 rowThreads() {
  return dim3(Share::kRowThreads, kRowsPerBlock<Share>);
}

template <class Share, class... Parameters, class... Arguments>
void launchForward(void (*kernel)(Parameters...), std::int64_t rows, Stream stream, const Arguments&... arguments) {
  launch(kernel, dim3(rowBlocks<Share>(rows)), rowThreads<Share>(), 0, stream, arguments...);
}

/// norm.parts: null if no parameter gradient is requested
template <class Share>
unsigned gradientBlocksOf(const NormBackward& norm, int numMultiprocessors) {
  const std::int64_t rows = norm.problem.rows;
  return norm.parts ? gradientBlocks<Share>(rows, numMultiprocessors) : rowBlocks<Share>(rows);
}

/// Without gradients of parameters there are no parts of them.
NormBackward withoutUnwantedParts(NormBackward norm) {
  if (!norm.dgamma && !norm.dbeta) norm.parts = nullptr;
  return norm;
}

/// The parts of dbeta follow those of dgamma.
PartSums parameterGradients(const NormBackward& norm, unsigned blocks) {
  if (!norm.dgamma && !norm.dbeta) return {};
  const std::int64_t cols = norm.problem.cols;
  const std::int64_t stride = norm.dbeta ? 2 * cols : cols;
  PartSums sums{.parts = norm.parts,
                .items = stride,
                .terms = blocks,
                .termStride = stride,
                .to = {.data = norm.dgamma, .element = norm.problem.parameter},
                .cols = cols,
                .behind = norm.dbeta};
  if (!norm.dgamma) {
    sums.parts += cols;
    sums.items = cols;
    sums.to.data = std::exchange(sums.behind, nullptr);
  }
  return sums;
}

template <class Share, class... Parameters, class... Arguments>
void launchBackward(void (*kernel)(GridPhases, NormBackward, PartSums, Parameters...), unsigned blocks,
                    NormBackward norm, Stream stream, const Arguments&... arguments) {
  const std::size_t sumBytes = sharedSumBytes<Share>(norm.problem.cols, norm.dbeta ? 2 : 1);
  norm.hasSharedSums = norm.parts && sumBytes <= kMaxSharedSumBytes;
  const std::size_t sharedBytes = norm.hasSharedSums ? sumBytes : 0;
  const PartSums sums = parameterGradients(norm, blocks);
  if (sums.items > 0 && runsAtOnce(kernel, dim3(blocks), rowThreads<Share>(), sharedBytes))
    return launchInPhases(kernel, dim3(blocks), rowThreads<Share>(), sharedBytes, stream, norm, sums, arguments...);
  launch(kernel, dim3(blocks), rowThreads<Share>(), sharedBytes, stream, GridPhases{.hasSecond = false}, norm, sums,
         arguments...);
  launchPartSums(sums, stream);
}

}  // namespace

void launchNormForward(const NormForward& norm, Stream stream) {
  const NormProblem& problem = norm.problem;
  if (problem.rows == 0 || problem.cols == 0) return;
  withElements(problem, [&]<class Elements>(Elements) {
    withRowShare<1024>(problem.cols, [&]<class Share>(Share) {
      launchForward<Share>(normForward<Share, Elements>, problem.rows, stream, norm);
    });
  });
}

void launchNormForwardRows(const NormForward& norm, const QuantizedOutputs& quantizedOutputs, Stream stream) {
  const NormProblem& problem = norm.problem;
  if (problem.rows == 0 || problem.cols == 0) return;
  withElements(problem, [&]<class Elements>(Elements) {
    withPacketShare<1024>(problem.cols, [&]<class Share>(Share) {
      launchForward<Share>(normForwardCodes<Share, Elements>, problem.rows, stream, norm, quantizedOutputs);
    });
  });
}

std::int64_t numNormParts(const NormProblem& problem, int numMultiprocessors) {
  std::int64_t parts = 0;
  withRowShare<kMaxGradientThreads>(problem.cols, [&]<class Share>(Share) {
    parts = 2 * std::int64_t{gradientBlocks<Share>(problem.rows, numMultiprocessors)} * problem.cols;
  });
  return parts;
}

void launchNormBackward(const NormBackward& wanted, int numMultiprocessors, Stream stream) {
  const NormBackward norm = withoutUnwantedParts(wanted);
  const NormProblem& problem = norm.problem;
  if (problem.cols == 0) return;
  if (problem.rows == 0) return launchPartSums(parameterGradients(norm, 0), stream);
  if (!norm.dx && !norm.parts) return;
  withRowShare<kMaxGradientThreads>(problem.cols, [&]<class Share>(Share) {
    const unsigned blocks = gradientBlocksOf<Share>(norm, numMultiprocessors);
    withElements(problem, [&]<class Elements>(Elements) {
      launchBackward<Share>(normBackward<Share, Elements>, blocks, norm, stream);
    });
  });
}

void launchNormBackwardRows(const NormBackward& wanted, const QuantizedOutputs& quantizedOutputs,
                            int numMultiprocessors, Stream stream) {
  const NormBackward norm = withoutUnwantedParts(wanted);
  const NormProblem& problem = norm.problem;
  if (problem.cols == 0) return;
  if (problem.rows == 0) return launchPartSums(parameterGradients(norm, 0), stream);
  withPacketShare<kMaxGradientThreads>(problem.cols, [&]<class Share>(Share) {
    const unsigned blocks = gradientBlocksOf<Share>(norm, numMultiprocessors);
    withElements(problem, [&]<class Elements>(Elements) {
      launchBackward<Share>(normBackwardCodes<Share, Elements>, blocks, norm, stream, quantizedOutputs);
    });
  });
}

}  // namespace fuseline::cuda
