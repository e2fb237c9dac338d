// Backward: each thread takes the keys of one group of heads, or a share of them, and goes over the queries once. The
// probabilities come again from the scores and the log-sum-exp of each row.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/format_rounding.h"
#include "kernels/cpu/attention/attention_tiles.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <omp.h>

namespace fuseline::cpu {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
/// Shares of the keys of one group, which each have a gradient of q to add up.
constexpr std::int64_t kMostShares = 8;

/// How the keys of a group are shared, where there are fewer groups than threads.
std::int64_t numShares(const AttentionProblem& problem) {
  const std::int64_t groups = std::max<std::int64_t>(1, problem.numSequences * problem.form.groups);
  if (groups >= problem.threads) return 1;
  const std::int64_t keyTiles = std::max<std::int64_t>(1, problem.layouts.k.tokens / kTileKeys);
  return std::min({(problem.threads + groups - 1) / groups, keyTiles, kMostShares});
}

/// Rows of a query tile as right factors of bf16 products.
struct PackedQueryRows {
  std::byte* along = nullptr;   // [channels, queries]
  std::byte* across = nullptr;  // [queries, channels]
  bool areFinite = true;

  PackedTiles columns(std::int64_t channels) const { return placedLeft(along, channels); }
  PackedTiles rows(std::int64_t count) const {
    PackedTiles tiles = placedRight(across, count);
    tiles.isFinite = areFinite;
    return tiles;
  }

  void pack(const RowBlock& block) {
    if (!along) return;
    packRightTransposed(block, along);
    areFinite = packRight(block, across).isFinite;
  }
};

/// The tiles of one thread.
struct BackwardTiles {
  BackwardTiles(const AttentionProblem& problem, WorkspaceCutter& cutter)
      : queryRows(cutter.floats(kTileQueries * paddedWidth(problem.form.qkChannels))),
        queries(cutter.floats(problem.form.qkChannels * kTileQueries)),
        gradientRows(cutter.floats(kTileQueries * paddedWidth(problem.form.vChannels))),
        gradients(cutter.floats(problem.form.vChannels * kTileQueries)),
        scores(cutter.floats(kTileElements)),
        gradScores(cutter.floats(kTileElements)),
        gradQueries(cutter.floats(kTileQueries * paddedWidth(problem.form.qkChannels))),
        largest(cutter.floats(kTileQueries)),
        lse(cutter.floats(kTileQueries)),
        delta(cutter.floats(kTileQueries)),
        changes(problem, cutter),
        products(problem.multipliesBf16, cutter) {
    if (!products.areOfBf16()) return;
    const auto room = [&](std::int64_t channels) { return cutter.bytes(packedBytes(kTileQueries, channels)); };
    packedQueries = {.along = room(problem.form.qkChannels), .across = room(problem.form.qkChannels)};
    packedGradients = {.along = room(problem.form.vChannels), .across = room(problem.form.vChannels)};
  }

  float* queryRows;     // [kTileQueries, D]
  float* queries;       // [D, kTileQueries]
  float* gradientRows;  // [kTileQueries, Dv], dy
  float* gradients;     // [Dv, kTileQueries]
  float* scores;        // [kTileKeys, kTileQueries]
  float* gradScores;
  float* gradQueries;  // [kTileQueries, D]
  float* largest;
  float* lse;
  float* delta;
  ScoreTiles changes;
  TileProducts products;
  PackedQueryRows packedQueries;
  PackedQueryRows packedGradients;
};

/// Sums of the gradients of a share of the keys of one group.
struct KeyGradients {
  float* keys = nullptr;    // [rows, D]
  float* values = nullptr;  // [rows, Dv]
};

struct BackwardWorkspace {
  BackwardWorkspace(const AttentionProblem& problem, std::byte* workspace)
      : cutter(workspace),
        heads(problem, {.left = true, .right = true}, {.left = true}, cutter),
        shares(numShares(problem)),
        rowsOfShare((problem.layouts.k.tokens / kTileKeys / shares + 2) * kTileKeys) {
    const TokenLayout& q = problem.layouts.q;
    if (shares > 1) gradQueries = cutter.floats(shares * q.batch * q.tokens * q.heads * heads.keyWidth());
    if (problem.form.hasBias()) gradBias = cutter.floats(problem.threads * kTileQueries * problem.layouts.k.tokens);
    for (int thread = 0; thread < problem.threads; ++thread) {
      tiles.emplace_back(problem, cutter);
      sums.push_back({.keys = cutter.floats(rowsOfShare * heads.keyWidth()),
                      .values = cutter.floats(rowsOfShare * heads.valueWidth())});
    }
  }

