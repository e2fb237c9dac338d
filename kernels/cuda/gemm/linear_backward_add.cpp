// Kernel "linear_backward_add": backward of MakeExtraOutput and a linear layer. dx = dy W + extra gradient and
// dW = dy^T x.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/linear_parts.h"

namespace fuseline::cuda::kernels {

namespace {
namespace linear_backward_add_parts {

constexpr int kBranch = 0;  // MakeExtraOutput
constexpr int kLinear = 1;

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  return compileLinearBackward(request, {.members = {.linear = kLinear, .gradOutput = kLinear, .gradInput = kBranch},
                                         .extraGradient = OperandKey{kBranch, OperandKind::GradOutput, 1}});
}

}  // namespace linear_backward_add_parts
}  // namespace

KernelDef linear_backward_add();

KernelDef linear_backward_add() {
  using namespace linear_backward_add_parts;
  return {
      .name = "linear_backward_add",
      .phases = {Phase::Backward},
      .supports =
          [](const KernelQuery& query) { return fitsLibrary(query.graph, query.graph.node(query.members[kLinear])); },
      .compile = compile,
  };
}

}  // namespace fuseline::cuda::kernels
