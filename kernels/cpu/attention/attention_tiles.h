// Parts that attention's forward and backward share: packed keys and values, tiles of scores, the jobs of the threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/attention_functions.h"
#include "kernels/cpu/attention/tile_products.h"
#include "kernels/cpu/workspace.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fuseline::cpu {

/// Hands out pieces of a workspace, each aligned to 64 bytes. Without memory it only counts.
class WorkspaceCutter {
 public:
  explicit WorkspaceCutter(std::byte* workspace = nullptr) : m_base(workspace) {}
  float* floats(std::int64_t count) { return reinterpret_cast<float*>(bytes(count * 4)); }
  std::int32_t* integers(std::int64_t count) { return reinterpret_cast<std::int32_t*>(bytes(count * 4)); }
  std::byte* bytes(std::int64_t count) {
    std::byte* const piece = m_base ? m_base + m_used : nullptr;
    m_used += workspacePart(static_cast<std::size_t>(count));
    return piece;
  }
  std::size_t used() const { return m_used; }

 private:
  std::byte* m_base;
  std::size_t m_used = 0;
};

/// Rows in float32: [.., stride], of which the first padded channels are the head's.
struct FloatRows {
  const float* data = nullptr;
  std::int64_t stride = 0;
  const float* at(std::int64_t row) const { return data + row * stride; }
};

/// A sequence, and how many there are before it, with how many keys.
struct PlacedSequence {
  AttentionSequence tokens;
  std::int64_t index = 0;
  std::int64_t firstKey = 0;
  std::int64_t firstPackedKey = 0;  // keys of each sequence rounded up to kPackedRows
};

/// As which factors of bf16 products keys or values are packed.
struct HeadFactors {
  bool left = false;
  bool right = false;
};

/// The heads of keys or values, in float32 and one after another, so that products read them without conversion.
/// Float32 heads that stand well already stay where they are.
class PackedHeads {
 public:
  /// rotation: of the heads as they are packed; null: none.
  PackedHeads(const AttentionProblem& problem, const TokenLayout& layout, const HeadRotation* rotation,
              HeadFactors factors, WorkspaceCutter& cutter);

  /// Packs a head of the keys of a sequence; does nothing if the heads are read in place.
  void pack(const std::byte* source, const PlacedSequence& sequence, std::int64_t head) const;
  FloatRows rows(const std::byte* source, const PlacedSequence& sequence, std::int64_t head) const;
  PackedTiles left(const PlacedSequence& sequence, std::int64_t head) const;
  PackedTiles right(const PlacedSequence& sequence, std::int64_t head) const;
  bool isDirect() const { return m_isDirect; }
  std::int64_t width() const { return m_width; }

 private:
  std::int64_t packedOffset(const PlacedSequence& sequence, std::int64_t head) const;

  TokenLayout m_layout;
  DType m_dtype;
  const HeadRotation* m_rotation;
  bool m_isDirect;
  std::int64_t m_width;
  float* m_packed = nullptr;
  std::byte* m_left = nullptr;
  std::byte* m_right = nullptr;
  std::byte* m_isFinite = nullptr;  // [sequences, heads], of the right factors
};

struct QueryTile;

/// A head's keys or values, from one of them on.
struct HeadTiles {
  FloatRows rows;
  PackedTiles left;
  PackedTiles right;

  HeadTiles from(std::int64_t row) const;
};

/// Keys and values of an attention, packed for its queries.
class PackedKeysAndValues {
 public:
  PackedKeysAndValues(const AttentionProblem& problem, HeadFactors ofKeys, HeadFactors ofValues,
                      WorkspaceCutter& cutter);

  /// Packs all groups of all sequences, over the problem's threads.
  void pack(const AttentionInputs& inputs, const std::vector<PlacedSequence>& sequences) const;
  HeadTiles keysOf(const AttentionInputs& inputs, const QueryTile& queries) const;
  HeadTiles valuesOf(const AttentionInputs& inputs, const QueryTile& queries) const;
  std::int64_t keyWidth() const { return m_keys.width(); }
  std::int64_t valueWidth() const { return m_values.width(); }

