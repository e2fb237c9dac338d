// Norms whose result linear ops read as codes: the sums of every row first, then the result in tiles, which are
// quantized as they are made.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm_rows.h"

#include <algorithm>

#include <cuda_runtime.h>

#include "kernels/cuda/device/hand_over.h"
#include "kernels/cuda/device/norm.h"

namespace fuseline::cuda {

namespace {

using namespace device;

template <int kRowThreads, int kVector>
__global__ void __launch_bounds__(kBlockThreads) measureRows(const __grid_constant__ NormForward norm) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= norm.problem.rows) return;  // a whole warp: longer rows have blocks of their own
  const RowFactors factors = measureRow<kRowThreads, kVector>(norm, row);
  if (threadIdx.x != 0) return;
  if (norm.mean) norm.mean[row] = factors.mean;
  norm.rstd[row] = factors.rstd;
}

struct NormBackwardMeans {
  NormBackward norm;
  GradientMeans* means = nullptr;  // by row
};

template <int kRowThreads, int kVector>
__global__ void __launch_bounds__(kBlockThreads) measureGradients(const __grid_constant__ NormBackwardMeans task) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= task.norm.problem.rows) return;
  const RowFactors factors = factorsOf(task.norm, row);
  const GradientMeans means = measureGradient<kRowThreads, kVector>(task.norm, row, factors);
  if (threadIdx.x == 0) task.means[row] = means;
}

/// By the kind at run time: the norm is most of the code, and stands there once.
__device__ void writeCopies(TileMemory& shared, CopyKind kind, const HandOver& handOver, const MatrixSize& size,
                            const PatchPlace& place, const float (&x)[kPatch][kPatch]) {
  switch (kind) {
    case CopyKind::Tensor: return writeCopies<CopyKind::Tensor>(shared, handOver, size, place, x);
    case CopyKind::Float8Line: return writeCopies<CopyKind::Float8Line>(shared, handOver, size, place, x);
    case CopyKind::Float8Square: return writeCopies<CopyKind::Float8Square>(shared, handOver, size, place, x);
    case CopyKind::MxLine: return writeCopies<CopyKind::MxLine>(shared, handOver, size, place, x);
    case CopyKind::MxSquare: return writeCopies<CopyKind::MxSquare>(shared, handOver, size, place, x);
  }
}

/// packetOf(row, col, values): a packet of the result in float32; it is rounded to `element`, stored where
/// `result` is not null, and quantized.
template <class PacketOf>
__device__ void walkResult(const NormProblem& problem, Element element, void* result, CopyKind kind,
                           const HandOver& handOver, const PacketOf& packetOf) {
  __shared__ TileMemory shared;
  const std::int64_t tiles = (problem.rows + kTileSide - 1) / kTileSide;
  for (std::int64_t tile = blockIdx.y; tile < tiles; tile += gridDim.y) {
    const PatchPlace place = patchPlace(tile, blockIdx.x, problem.rows, problem.cols);
    float x[kPatch][kPatch];
#pragma unroll
    for (int row = 0; row < kPatch; ++row) {
      fill<kPatch>(0.0f, x[row]);
      if (row >= place.numRows || place.numCols == 0) continue;
      packetOf(place.row + row, place.col, x[row]);
      if (result) storeElements<kPatch>(element, result, (place.row + row) * problem.cols + place.col, kPatch, x[row]);
#pragma unroll
      for (int v = 0; v < kPatch; ++v) x[row][v] = roundedTo(element, x[row][v]);
    }
    writeCopies(shared, kind, handOver, {problem.rows, problem.cols, problem.cols}, place, x);
  }
}

__global__ void __launch_bounds__(kTileThreads)
    normForwardTiles(const __grid_constant__ NormForward norm, CopyKind kind,
                     const __grid_constant__ HandOver handOver) {
  walkResult(norm.problem, norm.problem.y, norm.y, kind, handOver,
             [&](std::int64_t row, std::int64_t col, float(&y)[kPatch]) {
               const RowFactors factors{norm.mean ? norm.mean[row] : 0.0f, norm.rstd[row]};
               normalizePacket<kPatch>(norm, row, col, kPatch, factors, y);
             });
}

__global__ void __launch_bounds__(kTileThreads)
    normBackwardTiles(const __grid_constant__ NormBackwardMeans task, CopyKind kind,
                      const __grid_constant__ HandOver handOver) {
  walkResult(task.norm.problem, task.norm.problem.x, task.norm.dx, kind, handOver,
             [&](std::int64_t row, std::int64_t col, float(&dx)[kPatch]) {
               gradientPacket<kPatch>(task.norm, row, col, kPatch, factorsOf(task.norm, row), task.means[row], dx);
             });
}

constexpr dim3 kTileBlock(kTilePatches, kTilePatches);

}  // namespace

void launchNormForwardTiles(const NormForward& norm, const HandOver& handOver, CopyKind kind, Stream stream) {
  const NormProblem& problem = norm.problem;
  if (problem.cols == 0) return;
  if (problem.rows > 0)
    launchRows<NormForward>(measureRows<kWarpLanes, kVectorWidth>, measureRows<kWarpLanes, 1>,
                            measureRows<kBlockThreads, kVectorWidth>, measureRows<kBlockThreads, 1>, problem, norm,
                            stream);
  launch(normForwardTiles, tileGrid(problem.rows, problem.cols), kTileBlock, 0, stream, norm, kind, handOver);
}

void launchNormInputGradientTiles(const NormBackward& norm, const HandOver& handOver, CopyKind kind, float* means,
                                  Stream stream) {
  const NormProblem& problem = norm.problem;
  if (problem.cols == 0) return;
  const NormBackwardMeans task{norm, reinterpret_cast<GradientMeans*>(means)};
  if (problem.rows > 0)
    launchRows<NormBackwardMeans>(measureGradients<kWarpLanes, kVectorWidth>, measureGradients<kWarpLanes, 1>,
                                  measureGradients<kBlockThreads, kVectorWidth>, measureGradients<kBlockThreads, 1>,
                                  problem, task, stream);
  launch(normBackwardTiles, tileGrid(problem.rows, problem.cols), kTileBlock, 0, stream, task, kind, handOver);
}

}  // namespace fuseline::cuda