  WorkspaceCutter cutter;
  PackedKeysAndValues heads;
  std::int64_t shares;
  std::int64_t rowsOfShare;
  float* gradQueries = nullptr;  // [shares, B, S, H, D], where there are several
  float* gradBias = nullptr;     // [threads, kTileQueries, Skv]
  std::vector<BackwardTiles> tiles;
  std::vector<KeyGradients> sums;
};

class BackwardRun {
 public:
  BackwardRun(const AttentionProblem& problem, const AttentionBackwardPointers& pointers, std::byte* workspace)
      : m_problem(problem),
        m_form(problem.form),
        m_pointers(pointers),
        m_workspace(problem, workspace),
        m_sequences(placedSequences(problem, pointers.inputs)) {}

  void run() {
    if (mayHaveGaps(m_form)) clearGradients();
    m_workspace.heads.pack(m_pointers.inputs, m_sequences);
    if (m_form.scoreGradientFormat)
      m_gradientScale = roundingScale(*m_form.scoreGradientFormat, amaxOfScoreGradients());
    const std::int64_t shares = m_workspace.shares;
    const std::int64_t numJobs = static_cast<std::int64_t>(m_sequences.size()) * m_form.groups * shares;
#pragma omp parallel for schedule(dynamic) num_threads(m_problem.threads) if (numJobs > 1)
    for (std::int64_t job = 0; job < numJobs; ++job)
      runGroup(m_sequences[static_cast<std::size_t>(job / shares / m_form.groups)], job / shares % m_form.groups,
               job % shares);
    if (shares > 1 && m_pointers.dq) addShares();
    if (m_pointers.dbias) addBiasGradients();
    if (m_pointers.doffset) addOffsetGradients();
  }

 private:
  using Tiles = BackwardTiles;

  static std::size_t ownThread() { return static_cast<std::size_t>(omp_get_thread_num()); }

  /// Tokens that no sequence has get 0.
  void clearGradients() const {
    clearHeads(m_pointers.dq, m_problem.dtype, m_problem.gradients.q);
    clearHeads(m_pointers.dk, m_problem.dtype, m_problem.gradients.k);
    clearHeads(m_pointers.dv, m_problem.dtype, m_problem.gradients.v);
  }

  // ---- one tile of scores

  void readQueries(const QueryTile& queries, Tiles& tiles) const {
    const AttentionLayouts& layouts = m_problem.layouts;
    const HeadRowFunctions& rows = headRowFunctions(m_problem.dtype);
    const auto rowsAt = [&](const std::byte* data, const TokenLayout& layout) {
      return headRows(data, m_problem.dtype, layout, queries.entry(), queries.token(), queries.head);
    };
    const RowsOf dy = rowsAt(m_pointers.dy, m_problem.gradients.y);
    const std::int64_t width = m_workspace.heads.keyWidth();
    const std::int64_t valueWidth = m_workspace.heads.valueWidth();
    readQueryRows(m_problem, m_pointers.inputs.q, queries, tiles.queryRows);
    rows.read(dy, queries.count, layouts.y.channels, 1.0F, tiles.gradientRows, valueWidth);
    turnRows({tiles.queryRows, width, queries.count, layouts.q.channels}, tiles.queries, tiles.packedQueries);
    turnRows({tiles.gradientRows, valueWidth, queries.count, layouts.y.channels}, tiles.gradients,
             tiles.packedGradients);
    std::fill_n(tiles.delta, kTileQueries, 0.0F);
    rows.dot(dy, rowsAt(m_pointers.y, layouts.y), queries.count, layouts.y.channels, tiles.delta);
    for (std::int64_t i = 0; i < kTileQueries; ++i) {
      const RowTotal total = i < queries.count ? totalAt(queries, i) : RowTotal();
      tiles.largest[i] = total.largest;
      tiles.lse[i] = total.lse == -kInfinity ? kInfinity : total.lse;  // exp(score - inf) is 0
    }
  }

