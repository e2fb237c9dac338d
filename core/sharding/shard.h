// Shard: which part of a whole tensor one rank holds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"
#include "core/tensor/tensor.h"

#include <cstdint>
#include <span>

namespace fuseline {

struct Shard {
  /// Whole: every rank holds all of it. Slice: equal shares of one axis. Summand: the whole tensor is the sum over the
  /// ranks.
  enum class Kind { Whole, Slice, Summand } kind = Kind::Whole;
  int axis = 0;
  /// A slice of an axis that consists of several equal parts, such as the halves of a gated activation's input: each
  /// rank holds its share of every part, one after the other.
  std::int64_t parts = 1;

  bool isSlice() const { return kind == Kind::Slice; }
  bool operator==(const Shard&) const = default;
};

/// The shape on one rank. Errors: an axis that the ranks cannot share equally, with its size.
Result<Shape> shardShape(const Shape& whole, const Shard& shard, int ranks);
/// The part of one rank. A partial sum is the whole tensor on rank 0 and zeros elsewhere. The shape is one that
/// shardShape() accepts.
Tensor shardOf(const Tensor& whole, const Shard& shard, int rank, int ranks);
/// The inverse, from the parts of all ranks in rank order. Summands are added as collectives add.
Tensor wholeOf(std::span<const Tensor> shards, const Shard& shard);

}  // namespace fuseline
