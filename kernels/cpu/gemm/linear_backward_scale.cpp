// Kernel "linear_backward_scale": backward of a linear layer and the downstream ConstantScale. dx = scale dy W and dW =
// scale dy^T x.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/linear_parts.h"

namespace fuseline::cpu::kernels {

namespace {
namespace linear_backward_scale_parts {

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  return compileLinearBackward(request, static_cast<float>(request.member(1).attributes.real("scale")));
}

}  // namespace linear_backward_scale_parts
}  // namespace

KernelDef linear_backward_scale();

KernelDef linear_backward_scale() {
  using namespace linear_backward_scale_parts;
  return {
      .name = "linear_backward_scale",
      .phases = {Phase::Backward},
      .compile = compile,
      .writesCopies = true,
  };
}

}  // namespace fuseline::cpu::kernels