  /// Rows of queries as factors of the scores: packed, or as columns.
  static void turnRows(const RowBlock& block, float* columns, PackedQueryRows& packed) {
    if (packed.along) return packed.pack(block);
    attentionFunctions().transpose(block.data, block.stride, block.count, block.channels, columns, kTileQueries);
  }

  /// As forward kept it.
  struct RowTotal {
    float largest = 0.0F;
    float lse = -kInfinity;
  };
  RowTotal totalAt(const QueryTile& queries, std::int64_t i) const {
    const TokenLayout& q = m_problem.layouts.q;
    const float* const at = m_pointers.lse + lseIndex(m_form, q, queries.entry(), queries.token() + i, queries.head);
    const std::int64_t offset = largestOffset(m_form, q);
    return {.largest = offset == 0 ? 0.0F : at[offset], .lse = *at};
  }

  /// A bias that is added after the soft cap does not feel its slope.
  enum class GradientOf { Products, Bias };

  /// scores: P with dropout; gradScores: dS.
  SeenPairs fillScores(const QueryTile& queries, const KeyTile& tile, GradientOf what, Tiles& tiles) const {
    const AttentionFunctions& functions = attentionFunctions();
    const std::int64_t lanes = paddedWidth(queries.count);
    const auto multiply = [&](const HeadTiles& heads, const float* by, const PackedTiles& packed, std::int64_t channels,
                              float* to) {
      const HeadTiles from = heads.from(tile.first);
      tiles.products.multiply({.a = from.rows.data,
                               .aRow = from.rows.stride,
                               .b = by,
                               .bRow = kTileQueries,
                               .c = to,
                               .cRow = kTileQueries,
                               .m = tile.count,
                               .n = lanes,
                               .k = channels,
                               .left = from.left,
                               .right = packed});
    };
    multiply(m_workspace.heads.keysOf(m_pointers.inputs, queries), tiles.queries,
             tiles.packedQueries.columns(m_form.qkChannels), m_form.qkChannels, tiles.scores);
    multiply(m_workspace.heads.valuesOf(m_pointers.inputs, queries), tiles.gradients,
             tiles.packedGradients.columns(m_form.vChannels), m_form.vChannels, tiles.gradScores);
    ScoreChange change;
    if (changesScores(m_form)) {
      change = tiles.changes.change(m_pointers.inputs, queries, tile, true);
      functions.changeScores(tiles.scores, tile.count, lanes, change);
    }
    const TileRange range = tiles.changes.range(queries, tile);
    const bool isCapped = what == GradientOf::Products || m_form.bias == AttentionBias::PreScale;
    functions.softmaxGrad({.scores = tiles.scores,
                           .factor = softmaxFactor(m_form),
                           .gradProbabilities = tiles.gradScores,
                           .kept = tiles.changes.kept(queries, tile),
                           .slope = isCapped ? change.slope : nullptr,
                           .visible = change.visible,
                           .keys = tile.count,
                           .queries = lanes,
                           .range = range,
                           .largest = m_form.hasBias() ? tiles.largest : nullptr,
                           .lse = tiles.lse,
                           .delta = tiles.delta});
    return {.range = range, .visible = change.visible};
  }

