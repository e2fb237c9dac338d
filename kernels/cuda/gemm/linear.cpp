// Kernel "BasicLinear": y = x W^T; backward dx = dy W and dW = dy^T x.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/linear_parts.h"

namespace fuseline::cuda::kernels {

namespace {

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request) {
  const Result<Binding> x = requireOperand(request, {0, OperandKind::Input, 0});
  if (!x) return x.error();
  const Result<Binding> weight = requireOperand(request, {0, OperandKind::Parameter, 0});
  if (!weight) return weight.error();
  const Result<Binding> y = requireOperand(request, {0, OperandKind::Output, 0});
  if (!y) return y.error();
  const GemmProblem problem = forwardProblem(linearSize(request.member(0), x->spec), *x, *weight, y->spec);
  return makeProducts(request, {{.problem = problem, .a = *x, .b = *weight, .c = *y}});
}

}  // namespace

KernelDef linear();

KernelDef linear() {
  return {
      .name = "BasicLinear",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery& query) { return fitsLibrary(query.graph, query.graph.node(query.members[0])); },
      .compile =
          [](const CompileRequest& request) {
            return request.step.phase == Phase::Forward ? compileForward(request) : compileLinearBackward(request, {});
          },
  };
}

}  // namespace fuseline::cuda::kernels
