// Launches kernels of norms that walk along rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/elementwise_launch.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/norm_launch.h"

#include <cstdint>

namespace fuseline::cuda {

/// Rows of more columns get a block each: a warp would need more than four packets of each lane.
constexpr std::int64_t kMaxWarpCols = 1024;

inline bool isVectorizable(const NormProblem& problem) { return problem.cols % kVectorWidth == 0; }

/// Blocks of one long row, or of several rows of a warp each.
template <class Norm>
void launchRows(void (*warpVector)(Norm), void (*warpScalar)(Norm), void (*blockVector)(Norm),
                void (*blockScalar)(Norm), const NormProblem& problem, const Norm& norm, Stream stream) {
  const bool isLong = problem.cols > kMaxWarpCols;
  const unsigned rowThreads = isLong ? device::kBlockThreads : device::kWarpLanes;
  const unsigned rowsPerBlock = device::kBlockThreads / rowThreads;
  const auto blocks = static_cast<unsigned>((problem.rows + rowsPerBlock - 1) / rowsPerBlock);
  const bool isVector = isVectorizable(problem);
  const auto kernel = isLong ? (isVector ? blockVector : blockScalar) : (isVector ? warpVector : warpScalar);
  launch(kernel, dim3(blocks), dim3(rowThreads, rowsPerBlock), 0, stream, norm);
}

}  // namespace fuseline::cuda
