// What the host tells the device of a norm: plain data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/program.h"

#include <cstdint>

namespace fuseline::cuda::device {

enum class NormKind : std::uint8_t { Rms, Layer, L2 };

/// What a norm step is, without its pointers. x: [rows, cols], also the sum that is normalized, dx and the extra
/// gradient; y: also dy; parameters: gamma, beta and their gradients [cols].
struct NormProblem {
  NormKind kind = NormKind::Rms;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  Element x = Element::F32;
  Element y = Element::F32;
  Element parameter = Element::F32;
  float eps = 1e-5F;
  bool isGammaZeroCentred = false;
};

/// A residual that is added first: sum = x + addend, rounded to the problem's x, is what is normalized.
struct NormAddend {
  Element left = Element::F32;  // of NormForward::x
  Element right = Element::F32;
  const void* rightData = nullptr;  // null: nothing is added
  void* sum = nullptr;              // null: only the norm is wanted
};

/// y null: only what is known of the rows is wanted, or codes of y.
struct NormForward {
  NormProblem problem;
  NormAddend addend;
  const void* x = nullptr;
  const void* gamma = nullptr;  // null for L2
  const void* beta = nullptr;
  void* y = nullptr;
  float* mean = nullptr;  // null: not wanted
  float* rstd = nullptr;
  float* amax = nullptr;  // of y, to be raised; null: not wanted
};

struct NormBackward {
  NormProblem problem;
  const void* x = nullptr;
  const void* dy = nullptr;
  const void* extra = nullptr;  // null: nothing is added
  const void* gamma = nullptr;
  const float* mean = nullptr;
  const float* rstd = nullptr;
  void* dx = nullptr;      // null: not wanted
  void* dgamma = nullptr;  // null: not wanted
  void* dbeta = nullptr;
  float* amax = nullptr;       // of dx, to be raised; null: not wanted
  float* parts = nullptr;      // of each block: sums for dgamma and, if wanted, dbeta; null where neither is
  bool hasSharedSums = false;  // they are added up in shared memory: the launch says so
};

/// How the threads of a block share rows: a warp has one, or all of them have one, and a thread holds kHeldPackets
/// packets of kVector columns of it in registers; none where it may be of any length, and is read once more for every
/// sum.
template <int kRowThreads_, int kVector_, int kHeldPackets_>
struct RowShare {
  static constexpr int kRowThreads = kRowThreads_;
  static constexpr int kVector = kVector_;
  static constexpr int kHeldPackets = kHeldPackets_;
  static constexpr bool isHeld = kHeldPackets > 0;
  static constexpr int kThreads = kRowThreads > kWarpLanes ? kRowThreads : kBlockThreads;  // of a block
  static constexpr std::int64_t kMaxHeldCols = std::int64_t{kRowThreads} * kVector * kHeldPackets;
};

}  // namespace fuseline::cuda::device