  // ---- FP8: what multiplies is rounded

  /// Their scale must be known before they are rounded.
  float amaxOfScoreGradients() {
    const std::vector<QueryTile> jobs = allQueryTiles();
    const auto numJobs = static_cast<std::int64_t>(jobs.size());
    float amax = 0.0F;
#pragma omp parallel for schedule(dynamic) num_threads(m_problem.threads) reduction(max : amax)
    for (std::int64_t job = 0; job < numJobs; ++job)
      amax = std::fmax(amax, amaxOfScoreGradients(jobs[static_cast<std::size_t>(job)], m_workspace.tiles[ownThread()]));
    return amax;
  }

  float amaxOfScoreGradients(const QueryTile& queries, Tiles& tiles) const {
    readQueries(queries, tiles);
    float amax = 0.0F;
    for (const KeyTile& tile : keyTilesOf(m_form, queries)) {
      fillScores(queries, tile, GradientOf::Products, tiles);
      for (std::int64_t j = 0; j < tile.count; ++j)
        for (std::int64_t i = 0; i < queries.count; ++i)
          amax = std::fmax(amax, std::fabs(tiles.gradScores[j * kTileQueries + i]));
    }
    return amax;
  }

  void roundTiles(const KeyTile& tile, const Tiles& tiles) const {
    const auto count = static_cast<std::size_t>(tile.count * kTileQueries);
    roundWithScale(*m_form.probabilityFormat, roundingScale(*m_form.probabilityFormat, 1.0F), {tiles.scores, count});
    roundWithScale(*m_form.scoreGradientFormat, m_gradientScale, {tiles.gradScores, count});
  }

  std::vector<QueryTile> allQueryTiles() const {
    std::vector<QueryTile> all;
    for (const PlacedSequence& sequence : m_sequences)
      for (std::int64_t head = 0; head < m_form.heads; ++head)
        for (const QueryTile& tile : queryTilesOf(sequence, head)) all.push_back(tile);
    return all;
  }

  // ---- gradients of q, k and v

  /// One share of the keys of a group of a sequence.
  void runGroup(const PlacedSequence& sequence, std::int64_t group, std::int64_t share) {
    Tiles& tiles = m_workspace.tiles[ownThread()];
    const KeyGradients& sums = m_workspace.sums[ownThread()];
    const auto clearSums = [&](float* rows, std::int64_t width) {
      const std::int64_t count = std::min(m_workspace.rowsOfShare, sequence.tokens.keys.size + kTileKeys);
      std::memset(rows, 0, static_cast<std::size_t>(count * width) * sizeof(float));
    };
    if (m_pointers.dk) clearSums(sums.keys, m_workspace.heads.keyWidth());
    if (m_pointers.dv) clearSums(sums.values, m_workspace.heads.valueWidth());
    for (std::int64_t i = 0; i < m_form.headsPerGroup(); ++i)
      for (const QueryTile& queries : queryTilesOf(sequence, group * m_form.headsPerGroup() + i))
        runTile(queries, share, sums, tiles);
    if (m_pointers.dk && m_problem.rotationOfK) turnBack(sequence, share, sums.keys);
    if (m_pointers.dk)
      writeShare(sequence, group, share, sums.keys, m_workspace.heads.keyWidth(), m_form.scale, m_pointers.dk,
                 m_problem.gradients.k);
    if (m_pointers.dv)
      writeShare(sequence, group, share, sums.values, m_workspace.heads.valueWidth(), 1.0, m_pointers.dv,
                 m_problem.gradients.v);
  }

