// Scratch memory for programs on grids with a height that is not known beforehand.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/elementwise_launch.h"

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

TEST(ElementwiseShape, HasNoMorePartsThanMostParts) {
  const device::Program program{.numColumnSums = 2, .numRowSums = 1};
  constexpr int kMultiprocessors = 2;
  for (const std::int64_t cols : {1, 5, 40, 600, 4096})
    for (const std::int64_t tallestRows : {0, 1, 17, 300, 5000}) {
      const auto shapeOf = [&](std::int64_t rows) {
        return elementwiseShape(rows, cols, packingOfRows(cols), true, {kMultiprocessors});
      };
      const std::int64_t most = mostParts(program, shapeOf(tallestRows), kMultiprocessors);
      for (std::int64_t rows = 1; rows <= tallestRows; ++rows)
        ASSERT_LE(numColumnParts(program, shapeOf(rows)) + numRowParts(program, shapeOf(rows)), most)
            << rows << " x " << cols;
    }
}

/// A second wave of blocks would leave most of the device without work.
TEST(ElementwiseShape, HasNoMoreBlocksThanRunAtOnceWhereTheyAreBounded) {
  constexpr DeviceFill kH100 = {.numMultiprocessors = 132, .blocksAtOnce = 6};
  for (const std::int64_t cols : {1, 600, 4096, 14336, 28672})
    for (const std::int64_t rows : {1, 127, 2048, 8192}) {
      const ElementwiseShape shape = elementwiseShape(rows, cols, packingOfRows(cols), true, kH100);
      EXPECT_LE(shape.blocksX * shape.blocksY, 132U * 6U) << rows << " x " << cols;
      EXPECT_GE(shape.blocksY * shape.grid.rowsPerBlock, rows);
    }
  EXPECT_GT(elementwiseShape(2048, 14336, Packing::Packets, true, kH100).blocksY * 7U, 132U * 5U);
}

/// Rows of a decoder: each has separate blocks.
TEST(ElementwiseShape, SpreadsFewRowsOverMoreBlocks) {
  constexpr DeviceFill kH100 = {.numMultiprocessors = 132};
  EXPECT_EQ(elementwiseShape(16, 14336, Packing::Packets, false, kH100).blocksY, 16U);
  EXPECT_EQ(elementwiseShape(2048, 14336, Packing::Packets, false, kH100).blocksY, 512U);
}

}  // namespace
}  // namespace fuseline::cuda
