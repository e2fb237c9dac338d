// Norms whose result linear ops read as codes: the sums of every row first, then the result in tiles, which are
// quantized as they are made.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/launch.h"
#include "kernels/cuda/norm_launch.h"

#include <cstddef>
#include <type_traits>

#include <cuda_runtime.h>

#include "kernels/cuda/device/hand_over.h"
#include "kernels/cuda/device/norm.h"

namespace fuseline::cuda {

namespace {

using namespace device;

/// What a thread reads of kRows rows of its patch, all asked for at once.
template <int kRows>
class PatchReader {
 public:
  /// data null: there is none, and zeros are taken.
  __device__ PatchReader(Element element, const void* data, std::int64_t cols, const PatchPlace& place, int firstRow)
      : m_element(element), m_isThere(data != nullptr) {
#pragma unroll
    for (int row = 0; row < kRows; ++row)
      if (data && firstRow + row < place.numRows && place.numCols > 0)
        m_packets[row].request(element, data, (place.row + firstRow + row) * cols + place.col);
  }
  __device__ void take(int row, float (&out)[kPatch]) const {
    if (m_isThere) return m_packets[row].decode(m_element, out);
    fill<kPatch>(0.0f, out);
  }

 private:
  Element m_element;
  bool m_isThere;
  RawPacket m_packets[kRows];
};

/// y of a thread's patch.
class NormalizedPatch {
 public:
  static constexpr int kRowsAtOnce = 4;

  __device__ NormalizedPatch(const NormForward& norm, const PatchPlace& place)
      : m_norm(norm), m_place(place), m_addends(addendsOf(norm, true)) {
    if (place.numRows == 0 || place.numCols == 0) return;
    loadGamma<kPatch>(norm.problem, norm.gamma, place.col, m_gamma);
    if (norm.beta) loadElements<kPatch>(norm.problem.parameter, norm.beta, place.col, kPatch, m_beta);
  }

  /// take(row, y) for kRowsAtOnce rows from `first` on.
  template <class Take>
  __device__ void make(int first, const Take& take) const {
    const std::int64_t cols = m_norm.problem.cols;
    const PatchReader<kRowsAtOnce> left(m_addends.left, m_addends.leftData, cols, m_place, first);
    RowFactors factors[kRowsAtOnce];
#pragma unroll
    for (int row = 0; row < kRowsAtOnce; ++row)
      if (first + row < m_place.numRows) factors[row] = factorsOf(m_norm, m_place.row + first + row);
#pragma unroll
    for (int row = 0; row < kRowsAtOnce; ++row) {
      float y[kPatch];
      left.take(row, y);
      if (m_addends.rightData && first + row < m_place.numRows && m_place.numCols > 0) addRight(first + row, y);
      normalize<kPatch>(factors[row], m_gamma, m_beta, y);
      take(first + row, y);
    }
  }

 private:
  /// Read where it is used: a sum is rarely made again.
  __device__ void addRight(int row, float (&y)[kPatch]) const {
    float right[kPatch];
    const std::int64_t index = (m_place.row + row) * m_norm.problem.cols + m_place.col;
    loadElements<kPatch>(m_addends.right, m_addends.rightData, index, kPatch, right);
    addRounded<kPatch>(m_norm.problem.x, right, y);
  }

  const NormForward& m_norm;
  const PatchPlace& m_place;
  Addends m_addends;
  float m_gamma[kPatch] = {};
  float m_beta[kPatch] = {};
};

/// dx of a thread's patch.
class GradientPatch {
 public:
  static constexpr int kRowsAtOnce = 2;

  __device__ GradientPatch(const NormBackward& norm, const PatchPlace& place) : m_norm(norm), m_place(place) {
    if (place.numRows > 0 && place.numCols > 0) loadGamma<kPatch>(norm.problem, norm.gamma, place.col, m_gamma);
  }