  /// Gradients of keys before their rotary embedding.
  void turnBack(const PlacedSequence& sequence, std::int64_t share, float* sums) const {
    const std::int64_t width = m_workspace.heads.keyWidth();
    const TokenSpan& keys = sequence.tokens.keys;
    for (std::int64_t key = share * kTileKeys; key < keys.size; key += m_workspace.shares * kTileKeys)
      m_problem.rotationOfK->turnBack(sums + rowInShare(key) * width, width, std::min(kTileKeys, keys.size - key),
                                      keys.first + key);
  }

  bool isOfShare(const KeyTile& tile, std::int64_t share) const {
    return tile.first / kTileKeys % m_workspace.shares == share;
  }
  /// Where a key's sums stand among those of its share.
  std::int64_t rowInShare(std::int64_t key) const {
    return key / kTileKeys / m_workspace.shares * kTileKeys + key % kTileKeys;
  }

  void runTile(const QueryTile& queries, std::int64_t share, const KeyGradients& sums, Tiles& tiles) {
    readQueries(queries, tiles);
    bool isFirst = true;
    for (const KeyTile& tile : keyTilesOf(m_form, queries)) {
      if (!isOfShare(tile, share)) continue;
      const SeenPairs seen = fillScores(queries, tile, GradientOf::Products, tiles);
      if (m_form.scoreGradientFormat) roundTiles(tile, tiles);
      addKeyGradients(queries, tile, seen, sums, tiles);
      if (m_pointers.dq) addQueryGradients(queries, tile, seen, isFirst, tiles);
      isFirst = false;
    }
    if (!m_pointers.dq) return;
    const std::int64_t width = m_workspace.heads.keyWidth();
    if (isFirst) std::memset(tiles.gradQueries, 0, static_cast<std::size_t>(queries.count * width) * sizeof(float));
    writeQueryGradients(queries, share, tiles);
  }

  /// dv += P^T dy; dk += dS^T q; the scale follows when it is written.
  void addKeyGradients(const QueryTile& queries, const KeyTile& tile, const SeenPairs& seen, const KeyGradients& sums,
                       Tiles& tiles) const {
    const auto add = [&](const float* scores, const float* rows, const PackedTiles& packed, float* to,
                         std::int64_t width) {
      multiplyScores(tiles.products,
                     {.a = scores,
                      .aRow = kTileQueries,
                      .b = rows,
                      .bRow = width,
                      .c = to + rowInShare(tile.first) * width,
                      .cRow = width,
                      .m = tile.count,
                      .n = width,
                      .k = queries.count,
                      .accumulates = true,
                      .right = packed},
                     seen, TileRows::Keys);
    };
    if (m_pointers.dv)
      add(tiles.scores, tiles.gradientRows, tiles.packedGradients.rows(queries.count), sums.values,
          m_workspace.heads.valueWidth());
    if (m_pointers.dk)
      add(tiles.gradScores, tiles.queryRows, tiles.packedQueries.rows(queries.count), sums.keys,
          m_workspace.heads.keyWidth());
  }

  /// dq += dS k; the scale follows when it is written.
  void addQueryGradients(const QueryTile& queries, const KeyTile& tile, const SeenPairs& seen, bool isFirst,
                         Tiles& tiles) const {
    const HeadTiles keys = m_workspace.heads.keysOf(m_pointers.inputs, queries).from(tile.first);
    const std::int64_t width = m_workspace.heads.keyWidth();
    multiplyScores(tiles.products,
                   {.a = tiles.gradScores,
                    .aRow = 1,
                    .aCol = kTileQueries,
                    .b = keys.rows.data,
                    .bRow = keys.rows.stride,
                    .c = tiles.gradQueries,
                    .cRow = width,
                    .m = queries.count,
                    .n = width,
                    .k = tile.count,
                    .accumulates = !isFirst,
                    .right = keys.right},
                   seen, TileRows::Queries);
  }

  /// The sums of one share: its rows of a head follow each other.
  float* shareRows(std::int64_t share, std::int64_t entry, std::int64_t token, std::int64_t head) const {
    const TokenLayout& q = m_problem.layouts.q;
    const std::int64_t row = ((share * q.batch + entry) * q.heads + head) * q.tokens + token;
    return m_workspace.gradQueries + row * m_workspace.heads.keyWidth();
  }

