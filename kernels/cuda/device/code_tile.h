// A tile of a matrix that a block of threads holds and writes in FP8: in the matrix's orientation, and transposed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/amax.h"

#include <cstdint>

namespace fuseline::cuda::device {

/// A thread holds 8 x 8 elements, so that it reads and writes whole packets in either direction.
constexpr int kPatch = RawPacket::kElements;
constexpr int kTilePatches = 16;
constexpr int kTileSide = kPatch * kTilePatches;
constexpr int kTileThreads = kTilePatches * kTilePatches;
/// Blocks that a multiprocessor has registers for: one reads while the other one computes.
constexpr int kTileBlocksAtOnce = 2;
/// The same where a tile of 16-bit elements waits in shared memory, which has room for three.
constexpr int kNarrowTileBlocksAtOnce = 3;
/// Eight encoded values, the first in the lowest byte.
using CodePacket = std::uint64_t;

/// At least one block of threads; no more rows of blocks than a grid may have.
inline dim3 tileGrid(std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t kMaxBlocksY = 65535;
  const auto tilesOf = [](std::int64_t extent) {
    return extent <= kTileSide ? std::int64_t{1} : (extent + kTileSide - 1) / kTileSide;
  };
  const std::int64_t down = tilesOf(rows);
  return dim3(static_cast<unsigned>(tilesOf(cols)), static_cast<unsigned>(down < kMaxBlocksY ? down : kMaxBlocksY));
}

/// Tiles of a matrix, of which an empty one has one, too: its scale is written.
template <class Matrix>
__host__ __device__ unsigned tilesDown(const Matrix& matrix) {
  return matrix.rows <= kTileSide ? 1u : static_cast<unsigned>((matrix.rows + kTileSide - 1) / kTileSide);
}
template <class Matrix>
__host__ __device__ unsigned tilesAcross(const Matrix& matrix) {
  return matrix.cols <= kTileSide ? 1u : static_cast<unsigned>((matrix.cols + kTileSide - 1) / kTileSide);
}

/// Grid for several matrices: a block for each tile of each.
template <class Matrices>
dim3 tileGrid(const Matrices& matrices) {
  unsigned tiles = 0;
  for (const auto& matrix : matrices) tiles += tilesDown(matrix) * tilesAcross(matrix);
  return dim3(tiles);
}

/// The tile of the running block in such a grid.
struct BlockTile {
  int matrix = 0;
  unsigned row = 0;
  unsigned col = 0;
};

/// matrices: those of the grid come first.
template <class Matrix, int kMaxMatrices>
__device__ BlockTile blockTile(const Matrix (&matrices)[kMaxMatrices]) {
  BlockTile found;
  unsigned tile = blockIdx.x;
  for (;; ++found.matrix) {
    const Matrix& matrix = matrices[found.matrix];
    const unsigned across = tilesAcross(matrix);
    const unsigned tiles = tilesDown(matrix) * across;
    found.row = tile / across;
    found.col = tile % across;
    if (tile < tiles || found.matrix + 1 == kMaxMatrices) return found;
    tile -= tiles;
  }
}

/// Position of the running thread's patch in the matrix, and the part of the patch inside it.
struct PatchPlace {
  std::int64_t row = 0;
  std::int64_t col = 0;
  int numRows = 0;
  int numCols = 0;
};

struct MatrixSize {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t endCol = 0;  // end of the columns of the current tile
};

inline __device__ int clampToPatch(std::int64_t left) {
  return left >= kPatch ? kPatch : (left > 0 ? static_cast<int>(left) : 0);
}

// blockDim: (kTilePatches, kTilePatches)

inline __device__ int tileThread() { return static_cast<int>(threadIdx.y * kTilePatches + threadIdx.x); }

inline __device__ PatchPlace patchPlace(std::int64_t tileRow, std::int64_t tileCol, std::int64_t rows,
                                        std::int64_t cols) {
  PatchPlace place;
  place.row = tileRow * kTileSide + threadIdx.y * kPatch;
  place.col = tileCol * kTileSide + threadIdx.x * kPatch;
  place.numRows = clampToPatch(rows - place.row);
  place.numCols = clampToPatch(cols - place.col);
  return place;
}

/// The source of one thread's part of a tile: row(r, x) returns a row of its patch. HeldPatch keeps the patch in
/// registers in its memory format, so that all rows are loaded concurrently and 16-bit elements take half as many
/// registers.
template <Element kElement>
class HeldPatch {
 public:
  static constexpr int kRowsUnrolled = kPatch;  // registers have no index
  /// Blocks that a multiprocessor has registers for. Before 9.0 and from 12.0 on the code of three spills some.
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 900 || __CUDA_ARCH__ >= 1200)
  static constexpr int kBlocksAtOnce = 2;
#else
  static constexpr int kBlocksAtOnce = kElement == Element::F32 ? 2 : 3;
#endif

