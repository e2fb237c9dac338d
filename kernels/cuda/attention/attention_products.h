// The products of an attention: how it is divided into passes, and the problems that cuBLASLt solves in each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/attention/attention_launch.h"
#include "kernels/cuda/attention/attention_operands.h"
#include "kernels/cuda/gemm/gemm.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace fuseline::cuda {

/// Upper limits of a pass. A divisor of the units that follow each other by one stride, and query tokens.
struct AttentionTiles {
  std::int64_t units = 1;
  std::int64_t rows = 1;

  std::int64_t scores(const AttentionProblem& problem) const { return units * rows * problem.layouts.k.tokens; }
};

/// The largest tiles whose float32 scores fit maxScoreBytes; at least one row.
AttentionTiles attentionTiles(const AttentionProblem& problem, std::size_t maxScoreBytes);

/// f(pass), all passes of the same units one after the other.
void forEachPass(const AttentionProblem& problem, const AttentionTiles& tiles,
                 const std::function<void(const AttentionPass&)>& f);

/// Where a pass finds its part of a tensor of heads.
std::int64_t queryOffset(const AttentionProblem& problem, const TokenLayout& layout, const AttentionPass& pass);
std::int64_t keyOffset(const AttentionProblem& problem, const TokenLayout& layout, const AttentionPass& pass);

/// The GEMMs of a pass over a given number of rows.
class AttentionGemms {
 public:
  AttentionGemms(const AttentionProblem& problem, const AttentionTiles& tiles) : m(&problem), m_tiles(tiles) {}

  GemmProblem scores(std::int64_t rows) const;             // q k^T, float32
  GemmProblem output(std::int64_t rows) const;             // p v
  GemmProblem gradProbabilities(std::int64_t rows) const;  // dy v^T, float32
  GemmProblem gradQueries(std::int64_t rows) const;        // ds k
  // p^T dy and ds^T q. One pass: in the layout of the tensors; several: float32 sums [units, keys, channels].
  GemmProblem gradValues(std::int64_t rows, bool isSum, bool isAdded) const;
  GemmProblem gradKeys(std::int64_t rows, bool isSum, bool isAdded) const;

 private:
  GemmProblem ofScores(std::int64_t rows, const TokenLayout& left, const TokenLayout& right) const;
  GemmProblem ofQueries(std::int64_t rows, const TokenLayout& right, const TokenLayout& result) const;
  GemmProblem ofKeys(std::int64_t rows, const TokenLayout& right, const TokenLayout& result, bool isSum,
                     bool isAdded) const;
  std::int64_t headStride(const TokenLayout& queries) const { return m->form.headsPerGroup() * queries.headStride; }
  std::uint32_t alignment(const TokenLayout& a, const TokenLayout& b) const;

  const AttentionProblem* m;
  AttentionTiles m_tiles;
};

/// Products that were prepared, by their problems.
class PreparedProducts {
 public:
  /// Problems may be named more than once. Errors: the library does not solve one of them.
  static Result<PreparedProducts> make(GemmLibrary& library, std::span<const GemmProblem> problems);
  std::size_t workspaceBytes() const;
  /// problem: one of them.
  void multiply(const GemmProblem& problem, const GemmPointers& pointers, std::byte* workspace, Stream stream);

 private:
  std::vector<std::pair<GemmProblem, std::unique_ptr<Gemm>>> m_products;
};

}  // namespace fuseline::cuda
