// Products of bf16 tiles against sums in double precision, for extents that fill no tile.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/tile_products.h"
#include "core/numerics/bf16.h"
#include "kernels/cpu/attention/attention_tiles.h"

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline::cpu {
namespace {

constexpr std::int64_t kSideOfTiles = 16;

/// Cuts pieces of memory that is there.
class Memory {
 public:
  std::byte* piece(std::int64_t bytes) {
    m_pieces.emplace_back(static_cast<std::size_t>(bytes) + 64);
    void* data = m_pieces.back().data();
    std::size_t room = m_pieces.back().size();
    return static_cast<std::byte*>(std::align(64, static_cast<std::size_t>(bytes), data, room));
  }

 private:
  std::vector<std::vector<std::byte>> m_pieces;
};

/// [rows, kTileQueries], rounded to bf16 on request.
std::vector<float> randomRows(std::int64_t rows, unsigned seed, bool isRounded) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(rows * kTileQueries));
  for (float& value : values) value = isRounded ? bf16ToFloat(floatToBf16(normal(engine))) : normal(engine);
  return values;
}

class Bf16Tiles : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!canMultiplyBf16Tiles()) GTEST_SKIP() << "This CPU has no AMX, or the process may not use it.";
  }

  /// The largest error of C = A B, A with m rows that are contiguous or columns that are.
  double error(std::int64_t m, std::int64_t n, std::int64_t k, bool areRows, bool mayRound) {
    WorkspaceCutter counted;
    TileProducts(true, counted);
    WorkspaceCutter cutter(m_memory.piece(static_cast<std::int64_t>(counted.used())));
    const TileProducts products(true, cutter);
    const std::vector<float> a = randomRows(areRows ? m : k, 1, false);
    const std::vector<float> b = randomRows(k, 2, true);
    std::vector<float> c(static_cast<std::size_t>(kTileElements), std::numeric_limits<float>::quiet_NaN());
    const PackedTiles right = packRight({b.data(), kTileQueries, k, n}, m_memory.piece(packedBytes(k, n)));
    products.multiply({.a = a.data(),
                       .aRow = areRows ? kTileQueries : 1,
                       .aCol = areRows ? 1 : kTileQueries,
                       .b = b.data(),
                       .bRow = kTileQueries,
                       .c = c.data(),
                       .cRow = kTileQueries,
                       .m = m,
                       .n = paddedWidth(n),
                       .k = k,
                       .mayRoundLeft = mayRound,
                       .right = right});
    double worst = 0.0;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0.0;
        for (std::int64_t l = 0; l < k; ++l)
          sum +=
              static_cast<double>(a[static_cast<std::size_t>(areRows ? i * kTileQueries + l : l * kTileQueries + i)]) *
              b[static_cast<std::size_t>(l * kTileQueries + j)];
        worst = std::fmax(worst, std::abs(sum - c[static_cast<std::size_t>(i * kTileQueries + j)]));
      }
    return worst;
  }

  Memory m_memory;
};

TEST_F(Bf16Tiles, LoseNothingOfScores) {
  for (const std::int64_t m : {1, 17, 96})
    for (const std::int64_t n : {5, 48, 96})
      for (const std::int64_t k : {1, 31, 33, 96})
        for (const bool areRows : {false, true}) EXPECT_LT(error(m, n, k, areRows, false), 2e-3) << m << n << k;
}

/// Rows behind those of A belong to other tiles: they stay as they are.
TEST_F(Bf16Tiles, AddPackedFactorsToTheirRowsOnly) {
  WorkspaceCutter cutter(m_memory.piece(1 << 20));
  const TileProducts products(true, cutter);
  constexpr std::int64_t kFirst = 32, kRows = 5, kDepth = 40, kCols = 16;
  const std::vector<float> a = randomRows(kFirst + kRows, 1, true);
  const std::vector<float> b = randomRows(kCols, 2, true);
  const RowBlock left{a.data(), kTileQueries, kFirst + kRows, kDepth};
  const RowBlock right{b.data(), kTileQueries, kCols, kDepth};
  std::vector<float> c(static_cast<std::size_t>(kTileElements), 3.0F);
  products.multiply({.c = c.data(),
                     .cRow = kTileQueries,
                     .m = kRows,
                     .n = kCols,
                     .k = kDepth,
                     .accumulates = true,
                     .left = leftFrom(packLeft(left, m_memory.piece(packedBytes(left.count, kDepth))), kFirst),
                     .right = packRightTransposed(right, m_memory.piece(packedBytes(kCols, kDepth)))});
  for (std::int64_t i = 0; i < kSideOfTiles; ++i)
    for (std::int64_t j = 0; j < kCols; ++j) {
      double sum = 3.0;
      for (std::int64_t l = 0; l < kDepth && i < kRows; ++l)
        sum += static_cast<double>(a[static_cast<std::size_t>((kFirst + i) * kTileQueries + l)]) *
               b[static_cast<std::size_t>(j * kTileQueries + l)];
      EXPECT_NEAR(c[static_cast<std::size_t>(i * kTileQueries + j)], sum, 1e-4) << i << ", " << j;
    }
}

TEST_F(Bf16Tiles, KeepInfinity) {
  WorkspaceCutter cutter(m_memory.piece(1 << 20));
  const TileProducts products(true, cutter);
  const float a = std::numeric_limits<float>::infinity();
  std::vector<float> rows(static_cast<std::size_t>(kTileElements));
  rows[0] = a;
  const std::vector<float> b(static_cast<std::size_t>(kTileElements), 1.0F);
  std::vector<float> c(static_cast<std::size_t>(kTileElements));
  const PackedTiles right = packRight({b.data(), kTileQueries, 1, 16}, m_memory.piece(packedBytes(1, 16)));
  products.multiply({.a = rows.data(),
                     .aRow = kTileQueries,
                     .c = c.data(),
                     .cRow = kTileQueries,
                     .m = 1,
                     .n = 16,
                     .k = 1,
                     .right = right});
  EXPECT_EQ(c[0], a);
}

TEST_F(Bf16Tiles, RoundScoresWhereTheyMay) {
  const double rounded = error(90, 80, 70, false, true);
  EXPECT_GT(rounded, 1e-2);
  EXPECT_LT(rounded, 0.2);
}

TEST_F(Bf16Tiles, KnowWhetherTheyAreFinite) {
  std::vector<float> rows = randomRows(40, 3, true);
  std::byte* const room = m_memory.piece(packedBytes(40, 20));
  EXPECT_TRUE(packRight({rows.data(), kTileQueries, 40, 20}, room).isFinite);
  rows[39 * kTileQueries + 19] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(packRight({rows.data(), kTileQueries, 40, 20}, room).isFinite);
}

}  // namespace
}  // namespace fuseline::cpu
