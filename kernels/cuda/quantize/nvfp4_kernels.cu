// NVFP4: the amaxes of a tensor and of its transform, quantization in both directions in one pass over x, and
// dequantization.
//
// A block of threads has a tile of 64 x 64 in shared memory, and each of its threads a line of 16 values: first of a
// row, then of a column.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/quantize/nvfp4_launch.h"

#include "kernels/cuda/stream/launch.h"
#include "kernels/cuda/stream/task_batch.h"

#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>

#include "kernels/cuda/device/nvfp4.h"

namespace fuseline::cuda {

namespace {

using namespace device;

constexpr int kSide = 64;
constexpr int kLinesAcross = kSide / kLine;
constexpr int kThreads = kSide * kLinesAcross;
/// Blocks that a multiprocessor has registers for: one reads while the other one computes.
constexpr int kBlocksAtOnce = 2;

struct Tile {
  float x[kSide][kSide + 1];  // so that neither rows nor columns meet in a bank more than twice
  float ofLines[kSide][kLinesAcross];
};

struct Corner {
  std::int64_t row = 0;
  std::int64_t col = 0;
};

/// The line of the running thread: `across` is its index in the direction perpendicular to the line.
struct Seat {
  int across = static_cast<int>(threadIdx.x) / kLinesAcross;
  int line = static_cast<int>(threadIdx.x) % kLinesAcross;
};

__device__ std::int64_t tilesIn(std::int64_t extent) { return (extent + kSide - 1) / kSide; }

/// Zeros beyond the matrix.
__device__ void loadEight(const Nvfp4Quantization& task, std::int64_t row, std::int64_t col, float (&x)[kPatch]) {
  const int count = row < task.rows ? clampToPatch(task.cols - col) : 0;
  const std::int64_t index = row * task.cols + col;
  if (count == kPatch && task.cols % kPatch == 0) {
    RawPacket packet;
    packet.request(task.element, task.x, index);
    packet.decode(task.element, x);
    return;
  }
#pragma unroll
  for (int i = 0; i < kPatch; ++i) x[i] = i < count ? loadElement(task.element, task.x, index + i) : 0.0f;
}

__device__ void load(Tile& tile, const Nvfp4Quantization& task, const Corner& corner) {
  constexpr int kPackets = kSide / kPatch;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < kSide * kPackets; i += kThreads) {
    const int row = i / kPackets;
    const int col = i % kPackets * kPatch;
    float x[kPatch];
    loadEight(task, corner.row + row, corner.col + col, x);
#pragma unroll
    for (int v = 0; v < kPatch; ++v) tile.x[row][col + v] = x[v];
  }
  __syncthreads();
}

__device__ void readRow(const Tile& tile, const Seat& seat, float (&line)[kLine]) {
#pragma unroll
  for (int i = 0; i < kLine; ++i) line[i] = tile.x[seat.across][seat.line * kLine + i];
}

__device__ void readColumn(const Tile& tile, const Seat& seat, float (&line)[kLine]) {
#pragma unroll
  for (int i = 0; i < kLine; ++i) line[i] = tile.x[seat.line * kLine + i][seat.across];
}

/// visit(corner) of every tile of the block's column of tiles, which has been loaded.
template <class Visit>
__device__ void walk(Tile& tile, const Nvfp4Quantization& task, const Visit& visit) {
  for (std::int64_t row = blockIdx.y; row < tilesIn(task.rows); row += gridDim.y) {
    const Corner corner{row * kSide, static_cast<std::int64_t>(blockIdx.x) * kSide};
    load(tile, task, corner);
    visit(corner);
    __syncthreads();
  }
}

__host__ __device__ const float* knownAmaxOf(const Nvfp4Quantization& task, const Nvfp4Copy& copy) {
  return copy.isTransformed ? task.knownTransformedAmax : task.knownAmax;
}

__host__ __device__ bool isAmaxSought(const Nvfp4Quantization& task, const Nvfp4Copy& copy) {
  return copy.codes && !knownAmaxOf(task, copy);
}

/// Initial amaxes: the known value, or zero.
__global__ void beginAmaxes(const __grid_constant__ TaskBatch<Nvfp4Quantization> batch, int count) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= count) return;
  const Nvfp4Quantization& task = batch.tasks[i];
  const auto begin = [&](const Nvfp4Copy& copy) {
    const float* const known = knownAmaxOf(task, copy);
    if (copy.codes) *copy.amax = known ? *known : 0.0f;
  };
  begin(task.rowwise);
  begin(task.columnwise);
}

