// Kernel "DotProductAttention": y = softmax(scale x k^T + mask) v, and its gradients.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/attention_steps.h"

namespace fuseline::cuda::kernels {

KernelDef dot_product_attention();

namespace {

constexpr const char* kUnfused =
    "attention by cuBLASLt products and a softmax between them, which is slow: scores go through memory";

Result<std::unique_ptr<Kernel>> compileAttention(const CompileRequest& request) {
  const Result<AttentionProblem> problem = attentionProblem(request);
  if (!problem) return problem.error();
  if (request.step.phase == Phase::Forward) return makeAttentionForward(request, *problem, kUnfused);
  return makeAttentionBackward(request, *problem, kUnfused);
}

}  // namespace

KernelDef dot_product_attention() {
  return {
      .name = "DotProductAttention",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery&) { return Verdict::yes(); },
      .compile = compileAttention,
  };
}

}  // namespace fuseline::cuda::kernels
