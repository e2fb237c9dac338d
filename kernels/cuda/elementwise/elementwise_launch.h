// Launches of elementwise programs. Plain C++: the kernels are in elementwise_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/program.h"
#include "kernels/cuda/stream/stream.h"

#include <cstddef>
#include <cstdint>

namespace fuseline::cuda {

/// Elements that a thread moves at once: 16 bytes of a 16-bit format, twice 16 of float32.
constexpr int kVectorWidth = 8;

/// The columns of a thread: one, or a packet, if all rows begin with one, or one of those of memory, where they begin
/// anywhere.
enum class Packing : std::uint8_t { None, Packets, ShiftedPackets };

/// For tensors of this number of columns, in memory of its own or from any row of one on.
constexpr Packing packingOfRows(std::int64_t cols) {
  return cols % kVectorWidth == 0 ? Packing::Packets : Packing::None;
}

/// How a program's grid is spread over the device.
struct ElementwiseShape {
  device::Grid grid;
  int vector = 1;  // columns of a thread: 1 or kVectorWidth
  bool isShifted = false;
  unsigned threadsX = 1;  // horizontally; the rest of a block is arranged vertically
  unsigned blocksX = 1;
  unsigned blocksY = 1;
  std::size_t sharedBytes = 0;  // of a block

  unsigned threadsY() const { return device::kBlockThreads / threadsX; }
  /// Threads of a row that share a warp make one part of a row sum.
  std::int64_t rowGroups() const;
};

/// The grid size that fills a device.
struct DeviceFill {
  /// For programs with column sums, compiled or not, so that their sums have the same bits. This number of blocks of
  /// the gradients of an activation and its bias, which need 40 registers, runs on a multiprocessor at once.
  static constexpr int kBlocksWithSums = 6;
  int numMultiprocessors = 1;
  int blocksAtOnce = kBlocksWithSums;  // of a multiprocessor
};

/// `hasColumnSums` bounds the number of parts: there are no more blocks than run at once.
ElementwiseShape elementwiseShape(std::int64_t rows, std::int64_t cols, Packing packing, bool hasColumnSums,
                                  const DeviceFill& device);

/// Upper bound of the shared memory that programs with tiles declare themselves.
constexpr std::size_t kTileDeclaredBytes = 35 * 1024;

/// Tiles of 128 x 128, for programs that quantize a result, whose elements wait in shared memory. waitingBytes: bytes
/// per element, summed over all lanes.
ElementwiseShape tileShape(std::int64_t rows, std::int64_t cols, std::size_t waitingBytes);

/// Scratch memory for the parts of sums, in floats.
std::int64_t numColumnParts(const device::Program& program, const ElementwiseShape& shape);
std::int64_t numRowParts(const device::Program& program, const ElementwiseShape& shape);
/// The largest number of parts that any shape with column sums needs for both sums, if its grid has no more rows than
/// this one's.
std::int64_t mostParts(const device::Program& program, const ElementwiseShape& tallest, int numMultiprocessors);

/// The program's operands hold their pointers. parts: numColumnParts + numRowParts floats.
void launchProgram(const device::Program& program, const ElementwiseShape& shape, float* parts, Stream stream);

/// Sums of parts: item i is the sum of parts[i * itemStride + t * termStride] for t < terms, rounded once.
struct PartSums {
  const float* parts = nullptr;
  std::int64_t items = 0;
  std::int64_t itemStride = 1;
  std::int64_t terms = 0;
  std::int64_t termStride = 1;
  /// Item i goes to the position of column i of `cols`.
  device::Operand to;
  std::int64_t cols = 0;
  void* behind = nullptr;  // items from `cols` on go here, with the same element type; null: there are none
};
void launchPartSums(const PartSums& sums, Stream stream);

}  // namespace fuseline::cuda
