// Scratch memory for programs on grids whose height is not known beforehand.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise_launch.h"

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

TEST(ElementwiseShape, HasNoMorePartsThanMostParts) {
  const device::Program program{.numColumnSums = 2, .numRowSums = 1};
  constexpr int kMultiprocessors = 2;
  for (const std::int64_t cols : {1, 5, 40, 600, 4096})
    for (const std::int64_t tallestRows : {0, 1, 17, 300, 5000}) {
      const auto shapeOf = [&](std::int64_t rows) {
        return elementwiseShape(rows, cols, cols % kVectorWidth == 0, true, {kMultiprocessors});
      };
      const std::int64_t most = mostParts(program, shapeOf(tallestRows), kMultiprocessors);
      for (std::int64_t rows = 1; rows <= tallestRows; ++rows)
        ASSERT_LE(numColumnParts(program, shapeOf(rows)) + numRowParts(program, shapeOf(rows)), most)
            << rows << " x " << cols;
    }
}

}  // namespace
}  // namespace fuseline::cuda
