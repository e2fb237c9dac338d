// Packs heads, and fills the tiles that change scores.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/attention_tiles.h"

#include "core/tensor/scaling.h"
#include "kernels/cpu/elementwise/strip_functions.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace fuseline::cpu {

namespace {

/// Rows that are a multiple of a page's quarter apart compete for the same lines of a cache.
constexpr std::int64_t kCompetingBytes = 1024;

bool standsWell(const TokenLayout& layout, DType dtype) {
  if (dtype != DType::F32 || layout.channels % kLanePad != 0) return false;
  return layout.tokenStride == layout.channels || layout.tokenStride * sizeBytes(dtype) % kCompetingBytes != 0;
}

std::int64_t tilesIn(std::int64_t count, std::int64_t tile) { return (count + tile - 1) / tile; }

}  // namespace

RowsOf headRows(const std::byte* data, DType dtype, const TokenLayout& layout, std::int64_t entry, std::int64_t token,
                std::int64_t head) {
  // Rows are read or written by what they are given to.
  auto* const first = const_cast<std::byte*>(data) + layout.offset(entry, token, head) * sizeBytes(dtype);
  return {.data = first, .stride = layout.tokenStride};
}

void clearHeads(std::byte* data, DType dtype, const TokenLayout& layout) {
  if (!data) return;
  const std::int64_t pieces = layout.hasContiguousHeads() ? 1 : layout.heads;
  const auto bytes = static_cast<std::size_t>(layout.heads / pieces * layout.channels * sizeBytes(dtype));
  for (std::int64_t entry = 0; entry < layout.batch; ++entry)
    for (std::int64_t token = 0; token < layout.tokens; ++token)
      for (std::int64_t head = 0; head < pieces; ++head)
        std::memset(data + layout.offset(entry, token, head) * sizeBytes(dtype), 0, bytes);
}

PackedHeads::PackedHeads(const AttentionProblem& problem, const TokenLayout& layout, const HeadRotation* rotation,
                         HeadFactors factors, WorkspaceCutter& cutter)
    : m_layout(layout),
      m_dtype(problem.dtype),
      m_rotation(rotation),
      m_isDirect(!rotation && standsWell(layout, problem.dtype)),
      m_width(paddedWidth(layout.channels)) {
  const std::int64_t tokens = layout.batch * layout.tokens;
  if (!m_isDirect) m_packed = cutter.floats(tokens * layout.heads * m_width);
  if (!problem.multipliesBf16) return;
  const std::int64_t numSequences = std::max(layout.batch, problem.numSequences);
  const std::int64_t bytes = packedBytes(tokens + numSequences * kPackedRows, layout.channels) * layout.heads;
  if (factors.left) m_left = cutter.bytes(bytes);
  if (factors.right) m_right = cutter.bytes(bytes);
  if (factors.right) m_isFinite = cutter.bytes(numSequences * layout.heads);
}

void PackedHeads::pack(const std::byte* source, const PlacedSequence& sequence, std::int64_t head) const {
  if (m_isDirect) return;
  const auto& [entry, queries, keys] = sequence.tokens;
  const FloatRows to = rows(source, sequence, head);
  headRowFunctions(m_dtype).read(headRows(source, m_dtype, m_layout, entry, keys.first, head), keys.size,
                                 m_layout.channels, 1.0F, const_cast<float*>(to.data), m_width);
  if (m_rotation) {
    m_rotation->turn(const_cast<float*>(to.data), m_width, keys.size, keys.first);
    headRowFunctions(m_dtype).round(const_cast<float*>(to.data), m_width, keys.size, m_layout.channels, 1.0F);
  }
  const RowBlock block{.data = to.data, .stride = to.stride, .count = keys.size, .channels = m_layout.channels};
  if (m_left) packLeft(block, m_left + packedOffset(sequence, head));
  if (m_right)
    m_isFinite[sequence.index * m_layout.heads + head] =
        std::byte(packRight(block, m_right + packedOffset(sequence, head)).isFinite);
}

std::int64_t PackedHeads::packedOffset(const PlacedSequence& sequence, std::int64_t head) const {
  return packedBytes(
      sequence.firstPackedKey * m_layout.heads + head * roundedUp(sequence.tokens.keys.size, kPackedRows),
      m_layout.channels);
}

PackedTiles PackedHeads::left(const PlacedSequence& sequence, std::int64_t head) const {
  if (!m_left) return {};
  return placedLeft(m_left + packedOffset(sequence, head), m_layout.channels);
}

