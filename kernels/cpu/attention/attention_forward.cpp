// Forward: each thread takes a tile of queries of one head, and goes over the keys once.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/format_rounding.h"
#include "kernels/cpu/attention/attention_tiles.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include <omp.h>

namespace fuseline::cpu {

namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

/// The tiles of one thread.
struct ForwardTiles {
  ForwardTiles(const AttentionProblem& problem, WorkspaceCutter& cutter)
      : queryRows(cutter.floats(kTileQueries * paddedWidth(problem.form.qkChannels))),
        queries(cutter.floats(problem.form.qkChannels * kTileQueries)),
        scores(cutter.floats(kTileKeys * kTileQueries)),
        sums(cutter.floats(kTileQueries * paddedWidth(problem.form.vChannels))),
        largest(cutter.floats(kTileQueries)),
        total(cutter.floats(kTileQueries)),
        keep(cutter.floats(kTileQueries)),
        changes(problem, cutter),
        products(problem.multipliesBf16, cutter) {
    if (products.areOfBf16()) packedQueries = cutter.bytes(packedBytes(kTileQueries, problem.form.qkChannels));
  }

  float* queryRows;  // [kTileQueries, D]
  float* queries;    // [D, kTileQueries]
  float* scores;     // [kTileKeys, kTileQueries]
  float* sums;       // [kTileQueries, Dv], of exp(score) v
  float* largest;
  float* total;
  float* keep;
  ScoreTiles changes;
  TileProducts products;
  std::byte* packedQueries = nullptr;  // in place of queries
};

/// The workspace: keys and values for all, then the tiles of each thread.
struct ForwardWorkspace {
  ForwardWorkspace(const AttentionProblem& problem, std::byte* workspace)
      : cutter(workspace), heads(problem, {.left = true}, {.right = true}, cutter) {
    for (int thread = 0; thread < problem.threads; ++thread) tiles.emplace_back(problem, cutter);
  }

  WorkspaceCutter cutter;
  PackedKeysAndValues heads;
  std::vector<ForwardTiles> tiles;
};

class ForwardRun {
 public:
  ForwardRun(const AttentionProblem& problem, const AttentionForwardPointers& pointers, std::byte* workspace)
      : m_problem(problem),
        m_form(problem.form),
        m_pointers(pointers),
        m_workspace(problem, workspace),
        m_sequences(placedSequences(problem, pointers.inputs)) {}

  void run() {
    if (mayHaveGaps(m_form)) clearResults();
    m_workspace.heads.pack(m_pointers.inputs, m_sequences);
    std::vector<QueryTile> jobs;
    for (const PlacedSequence& sequence : m_sequences)
      for (std::int64_t head = 0; head < m_form.heads; ++head)
        for (const QueryTile& tile : queryTilesOf(sequence, head)) jobs.push_back(tile);
    const auto numJobs = static_cast<std::int64_t>(jobs.size());
#pragma omp parallel for schedule(dynamic) num_threads(m_problem.threads) if (numJobs > 1)
    for (std::int64_t job = 0; job < numJobs; ++job)
      runTile(jobs[static_cast<std::size_t>(job)], m_workspace.tiles[static_cast<std::size_t>(omp_get_thread_num())]);
  }

 private:
  void clearResults() {
    const TokenLayout& y = m_problem.layouts.y;
    const std::int64_t rows = y.batch * y.tokens * y.heads;
    clearHeads(m_pointers.y, m_problem.dtype, y);
    if (!m_pointers.lse) return;
    std::fill_n(m_pointers.lse, rows, kNothing);
    if (const std::int64_t offset = largestOffset(m_form, m_problem.layouts.q))
      std::fill_n(m_pointers.lse + offset, rows, 0.0F);
  }

  void runTile(const QueryTile& queries, ForwardTiles& tiles) {
    readQueries(queries, tiles);
    const HeadTiles keys = m_workspace.heads.keysOf(m_pointers.inputs, queries);
    const HeadTiles values = m_workspace.heads.valuesOf(m_pointers.inputs, queries);
    if (m_form.probabilityFormat) findTotals(queries, keys, tiles);
    bool isFirst = true;
    for (const KeyTile& tile : keyTilesOf(m_form, queries)) {
      addKeys(queries, tile, keys, values, isFirst, tiles);
      isFirst = false;
    }
    if (isFirst)
      std::memset(tiles.sums, 0,
                  static_cast<std::size_t>(queries.count * m_workspace.heads.valueWidth()) * sizeof(float));
    finish(queries, tiles);
  }

  void readQueries(const QueryTile& queries, ForwardTiles& tiles) {
    const TokenLayout& q = m_problem.layouts.q;
    const std::int64_t width = m_workspace.heads.keyWidth();
    readQueryRows(m_problem, m_pointers.inputs.q, queries, tiles.queryRows);
    if (tiles.packedQueries)
      packRightTransposed({.data = tiles.queryRows, .stride = width, .count = queries.count, .channels = q.channels},
                          tiles.packedQueries);
    else
      attentionFunctions().transpose(tiles.queryRows, width, queries.count, q.channels, tiles.queries, kTileQueries);
    std::fill_n(tiles.largest, kTileQueries, m_form.hasSink() ? sinkOf(queries.head) : kNothing);
    std::fill_n(tiles.total, kTileQueries, m_form.hasSink() ? 1.0F : 0.0F);
  }

  float sinkOf(std::int64_t head) const { return m_pointers.inputs.offset ? m_pointers.inputs.offset[head] : 0.0F; }

