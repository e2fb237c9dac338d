// Kernel "split_attention": attention on columns of one packed tensor, forward and backward. Strides are those of the
// packed tensor, for cuDNN's graphs as for products.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/attention_steps.h"

namespace fuseline::cuda::kernels {

KernelDef split_attention();

namespace {

Result<std::unique_ptr<Kernel>> compileSplitAttention(const CompileRequest& request) {
  const PackedAttention packed = packedAttention(request.graph, request.step.nodes);
  Result<AttentionProblem> problem = attentionProblem(request, packed.places.attention);
  if (!problem) return problem.error();
  problem->layouts = problem->gradients = packed.layouts;
  problem->places = packed.places;
  return makeAttention(request, *problem);
}

/// Neither cuDNN's graphs nor products rotate what they read.
Verdict supportsSplitAttention(const KernelQuery& query) {
  constexpr std::size_t kWithoutRotary = 2;
  if (query.members.size() == kWithoutRotary) return Verdict::yes();
  return Verdict::no(
      "On a GPU attention reads rotated queries and keys from memory, so rotary embeddings and split remain a separate "
      "pass.");
}

}  // namespace

KernelDef split_attention() {
  return {
      .name = "split_attention",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = supportsSplitAttention,
      .compile = compileSplitAttention,
  };
}

}  // namespace fuseline::cuda::kernels