PackedTiles PackedHeads::right(const PlacedSequence& sequence, std::int64_t head) const {
  if (!m_right) return {};
  PackedTiles tiles = placedRight(m_right + packedOffset(sequence, head), sequence.tokens.keys.size);
  tiles.isFinite = m_isFinite[sequence.index * m_layout.heads + head] != std::byte(0);
  return tiles;
}

HeadTiles HeadTiles::from(std::int64_t row) const {
  return {.rows = {.data = rows.at(row), .stride = rows.stride},
          .left = leftFrom(left, row),
          .right = rightFrom(right, row)};
}

FloatRows PackedHeads::rows(const std::byte* source, const PlacedSequence& sequence, std::int64_t head) const {
  const auto& [entry, queries, keys] = sequence.tokens;
  if (!m_isDirect)
    return {.data = m_packed + (sequence.firstKey * m_layout.heads + head * keys.size) * m_width, .stride = m_width};
  return {.data = reinterpret_cast<const float*>(source) + m_layout.offset(entry, keys.first, head),
          .stride = m_layout.tokenStride};
}

PackedKeysAndValues::PackedKeysAndValues(const AttentionProblem& problem, HeadFactors ofKeys, HeadFactors ofValues,
                                         WorkspaceCutter& cutter)
    : m_groups(problem.form.groups),
      m_headsPerGroup(problem.form.headsPerGroup()),
      m_threads(problem.threads),
      m_keys(problem, problem.layouts.k, problem.rotationOfK.get(), ofKeys, cutter),
      m_values(problem, problem.layouts.v, nullptr, ofValues, cutter) {}

void PackedKeysAndValues::pack(const AttentionInputs& inputs, const std::vector<PlacedSequence>& sequences) const {
  if (m_keys.isDirect() && m_values.isDirect()) return;
  const auto numJobs = static_cast<std::int64_t>(sequences.size()) * m_groups;
#pragma omp parallel for num_threads(m_threads) if (numJobs > 1)
  for (std::int64_t job = 0; job < numJobs; ++job) {
    const PlacedSequence& sequence = sequences[static_cast<std::size_t>(job / m_groups)];
    m_keys.pack(inputs.k, sequence, job % m_groups);
    m_values.pack(inputs.v, sequence, job % m_groups);
  }
}

namespace {

HeadTiles tilesOf(const PackedHeads& heads, const std::byte* source, const PlacedSequence& sequence,
                  std::int64_t head) {
  return {.rows = heads.rows(source, sequence, head),
          .left = heads.left(sequence, head),
          .right = heads.right(sequence, head)};
}

}  // namespace

HeadTiles PackedKeysAndValues::keysOf(const AttentionInputs& inputs, const QueryTile& queries) const {
  return tilesOf(m_keys, inputs.k, *queries.sequence, queries.head / m_headsPerGroup);
}

HeadTiles PackedKeysAndValues::valuesOf(const AttentionInputs& inputs, const QueryTile& queries) const {
  return tilesOf(m_values, inputs.v, *queries.sequence, queries.head / m_headsPerGroup);
}

std::vector<KeyTile> keyTilesOf(const AttentionForm& form, const QueryTile& queries) {
  const auto keysOf = [&](std::int64_t query) { return form.keysOf(query, queries.numQueries(), queries.numKeys()); };
  // Ranges only grow from one query to the next.
  const std::int64_t begin = keysOf(queries.first).first / kPackedRows * kPackedRows;
  const std::int64_t end = keysOf(queries.first + queries.count - 1).last;
  std::vector<KeyTile> tiles;
  for (std::int64_t first = begin; first < end;) {
    const std::int64_t last = std::min(end, (first / kTileKeys + 1) * kTileKeys);
    tiles.push_back({.first = first, .count = last - first});
    first = last;
  }
  return tiles;
}

std::vector<QueryTile> queryTilesOf(const PlacedSequence& sequence, std::int64_t head) {
  const std::int64_t numQueries = sequence.tokens.queries.size;
  std::vector<QueryTile> tiles;
  for (std::int64_t tile = tilesIn(numQueries, kTileQueries) - 1; tile >= 0; --tile) {
    const std::int64_t first = tile * kTileQueries;
    tiles.push_back(
        {.sequence = &sequence, .head = head, .first = first, .count = std::min(kTileQueries, numQueries - first)});
  }
  return tiles;
}