  void writeQueryGradients(const QueryTile& queries, std::int64_t share, const Tiles& tiles) const {
    const std::int64_t width = m_workspace.heads.keyWidth();
    if (m_workspace.shares > 1) {
      std::memcpy(shareRows(share, queries.entry(), queries.token(), queries.head), tiles.gradQueries,
                  static_cast<std::size_t>(queries.count * width) * sizeof(float));
      return;
    }
    writeRows(tiles.gradQueries, queries);
  }

  /// rows: rotated back in place first.
  void writeRows(float* rows, const QueryTile& queries) const {
    if (m_problem.rotationOfQ)
      m_problem.rotationOfQ->turnBack(rows, m_workspace.heads.keyWidth(), queries.count, queries.token());
    headRowFunctions(m_problem.dtype)
        .write(rows, m_workspace.heads.keyWidth(), queries.count, m_form.qkChannels, nullptr,
               static_cast<float>(m_form.scale),
               headRows(m_pointers.dq, m_problem.dtype, m_problem.gradients.q, queries.entry(), queries.token(),
                        queries.head));
  }

  /// dq is the sum of those of all shares, in their order.
  void addShares() const {
    const std::vector<QueryTile> jobs = allQueryTiles();
    const auto numJobs = static_cast<std::int64_t>(jobs.size());
#pragma omp parallel for num_threads(m_problem.threads)
    for (std::int64_t job = 0; job < numJobs; ++job) {
      const QueryTile& queries = jobs[static_cast<std::size_t>(job)];
      const auto rowsOfShare = [&](std::int64_t share) {
        return shareRows(share, queries.entry(), queries.token(), queries.head);
      };
      float* const sum = rowsOfShare(0);
      for (std::int64_t share = 1; share < m_workspace.shares; ++share) {
        const float* const part = rowsOfShare(share);
        for (std::int64_t i = 0; i < queries.count * m_workspace.heads.keyWidth(); ++i) sum[i] += part[i];
      }
      writeRows(sum, queries);
    }
  }

  void writeShare(const PlacedSequence& sequence, std::int64_t group, std::int64_t share, const float* sums,
                  std::int64_t width, double factor, std::byte* gradient, const TokenLayout& layout) const {
    const AttentionSequence& tokens = sequence.tokens;
    for (std::int64_t key = share * kTileKeys; key < tokens.keys.size; key += m_workspace.shares * kTileKeys)
      headRowFunctions(m_problem.dtype)
          .write(sums + rowInShare(key) * width, width, std::min(kTileKeys, tokens.keys.size - key), layout.channels,
                 nullptr, static_cast<float>(factor),
                 headRows(gradient, m_problem.dtype, layout, tokens.entry, tokens.keys.first + key, group));
  }

  // ---- gradients of the bias and of the sinks

  /// One tile of rows of one matrix of the bias, for all sequences and heads that read it.
  void addBiasGradients() const {
    const Shape& shape = m_problem.biasShape;
    const std::int64_t tiles = (shape[2] + kTileQueries - 1) / kTileQueries;
    const std::int64_t numJobs = shape[0] * shape[1] * tiles;
#pragma omp parallel for schedule(dynamic) num_threads(m_problem.threads) if (numJobs > 1)
    for (std::int64_t job = 0; job < numJobs; ++job)
      addBiasRows(job / tiles / shape[1], job / tiles % shape[1], job % tiles * kTileQueries);
  }

