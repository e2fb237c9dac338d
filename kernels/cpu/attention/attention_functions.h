// The vector loops of attention on tiles of scores: products, the softmax and its gradient, conversions of rows.
//
// A tile of scores is stored with one key a row and one query a lane, [keys, kTileQueries]: sums and maxima over keys
// then need no horizontal operation. All tiles are float32; widths are padded to kLanePad with zeros.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/dtype.h"

#include <cstddef>
#include <cstdint>

namespace fuseline::cpu {

/// Largest number of float32 lanes of a vector.
constexpr std::int64_t kLanePad = 16;
/// Multiples of the 12 rows and 32 columns that a product keeps in registers.
constexpr std::int64_t kTileQueries = 96;
constexpr std::int64_t kTileKeys = 96;
constexpr std::int64_t kTileElements = kTileKeys * kTileQueries;

constexpr std::int64_t paddedWidth(std::int64_t cols) { return (cols + kLanePad - 1) / kLanePad * kLanePad; }

/// A factor in tiles of bf16: panels of 16 rows of A or 16 columns of B, each with its tiles along k.
struct PackedTiles {
  const std::byte* data = nullptr;  // null: the factor is not packed
  std::int64_t panelBytes = 0;      // from one panel to the next
  bool isFinite = true;             // holds for all that a tile may touch
};

/// C[m, n] = A B, or + A B, or C keep + A B. A[i, j] = a[i aRow + j aCol]. n: a multiple of kLanePad.
struct TileProduct {
  const float* a = nullptr;
  std::int64_t aRow = 0;
  std::int64_t aCol = 1;
  const float* b = nullptr;  // [k, bRow]
  std::int64_t bRow = 0;
  float* c = nullptr;  // [m, cRow]
  std::int64_t cRow = 0;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool accumulates = false;
  bool mayRoundLeft = false;    // A may be rounded to bf16, if B is of bf16
  const float* keep = nullptr;  // [m]; not null: multiplies C first
  PackedTiles left;             // A
  PackedTiles right;            // B
};

/// Rows of a tensor of heads. stride: in elements.
struct RowsOf {
  std::byte* data = nullptr;
  std::int64_t stride = 0;
};

/// Tiles that change scores, [keys, kTileQueries] each; null: not wanted.
struct ScoreChange {
  float factor = 1.0F;             // multiplies first
  const float* before = nullptr;   // added next
  float softcap = 0.0F;            // then cap tanh(s / cap); 0: not
  float* slope = nullptr;          // result: the derivative of the cap
  const float* after = nullptr;    // added last
  const float* visible = nullptr;  // 0: the score becomes -inf
};

/// Which keys of the tile each query sees: [first, last), counted from the tile's first key. Null: all of them.
struct TileRange {
  const std::int32_t* first = nullptr;  // [kTileQueries]
  const std::int32_t* last = nullptr;
};

/// Online softmax over the next keys. scores become exp(factor score - largest); 0 where a key is not seen.
struct SoftmaxTile {
  float* scores = nullptr;
  float factor = 1.0F;  // above 0
  std::int64_t keys = 0;
  std::int64_t queries = 0;
  TileRange range;
  // By query, [kTileQueries].
  float* largest = nullptr;  // so far; -inf before the first key
  float* sum = nullptr;      // of exp(factor score - largest)
  float* keep = nullptr;     // result: what earlier sums are multiplied by
};

/// scores become P', and gradProbabilities, dP', become dS: with kept the shares of dropout (null: 1),
/// P = exp(factor score - largest - lse), P' = P kept, dS = P (dP' kept - delta) slope.
struct SoftmaxGradTile {
  float* scores = nullptr;
  float factor = 1.0F;
  float* gradProbabilities = nullptr;
  const float* kept = nullptr;
  const float* slope = nullptr;    // null: 1
  const float* visible = nullptr;  // null: all
  std::int64_t keys = 0;
  std::int64_t queries = 0;
  TileRange range;
  const float* largest = nullptr;  // [kTileQueries]; null: 0
  const float* lse = nullptr;      // [kTileQueries]; +inf where a row has no key
  const float* delta = nullptr;
};

/// Which pairs of a tile a product may use, where some are masked: key and query, counted from the tile's first.
struct SeenPairs {
  TileRange range;
  const float* visible = nullptr;  // [keys, kTileQueries]; null: all

  bool isAll() const { return !range.first && !visible; }
  bool sees(std::int64_t key, std::int64_t query) const {
    if (range.first && (key < range.first[query] || key >= range.last[query])) return false;
    return !visible || visible[key * kTileQueries + query] != 0.0F;
  }
};

struct AttentionFunctions {
  void (*multiply)(const TileProduct& product) = nullptr;
  /// Are there no NaN and no infinity among the numbers?
  bool (*isFinite)(const float* rows, std::int64_t stride, std::int64_t numRows, std::int64_t cols) = nullptr;
  void (*changeScores)(float* scores, std::int64_t keys, std::int64_t queries, const ScoreChange& change) = nullptr;
  void (*softmax)(const SoftmaxTile& tile) = nullptr;
  void (*softmaxGrad)(const SoftmaxGradTile& tile) = nullptr;
  /// to[col, row] = from[row, col]. from: [rows, fromRow]; to: [cols, toRow], zeros in the columns from `rows` on.
  void (*transpose)(const float* from, std::int64_t fromRow, std::int64_t rows, std::int64_t cols, float* to,
                    std::int64_t toRow) = nullptr;
  /// Turns the pairs of `heads` heads by one position's angles: x1 c - x2 s, x2 c + x1 s. Pair m are the channels m and
  /// m + pairs, or 2 m and 2 m + 1.
  void (*rotate)(float* x, std::int64_t heads, std::int64_t channels, std::int64_t pairs, bool isInterleaved,
                 const float* cosines, const float* sines) = nullptr;
};
const AttentionFunctions& attentionFunctions();

/// Functions that depend on the dtype of the tensors.
struct HeadRowFunctions {
  /// to = factor from, [rows, toRow], zeros in the columns from `cols` on.
  void (*read)(RowsOf from, std::int64_t rows, std::int64_t cols, float factor, float* to,
               std::int64_t toRow) = nullptr;
  /// to = from factors, rounded once. factors: by row; null: all are `factor`.
  void (*write)(const float* from, std::int64_t fromRow, std::int64_t rows, std::int64_t cols, const float* factors,
                float factor, RowsOf to) = nullptr;
  /// rows = factor rows, each element rounded to the dtype first.
  void (*round)(float* rows, std::int64_t stride, std::int64_t numRows, std::int64_t cols, float factor) = nullptr;
  /// sums[row] = sum of a b over the columns.
  void (*dot)(RowsOf a, RowsOf b, std::int64_t rows, std::int64_t cols, float* sums) = nullptr;
};
const HeadRowFunctions& headRowFunctions(DType dtype);

}  // namespace fuseline::cpu
