// Row-major GEMMs in cuBLASLt's terms.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/gemm_layout.h"

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

/// x: [5, 7], W: [3, 7]. In columns: y' [3, 5] = W' ' x', with W' and x' as stored.
TEST(GemmLayout, OfALinearLayerTransposesTheWeight) {
  const CublasLayout layout = layoutOf({.m = 5, .n = 3, .k = 7, .b = Storage2d::Transposed});
  EXPECT_EQ(layout, (CublasLayout{.a = {.rows = 7, .cols = 3, .leadingDimension = 7},
                                  .b = {.rows = 7, .cols = 5, .leadingDimension = 7},
                                  .d = {.rows = 3, .cols = 5, .leadingDimension = 3},
                                  .isATransposed = true}));
}

/// dx [5, 7] = dy [5, 3] W [3, 7].
TEST(GemmLayout, OfAnInputGradientTransposesNothing) {
  const CublasLayout layout = layoutOf({.m = 5, .n = 7, .k = 3});
  EXPECT_EQ(layout, (CublasLayout{.a = {.rows = 7, .cols = 3, .leadingDimension = 7},
                                  .b = {.rows = 3, .cols = 5, .leadingDimension = 3},
                                  .d = {.rows = 7, .cols = 5, .leadingDimension = 7}}));
}

/// dW [3, 7] = dy' x, with dy [5, 3] and x [5, 7].
TEST(GemmLayout, OfAWeightGradientTransposesTheGradient) {
  const CublasLayout layout = layoutOf({.m = 3, .n = 7, .k = 5, .a = Storage2d::Transposed});
  EXPECT_EQ(layout, (CublasLayout{.a = {.rows = 7, .cols = 5, .leadingDimension = 7},
                                  .b = {.rows = 3, .cols = 5, .leadingDimension = 3},
                                  .d = {.rows = 7, .cols = 3, .leadingDimension = 7},
                                  .isBTransposed = true}));
}

/// For every combination of transposes the contracted extents match: op(A) is [d.rows, k] and op(B) [k, d.cols].
TEST(GemmLayout, FactorsAlwaysFit) {
  for (const Storage2d a : {Storage2d::AsRead, Storage2d::Transposed})
    for (const Storage2d b : {Storage2d::AsRead, Storage2d::Transposed}) {
      const CublasLayout layout = layoutOf({.m = 11, .n = 13, .k = 17, .a = a, .b = b});
      EXPECT_EQ(layout.isATransposed ? layout.a.cols : layout.a.rows, layout.d.rows);
      EXPECT_EQ(layout.isATransposed ? layout.a.rows : layout.a.cols, 17);
      EXPECT_EQ(layout.isBTransposed ? layout.b.cols : layout.b.rows, 17);
      EXPECT_EQ(layout.isBTransposed ? layout.b.rows : layout.b.cols, layout.d.cols);
      EXPECT_EQ(layout.a.leadingDimension, layout.a.rows);
      EXPECT_EQ(layout.b.leadingDimension, layout.b.rows);
    }
}

/// Scores of heads: q [5, 2 heads of 7] by k [3, 2 heads of 7], rows of both heads side by side.
TEST(GemmLayout, OfABatchHasRowsAndMatricesApart) {
  const CublasLayout layout =
      layoutOf({.m = 5,
                .n = 3,
                .k = 7,
                .b = Storage2d::Transposed,
                .batch = {.count = 2, .aStride = 7, .bStride = 7, .cStride = 15, .aRow = 14, .bRow = 14}});
  EXPECT_EQ(layout, (CublasLayout{.a = {.rows = 7, .cols = 3, .leadingDimension = 14, .count = 2, .stride = 7},
                                  .b = {.rows = 7, .cols = 5, .leadingDimension = 14, .count = 2, .stride = 7},
                                  .d = {.rows = 3, .cols = 5, .leadingDimension = 3, .count = 2, .stride = 15},
                                  .isATransposed = true}));
}

TEST(GemmLayout, SpansRowsAndMatricesToTheLastElement) {
  EXPECT_EQ(spannedElements(5, 7, 0, 1, 0), 35);
  EXPECT_EQ(spannedElements(5, 7, 14, 2, 7), 4 * 14 + 7 + 7);
  EXPECT_EQ(spannedElements(0, 7, 14, 2, 7), 0);
}

}  // namespace
}  // namespace fuseline::cuda
