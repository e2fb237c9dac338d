// Kernel "linear_backward_bias": backward of a linear layer and its bias. dx = dy W; one GEMM computes dW = dy^T x and
// db, the column sums of dy.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/linear_parts.h"

#include <fmt/format.h>

namespace fuseline::cuda::kernels {

namespace {
namespace linear_backward_bias_parts {

constexpr int kLinear = 0;
constexpr int kBias = 1;

/// cuBLASLt makes the sums with the weight's gradient, in its dtype (cublasLt.h, CUBLASLT_EPILOGUE_BGRADB and
/// CUBLASLT_MATMUL_DESC_BIAS_POINTER).
Verdict comesWithWeightGrad(const Node& linear, const Node& bias) {
  if (!linear.needs.parameters.front())
    return Verdict::no(fmt::format("cuBLASLt sums the bias gradient in the wgrad GEMM, but {} \"{}\" trains no weight.",
                                   linear.operation->name, linear.id));
  const DType weightGrad = linear.parameterGradients.front().dtype;
  const DType biasGrad = bias.parameterGradients.front().dtype;
  if (weightGrad == biasGrad) return Verdict::yes();
  return Verdict::no(
      fmt::format("cuBLASLt needs one dtype for weight and bias gradient, but \"{}\" has {} and \"{}\" {}, so a "
                  "separate pass would remain.",
                  linear.id, dtypeName(weightGrad), bias.id, dtypeName(biasGrad)));
}

Verdict supports(const KernelQuery& query) {
  const Node& linear = query.graph.node(query.members[kLinear]);
  if (const Verdict fits = fitsLibrary(query.graph, linear); !fits) return fits;
  if (const Verdict fits = haveDTypeOfProduct(query.graph, query.members); !fits) return fits;
  return comesWithWeightGrad(linear, query.graph.node(query.members[kBias]));
}

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  return compileLinearBackward(request, {.members = {.linear = kLinear, .gradOutput = kBias, .gradInput = kLinear},
                                         .gradBias = OperandKey{kBias, OperandKind::GradParameter, 0}});
}

}  // namespace linear_backward_bias_parts
}  // namespace

KernelDef linear_backward_bias();

KernelDef linear_backward_bias() {
  using namespace linear_backward_bias_parts;
  return {.name = "linear_backward_bias", .phases = {Phase::Backward}, .supports = supports, .compile = compile};
}

}  // namespace fuseline::cuda::kernels
