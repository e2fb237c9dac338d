// Copies of columns: a warp has rows of one piece, in accesses as wide as all addresses of the launch allow.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/layout/column_copy_launch.h"

#include "kernels/cuda/stream/launch.h"

#include <algorithm>
#include <span>

#include <cuda_runtime.h>

#include "kernels/cuda/device/elements.h"

namespace fuseline::cuda {

namespace {

using namespace device;

constexpr int kRowsAtOnce = kBlockThreads / kWarpLanes;

struct alignas(16) Quad {
  std::uint32_t words[4];
};

/// blockIdx.y: the piece.
template <class Unit>
__global__ void __launch_bounds__(kBlockThreads) copyColumns(const __grid_constant__ ColumnPieces pieces) {
  const ColumnPiece piece = pieces.pieces[blockIdx.y];
  if (!piece.to) return;
  const std::int64_t units = piece.bytes / static_cast<std::int64_t>(sizeof(Unit));
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kRowsAtOnce;
#pragma unroll 1
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kRowsAtOnce + threadIdx.y; row < pieces.rows;
       row += step) {
    Unit* const to = reinterpret_cast<Unit*>(piece.to + row * piece.toRowBytes);
    const std::byte* const first = piece.from ? piece.from + row * piece.fromRowBytes : nullptr;
    const Unit* const from = reinterpret_cast<const Unit*>(first);
    for (std::int64_t i = threadIdx.x; i < units; i += kWarpLanes) {
      Unit unit = {};
      if (from) {
        FUSELINE_READS(from + i, sizeof(Unit));
        unit = from[i];
      }
      FUSELINE_WRITES(to + i, sizeof(Unit));
      to[i] = unit;
    }
  }
}

/// The lowest bit that is set in any address or length of any piece.
std::uint64_t alignmentOf(const ColumnPieces& pieces) {
  std::uint64_t bits = 0;
  for (const ColumnPiece& piece : std::span(pieces.pieces, static_cast<std::size_t>(pieces.count)))
    if (piece.to)
      bits |= reinterpret_cast<std::uintptr_t>(piece.from) | reinterpret_cast<std::uintptr_t>(piece.to) |
              static_cast<std::uint64_t>(piece.fromRowBytes | piece.toRowBytes | piece.bytes);
  return bits & (~bits + 1);
}

auto kernelFor(const ColumnPieces& pieces) {
  const std::uint64_t alignment = alignmentOf(pieces);
  if (alignment >= sizeof(Quad)) return copyColumns<Quad>;
  if (alignment >= sizeof(std::uint32_t)) return copyColumns<std::uint32_t>;
  return alignment >= sizeof(std::uint16_t) ? copyColumns<std::uint16_t> : copyColumns<std::uint8_t>;
}

}  // namespace

void launchColumnCopy(const ColumnPieces& pieces, Stream stream) {
  constexpr std::int64_t kMaxBlocks = 4096;
  if (pieces.rows == 0 || pieces.count == 0) return;
  const std::int64_t blocks = std::min((pieces.rows + kRowsAtOnce - 1) / kRowsAtOnce, kMaxBlocks);
  launch(kernelFor(pieces), dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(pieces.count)),
         dim3(kWarpLanes, kRowsAtOnce), 0, stream, pieces);
}

}  // namespace fuseline::cuda
