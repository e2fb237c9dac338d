// Norms with linear consumers that are quantized along columns, too, in one pass. The blocks of a cluster hold 128
// whole rows in their shared memory, in tiles of 128 columns; they read each other's sums of the rows, and each
// quantizes its own tiles. Sums are added in the order of norm_kernels.cu: the same bits.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm/norm_cluster.h"

#include "kernels/cuda/stream/launch_cluster.cuh"

#include <type_traits>

#include <cuda_runtime.h>

#include "kernels/cuda/device/norm.h"
#include "kernels/cuda/device/quantized_outputs.h"

namespace fuseline::cuda {

namespace {

using namespace device;

static_assert(NormCluster::kTileSide == kTileSide);

/// Shared memory of a block besides its tiles. Nothing is declared: other blocks read dynamic memory only.
template <CopyKind kKind>
struct ClusterMemory {
  std::conditional_t<kKind == CopyKind::Tensor, TransposedTile, TileMemory> quantizing;
  float mean[kTileSide];
  float rstd[kTileSide];
};

/// The 128 rows of a cluster. All threads of its blocks call every function.
template <CopyKind kKind, class Elements>
class ClusterRows {
 public:
  __device__ ClusterRows(const NormForward& norm, const QuantizedOutputs& quantizedOutputs, const NormCluster& cluster,
                         void* memory)
      : m_norm(norm),
        m_quantizedOutputs(quantizedOutputs),
        m_cluster(cluster),
        m_tiles(static_cast<char*>(memory)),
        m_memory(*reinterpret_cast<ClusterMemory<kKind>*>(m_tiles + cluster.tiles * Held::kTileBytes)),
        m_sums(reinterpret_cast<float*>(&m_memory + 1)),
        m_codes(m_sums + 2 * cluster.chains * kTileSide) {}

  __device__ void process(std::int64_t tileRow) {
    m_tileRow = tileRow;
    hold();
    measure();
    for (int tile = 0; tile < m_cluster.tiles; ++tile)
      if (firstCol(tile) < m_norm.problem.cols) write(tile);
    syncCluster();  // until then others may read this block's sums
  }

  /// After the last rows: every amax is updated once.
  __device__ void finish() const {
    if (kKind != CopyKind::Tensor || !m_quantizedOutputs.pairs[0].amax) return;  // all have one, or none
    const float largest = largestOverLanes(m_largest, kWarpLanes);
#pragma unroll 1
    for (int i = 0; i < m_quantizedOutputs.numPairs; ++i)
      if (float* const amax = m_quantizedOutputs.pairs[i].amax) raiseTo(amax, largest, tileThread() % kWarpLanes);
  }

 private:
  using Held = WaitingPatch<Elements::kHeldAs>;
  static constexpr int kRowsAtOnce = Elements::areNarrow ? 8 : 4;  // 128 bytes of a thread are in flight

  __device__ std::int64_t firstCol(int tile) const {
    return static_cast<std::int64_t>(tile * m_cluster.blocks + static_cast<int>(blockIdx.x)) * kTileSide;
  }
  __device__ PatchPlace placeOf(int tile) const {
    return patchPlace(m_tileRow, firstCol(tile) / kTileSide, m_norm.problem.rows, m_norm.problem.cols);
  }
  static __device__ bool isInside(const PatchPlace& place, int row) { return row < place.numRows && place.numCols > 0; }
  __device__ Held held(int tile) const { return Held(m_tiles + tile * Held::kTileBytes); }
  static __device__ int rowOf(int row) { return static_cast<int>(threadIdx.y) * kPatch + row; }

  /// x, or the sum that is normalized, of all tiles. Rows outside are zeros.
  __device__ void hold() const {
    const Addends addends = addendsOf(m_norm, false);
#pragma unroll 1
    for (int tile = 0; tile < m_cluster.tiles; ++tile) {
      const PatchPlace place = placeOf(tile);
#pragma unroll 1
      for (int first = 0; first < kPatch; first += kRowsAtOnce) holdRows(addends, tile, place, first);
    }
  }

  __device__ void holdRows(const Addends& addends, int tile, const PatchPlace& place, int first) const {
    const NormProblem& problem = m_norm.problem;
    RawPacket packets[kRowsAtOnce];
#pragma unroll
    for (int row = 0; row < kRowsAtOnce; ++row)
      if (isInside(place, first + row))
        packets[row].request(addends.left, addends.leftData, (place.row + first + row) * problem.rowOfX + place.col);
#pragma unroll
    for (int row = 0; row < kRowsAtOnce; ++row) {
      float x[kPatch] = {};
      if (isInside(place, first + row)) {
        packets[row].decode(addends.left, x);
        const std::int64_t index = (place.row + first + row) * problem.rowOfX + place.col;
        addends.rightData ? addRight(addends, index, x) : roundTo(roundedX(problem), x);
      }
      held(tile).put(first + row, x);
    }
  }