namespace {

/// Pair by pair, without those that are masked.
void multiplySeenPairs(const TileProduct& p, const SeenPairs& seen, TileRows rows) {
  for (std::int64_t row = 0; row < p.m; ++row) {
    float* const c = p.c + row * p.cRow;
    const float kept = p.keep ? p.keep[row] : (p.accumulates ? 1.0F : 0.0F);
    for (std::int64_t col = 0; col < p.n; ++col) c[col] = kept == 0.0F ? 0.0F : kept * c[col];
    for (std::int64_t i = 0; i < p.k; ++i) {
      if (rows == TileRows::Queries ? !seen.sees(i, row) : !seen.sees(row, i)) continue;
      const float factor = p.a[row * p.aRow + i * p.aCol];
      for (std::int64_t col = 0; col < p.n; ++col) c[col] += factor * p.b[i * p.bRow + col];
    }
  }
}

}  // namespace

void multiplyScores(const TileProducts& products, const TileProduct& product, const SeenPairs& seen, TileRows rows) {
  const AttentionFunctions& functions = attentionFunctions();
  if (product.right.data && product.right.isFinite)
    products.multiply(product);
  else if (seen.isAll() || functions.isFinite(product.b, product.bRow, product.k, product.n))
    functions.multiply(product);
  else
    multiplySeenPairs(product, seen, rows);
}

void readQueryRows(const AttentionProblem& problem, const std::byte* q, const QueryTile& queries, float* rows) {
  const TokenLayout& layout = problem.layouts.q;
  const HeadRowFunctions& functions = headRowFunctions(problem.dtype);
  const HeadRotation* const rotation = problem.rotationOfQ.get();
  const std::int64_t width = paddedWidth(layout.channels);
  functions.read(headRows(q, problem.dtype, layout, queries.entry(), queries.token(), queries.head), queries.count,
                 layout.channels, 1.0F, rows, width);
  if (!rotation) return;
  rotation->turn(rows, width, queries.count, queries.token());
  functions.round(rows, width, queries.count, layout.channels, 1.0F);
}

bool changesScores(const AttentionForm& form) {
  return form.bias != AttentionBias::None || form.softcap != 0.0 || form.maskSlot >= 0 ||
         !(static_cast<float>(form.scale) > 0.0F);
}

float softmaxFactor(const AttentionForm& form) { return changesScores(form) ? 1.0F : static_cast<float>(form.scale); }

ScoreTiles::ScoreTiles(const AttentionProblem& problem, WorkspaceCutter& cutter)
    : m_problem(problem),
      m_slopes(problem.form.bias == AttentionBias::Alibi ? alibiSlopes(problem.form.heads) : std::vector<double>()),
      m_first(cutter.integers(kTileQueries)),
      m_last(cutter.integers(kTileQueries)) {
  const AttentionForm& form = problem.form;
  const auto tileIf = [&](bool isNeeded) { return isNeeded ? cutter.floats(kTileElements) : nullptr; };
  m_rows = tileIf(form.hasBias() || form.dropout > 0.0);
  m_addend = tileIf(form.bias != AttentionBias::None);
  m_slope = tileIf(form.softcap != 0.0);
  m_visible = tileIf(form.maskSlot >= 0);
  m_kept = tileIf(form.dropout > 0.0);
}

TileRange ScoreTiles::range(const QueryTile& queries, const KeyTile& keys) {
  const auto inTile = [&](std::int64_t key) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(key - keys.first, 0, keys.count));
  };
  bool isAll = true;
  for (std::int64_t i = 0; i < kTileQueries; ++i) {
    const KeyRange seen = i < queries.count
                              ? m_problem.form.keysOf(queries.first + i, queries.numQueries(), queries.numKeys())
                              : KeyRange{};
    m_first[i] = inTile(seen.first);
    m_last[i] = inTile(seen.last);
    isAll = isAll && (i >= queries.count || (m_first[i] == 0 && m_last[i] == keys.count));
  }
  return isAll ? TileRange{} : TileRange{.first = m_first, .last = m_last};
}

std::int64_t scoreOffset(const ScoreLayout& layout, const QueryTile& queries, const KeyTile& keys) {
  return queries.entry() * layout.batchStride + queries.head * layout.headStride + queries.first * layout.rowStride +
         keys.first;
}