  void addBiasRows(std::int64_t biasEntry, std::int64_t biasHead, std::int64_t firstQuery) const {
    const Shape& shape = m_problem.biasShape;
    const std::int64_t keys = shape[3];
    float* const sums =
        m_workspace.gradBias + static_cast<std::int64_t>(ownThread()) * kTileQueries * m_problem.layouts.k.tokens;
    std::fill_n(sums, kTileQueries * keys, 0.0F);
    for (const PlacedSequence& sequence : m_sequences)
      for (std::int64_t head = 0; head < m_form.heads; ++head) {
        const bool reads = (shape[0] == 1 || sequence.tokens.entry == biasEntry) && (shape[1] == 1 || head == biasHead);
        const std::int64_t count = std::min(kTileQueries, sequence.tokens.queries.size - firstQuery);
        if (reads && count > 0)
          addBiasTiles({.sequence = &sequence, .head = head, .first = firstQuery, .count = count}, sums);
      }
    const std::int64_t row = (biasEntry * shape[1] + biasHead) * shape[2] + firstQuery;
    headRowFunctions(m_problem.biasDType)
        .write(sums, keys, std::min(kTileQueries, shape[2] - firstQuery), keys, nullptr, 1.0F,
               {.data = m_pointers.dbias + row * keys * sizeBytes(m_problem.biasDType), .stride = keys});
  }

  void addBiasTiles(const QueryTile& queries, float* sums) const {
    Tiles& tiles = const_cast<Tiles&>(m_workspace.tiles[ownThread()]);
    readQueries(queries, tiles);
    const float factor = m_form.bias == AttentionBias::PreScale ? static_cast<float>(m_form.scale) : 1.0F;
    for (const KeyTile& tile : keyTilesOf(m_form, queries)) {
      fillScores(queries, tile, GradientOf::Bias, tiles);
      for (std::int64_t i = 0; i < queries.count; ++i)
        for (std::int64_t j = 0; j < tile.count; ++j)
          sums[i * m_problem.layouts.k.tokens + tile.first + j] += factor * tiles.gradScores[j * kTileQueries + i];
    }
  }

  /// doffset = -sum of exp(offset - lse) delta over all rows of the head.
  void addOffsetGradients() const {
#pragma omp parallel for num_threads(m_problem.threads)
    for (std::int64_t head = 0; head < m_form.heads; ++head) {
      double sum = 0.0;
      for (const PlacedSequence& sequence : m_sequences)
        for (const QueryTile& queries : queryTilesOf(sequence, head)) sum -= offsetGradient(queries);
      m_pointers.doffset[head] = static_cast<float>(sum);
    }
  }

  double offsetGradient(const QueryTile& queries) const {
    const TokenLayout& y = m_problem.layouts.y;
    const auto rowsAt = [&](const std::byte* data, const TokenLayout& layout) {
      return headRows(data, m_problem.dtype, layout, queries.entry(), queries.token(), queries.head);
    };
    float delta[kTileQueries];
    headRowFunctions(m_problem.dtype)
        .dot(rowsAt(m_pointers.dy, m_problem.gradients.y), rowsAt(m_pointers.y, y), queries.count, y.channels, delta);
    double sum = 0.0;
    for (std::int64_t i = 0; i < queries.count; ++i) {
      const RowTotal total = totalAt(queries, i);
      const double sink = m_pointers.inputs.offset[queries.head];
      sum += std::exp(sink - total.largest - total.lse) * delta[i];
    }
    return sum;
  }

  const AttentionProblem& m_problem;
  const AttentionForm& m_form;
  const AttentionBackwardPointers& m_pointers;
  BackwardWorkspace m_workspace;
  std::vector<PlacedSequence> m_sequences;
  float m_gradientScale = 1.0F;  // with which the gradients of scores are rounded
};

}  // namespace

std::size_t attentionBackwardWorkspaceBytes(const AttentionProblem& problem) {
  return BackwardWorkspace(problem, nullptr).cutter.used();
}

void attentionBackward(const AttentionProblem& problem, const AttentionBackwardPointers& pointers,
                       std::byte* workspace) {
  BackwardRun(problem, pointers, workspace).run();
}

}  // namespace fuseline::cpu