  __device__ void addRight(const Addends& addends, std::int64_t index, float (&x)[kPatch]) const {
    float right[kPatch];
    loadElements<kPatch>(addends.right, addends.rightData, index, kPatch, right);
    addRounded<kPatch>(m_norm.problem.x, right, x);
    if (m_norm.addend.sum) storeElements<kPatch>(m_norm.problem.x, m_norm.addend.sum, index, kPatch, x);
  }

  /// The factors of all rows.
  __device__ void measure() const {
    const NormProblem& problem = m_norm.problem;
    const int row = tileThread();
    const bool isLayer = problem.kind == NormKind::Layer;
    float mean = 0.0f;
    if (isLayer) {
      sumRows(m_sums, [](float x, int, float sum) { return sum + x; });
      if (row < kTileSide) mean = meanOf(problem, totalOf(m_sums, row));
    }
    if (row < kTileSide) m_memory.mean[row] = mean;
    __syncthreads();
    float* const sums = m_sums + m_cluster.chains * kTileSide;  // others may still read the first ones
    sumRows(sums, [&](float x, int i, float sum) {
      const float distance = x - m_memory.mean[i];
      return fmaf(distance, distance, sum);
    });
    if (row < kTileSide) m_memory.rstd[row] = rstdOf(problem, totalOf(sums, row));
    __syncthreads();
    const std::int64_t rowOfTensor = m_tileRow * kTileSide + row;
    if (blockIdx.x > 0 || row >= kTileSide || rowOfTensor >= problem.rows) return;
    if (m_norm.mean) m_norm.mean[rowOfTensor] = m_memory.mean[row];
    if (m_norm.rstd) m_norm.rstd[rowOfTensor] = m_memory.rstd[row];
  }

  /// sums: [chain][row], of every thread's packets and then of the tile's threads. added(x, row, sum)
  template <class Added>
  __device__ void sumRows(float* sums, const Added& added) const {
#pragma unroll 1
    for (int chain = 0; chain < m_cluster.chains; ++chain) {
      float ofRows[kPatch] = {};
#pragma unroll 1
      for (int tile = chain; tile < m_cluster.tiles; tile += m_cluster.chains) addTile(tile, ofRows, added);
#pragma unroll
      for (int row = 0; row < kPatch; ++row) {
        const float sum = sumOverLanes(ofRows[row], kTilePatches);
        if (threadIdx.x == 0) sums[chain * kTileSide + rowOf(row)] = sum;
      }
    }
    syncCluster();
  }

  template <class Added>
  __device__ void addTile(int tile, float (&ofRows)[kPatch], const Added& added) const {
    const PatchPlace place = placeOf(tile);
#pragma unroll
    for (int row = 0; row < kPatch; ++row) {
      if (!isInside(place, row)) continue;
      float x[kPatch];
      held(tile).row(row, x);
#pragma unroll
      for (int v = 0; v < kPatch; ++v) ofRows[row] = added(x[v], rowOf(row), ofRows[row]);
    }
  }

  /// Two tiles have the packets of a warp of the kernel for rows, whose warps are added one after the other.
  __device__ float totalOf(const float* sums, int row) const {
    float total = 0.0f;
    for (int tile = 0; tile < m_cluster.blocks * m_cluster.chains; tile += 2)
      total += sumOfTile(sums, tile, row) + sumOfTile(sums, tile + 1, row);
    return total;
  }
  __device__ float sumOfTile(const float* sums, int tile, int row) const {
    return *inBlock(static_cast<unsigned>(tile % m_cluster.blocks), sums + tile / m_cluster.blocks * kTileSide + row);
  }