const float* ScoreTiles::biasTile(const std::byte* bias, const QueryTile& queries, const KeyTile& keys) {
  const ScoreLayout layout = scoreLayout(m_problem.biasShape);
  const std::int64_t offset = scoreOffset(layout, queries, keys) * sizeBytes(m_problem.biasDType);
  const double factor = m_problem.form.bias == AttentionBias::PreScale ? m_problem.form.scale : 1.0;
  headRowFunctions(m_problem.biasDType)
      .read({.data = const_cast<std::byte*>(bias) + offset, .stride = layout.rowStride}, queries.count, keys.count,
            static_cast<float>(factor), m_rows, paddedWidth(keys.count));
  attentionFunctions().transpose(m_rows, paddedWidth(keys.count), queries.count, keys.count, m_addend, kTileQueries);
  return m_addend;
}

const float* ScoreTiles::alibiTile(const QueryTile& queries, const KeyTile& keys) {
  const auto slope = static_cast<float>(m_slopes[static_cast<std::size_t>(queries.head)]);
  const std::int64_t delta = m_problem.form.delta(queries.numQueries(), queries.numKeys());
  for (std::int64_t j = 0; j < keys.count; ++j)
    for (std::int64_t i = 0; i < kTileQueries; ++i) {
      const std::int64_t distance = queries.first + i + delta - keys.first - j;
      m_addend[j * kTileQueries + i] = -slope * static_cast<float>(std::abs(distance));
    }
  return m_addend;
}

const float* ScoreTiles::visibleTile(const std::int64_t* mask, const QueryTile& queries, const KeyTile& keys) {
  const ScoreLayout layout = scoreLayout(m_problem.maskShape);
  const std::int64_t* const first = mask + scoreOffset(layout, queries, keys);
  for (std::int64_t j = 0; j < keys.count; ++j)
    for (std::int64_t i = 0; i < kTileQueries; ++i)
      m_visible[j * kTileQueries + i] = i < queries.count && first[i * layout.rowStride + j] == 0 ? 1.0F : 0.0F;
  return m_visible;
}

ScoreChange ScoreTiles::change(const AttentionInputs& inputs, const QueryTile& queries, const KeyTile& keys,
                               bool needsSlope) {
  ScoreChange change{.factor = static_cast<float>(m_problem.form.scale),
                     .softcap = static_cast<float>(m_problem.form.softcap),
                     .slope = needsSlope ? m_slope : nullptr};
  switch (m_problem.form.bias) {
    case AttentionBias::None: break;
    case AttentionBias::PreScale: change.before = biasTile(inputs.bias, queries, keys); break;
    case AttentionBias::PostScale: change.after = biasTile(inputs.bias, queries, keys); break;
    case AttentionBias::Alibi: change.after = alibiTile(queries, keys); break;
  }
  if (inputs.mask) change.visible = visibleTile(inputs.mask, queries, keys);
  return change;
}

const float* ScoreTiles::kept(const QueryTile& queries, const KeyTile& keys) {
  const AttentionForm& form = m_problem.form;
  if (form.dropout == 0.0) return nullptr;
  const DropoutFunction draw = dropoutFunction();
  const auto kept = static_cast<float>(form.keptScale());
  for (std::int64_t i = 0; i < queries.count; ++i) {
    const std::uint64_t row = dropoutIndex(m_problem.layouts, queries.entry(), queries.head, queries.token() + i);
    const auto key = static_cast<std::uint64_t>(queries.sequence->tokens.keys.first + keys.first);
    draw(m_rows + i * kTileKeys, form.dropoutMask, kept, row + key, static_cast<std::size_t>(keys.count));
  }
  attentionFunctions().transpose(m_rows, kTileKeys, queries.count, keys.count, m_kept, kTileQueries);
  return m_kept;
}

std::vector<PlacedSequence> placedSequences(const AttentionProblem& problem, const AttentionInputs& inputs) {
  const auto sums = [&](const std::int64_t* first) {
    return std::span(first, first ? static_cast<std::size_t>(problem.numSequences + 1) : 0);
  };
  const Result<std::vector<AttentionSequence>> sequences =
      attentionSequences(problem.form, problem.layouts, sums(inputs.cuSeqlensQ), sums(inputs.cuSeqlensKv));
  if (!sequences) throw std::runtime_error(sequences.error().message);
  std::vector<PlacedSequence> placed;
  PlacedSequence next;
  for (const AttentionSequence& sequence : *sequences) {
    next.tokens = sequence;
    placed.push_back(next);
    ++next.index;
    next.firstKey += sequence.keys.size;
    next.firstPackedKey += roundedUp(sequence.keys.size, kPackedRows);
  }
  return placed;
}

bool mayHaveGaps(const AttentionForm& form) { return form.cuSeqlensQSlot >= 0; }

}  // namespace fuseline::cpu
