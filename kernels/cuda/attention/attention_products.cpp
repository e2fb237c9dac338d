// Strides of heads among tokens, as batches of products.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/attention_products.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace fuseline::cuda {

namespace {

constexpr std::int64_t kMaxUnits = 65535;  // blocks of a grid in its second direction

bool areInLine(const TokenLayout& layout) { return layout.batchStride == layout.heads * layout.headStride; }

/// In sbhd the heads of all batch entries follow each other, unless they are packed; otherwise those of one.
std::int64_t unitsInLine(const AttentionProblem& problem) {
  const auto areInLineHere = [](const AttentionLayouts& layouts) {
    return areInLine(layouts.q) && areInLine(layouts.k) && areInLine(layouts.v) && areInLine(layouts.y);
  };
  const bool areAll =
      problem.form.format == QkvFormat::Sbhd && areInLineHere(problem.layouts) && areInLineHere(problem.gradients);
  return areAll ? problem.units() : problem.form.groups;
}

std::int64_t largestDivisor(std::int64_t number, std::int64_t most) {
  for (std::int64_t divisor = std::min(number, most); divisor > 1; --divisor)
    if (number % divisor == 0) return divisor;
  return 1;
}

}  // namespace

AttentionTiles attentionTiles(const AttentionProblem& problem, std::size_t maxScoreBytes) {
  constexpr std::int64_t kRowMultiple = 8;
  const auto most = static_cast<std::int64_t>(maxScoreBytes / sizeof(float));
  const std::int64_t keys = std::max<std::int64_t>(1, problem.layouts.k.tokens);
  const std::int64_t queries = std::max<std::int64_t>(1, problem.layouts.q.tokens);
  const std::int64_t rows = std::max<std::int64_t>(1, most / keys);
  if (rows < queries) return {.rows = rows < kRowMultiple ? rows : rows / kRowMultiple * kRowMultiple};
  return {.units = largestDivisor(std::max<std::int64_t>(1, unitsInLine(problem)), std::min(rows / queries, kMaxUnits)),
          .rows = queries};
}

void forEachPass(const AttentionProblem& problem, const AttentionTiles& tiles,
                 const std::function<void(const AttentionPass&)>& f) {
  const std::int64_t queries = problem.layouts.q.tokens;
  for (std::int64_t unit = 0; unit < problem.units(); unit += tiles.units)
    for (std::int64_t head = 0; head < problem.form.headsPerGroup(); ++head)
      for (std::int64_t row = 0; row < queries; row += tiles.rows)
        f({.firstUnit = unit,
           .units = tiles.units,
           .headOfGroup = head,
           .firstRow = row,
           .rows = std::min(tiles.rows, queries - row)});
}

std::int64_t queryOffset(const AttentionProblem& problem, const TokenLayout& layout, const AttentionPass& pass) {
  const std::int64_t group = pass.firstUnit % problem.form.groups;
  return layout.offset(pass.firstUnit / problem.form.groups, pass.firstRow,
                       group * problem.form.headsPerGroup() + pass.headOfGroup);
}

std::int64_t keyOffset(const AttentionProblem& problem, const TokenLayout& layout, const AttentionPass& pass) {
  return layout.offset(pass.firstUnit / problem.form.groups, 0, pass.firstUnit % problem.form.groups);
}

/// Strides between rows of heads, and between rows of scores.
std::uint32_t AttentionGemms::alignment(const TokenLayout& a, const TokenLayout& b) const {
  const auto bytes = static_cast<std::uint32_t>(sizeBytes(m->dtype));
  std::uint32_t alignment = GemmProblem().alignmentBytes;
  for (const std::int64_t elements :
       {a.channels, a.headStride, a.tokenStride, b.channels, b.headStride, b.tokenStride, m->layouts.k.tokens})
    alignment = std::gcd(alignment, static_cast<std::uint32_t>(elements % GemmProblem().alignmentBytes) * bytes);
  return alignment;
}

