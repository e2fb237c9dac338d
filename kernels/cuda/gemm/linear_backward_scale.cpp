// Kernel "linear_backward_scale": backward of a linear layer and the downstream ConstantScale. dx = scale dy W and dW =
// scale dy^T x.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/linear_parts.h"
#include "kernels/cuda/gemm/quantized_result.h"

namespace fuseline::cuda::kernels {

namespace {
namespace linear_backward_scale_parts {

constexpr int kLinear = 0;
constexpr int kScale = 1;

Verdict supports(const KernelQuery& query) {
  if (const Verdict fits = fitsLibrary(query.graph, query.graph.node(query.members[kLinear])); !fits) return fits;
  return scalesProduct(query.graph.node(query.members[kScale]));
}

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  const auto scale = static_cast<float>(request.member(kScale).attributes.real("scale"));
  return compileLinearBackward(
      request, {.members = {.linear = kLinear, .gradOutput = kScale, .gradInput = kLinear}, .alpha = scale});
}

}  // namespace linear_backward_scale_parts
}  // namespace

KernelDef linear_backward_scale();

KernelDef linear_backward_scale() {
  using namespace linear_backward_scale_parts;
  return {
      .name = "linear_backward_scale",
      .phases = {Phase::Backward},
      .supports = supports,
      .compile = compile,
      .supportsCopies = canQuantizeResult,
  };
}

}  // namespace fuseline::cuda::kernels
