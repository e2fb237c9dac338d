// Kernel "DotProductAttention": y = softmax(scale x k^T + mask) v, and its gradients: by cuDNN where it has such an
// attention, else by products and a softmax.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/attention_steps.h"
#include "kernels/cuda/attention/decoded_attention.h"
#include "kernels/cuda/attention/fused_attention.h"

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

/// reason: why it is not cuDNN's.
std::string slowWay(const std::string& reason) {
  return fmt::format(
      "attention by cuBLASLt GEMMs and a separate softmax, which is slow because scores go through memory: {}", reason);
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeAttention(const CompileRequest& request, const AttentionProblem& problem) {
  Result<std::unique_ptr<Kernel>> fused = makeFusedAttention(request, problem);
  if (fused) return fused;
  const std::string way = slowWay(fused.error().message);
  if (request.step.phase == Phase::Forward) return makeAttentionForward(request, problem, way);
  return makeAttentionBackward(request, problem, way);
}

namespace kernels {

KernelDef dot_product_attention();

namespace {

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  const Result<AttentionProblem> problem = attentionProblem(request);
  if (!problem) return problem.error();
  return makeAttention(request, *problem);
}

/// By cuDNN in FP8 where it has that, else of the dequantized tensors.
Result<std::unique_ptr<Kernel>> compileQuantized(const CompileRequest& request) {
  const Result<AttentionProblem> problem = attentionProblem(request);
  if (!problem) return problem.error();
  Result<std::unique_ptr<Kernel>> fused = makeFp8Attention(request, *problem);
  return fused ? std::move(fused) : makeDecodedAttention(request, fused.error().message, compile);
}

}  // namespace

KernelDef dot_product_attention() {
  return {
      .name = "DotProductAttention",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = [](const CompileRequest& request) -> Result<std::unique_ptr<Kernel>> {
        return readsQuantized(request) ? compileQuantized(request) : compile(request);
      },
  };
}

}  // namespace kernels

}  // namespace fuseline::cuda
