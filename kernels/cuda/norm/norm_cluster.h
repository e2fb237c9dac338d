// Norms whose quantization needs columns of the result, too, in one pass: clusters of blocks hold tiles of whole rows.
// Plain C++: the kernels are in norm_cluster_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"
#include "kernels/cuda/device/quantize_data.h"
#include "kernels/cuda/norm/norm_launch.h"

#include <cstddef>
#include <optional>

namespace fuseline::cuda {

using device::NormCluster;

/// The size of clusters and of their blocks.
struct ClusterLimits {
  int blocks = 0;               // 0: there are no clusters
  std::size_t sharedBytes = 0;  // of a block
};

/// capability 0.0: any GPU. Source: CUDA Programming Guide, "Thread Block Clusters": eight blocks everywhere; data
/// center GPUs have up to sixteen, if a launch allows it.
ClusterLimits clusterLimitsOf(ComputeCapability capability, std::size_t maxSharedBytes);

/// The same before there is a device.
ClusterLimits plannedClusterLimits(ComputeCapability capability);

/// The quantized tensors of a norm, as far as its shared memory depends on them.
struct NormCopies {
  device::CopyKind kind = device::CopyKind::Tensor;
  std::size_t numPairs = 1;
};

/// How a cluster shares 128 rows of `cols` columns. isNarrow: all tensors are BF16; others take twice the memory.
/// Nothing: they do not fit, or there is no kernel.
std::optional<NormCluster> normClusterOf(std::int64_t cols, bool isNarrow, const NormCopies& copies,
                                         const ClusterLimits& limits);

/// Is each of x, y and the parameters of the norm BF16?
bool isNarrowNorm(const NormProblem& problem);

/// Whether the current device runs such clusters.
bool canLaunchNormClusters(const NormProblem& problem, device::CopyKind kind, const NormCluster& cluster);
/// As launchNormForwardTiles() and launchNormForwardRows() with its transposes: the same bits.
void launchNormForwardClusters(const NormForward& norm, const device::QuantizedOutputs& quantizedOutputs,
                               const NormCluster& cluster, Stream stream);

}  // namespace fuseline::cuda
