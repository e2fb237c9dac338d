// Kernel "split_attention": attention on columns of one packed tensor, forward and backward.
// SPDX-License-Identifier: Apache-2.0
// Rotary embeddings are applied to the float32 rows that attention reads, which are then rounded to the tensor's dtype,
// as they would be in memory.
#include "kernels/cpu/attention/attention_steps.h"

#include <utility>

namespace fuseline::cpu::kernels {

KernelDef split_attention();

namespace {
namespace split_attention_parts {

std::shared_ptr<const HeadRotation> rotationOf(const CompileRequest& request, int member, const TokenLayout& layout) {
  if (member < 0) return nullptr;
  return std::make_shared<const HeadRotation>(request.member(static_cast<std::size_t>(member)).attributes,
                                              layout.tokens);
}

Result<std::unique_ptr<Kernel>> compileSplitAttention(const CompileRequest& request) {
  const PackedAttention packed = packedAttention(request.graph, request.step.nodes);
  Result<AttentionProblem> problem = attentionProblem(request, packed.places.attention);
  if (!problem) return problem.error();
  problem->layouts = problem->gradients = packed.layouts;
  problem->places = packed.places;
  problem->rotationOfQ = rotationOf(request, packed.places.heads[AttentionForm::kQuery].rotary, packed.layouts.q);
  problem->rotationOfK = rotationOf(request, packed.places.heads[AttentionForm::kKey].rotary, packed.layouts.k);
  return makeAttention(request, std::move(*problem));
}

}  // namespace split_attention_parts
}  // namespace

KernelDef split_attention() {
  using namespace split_attention_parts;
  return {
      .name = "split_attention",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = compileSplitAttention,
  };
}

}  // namespace fuseline::cpu::kernels