  /// Requests the patch. Zeros outside of the matrix, which has `cols` columns.
  __device__ HeldPatch(const void* data, std::int64_t cols, const PatchPlace& place) {
    cols % kPatch == 0 ? requestWhole(data, cols, place) : requestSingly(data, cols, place);
  }
  __device__ void row(int row, float (&x)[kPatch]) const { m_rows[row].takeAnew(x); }

 private:
  __device__ void requestWhole(const void* data, std::int64_t cols, const PatchPlace& place) {
#pragma unroll
    for (int row = 0; row < kPatch; ++row)
      if (row < place.numRows && place.numCols > 0)
        m_rows[row].requestWhole(data, (place.row + row) * cols + place.col);
  }
  __device__ void requestSingly(const void* data, std::int64_t cols, const PatchPlace& place) {
#pragma unroll
    for (int row = 0; row < kPatch; ++row)
      m_rows[row].requestSingly(data, (place.row + row) * cols + place.col, row < place.numRows ? place.numCols : 0);
  }

  LoadedPacket<kElement, kPatch> m_rows[kPatch] = {};
};

inline __device__ float largestOfRow(const float (&x)[kPatch]) {
  float largest = 0.0f;
#pragma unroll
  for (int col = 0; col < kPatch; ++col) largest = largerOf(fabsf(x[col]), largest);
  return largest;
}

/// By row of the patch.
template <class Patch>
__device__ void largestOfRows(const Patch& patch, float (&largest)[kPatch]) {
#pragma unroll
  for (int row = 0; row < kPatch; ++row) {
    float x[kPatch];
    patch.row(row, x);
    largest[row] = largestOfRow(x);
  }
}

/// NaN does not count.
template <class Patch>
__device__ float largestOfPatch(const Patch& patch) {
  float largest = 0.0f;
#pragma unroll
  for (int row = 0; row < kPatch; ++row) {
    float x[kPatch];
    patch.row(row, x);
    largest = largerOf(largestOfRow(x), largest);
  }
  return largest;
}

/// Loads the first `count` encoded values from an aligned address; the rest are zero.
inline __device__ CodePacket loadPacket(const std::uint8_t* from, int count) {
  if (count == kPatch) {
    FUSELINE_READS(from, sizeof(CodePacket));
    return *reinterpret_cast<const CodePacket*>(from);
  }
  CodePacket packet = 0;
#pragma unroll 1
  for (int i = 0; i < count; ++i) packet |= static_cast<CodePacket>(from[i]) << (8 * i);
  return packet;
}

/// Stores the first `count` encoded values, in one access if the address allows it.
inline __device__ void storePacket(std::uint8_t* to, CodePacket packet, int count) {
  if (count == kPatch && reinterpret_cast<std::uintptr_t>(to) % sizeof(CodePacket) == 0) {
    FUSELINE_WRITES(to, sizeof(CodePacket));
    *reinterpret_cast<CodePacket*>(to) = packet;
    return;
  }
#pragma unroll 1
  for (int i = 0; i < count; ++i) to[i] = static_cast<std::uint8_t>(packet >> (8 * i));
}

template <FloatCode kCode>
__device__ CodePacket encodePacket(const float (&values)[kPatch], const float (&multipliers)[kPatch]) {
  std::uint32_t words[2];
#pragma unroll
  for (int word = 0; word < 2; ++word) {
    float scaled[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) scaled[i] = values[4 * word + i] * multipliers[4 * word + i];
    words[word] = encodeFour<kCode>(scaled);
  }
  return words[0] | static_cast<CodePacket>(words[1]) << 32;
}

