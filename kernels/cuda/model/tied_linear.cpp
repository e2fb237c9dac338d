// Kernel "TiedLinear": the GEMMs of BasicLinear with a weight that is an input.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/linear_parts.h"

namespace fuseline::cuda::kernels {

KernelDef tied_linear();

namespace {

LinearSize sizeOf(const CompileRequest& request) {
  const std::vector<TensorSpec> inputs = request.graph.inputSpecs(request.step.nodes.front());
  return {.m = inputs[0].rows(), .n = inputs[1].shape[0], .k = inputs[1].shape[1]};
}

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request) {
  const Result<Binding> x = requireOperand(request, {0, OperandKind::Input, 0});
  if (!x) return x.error();
  const Result<Binding> weight = requireOperand(request, {0, OperandKind::Input, 1});
  if (!weight) return weight.error();
  const Result<Binding> y = requireOperand(request, {0, OperandKind::Output, 0});
  if (!y) return y.error();
  const GemmProblem problem = forwardProblem(sizeOf(request), *x, *weight, y->spec);
  return makeProducts(request, {{.problem = problem, .a = *x, .b = *weight, .c = *y}});
}

Result<std::unique_ptr<Kernel>> compileBackward(const CompileRequest& request) {
  const Result<Binding> dy = requireOperand(request, {0, OperandKind::GradOutput, 0});
  if (!dy) return dy.error();
  const LinearSize size = sizeOf(request);
  std::vector<Product> products;
  if (const Binding dx = findOperand(request, {0, OperandKind::GradInput, 0})) {
    const Result<Binding> weight = requireOperand(request, {0, OperandKind::Input, 1});
    if (!weight) return weight.error();
    products.push_back({.problem = inputGradProblem(size, *dy, *weight, dx.spec), .a = *dy, .b = *weight, .c = dx});
  }
  if (const Binding dw = findOperand(request, {0, OperandKind::GradInput, 1})) {
    const Result<Binding> x = requireOperand(request, {0, OperandKind::Input, 0});
    if (!x) return x.error();
    products.push_back({.problem = weightGradProblem(size, *dy, *x, dw), .a = *dy, .b = *x, .c = dw});
  }
  return makeProducts(request, products);
}

}  // namespace

KernelDef tied_linear() {
  return {
      .name = "TiedLinear",
      .phases = {Phase::Forward, Phase::Backward},
      .compile =
          [](const CompileRequest& request) {
            return request.step.phase == Phase::Forward ? compileForward(request) : compileBackward(request);
          },
  };
}

}  // namespace fuseline::cuda::kernels
