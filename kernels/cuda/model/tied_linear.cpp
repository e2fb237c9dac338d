// Kernel "TiedLinear": the GEMMs of BasicLinear with a weight that is an input.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/tied_linear_step.h"
#include "kernels/cuda/gemm/linear_parts.h"

namespace fuseline::cuda::kernels {

KernelDef tied_linear();

namespace {

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request) {
  const Result<LinearForwardStep> step = readTiedForward(request);
  if (!step) return step.error();
  const GemmProblem problem = forwardProblem(step->size, step->x, step->weight, step->y.spec);
  return makeProducts(request, {{.problem = problem, .a = step->x, .b = step->weight, .c = step->y}});
}

Result<std::unique_ptr<Kernel>> compileBackward(const CompileRequest& request) {
  const Result<LinearGradStep> x = readTiedInputGrad(request);
  if (!x) return x.error();
  const Result<LinearGradStep> weight = readTiedWeightGrad(request);
  if (!weight) return weight.error();
  std::vector<Product> products;
  if (x->result)
    products.push_back({.problem = inputGradProblem(x->size, x->gradOutput, x->factor, x->result.spec),
                        .a = x->gradOutput,
                        .b = x->factor,
                        .c = x->result});
  if (weight->result)
    products.push_back({.problem = weightGradProblem(weight->size, weight->gradOutput, weight->factor, weight->result),
                        .a = weight->gradOutput,
                        .b = weight->factor,
                        .c = weight->result});
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
