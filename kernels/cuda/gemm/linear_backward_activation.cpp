// Kernel "linear_backward_activation": backward of GELU, a linear layer and perhaps its bias. dx = GELU'(x) (dy W);
// dW = dy^T GELU(x) and db as in linear_backward_bias.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/shared_attributes.h"
#include "kernels/cuda/gemm/gemm_epilogue.h"
#include "kernels/cuda/gemm/linear_parts.h"

#include <fmt/format.h>

namespace fuseline::cuda::kernels {

namespace {
namespace linear_backward_activation_parts {

constexpr int kActivation = 0;
constexpr int kLinear = 1;
constexpr int kBias = 2;

Verdict hasEpilogueFor(const Node& activation, std::int64_t cols) {
  if (activation.operation->name != "GELU")
    return Verdict::no(
        fmt::format("For {} \"{}\" cuBLASLt's gradient reads one bit per element, which forward does not keep. A "
                    "separate pass would save nothing.",
                    activation.operation->name, activation.id));
  if (isExactGelu(activation.attributes))
    return Verdict::no(fmt::format("cuBLASLt has the gradient of GELU's tanh form, but \"{}\" uses the error function.",
                                   activation.id));
  if (cols % kPreActivationColumns == 0) return Verdict::yes();
  return Verdict::no(fmt::format(
      "cuBLASLt's gradient of GELU reads the input of \"{}\" in rows of multiples of {} elements, not of {}.",
      activation.id, kPreActivationColumns, cols));
}

/// In another dtype than the weight's gradient the sums would need a separate pass, as they do without the fusion.
Verdict comesWithWeightGrad(const Node& linear, const Node& bias) {
  if (linear.needs.parameters.front() || !bias.needs.parameters.front()) return Verdict::yes();
  return Verdict::no(
      fmt::format("cuBLASLt sums the gradient of \"{}\" in the wgrad GEMM, but {} \"{}\" trains no weight.", bias.id,
                  linear.operation->name, linear.id));
}

Verdict supports(const KernelQuery& query) {
  const Node& activation = query.graph.node(query.members[kActivation]);
  const Node& linear = query.graph.node(query.members[kLinear]);
  if (const Verdict fits = fitsLibrary(query.graph, linear); !fits) return fits;
  if (const Verdict fits = haveDTypeOfProduct(query.graph, query.members); !fits) return fits;
  const std::int64_t cols = query.graph.value(activation.inputs.front()).spec.cols();
  if (const Verdict has = hasEpilogueFor(activation, cols); !has) return has;
  return query.members.size() > kBias ? comesWithWeightGrad(linear, query.graph.node(query.members[kBias]))
                                      : Verdict::yes();
}

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  const int last = static_cast<int>(request.step.nodes.size()) - 1;
  LinearBackwardOptions options{.members = {.linear = kLinear, .gradOutput = last, .gradInput = kActivation},
                                .geluInput = OperandKey{kActivation, OperandKind::Input, 0}};
  if (last == kBias) options.gradBias = OperandKey{kBias, OperandKind::GradParameter, 0};
  return compileLinearBackward(request, options);
}

}  // namespace linear_backward_activation_parts
}  // namespace

KernelDef linear_backward_activation();

KernelDef linear_backward_activation() {
  using namespace linear_backward_activation_parts;
  return {.name = "linear_backward_activation", .phases = {Phase::Backward}, .supports = supports, .compile = compile};
}

}  // namespace fuseline::cuda::kernels