 private:
  std::int64_t m_groups;
  std::int64_t m_headsPerGroup;
  int m_threads;
  PackedHeads m_keys;
  PackedHeads m_values;
};

/// One head's queries [first, first + count) of a sequence.
struct QueryTile {
  const PlacedSequence* sequence = nullptr;
  std::int64_t head = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;

  std::int64_t numQueries() const { return sequence->tokens.queries.size; }
  std::int64_t numKeys() const { return sequence->tokens.keys.size; }
  std::int64_t entry() const { return sequence->tokens.entry; }
  std::int64_t token() const { return sequence->tokens.queries.first + first; }
};

/// Keys [first, first + count) of a sequence, all of them in one tile of kTileKeys.
struct KeyTile {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// The tiles of keys that some query of a tile sees.
std::vector<KeyTile> keyTilesOf(const AttentionForm& form, const QueryTile& queries);

/// The query tiles of a head of a sequence, the last first: under a causal mask it has the most work.
std::vector<QueryTile> queryTilesOf(const PlacedSequence& sequence, std::int64_t head);

/// Queries of a tile, [count, padded channels]. Rotated ones are rounded to the dtype, as a rotary embedding by itself
/// rounds them.
void readQueryRows(const AttentionProblem& problem, const std::byte* q, const QueryTile& queries, float* rows);

/// The parts of scores that are not products: masks, biases, dropout. One for each thread.
class ScoreTiles {
 public:
  ScoreTiles(const AttentionProblem& problem, WorkspaceCutter& cutter);

  /// Keys that each query attends to; without arrays if it attends to all of them.
  TileRange range(const QueryTile& queries, const KeyTile& keys);
  /// needsSlope: for backward.
  ScoreChange change(const AttentionInputs& inputs, const QueryTile& queries, const KeyTile& keys, bool needsSlope);
  /// The shares of dropout; null: nothing is dropped.
  const float* kept(const QueryTile& queries, const KeyTile& keys);

 private:
  const float* biasTile(const std::byte* bias, const QueryTile& queries, const KeyTile& keys);
  const float* alibiTile(const QueryTile& queries, const KeyTile& keys);
  const float* visibleTile(const std::int64_t* mask, const QueryTile& queries, const KeyTile& keys);

  const AttentionProblem& m_problem;
  std::vector<double> m_slopes;
  std::int32_t* m_first = nullptr;
  std::int32_t* m_last = nullptr;
  float* m_rows = nullptr;  // [kTileQueries, kTileKeys], before it is transposed
  float* m_addend = nullptr;
  float* m_slope = nullptr;
  float* m_visible = nullptr;
  float* m_kept = nullptr;
};

/// Rows of a product with a tile of scores; it sums over the other side.
enum class TileRows { Queries, Keys };

/// A product whose A is a tile of probabilities or of their gradients, 0 where masked. The other factor
/// of such a 0 may be NaN or infinite, and must not reach the result.
void multiplyScores(const TileProducts& products, const TileProduct& product, const SeenPairs& seen, TileRows rows);

/// Changes anything but masked ranges and a factor that the softmax may apply?
bool changesScores(const AttentionForm& form);
/// The factor that the softmax still applies.
float softmaxFactor(const AttentionForm& form);

/// Where the bias of a query tile and a key tile stands, in elements.
std::int64_t scoreOffset(const ScoreLayout& layout, const QueryTile& queries, const KeyTile& keys);

/// The sequences of a call. Throws std::runtime_error.
std::vector<PlacedSequence> placedSequences(const AttentionProblem& problem, const AttentionInputs& inputs);

/// Has the problem tokens that no sequence may have?
bool mayHaveGaps(const AttentionForm& form);

/// Zeros in all heads. data: null: nothing to do.
void clearHeads(std::byte* data, DType dtype, const TokenLayout& layout);

/// The rows of a head, from a token on.
RowsOf headRows(const std::byte* data, DType dtype, const TokenLayout& layout, std::int64_t entry, std::int64_t token,
                std::int64_t head);

}  // namespace fuseline::cpu