/// left: of queries; right: of keys.
GemmProblem AttentionGemms::ofScores(std::int64_t rows, const TokenLayout& left, const TokenLayout& right) const {
  const std::int64_t keys = m->layouts.k.tokens;
  return {.m = rows,
          .n = keys,
          .k = left.channels,
          .b = Storage2d::Transposed,
          .factorType = m->dtype,
          .cType = DType::F32,
          .batch = {.count = m_tiles.units,
                    .aStride = headStride(left),
                    .bStride = right.headStride,
                    .cStride = rows * keys,
                    .aRow = left.tokenStride,
                    .bRow = right.tokenStride,
                    .cRow = keys},
          .alignmentBytes = alignment(left, right)};
}

/// GEMM of a matrix of scores with keys or values.
GemmProblem AttentionGemms::ofQueries(std::int64_t rows, const TokenLayout& right, const TokenLayout& result) const {
  const std::int64_t keys = m->layouts.k.tokens;
  return {.m = rows,
          .n = right.channels,
          .k = keys,
          .factorType = m->dtype,
          .cType = m->dtype,
          .batch = {.count = m_tiles.units,
                    .aStride = rows * keys,
                    .bStride = right.headStride,
                    .cStride = headStride(result),
                    .aRow = keys,
                    .bRow = right.tokenStride,
                    .cRow = result.tokenStride},
          .alignmentBytes = alignment(right, result)};
}

/// GEMM of the transpose of a matrix of scores with queries or output gradients.
GemmProblem AttentionGemms::ofKeys(std::int64_t rows, const TokenLayout& right, const TokenLayout& result, bool isSum,
                                   bool isAdded) const {
  const std::int64_t keys = m->layouts.k.tokens;
  return {.m = keys,
          .n = right.channels,
          .k = rows,
          .a = Storage2d::Transposed,
          .factorType = m->dtype,
          .cType = isSum ? DType::F32 : m->dtype,
          .hasAddend = isAdded,
          .batch = {.count = m_tiles.units,
                    .aStride = rows * keys,
                    .bStride = headStride(right),
                    .cStride = isSum ? keys * result.channels : result.headStride,
                    .aRow = keys,
                    .bRow = right.tokenStride,
                    .cRow = isSum ? result.channels : result.tokenStride},
          .alignmentBytes = alignment(right, result)};
}

GemmProblem AttentionGemms::scores(std::int64_t rows) const { return ofScores(rows, m->layouts.q, m->layouts.k); }

GemmProblem AttentionGemms::output(std::int64_t rows) const { return ofQueries(rows, m->layouts.v, m->layouts.y); }

GemmProblem AttentionGemms::gradProbabilities(std::int64_t rows) const {
  return ofScores(rows, m->gradients.y, m->layouts.v);
}

GemmProblem AttentionGemms::gradQueries(std::int64_t rows) const {
  return ofQueries(rows, m->layouts.k, m->gradients.q);
}

GemmProblem AttentionGemms::gradValues(std::int64_t rows, bool isSum, bool isAdded) const {
  return ofKeys(rows, m->gradients.y, m->gradients.v, isSum, isAdded);
}

GemmProblem AttentionGemms::gradKeys(std::int64_t rows, bool isSum, bool isAdded) const {
  return ofKeys(rows, m->layouts.q, m->gradients.k, isSum, isAdded);
}

Result<PreparedProducts> PreparedProducts::make(GemmLibrary& library, std::span<const GemmProblem> problems) {
  PreparedProducts made;
  for (const GemmProblem& problem : problems) {
    if (std::ranges::any_of(made.m_products, [&](const auto& product) { return product.first == problem; })) continue;
    Result<std::unique_ptr<Gemm>> gemm = library.prepare(problem);
    if (!gemm) return gemm.error();
    made.m_products.emplace_back(problem, std::move(*gemm));
  }
  return made;
}

std::size_t PreparedProducts::workspaceBytes() const {
  std::size_t most = 0;
  for (const auto& [problem, gemm] : m_products) most = std::max(most, gemm->workspaceBytes());
  return most;
}

void PreparedProducts::multiply(const GemmProblem& problem, const GemmPointers& pointers, std::byte* workspace,
                                Stream stream) {
  const auto found = std::ranges::find_if(m_products, [&](const auto& product) { return product.first == problem; });
  assert(found != m_products.end());
  found->second->multiply(pointers, workspace, stream);
}

}  // namespace fuseline::cuda