  __device__ void write(int tile) {
    const NormProblem& problem = m_norm.problem;
    const PatchPlace place = placeOf(tile);
    float gamma[kPatch];
    float beta[kPatch] = {};
    if (place.numCols > 0) {
      loadGamma<kPatch>(problem, m_norm.gamma, place.col, gamma);
      if (m_norm.beta) loadElements<kPatch>(problem.parameter, m_norm.beta, place.col, kPatch, beta);
    }
    const MatrixSize size{problem.rows, problem.cols, problem.cols};
    if constexpr (kKind == CopyKind::Tensor) {
      const TensorCodes codes(problem.y, m_quantizedOutputs, *m_quantizedOutputs.pairs[0].scale, size, m_codes);
      forEachRow(tile, place, gamma, beta, [&](int row, float(&y)[kPatch]) { codes.put(place, row, y, m_largest); });
      codes.transpose(m_memory.quantizing, place);
    } else {
      forEachRow(tile, place, gamma, beta, [&](int row, float(&y)[kPatch]) {
        roundTo(problem.y, y);
        held(tile).put(row, y);
      });
      writeCopies<kKind>(m_memory.quantizing, m_quantizedOutputs, size, place, held(tile));
    }
  }

  /// take(row, y) for the rows of a patch. Those outside are zeros.
  template <class Take>
  __device__ void forEachRow(int tile, const PatchPlace& place, const float (&gamma)[kPatch],
                             const float (&beta)[kPatch], const Take& take) const {
    const NormProblem& problem = m_norm.problem;
#pragma unroll Held::kRowsUnrolled
    for (int row = 0; row < kPatch; ++row) {
      float y[kPatch] = {};
      if (isInside(place, row)) {
        held(tile).row(row, y);
        normalize<kPatch>({m_memory.mean[rowOf(row)], m_memory.rstd[rowOf(row)]}, gamma, beta, y);
        if (m_norm.y)
          storeElements<kPatch>(problem.y, m_norm.y, (place.row + row) * problem.cols + place.col, kPatch, y);
      }
      take(row, y);
    }
  }

  const NormForward& m_norm;
  const QuantizedOutputs& m_quantizedOutputs;
  const NormCluster& m_cluster;
  char* m_tiles;
  ClusterMemory<kKind>& m_memory;
  float* m_sums;
  float* m_codes;  // of tensors with one scale, until a tile can be transposed
  std::int64_t m_tileRow = 0;
  float m_largest = 0.0f;
};

/// gridDim: (blocks of a cluster, clusters)
template <CopyKind kKind, class Elements>
__global__ void __launch_bounds__(kTileThreads, kTileBlocksAtOnce)
    normForwardCluster(const __grid_constant__ NormForward wanted,
                       const __grid_constant__ QuantizedOutputs quantizedOutputs,
                       const __grid_constant__ NormCluster cluster) {
  if constexpr (kHasClusters) {
    FUSELINE_DYNAMIC_SHARED(memory);
    const NormForward norm = Elements::known(wanted);
    ClusterRows<kKind, Elements> rows(norm, quantizedOutputs, cluster, memory);
    const std::int64_t tiles = (norm.problem.rows + kTileSide - 1) / kTileSide;
    for (std::int64_t tile = blockIdx.y; tile < tiles; tile += gridDim.y) rows.process(tile);
    rows.finish();
  }
}

using ClusterKernel = void (*)(NormForward, QuantizedOutputs, NormCluster);

template <class Elements>
ClusterKernel kernelOf(CopyKind kind) {
  switch (kind) {
    case CopyKind::Float8Line: return normForwardCluster<CopyKind::Float8Line, Elements>;
    case CopyKind::MxLine: return normForwardCluster<CopyKind::MxLine, Elements>;
    default: return normForwardCluster<CopyKind::Tensor, Elements>;
  }
}

ClusterKernel kernelOf(const NormProblem& problem, CopyKind kind) {
  return isNarrowNorm(problem) ? kernelOf<OneElement<Element::BF16>>(kind) : kernelOf<AnyElements>(kind);
}

constexpr dim3 threadsOfTile() { return dim3(kTilePatches, kTilePatches); }

}  // namespace

bool canLaunchNormClusters(const NormProblem& problem, CopyKind kind, const NormCluster& cluster) {
  return runsInClusters(kernelOf(problem, kind), static_cast<unsigned>(cluster.blocks), threadsOfTile(),
                        static_cast<std::size_t>(cluster.sharedBytes));
}

void launchNormForwardClusters(const NormForward& norm, const QuantizedOutputs& quantizedOutputs,
                               const NormCluster& cluster, Stream stream) {
  const NormProblem& problem = norm.problem;
  if (problem.rows == 0 || problem.cols == 0) return;
  const dim3 grid(static_cast<unsigned>(cluster.blocks), tileGrid(problem.rows, problem.cols).y);
  launchInClusters(kernelOf(problem, quantizedOutputs.kind), grid, threadsOfTile(),
                   static_cast<std::size_t>(cluster.sharedBytes), stream, norm, quantizedOutputs, cluster);
}

}  // namespace fuseline::cuda
