// Plain data of a norm that the host passes to the device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/program.h"

#include <cstdint>

namespace fuseline::cuda::device {

enum class NormKind : std::uint8_t { Rms, Layer, L2 };

/// A norm step without its pointers. x: dtype of x [rows, cols], of the normalized sum, dx and the extra gradient; y:
/// of y and dy; parameters: gamma, beta and their gradients [cols].
struct NormProblem {
  NormKind kind = NormKind::Rms;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  // From one row to the next, in elements: more than cols where they are columns of a wider tensor.
  std::int64_t rowOfX = 0;
  std::int64_t rowOfDx = 0;
  Element x = Element::F32;
  Element y = Element::F32;
  Element parameter = Element::F32;
  float eps = 1e-5F;
  bool isGammaZeroCentred = false;
};

/// A residual that is added first: sum = x + addend, rounded to the problem's x, is normalized.
struct NormAddend {
  Element left = Element::F32;  // of NormForward::x
  Element right = Element::F32;
  const void* rightData = nullptr;  // null: nothing is added
  void* sum = nullptr;              // null: only the norm is requested
};

/// y null: only the row statistics or the quantized values of y are requested.
struct NormForward {
  NormProblem problem;
  NormAddend addend;
  const void* x = nullptr;
  const void* gamma = nullptr;  // null for L2
  const void* beta = nullptr;
  void* y = nullptr;
  float* mean = nullptr;  // null: not requested
  float* rstd = nullptr;
  float* amax = nullptr;  // amax of y, to be updated; null: not requested
};

struct NormBackward {
  NormProblem problem;
  const void* x = nullptr;
  const void* dy = nullptr;
  const void* extra = nullptr;  // null: nothing is added
  const void* gamma = nullptr;
  const float* mean = nullptr;
  const float* rstd = nullptr;
  void* dx = nullptr;      // null: not requested
  void* dgamma = nullptr;  // null: not requested
  void* dbeta = nullptr;
  float* amax = nullptr;       // amax of dx, to be updated; null: not requested
  float* parts = nullptr;      // of each block: sums for dgamma and, if requested, dbeta; null if neither is
  bool hasSharedSums = false;  // the sums are added in shared memory: the launch decides
};

/// How the blocks of a cluster share tiles of whole rows: block b has tiles b, b + blocks, b + 2 blocks ...
struct NormCluster {
  static constexpr int kTileSide = 128;
  int blocks = 0;
  int tiles = 0;  // of a block, at most
  /// Sums of a row's elements that a block has. A thread of the kernel for rows adds two packets of a row, which lie in
  /// tiles i and i + chains of a block: the order of additions, and so the sum, is the same.
  int chains = 0;
  int sharedBytes = 0;  // of a block
};

/// How the threads of a block share rows: each warp has a row, or all of them share one, and a thread keeps
/// kHeldPackets packets of eight columns in registers. With kHeldPackets = 0 a row may have any length, and is read
/// again for every sum. With kIsShifted_ it may also be no whole packets: a thread has the packets of memory, and rows
/// begin and end in the middle of one.
template <int kRowThreads_, int kHeldPackets_, bool kIsShifted_ = false>
struct RowShare {
  static constexpr int kRowThreads = kRowThreads_;
  static constexpr int kVector = 8;
  static constexpr int kHeldPackets = kHeldPackets_;
  static constexpr bool kIsShifted = kIsShifted_;
  static constexpr bool isHeld = kHeldPackets > 0;
  static constexpr int kThreads = kRowThreads > kWarpLanes ? kRowThreads : kBlockThreads;  // of a block
  static constexpr std::int64_t kMaxHeldCols = std::int64_t{kRowThreads} * kVector * kHeldPackets;
};

}  // namespace fuseline::cuda::device
