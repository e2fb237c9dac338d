// Norms of rows that are looked up in a table. The threads of a row hold or read it as those of other norms do, so the
// results have the same bits. The lookup would cost the kernels of other norms registers, so it is not among them.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm/embedding_norm_launch.h"

#include "kernels/cuda/norm/norm_shape.h"
#include "kernels/cuda/stream/launch.h"

#include <cuda_runtime.h>

#include "kernels/cuda/device/norm.h"
#include "kernels/cuda/device/row_codes.h"

namespace fuseline::cuda {

namespace {

using namespace device;

__device__ std::int64_t tableRow(const EmbeddingNorm& task, std::int64_t row) {
  return task.tokens > 0 ? row % task.tokens : task.ids[row];
}

/// A row of the table.
template <class Share>
class LookedUpRow {
 public:
  __device__ LookedUpRow(const EmbeddingNorm& task, std::int64_t row)
      : m_cols(task.norm.problem.cols),
        m_reader(task.norm.problem.x, task.norm.x, tableRow(task, row) * m_cols, m_cols) {}

  /// f(packet, col, isInside, x), as device::forEachPlace. x is undefined beyond the end.
  template <class Function>
  __device__ void forEachPlace(const Function& f) {
    m_reader.holdAsItIs();
    device::forEachPlace<Share>(m_cols, 0, [&](int packet, std::int64_t col, bool isInside) {
      float x[Share::kVector];
      if (isInside) m_reader.take(packet, col, x);
      f(packet, col, isInside, x);
    });
  }

  /// f(col, x)
  template <class Function>
  __device__ void forEach(const Function& f) {
    forEachPlace([&](int, std::int64_t col, bool isInside, const float(&x)[Share::kVector]) {
      if (isInside) f(col, x);
    });
  }

 private:
  std::int64_t m_cols;
  RowReader<Share> m_reader;
};

template <class Share>
__device__ void storeRow(const EmbeddingNorm& task, std::int64_t row, LookedUpRow<Share>& x) {
  constexpr int kVector = Share::kVector;
  const NormProblem& problem = task.norm.problem;
  x.forEachPlace([&](int, std::int64_t col, bool isInside, const float(&values)[kVector]) {
    if (isInside) storeElements<kVector>(problem.x, task.rows, row * problem.cols + col, kVector, values);
  });
}

/// Besides: RowAmax or RowCodes, which take the packets of the result.
template <class Share, class Besides>
__device__ void storeNormalized(const NormForward& norm, std::int64_t row, const RowFactors& factors,
                                LookedUpRow<Share>& x, Besides& besides) {
  constexpr int kVector = Share::kVector;
  const NormProblem& problem = norm.problem;
  x.forEachPlace([&](int, std::int64_t col, bool isInside, const float(&values)[kVector]) {
    float y[kVector] = {};
    if (isInside) {
      float gamma[kVector];
      float beta[kVector] = {};
      loadGamma<kVector>(problem, norm.gamma, col, gamma);
      if (norm.beta) loadElements<kVector>(problem.parameter, norm.beta, col, kVector, beta);
#pragma unroll
      for (int v = 0; v < kVector; ++v) y[v] = values[v];
      normalize<kVector>(factors, gamma, beta, y);
      if (norm.y) storeElements<kVector>(problem.y, norm.y, row * problem.cols + col, kVector, y);
    }
    besides.take(row, col, isInside, y);
  });
}

/// Only whole warps have no row: longer rows have separate blocks.
template <class Share, class Besides>
__device__ void normalizeRows(const EmbeddingNorm& task, bool isResultWanted, Besides& besides) {
  const NormForward& norm = task.norm;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row < norm.problem.rows) {
    LookedUpRow<Share> x(task, row);
    if (task.rows) storeRow(task, row, x);
    const RowFactors factors = measureRow<Share>(norm.problem, x);
    if (threadIdx.x == 0 && norm.mean) norm.mean[row] = factors.mean;
    if (threadIdx.x == 0 && norm.rstd) norm.rstd[row] = factors.rstd;
    if (isResultWanted) storeNormalized(norm, row, factors, x, besides);
  }
  besides.template finish<Share::kThreads>(static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x));
}

template <class Share>
__global__ void __launch_bounds__(Share::kThreads, kForwardBlocksAtOnce<Share>)
    embeddingNorm(const __grid_constant__ EmbeddingNorm task) {
  RowAmax besides(task.norm.problem.y, task.norm.amax);
  normalizeRows<Share>(task, task.norm.y != nullptr, besides);
}

template <class Share>
dim3 rowThreads() {
  return dim3(Share::kRowThreads, kRowsPerBlock<Share>);
}

}  // namespace

void launchEmbeddingNorm(const EmbeddingNorm& task, Stream stream) {
  const NormProblem& problem = task.norm.problem;
  if (problem.rows == 0 || problem.cols == 0) return;
  withPacketShare<1024>(problem.cols, [&]<class Share>(Share) {
    launch(embeddingNorm<Share>, dim3(rowBlocks<Share>(problem.rows)), rowThreads<Share>(), 0, stream, task);
  });
}

}  // namespace fuseline::cuda