__global__ void __launch_bounds__(kThreads)
    findNvfp4Amaxes(const __grid_constant__ TaskBatch<Nvfp4Quantization> batch) {
  __shared__ Tile tile;
  const Nvfp4Quantization& task = batch.tasks[blockIdx.z];
  const Seat seat;
  float largest = 0.0f;
  float largestTransformed = 0.0f;
  walk(tile, task, [&](const Corner&) {
    float line[kLine];
    readRow(tile, seat, line);
    largest = largerOf(largestOfLine(line), largest);
    if (!task.columnwise.isTransformed) return;
    readColumn(tile, seat, line);
    transformLine(line);
    largestTransformed = largerOf(largestOfLine(line), largestTransformed);
  });
  const auto raise = [&](const Nvfp4Copy& copy) {
    if (isAmaxSought(task, copy))
      raiseAmax(copy.amax, copy.isTransformed ? largestTransformed : largest, static_cast<int>(threadIdx.x));
  };
  raise(task.rowwise);
  raise(task.columnwise);
}

/// The largest magnitude of a square of 16 x 16 values: 16 rows, one line each.
__device__ float largestOfSquare(const Tile& tile, int rows, int line) {
  float largest = 0.0f;
#pragma unroll
  for (int i = 0; i < kLine; ++i) largest = largerOf(tile.ofLines[rows * kLine + i][line], largest);
  return largest;
}

/// One thread's output to one quantized tensor, which has `rows` and `cols` as stored.
struct CopyWriter {
  const Nvfp4Copy& copy;
  std::int64_t rows;
  std::int64_t cols;
  float tensorScale;
  bool hasSquares;

  __device__ void write(const LinePlace& place, const float (&line)[kLine], float blockAmax) const {
    if (place.row >= rows || place.line * kLine >= cols) return;
    const std::uint8_t code = nvScaleCode(blockAmax, tensorScale);
    const std::int64_t blockRow = hasSquares ? place.row / kLine : place.row;
    if (!hasSquares || place.row % kLine == 0) copy.scales[blockRow * linesIn(cols) + place.line] = code;
    storeLine(copy, cols, place, line, nvMultiplier(code, tensorScale));
  }
};

__device__ CopyWriter writerOf(const Nvfp4Copy& copy, std::int64_t rows, std::int64_t cols, bool hasSquares) {
  return {copy, rows, cols, copy.codes ? nvTensorScale(*copy.amax) : 1.0f, hasSquares};
}

__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    quantizeNvfp4(const __grid_constant__ TaskBatch<Nvfp4Quantization> batch) {
  __shared__ Tile tile;
  const Nvfp4Quantization& task = batch.tasks[blockIdx.z];
  const Seat seat;
  const CopyWriter rowwise = writerOf(task.rowwise, task.rows, task.cols, task.hasSquares);
  const CopyWriter columnwise = writerOf(task.columnwise, task.cols, task.rows, task.hasSquares);
  walk(tile, task, [&](const Corner& corner) {
    float line[kLine];
    readRow(tile, seat, line);
    float largest = largestOfLine(line);
    if (task.hasSquares) {
      tile.ofLines[seat.across][seat.line] = largest;
      __syncthreads();
      largest = largestOfSquare(tile, seat.across / kLine, seat.line);
    }
    if (task.rowwise.codes) rowwise.write({corner.row + seat.across, corner.col / kLine + seat.line}, line, largest);
    if (!task.columnwise.codes) return;
    readColumn(tile, seat, line);
    if (task.columnwise.isTransformed) transformLine(line);
    largest = task.hasSquares ? largestOfSquare(tile, seat.line, seat.across / kLine) : largestOfLine(line);
    columnwise.write({corner.col + seat.across, corner.row / kLine + seat.line}, line, largest);
  });
}

