// Norms with linear consumers whose quantization needs more than a row at a time: first the sums of every row, then the
// result in tiles, which are quantized as they are computed.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm/norm_launch.h"
#include "kernels/cuda/stream/launch.h"

#include <type_traits>

#include <cuda_runtime.h>

#include "kernels/cuda/device/norm.h"
#include "kernels/cuda/device/quantized_outputs.h"

namespace fuseline::cuda {

namespace {

using namespace device;

/// y of a thread's patch.
class NormalizedPatch {
 public:
  static constexpr int kRowsAtOnce = 4;

  __device__ NormalizedPatch(const NormForward& norm, const PatchPlace& place)
      : m_norm(norm), m_place(place), m_addends(addendsOf(norm, true)) {
    if (place.numCols == 0) return;
    loadGamma<kPatch>(norm.problem, norm.gamma, place.col, m_gamma);
    if (norm.beta) loadElements<kPatch>(norm.problem.parameter, norm.beta, place.col, kPatch, m_beta);
  }

  /// take(row, y) for kRowsAtOnce rows from `first` on, all requested at once; rows outside are zeros.
  template <class Take>
  __device__ void make(int first, const Take& take) const {
    RawPacket packets[kRowsAtOnce];
    RowFactors factors[kRowsAtOnce];
#pragma unroll
    for (int row = 0; row < kRowsAtOnce; ++row) {
      if (!isInside(first + row)) continue;
      packets[row].request(m_addends.left, m_addends.leftData, indexOf(first + row));
      factors[row] = factorsOf(m_norm, m_place.row + first + row);
    }
#pragma unroll
    for (int row = 0; row < kRowsAtOnce; ++row) {
      float y[kPatch] = {};
      if (isInside(first + row)) makeRow(first + row, packets[row], factors[row], y);
      take(first + row, y);
    }
  }

  __device__ bool isInside(int row) const { return row < m_place.numRows && m_place.numCols > 0; }
  __device__ std::int64_t indexOf(int row) const { return (m_place.row + row) * m_norm.problem.cols + m_place.col; }

 private:
  __device__ void makeRow(int row, const RawPacket& packet, const RowFactors& factors, float (&y)[kPatch]) const {
    packet.decode(m_addends.left, y);
    m_addends.rightData ? addRight(row, y) : roundTo(roundedX(m_norm.problem), y);
    normalize<kPatch>(factors, m_gamma, m_beta, y);
  }

  /// Read where it is used: a sum is rarely made again.
  __device__ void addRight(int row, float (&y)[kPatch]) const {
    float right[kPatch];
    loadElements<kPatch>(m_addends.right, m_addends.rightData, indexOf(row), kPatch, right);
    addRounded<kPatch>(m_norm.problem.x, right, y);
  }

  const NormForward& m_norm;
  const PatchPlace& m_place;
  Addends m_addends;
  float m_gamma[kPatch] = {};
  float m_beta[kPatch] = {};
};

/// A result of any element type waits as float32.
using Waiting = WaitingPatch<Element::F32>;

/// A tile of y, in float32, is rounded to its element type, stored if it is requested, and quantized, from float32 if
/// the quantization requires it.
template <CopyKind kKind>
__global__ void __launch_bounds__(kTileThreads, kTileBlocksAtOnce)
    normForwardTiles(const __grid_constant__ NormForward norm,
                     const __grid_constant__ QuantizedOutputs quantizedOutputs) {
  FUSELINE_DYNAMIC_SHARED(memory);
  __shared__ TileMemory shared;
  const Waiting waiting(memory);
  const NormProblem& problem = norm.problem;
  const std::int64_t tiles = (problem.rows + kTileSide - 1) / kTileSide;
  for (std::int64_t tile = blockIdx.y; tile < tiles; tile += gridDim.y) {
    const PatchPlace place = patchPlace(tile, blockIdx.x, problem.rows, problem.cols);
    const NormalizedPatch patch(norm, place);
#pragma unroll 1
    for (int first = 0; first < kPatch; first += NormalizedPatch::kRowsAtOnce)
      patch.make(first, [&](int row, float(&y)[kPatch]) {
        if (norm.y && patch.isInside(row)) storeElements<kPatch>(problem.y, norm.y, patch.indexOf(row), kPatch, y);
        if (!quantizedOutputs.isUnrounded) roundTo(problem.y, y);
        waiting.put(row, y);
      });
    writeCopies<kKind>(shared, quantizedOutputs, {problem.rows, problem.cols, problem.cols}, place, waiting);
  }
}

template <CopyKind kKind>
using Constant = std::integral_constant<CopyKind, kKind>;

/// launch(the kind as a constant)
template <class Launch>
void withKind(CopyKind kind, const Launch& launch) {
  switch (kind) {
    case CopyKind::Tensor: return launch(Constant<CopyKind::Tensor>());
    case CopyKind::Float8Line: return launch(Constant<CopyKind::Float8Line>());
    case CopyKind::Float8Square: return launch(Constant<CopyKind::Float8Square>());
    case CopyKind::MxLine: return launch(Constant<CopyKind::MxLine>());
    case CopyKind::MxSquare: return launch(Constant<CopyKind::MxSquare>());
  }
}

}  // namespace

void launchNormForwardTiles(const NormForward& norm, const QuantizedOutputs& quantizedOutputs, Stream stream) {
  if (norm.problem.cols == 0) return;
  NormForward measuring = norm;
  measuring.y = nullptr;
  launchNormForward(measuring, stream);
  launchMeasuredNormTiles(norm, quantizedOutputs, stream);
}

void launchMeasuredNormTiles(const NormForward& norm, const QuantizedOutputs& quantizedOutputs, Stream stream) {
  if (norm.problem.cols == 0) return;
  withKind(quantizedOutputs.kind, [&](auto constant) {
    launch(normForwardTiles<constant()>, tileGrid(norm.problem.rows, norm.problem.cols),
           dim3(kTilePatches, kTilePatches), Waiting::kTileBytes, stream, norm, quantizedOutputs);
  });
}

}  // namespace fuseline::cuda