  /// FP8 attention rounds probabilities, for which the sum of each row must be known first. The tiles then have the
  /// log-sum-exp in place of the largest score, so that exp(score - largest) is the probability.
  void findTotals(const QueryTile& queries, const HeadTiles& keys, ForwardTiles& tiles) {
    for (const KeyTile& tile : keyTilesOf(m_form, queries)) fillScores(queries, tile, keys, tiles);
    for (std::int64_t i = 0; i < queries.count; ++i) tiles.largest[i] = lseOf(i, tiles);
  }

  static float lseOf(std::int64_t i, const ForwardTiles& tiles) {
    return tiles.total[i] == 0.0F ? kNothing : tiles.largest[i] + std::log(tiles.total[i]);
  }

  /// scores: exp(score - largest). keep: the factor for earlier sums.
  SeenPairs fillScores(const QueryTile& queries, const KeyTile& tile, const HeadTiles& keys, ForwardTiles& tiles) {
    const AttentionFunctions& functions = attentionFunctions();
    const std::int64_t lanes = paddedWidth(queries.count);
    const HeadTiles from = keys.from(tile.first);
    tiles.products.multiply({.a = from.rows.data,
                             .aRow = from.rows.stride,
                             .b = tiles.queries,
                             .bRow = kTileQueries,
                             .c = tiles.scores,
                             .cRow = kTileQueries,
                             .m = tile.count,
                             .n = lanes,
                             .k = m_form.qkChannels,
                             .left = from.left,
                             .right = placedLeft(tiles.packedQueries, m_form.qkChannels)});
    ScoreChange change;
    if (changesScores(m_form)) {
      change = tiles.changes.change(m_pointers.inputs, queries, tile, false);
      functions.changeScores(tiles.scores, tile.count, lanes, change);
    }
    const TileRange range = tiles.changes.range(queries, tile);
    functions.softmax({.scores = tiles.scores,
                       .factor = softmaxFactor(m_form),
                       .keys = tile.count,
                       .queries = lanes,
                       .range = range,
                       .largest = tiles.largest,
                       .sum = tiles.total,
                       .keep = tiles.keep});
    return {.range = range, .visible = change.visible};
  }

  void addKeys(const QueryTile& queries, const KeyTile& tile, const HeadTiles& keys, const HeadTiles& values,
               bool isFirst, ForwardTiles& tiles) {
    const SeenPairs seen = fillScores(queries, tile, keys, tiles);
    if (m_form.probabilityFormat)
      roundWithScale(*m_form.probabilityFormat, roundingScale(*m_form.probabilityFormat, 1.0F),
                     {tiles.scores, static_cast<std::size_t>(tile.count * kTileQueries)});
    if (const float* const kept = tiles.changes.kept(queries, tile))
      for (std::int64_t i = 0; i < tile.count * kTileQueries; ++i) tiles.scores[i] *= kept[i];
    const HeadTiles from = values.from(tile.first);
    multiplyScores(tiles.products,
                   {.a = tiles.scores,
                    .aRow = 1,
                    .aCol = kTileQueries,
                    .b = from.rows.data,
                    .bRow = from.rows.stride,
                    .c = tiles.sums,
                    .cRow = m_workspace.heads.valueWidth(),
                    .m = queries.count,
                    .n = m_workspace.heads.valueWidth(),
                    .k = tile.count,
                    .mayRoundLeft = !m_pointers.lse,
                    .keep = isFirst ? nullptr : tiles.keep,
                    .right = from.right},
                   seen, TileRows::Queries);
  }

  /// y = sums / total; 0 where a query has seen no key.
  void finish(const QueryTile& queries, ForwardTiles& tiles) {
    for (std::int64_t i = 0; i < queries.count; ++i) {
      const float total = tiles.total[i];
      if (m_pointers.lse) writeTotal(queries, i, tiles);
      tiles.keep[i] = total == 0.0F ? 0.0F : m_form.probabilityFormat ? 1.0F : 1.0F / total;
    }
    headRowFunctions(m_problem.dtype)
        .write(tiles.sums, m_workspace.heads.valueWidth(), queries.count, m_form.vChannels, tiles.keep, 1.0F,
               headRows(m_pointers.y, m_problem.dtype, m_problem.layouts.y, queries.entry(), queries.token(),
                        queries.head));
  }

  void writeTotal(const QueryTile& queries, std::int64_t i, const ForwardTiles& tiles) const {
    const TokenLayout& q = m_problem.layouts.q;
    float* const to = m_pointers.lse + lseIndex(m_form, q, queries.entry(), queries.token() + i, queries.head);
    const std::int64_t offset = largestOffset(m_form, q);
    if (offset == 0) {
      *to = m_form.probabilityFormat ? tiles.largest[i] : lseOf(i, tiles);
      return;
    }
    *to = std::log(tiles.total[i]);
    to[offset] = tiles.total[i] == 0.0F ? 0.0F : tiles.largest[i];
  }

  const AttentionProblem& m_problem;
  const AttentionForm& m_form;
  const AttentionForwardPointers& m_pointers;
  ForwardWorkspace m_workspace;
  std::vector<PlacedSequence> m_sequences;
};

}  // namespace

std::size_t attentionForwardWorkspaceBytes(const AttentionProblem& problem) {
  return ForwardWorkspace(problem, nullptr).cutter.used();
}

void attentionForward(const AttentionProblem& problem, const AttentionForwardPointers& pointers, std::byte* workspace) {
  ForwardRun(problem, pointers, workspace).run();
}

}  // namespace fuseline::cpu