  /// take(row, dx) for kRowsAtOnce rows from `first` on.
  template <class Take>
  __device__ void make(int first, const Take& take) const {
    const NormProblem& problem = m_norm.problem;
    const PatchReader<kRowsAtOnce> readX(problem.x, m_norm.x, problem.cols, m_place, first);
    const PatchReader<kRowsAtOnce> readDy(problem.y, m_norm.dy, problem.cols, m_place, first);
    const PatchReader<kRowsAtOnce> readExtra(problem.x, m_norm.extra, problem.cols, m_place, first);
    RowFactors factors[kRowsAtOnce];
    GradientMeans means[kRowsAtOnce];
#pragma unroll
    for (int row = 0; row < kRowsAtOnce; ++row) {
      if (first + row >= m_place.numRows) continue;
      factors[row] = factorsOf(m_norm, m_place.row + first + row);
      means[row] = m_norm.means[m_place.row + first + row];
    }
#pragma unroll
    for (int row = 0; row < kRowsAtOnce; ++row) {
      float xhat[kPatch];
      float dx[kPatch];
      float extra[kPatch];
      readX.take(row, xhat);
      readDy.take(row, dx);
      readExtra.take(row, extra);
      standardize<kPatch>(factors[row], xhat);
      differentiate<kPatch>(factors[row].rstd, means[row], m_gamma, xhat, extra, dx);
      take(first + row, dx);
    }
  }

 private:
  const NormBackward& m_norm;
  const PatchPlace& m_place;
  float m_gamma[kPatch] = {};
};

/// A result of any element type waits as float32.
using Waiting = WaitingPatch<Element::F32>;

/// A tile of the result, in float32, is rounded to `element`, stored where `result` is not null, and quantized.
template <CopyKind kKind, class Patch, class Norm>
__device__ void makeTiles(const Norm& norm, Element element, void* result, const HandOver& handOver) {
  FUSELINE_DYNAMIC_SHARED(memory);
  __shared__ TileMemory shared;
  const Waiting waiting(memory);
  const NormProblem& problem = norm.problem;
  const std::int64_t tiles = (problem.rows + kTileSide - 1) / kTileSide;
  for (std::int64_t tile = blockIdx.y; tile < tiles; tile += gridDim.y) {
    const PatchPlace place = patchPlace(tile, blockIdx.x, problem.rows, problem.cols);
    const Patch patch(norm, place);
#pragma unroll 1
    for (int first = 0; first < kPatch; first += Patch::kRowsAtOnce)
      patch.make(first, [&](int row, float(&values)[kPatch]) {
        const bool isInside = row < place.numRows && place.numCols > 0;
        if (isInside && result)
          storeElements<kPatch>(element, result, (place.row + row) * problem.cols + place.col, kPatch, values);
#pragma unroll
        for (int v = 0; v < kPatch; ++v) values[v] = isInside ? roundedTo(element, values[v]) : 0.0f;
        waiting.put(row, values);
      });
    writeCopies<kKind>(shared, handOver, {problem.rows, problem.cols, problem.cols}, place, waiting);
  }
}

template <CopyKind kKind>
__global__ void __launch_bounds__(kTileThreads, kTileBlocksAtOnce)
    normForwardTiles(const __grid_constant__ NormForward norm, const __grid_constant__ HandOver handOver) {
  makeTiles<kKind, NormalizedPatch>(norm, norm.problem.y, norm.y, handOver);
}

template <CopyKind kKind>
__global__ void __launch_bounds__(kTileThreads, kTileBlocksAtOnce)
    normBackwardTiles(const __grid_constant__ NormBackward norm, const __grid_constant__ HandOver handOver) {
  makeTiles<kKind, GradientPatch>(norm, norm.problem.x, norm.dx, handOver);
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

template <class Norm>
void launchTiles(void (*kernel)(Norm, HandOver), const Norm& norm, const HandOver& handOver, Stream stream) {
  launch(kernel, tileGrid(norm.problem.rows, norm.problem.cols), dim3(kTilePatches, kTilePatches), Waiting::kTileBytes,
         stream, norm, handOver);
}

}  // namespace

void launchNormForwardTiles(const NormForward& norm, const HandOver& handOver, CopyKind kind, Stream stream) {
  if (norm.problem.cols == 0) return;
  NormForward measuring = norm;
  measuring.y = nullptr;
  launchNormForward(measuring, stream);
  withKind(kind, [&](auto constant) { launchTiles(normForwardTiles<constant()>, norm, handOver, stream); });
}

void launchNormBackwardTiles(const NormBackward& norm, const HandOver& handOver, CopyKind kind, int numMultiprocessors,
                             Stream stream) {
  if (norm.problem.cols == 0) return;
  NormBackward measuring = norm;
  measuring.dx = nullptr;
  launchNormBackward(measuring, numMultiprocessors, stream);
  withKind(kind, [&](auto constant) { launchTiles(normBackwardTiles<constant()>, norm, handOver, stream); });
}

}  // namespace fuseline::cuda
