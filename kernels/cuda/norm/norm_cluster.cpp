// Divides rows among the blocks of a cluster.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm/norm_cluster.h"

#include "kernels/cuda/norm/norm_shape.h"

#include <algorithm>

namespace fuseline::cuda {

namespace {

constexpr int kSide = NormCluster::kTileSide;

/// Bytes of shared memory besides the tiles: encoded values to transpose, column maxima of blocks, and sums of rows.
std::size_t bytesBesides(const NormCopies& copies, int chains) {
  constexpr std::size_t kCodes = kSide * kSide;
  constexpr std::size_t kMaxima = (kSide / 8 + kSide / 32) * kSide * sizeof(float);
  constexpr std::size_t kRowFloats = kSide * sizeof(float);
  const std::size_t waiting = copies.kind == device::CopyKind::Tensor ? copies.numPairs * kCodes : kMaxima;
  return kCodes + waiting + (2 * static_cast<std::size_t>(chains) + 2) * kRowFloats;
}

/// Tiles whose packets are the first ones of the threads that have a row, and those after them the second ones; 0: rows
/// are too long.
int tilesOfFirstPackets(std::int64_t cols) {
  int tiles = 0;
  withPacketShare<1024>(cols, [&]<class Share>(Share) {
    if (Share::isHeld) tiles = Share::kRowThreads * Share::kVector / kSide;
  });
  return tiles;
}

}  // namespace

ClusterLimits clusterLimitsOf(ComputeCapability capability, std::size_t maxSharedBytes) {
  constexpr int kPortable = 8;
  constexpr int kMost = 16;
  const bool isKnown = capability.major > 0;
  if (isKnown && capability.major < 9) return {};
  const bool isOfDataCenter = !isKnown || capability.major <= 10;
  return {.blocks = isOfDataCenter ? kMost : kPortable, .sharedBytes = maxSharedBytes};
}

ClusterLimits plannedClusterLimits(ComputeCapability capability) {
  const std::size_t kilobytes = capability.major < 12 ? 227 : 99;
  return clusterLimitsOf(capability, kilobytes << 10U);
}

std::optional<NormCluster> normClusterOf(std::int64_t cols, bool isNarrow, const NormCopies& copies,
                                         const ClusterLimits& limits) {
  using device::CopyKind;
  const bool hasKernel =
      copies.kind == CopyKind::Tensor || copies.kind == CopyKind::Float8Line || copies.kind == CopyKind::MxLine;
  const int firsts = tilesOfFirstPackets(cols);
  if (!hasKernel || cols == 0 || cols % kVectorWidth != 0 || firsts == 0 || limits.blocks == 0) return std::nullopt;
  NormCluster cluster{.blocks = std::min(firsts, limits.blocks)};
  cluster.chains = firsts / cluster.blocks;
  const std::int64_t colsOfTiles = std::int64_t{kSide} * cluster.blocks;
  cluster.tiles = static_cast<int>((cols + colsOfTiles - 1) / colsOfTiles);
  const std::size_t tileBytes = std::size_t{kSide} * kSide * (isNarrow ? 2 : 4);
  const std::size_t bytes = static_cast<std::size_t>(cluster.tiles) * tileBytes + bytesBesides(copies, cluster.chains);
  if (bytes > limits.sharedBytes) return std::nullopt;
  cluster.sharedBytes = static_cast<int>(bytes);
  return cluster;
}

bool isNarrowNorm(const NormProblem& problem) {
  const auto isNarrow = [](device::Element element) { return element == device::Element::BF16; };
  return isNarrow(problem.x) && isNarrow(problem.y) && isNarrow(problem.parameter);
}

}  // namespace fuseline::cuda