/// Encodes element i times multiplier i.
inline __device__ CodePacket encodePacket(const float (&values)[kPatch], const float (&multipliers)[kPatch],
                                          FloatCode code) {
  return code == FloatCode::E4M3 ? encodePacket<FloatCode::E4M3>(values, multipliers)
                                 : encodePacket<FloatCode::E5M2>(values, multipliers);
}

/// Stores one row of a patch in the matrix's own orientation.
inline __device__ void storeRow(std::uint8_t* codes, std::int64_t cols, const PatchPlace& place, int row,
                                CodePacket packet) {
  if (row < place.numRows) storePacket(codes + (place.row + row) * cols + place.col, packet, place.numCols);
}

/// Stores the matrix in its own orientation. multipliers: by column of the patch.
template <class Patch>
__device__ void storeRows(std::uint8_t* codes, std::int64_t cols, const PatchPlace& place, FloatCode code,
                          const Patch& patch, const float (&multipliers)[kPatch]) {
#pragma unroll Patch::kRowsUnrolled
  for (int row = 0; row < kPatch; ++row) {
    float x[kPatch];
    patch.row(row, x);
    storeRow(codes, cols, place, row, encodePacket(x, multipliers, code));
  }
}

/// Transposes 4 x 4 encoded values: one row per word before, one column per word after.
inline __device__ void transposeCodes(std::uint32_t (&words)[4]) {
  const std::uint32_t top = __byte_perm(words[0], words[1], 0x5140);
  const std::uint32_t bottom = __byte_perm(words[2], words[3], 0x5140);
  const std::uint32_t topRight = __byte_perm(words[0], words[1], 0x7362);
  const std::uint32_t bottomRight = __byte_perm(words[2], words[3], 0x7362);
  words[0] = __byte_perm(top, bottom, 0x5410);
  words[1] = __byte_perm(top, bottom, 0x7632);
  words[2] = __byte_perm(topRight, bottomRight, 0x5410);
  words[3] = __byte_perm(topRight, bottomRight, 0x7632);
}

/// Packets of a patch's rows; afterwards of its columns.
inline __device__ void transposePatch(CodePacket (&packets)[kPatch]) {
  std::uint32_t words[2][2][4];  // by half of the rows, half of the columns
#pragma unroll
  for (int row = 0; row < kPatch; ++row) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      words[row / 4][half][row % 4] = static_cast<std::uint32_t>(packets[row] >> (32 * half));
  }
#pragma unroll
  for (int quarter = 0; quarter < 4; ++quarter) transposeCodes(words[quarter / 2][quarter % 2]);
#pragma unroll
  for (int col = 0; col < kPatch; ++col)
    packets[col] = words[0][col / 4][col % 4] | static_cast<CodePacket>(words[1][col / 4][col % 4]) << 32;
}

/// The encoded values of a tile on their way to the transpose. Packets of a column are permuted to avoid bank
/// conflicts, both of the threads that write one row of patches and of those that read some columns.
struct TransposedTile {
  CodePacket packets[kTileSide][kTilePatches];

  static __device__ int slot(int col, int packet) { return packet ^ (col / kPatch % kTilePatches) ^ (col & 1); }
};

/// Stores the transpose of the matrix. packets: the rows of the patch; endCol: end of the tile's columns. All threads
/// of the block call it, including threads whose patch lies outside.
inline __device__ void storeTransposed(TransposedTile& shared, std::uint8_t* codes, std::int64_t rows,
                                       std::int64_t endCol, const PatchPlace& place, CodePacket (&packets)[kPatch]) {
  transposePatch(packets);
#pragma unroll
  for (int col = 0; col < kPatch; ++col) {
    const int tileCol = static_cast<int>(threadIdx.x) * kPatch + col;
    shared.packets[tileCol][TransposedTile::slot(tileCol, static_cast<int>(threadIdx.y))] = packets[col];
  }
  __syncthreads();
  constexpr int kPair = 2;  // packets of one access
  constexpr int kPairs = kTilePatches / kPair;
  const std::int64_t firstRow = place.row - threadIdx.y * kPatch;
  const std::int64_t firstCol = place.col - threadIdx.x * kPatch;
  for (int i = tileThread(); i < kTileSide * kPairs; i += kTileThreads) {
    const int tileCol = i / kPairs;
    const int packet = i % kPairs * kPair;
    const std::int64_t row = firstRow + packet * kPatch;
    if (firstCol + tileCol >= endCol || row >= rows) continue;
    const CodePacket low = shared.packets[tileCol][TransposedTile::slot(tileCol, packet)];
    const CodePacket high = shared.packets[tileCol][TransposedTile::slot(tileCol, packet + 1)];
    std::uint8_t* const to = codes + (firstCol + tileCol) * rows + row;
    if (rows - row >= kPair * kPatch && reinterpret_cast<std::uintptr_t>(to) % kAccessBytes == 0) {
      FUSELINE_WRITES(to, sizeof(CodePacket) * kPair);
      *reinterpret_cast<Packet<CodePacket, kPair>*>(to) = {{low, high}};
      continue;
    }
    storePacket(to, low, clampToPatch(rows - row));
    storePacket(to + kPatch, high, clampToPatch(rows - row - kPatch));
  }
  __syncthreads();
}

