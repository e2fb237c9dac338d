// Kernel "BasicLinear": y = x W^T; backward dx = dy W and dW = dy^T x.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/linear_parts.h"
#include "kernels/cuda/gemm/quantized_result.h"

namespace fuseline::cuda::kernels {

namespace {
namespace linear_parts {

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request) {
  const Result<LinearForwardStep> step = readLinearForward(request);
  if (!step) return step.error();
  GemmProblem problem = forwardProblem(step->size, step->x, step->weight, step->y.spec);
  setRows(problem, step->x, step->weight, step->y);
  return makeProducts(request, {{.problem = problem,
                                 .a = step->x,
                                 .b = step->weight,
                                 .c = step->y,
                                 .isQuantized = !request.step.copies.empty()}});
}

}  // namespace linear_parts
}  // namespace

KernelDef linear();

KernelDef linear() {
  using namespace linear_parts;
  return {
      .name = "BasicLinear",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery& query) { return fitsLibrary(query.graph, query.graph.node(query.members[0])); },
      .compile =
          [](const CompileRequest& request) {
            return request.step.phase == Phase::Forward ? compileForward(request) : compileLinearBackward(request, {});
          },
      .supportsCopies = canQuantizeResult,
  };
}

}  // namespace fuseline::cuda::kernels
