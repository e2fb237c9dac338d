// Cuts tensors into the parts of ranks, and joins them.
// SPDX-License-Identifier: Apache-2.0
#include "core/sharding/shard.h"

#include "core/collective/ordered_reduction.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// A slice as a copy between strided memories: `numRuns` runs of `runBytes` of the whole, the share of a rank at
/// `rank * runBytes` of each stride.
struct Strides {
  std::size_t numRuns = 1;
  std::size_t runBytes = 0;
  std::size_t strideBytes = 0;  // of the whole
};

Strides stridesOf(const TensorSpec& whole, const Shard& shard, int ranks) {
  const auto axis = static_cast<std::size_t>(shard.axis);
  std::int64_t outer = shard.parts;
  std::int64_t inner = sizeBytes(whole.dtype);
  for (std::size_t i = 0; i < axis; ++i) outer *= whole.shape[i];
  for (std::size_t i = axis + 1; i < whole.shape.size(); ++i) inner *= whole.shape[i];
  const std::int64_t stride = whole.shape[axis] / shard.parts * inner;
  return {static_cast<std::size_t>(outer), static_cast<std::size_t>(stride / ranks), static_cast<std::size_t>(stride)};
}

template <class Copy>
void forEachRun(const Strides& strides, int rank, Copy copy) {
  if (strides.runBytes == 0) return;
  for (std::size_t run = 0; run < strides.numRuns; ++run)
    copy(run * strides.strideBytes + static_cast<std::size_t>(rank) * strides.runBytes, run * strides.runBytes);
}

Tensor sumOf(std::span<const Tensor> summands) {
  Tensor sum = Tensor::zeros(summands.front().spec);
  std::vector<const std::byte*> contributions;
  for (const Tensor& summand : summands) contributions.push_back(summand.data.data());
  reduceInRankOrder(Reduction::Sum, sum.spec.dtype, contributions, sum.spec.numElements(), sum.data.data());
  return sum;
}

}  // namespace

Result<Shape> shardShape(const Shape& whole, const Shard& shard, int ranks) {
  if (!shard.isSlice()) return whole;
  Shape shape = whole;
  std::int64_t& extent = shape[static_cast<std::size_t>(shard.axis)];
  if (extent % (shard.parts * ranks) != 0)
    return Error{
        fmt::format("axis {} of {} has {} elements, which {} ranks cannot share equally; it must be a "
                    "multiple of {}.",
                    shard.axis, toString(whole), extent, ranks, shard.parts * ranks)};
  extent /= ranks;
  return shape;
}

Tensor shardOf(const Tensor& whole, const Shard& shard, int rank, int ranks) {
  if (shard.kind == Shard::Kind::Summand) return rank == 0 ? whole : Tensor::zeros(whole.spec);
  if (shard.kind == Shard::Kind::Whole) return whole;
  Tensor part = Tensor::zeros({.dtype = whole.spec.dtype, .shape = *shardShape(whole.spec.shape, shard, ranks)});
  const Strides strides = stridesOf(whole.spec, shard, ranks);
  forEachRun(strides, rank, [&](std::size_t from, std::size_t to) {
    std::memcpy(part.data.data() + to, whole.data.data() + from, strides.runBytes);
  });
  return part;
}

Tensor wholeOf(std::span<const Tensor> shards, const Shard& shard) {
  if (shard.kind == Shard::Kind::Whole) return shards.front();
  if (shard.kind == Shard::Kind::Summand) return sumOf(shards);
  TensorSpec spec = shards.front().spec;
  spec.shape[static_cast<std::size_t>(shard.axis)] *= static_cast<std::int64_t>(shards.size());
  Tensor whole = Tensor::zeros(spec);
  const Strides strides = stridesOf(spec, shard, static_cast<int>(shards.size()));
  for (std::size_t rank = 0; rank < shards.size(); ++rank)
    forEachRun(strides, static_cast<int>(rank), [&](std::size_t to, std::size_t from) {
      std::memcpy(whole.data.data() + to, shards[rank].data.data() + from, strides.runBytes);
    });
  return whole;
}

}  // namespace fuseline