/// The same for a patch that is not encoded yet. multipliers: by column of the patch.
template <class Patch>
__device__ void storeTransposed(TransposedTile& shared, std::uint8_t* codes, std::int64_t rows, std::int64_t endCol,
                                const PatchPlace& place, FloatCode code, const Patch& patch,
                                const float (&multipliers)[kPatch]) {
  CodePacket packets[kPatch];
#pragma unroll
  for (int row = 0; row < kPatch; ++row) {
    float x[kPatch];
    patch.row(row, x);
    packets[row] = encodePacket(x, multipliers, code);
  }
  storeTransposed(shared, codes, rows, endCol, place, packets);
}

/// Encodes a patch, row by row, with one multiplier for all elements.
template <FloatCode kCode, class Patch>
__device__ void encodePatch(const Patch& patch, float multiplier, CodePacket (&packets)[kPatch]) {
  float multipliers[kPatch];
  fill<kPatch>(multiplier, multipliers);
#pragma unroll
  for (int row = 0; row < kPatch; ++row) {
    float x[kPatch];
    patch.row(row, x);
    packets[row] = encodePacket<kCode>(x, multipliers);
  }
}

template <class Patch>
__device__ void encodePatch(const Patch& patch, float multiplier, FloatCode code, CodePacket (&packets)[kPatch]) {
  code == FloatCode::E4M3 ? encodePatch<FloatCode::E4M3>(patch, multiplier, packets)
                          : encodePatch<FloatCode::E5M2>(patch, multiplier, packets);
}

inline __device__ void storePatch(TransposedTile& shared, const CodedCopy& copy, const MatrixSize& size,
                                  const PatchPlace& place, CodePacket (&packets)[kPatch]) {
  if (copy.isTransposed) return storeTransposed(shared, copy.codes, size.rows, size.endCol, place, packets);
#pragma unroll
  for (int row = 0; row < kPatch; ++row) storeRow(copy.codes, size.cols, place, row, packets[row]);
}

/// A quantized tensor, and the multiplier of all elements of a patch for it.
struct ScaledCopy {
  const CodedCopy& copy;
  float multiplier = 1.0f;
};

template <class Patch>
__device__ void storeScaled(TransposedTile& shared, const ScaledCopy& scaled, const MatrixSize& size,
                            const PatchPlace& place, const Patch& patch) {
  if (!scaled.copy.codes) return;
  CodePacket packets[kPatch];
  encodePatch(patch, scaled.multiplier, scaled.copy.code, packets);
  storePatch(shared, scaled.copy, size, place, packets);
}

/// Writes the requested quantized tensors. If both have the same multiplier and format, as recipes require, elements
/// are encoded once. All threads of the block call it.
template <class Patch>
__device__ void storeCopies(TransposedTile& shared, const ScaledCopy& rowwise, const ScaledCopy& columnwise,
                            const MatrixSize& size, const PatchPlace& place, const Patch& patch) {
  const bool isSame = rowwise.copy.code == columnwise.copy.code && rowwise.multiplier == columnwise.multiplier;
  if (rowwise.copy.codes && columnwise.copy.codes && isSame) {
    CodePacket packets[kPatch];
    encodePatch(patch, rowwise.multiplier, rowwise.copy.code, packets);
    storePatch(shared, rowwise.copy, size, place, packets);
    storePatch(shared, columnwise.copy, size, place, packets);
    return;
  }
  storeScaled(shared, rowwise, size, place, patch);
  storeScaled(shared, columnwise, size, place, patch);
}

}  // namespace fuseline::cuda::device