__device__ void storeDecoded(const Nvfp4Dequantization& task, const LinePlace& place, const float (&line)[kLine]) {
  const std::int64_t index = place.row * task.cols + place.line * kLine;
  const std::int64_t left = task.cols - place.line * kLine;
  if (left >= kLine && task.cols % kPatch == 0) {
#pragma unroll
    for (int half = 0; half < kLine; half += kPatch) {
      float values[kPatch];
#pragma unroll
      for (int i = 0; i < kPatch; ++i) values[i] = line[half + i];
      storePacketOf(task.element, task.out, index + half, values);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kLine; ++i)
    if (i < left) storeElement(task.element, task.out, index + i, line[i]);
}

/// A line a thread.
__global__ void __launch_bounds__(kBlockThreads) dequantizeNvfp4(const __grid_constant__ Nvfp4Dequantization task) {
  const std::int64_t lines = linesIn(task.cols);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  const float amax = *task.amax;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < task.rows * lines;
       i += stride) {
    const LinePlace place{i / lines, i % lines};
    const std::int64_t blockRow = task.hasSquares ? place.row / kLine : place.row;
    float line[kLine];
    decodeLine(loadLine(task.codes, task.cols, place),
               nvDequantFactor(task.scales[blockRow * lines + place.line], amax), line);
    if (task.isTransformed) transformLineBack(line);
    storeDecoded(task, place, line);
  }
}

__global__ void writeFactors(const __grid_constant__ Nvfp4Factors task) {
  const auto factorOf = [](const float* amax) { return nvDequantFactor(E4m3::fromFloat(1.0f), *amax); };
  task.to[0] = task.alpha * (factorOf(task.aAmax) * factorOf(task.bAmax));
  task.to[1] = task.hasAddend ? 1.0f : 0.0f;
}

/// Grid for the largest of several tensors.
dim3 gridOf(std::span<const Nvfp4Quantization> tensors) {
  constexpr std::int64_t kMaxBlocksY = 65535;
  std::int64_t rows = 1;
  std::int64_t cols = 1;
  for (const Nvfp4Quantization& tensor : tensors) {
    rows = std::max(rows, (tensor.rows + kSide - 1) / kSide);
    cols = std::max(cols, (tensor.cols + kSide - 1) / kSide);
  }
  return dim3(static_cast<unsigned>(cols), static_cast<unsigned>(std::min(rows, kMaxBlocksY)),
              static_cast<unsigned>(tensors.size()));
}

bool isAmaxSought(const Nvfp4Quantization& task) {
  return isAmaxSought(task, task.rowwise) || isAmaxSought(task, task.columnwise);
}

}  // namespace

void launchNvfp4Amaxes(const Nvfp4Quantization& tensor, Stream stream) {
  launchInBatches(std::span(&tensor, 1),
                  [&](std::span<const Nvfp4Quantization> tasks, const TaskBatch<Nvfp4Quantization>& batch) {
                    launch(beginAmaxes, dim3(1), dim3(kWarpLanes), 0, stream, batch, static_cast<int>(tasks.size()));
                    launch(findNvfp4Amaxes, gridOf(tasks), dim3(kThreads), 0, stream, batch);
                  });
}

void launchNvfp4Quantize(std::span<const Nvfp4Quantization> tensors, Stream stream) {
  launchInBatches(tensors, [&](std::span<const Nvfp4Quantization> tasks, const TaskBatch<Nvfp4Quantization>& batch) {
    const dim3 grid = gridOf(tasks);
    launch(beginAmaxes, dim3(1), dim3(kWarpLanes), 0, stream, batch, static_cast<int>(tasks.size()));
    if (std::ranges::any_of(tasks, [](const Nvfp4Quantization& task) { return isAmaxSought(task); }))
      launch(findNvfp4Amaxes, grid, dim3(kThreads), 0, stream, batch);
    launch(quantizeNvfp4, grid, dim3(kThreads), 0, stream, batch);
  });
}

void launchNvfp4Dequantize(const Nvfp4Dequantization& dequantization, Stream stream) {
  constexpr std::int64_t kMaxBlocks = 65535;
  const std::int64_t lines = dequantization.rows * ((dequantization.cols + kLine - 1) / kLine);
  if (lines == 0) return;
  const std::int64_t blocks = std::min((lines + kBlockThreads - 1) / kBlockThreads, kMaxBlocks);
  launch(dequantizeNvfp4, dim3(static_cast<unsigned>(blocks)), dim3(kBlockThreads), 0, stream, dequantization);
}

void launchNvfp4Factors(const Nvfp4Factors& factors, Stream stream) {
  launch(writeFactors, dim3(1), dim3(1), 0, stream, factors);
}

}  // namespace fuseline::cuda
