// Kernel "embedding_norm": Embedding, an optional MakeExtraOutput, and a norm that reads the rows of the table. The
// result equals that of the separate ops.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/elementwise_launch.h"
#include "kernels/cuda/norm/norm_steps.h"

#include <fmt/format.h>

namespace fuseline::cuda::kernels {

KernelDef embedding_norm();

namespace {

/// Threads read a longer row several times, for which there are no registers left with its place in the table.
Verdict supports(const KernelQuery& query) {
  constexpr std::int64_t kMostCols = 16384;
  const std::int64_t cols = query.graph.node(query.members.front()).parameters.front().shape.back();
  if (cols % kVectorWidth == 0 && cols <= kMostCols) return Verdict::yes();
  return Verdict::no(
      fmt::format("On CUDA, norms look up rows of at most {} columns, a multiple of {}; this table has {} columns.",
                  kMostCols, kVectorWidth, cols));
}

}  // namespace

KernelDef embedding_norm() {
  return {
      .name = "embedding_norm",
      .phases = {Phase::Forward},
      .supports = supports,
      .compile = makeEmbeddingNormForward,
      .supportsCopies = canMakeNormCopies,
  };
}

}  // namespace fuseline::cuda::kernels
