// The detours of step_copies.cpp, norm_steps.cpp and quantized_result.cpp, told from the plan.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/copy_cost.h"

#include "core/runtime/quantize_steps.h"
#include "core/tensor/scaling.h"
#include "kernels/common/cached_activation_step.h"
#include "kernels/cuda/quantize/coded_copy.h"
#include "kernels/cuda/quantize/step_copies.h"

#include <algorithm>
#include <cstddef>

namespace fuseline::cuda {

namespace {

/// The amax of the tensor comes first, and takes a launch: the plan counts its bytes.
Saving quantizeCost(const Step& step) {
  const QuantizeWork& work = step.copies.front();
  if (work.isAmaxOnly()) return {};
  const QuantizeOperands operands(step, work);
  const Scaling scaling = scalingOf(work.quantizers);
  const bool needsAmax = scaling == Scaling::PerTensor || isNvfp4(scaling);
  return {.bytes = 0, .launches = needsAmax && operands.scale < 0 && operands.knownAmax < 0 ? 1 : 0};
}

bool isNorm(const Step& step) {
  return step.kernel.ends_with("Norm") || step.kernel == "L2Normalization" || step.kernel == "add_norm" ||
         step.kernel == "norm_backward_add";
}

/// Are the operands of the ops themselves BF16?
bool isNarrow(const Plan& plan, const Step& step) {
  return std::ranges::all_of(step.operands, [&](const StepOperand& operand) {
    const bool isCopied = operand.key.member >= static_cast<int>(step.nodes.size());
    return isCopied || operand.access == OperandAccess::Write || plan.spec(operand).dtype == DType::BF16;
  });
}

/// A cluster of blocks reads and quantizes the rows once, unless the device has found two passes to be faster.
bool isInOnePass(const Plan& plan, const Step& step, const ClusterLimits& clusters) {
  if (step.phase != Phase::Forward || step.copies.size() > device::QuantizedOutputs::kMaxPairs) return false;
  const QuantizeWork& first = step.copies.front();
  const Scaling scaling = scalingOf(first.quantizers);
  return !isNvfp4(scaling) &&
         normClusterOf(first.spec.cols(), isNarrow(plan, step), {copyKindOf(scaling), step.copies.size()}, clusters);
}

/// A norm has whole rows. Its columnwise values are transposed rowwise values where both have one scale; where columns
/// have scales, its input is read again in tiles.
Saving normCost(const Plan& plan, const Step& step, const ClusterLimits& clusters) {
  if (step.copies.front().isAmaxOnly() || isInOnePass(plan, step, clusters)) return {};
  Saving cost;
  for (const QuantizeWork& work : step.copies) {
    if (work.isAmaxOnly()) continue;
    const QuantizeOperands operands(step, work);
    TensorQuantizers wanted = work.quantizers;
    if (operands.rowwise < 0) wanted.rowwise.reset();
    if (operands.columnwise < 0) wanted.columnwise.reset();
    if (!areOfRows(wanted)) return {.bytes = work.spec.bytes(), .launches = 1};
    if (operands.columnwise < 0) continue;
    cost.bytes += plan.spec(step.operands[static_cast<std::size_t>(operands.rowwise)]).bytes();
    cost.launches += 1;
  }
  return cost;
}

bool isProduct(const Step& step) { return step.kernel == "BasicLinear" || step.kernel == "linear_epilogue"; }

/// Columnwise values are transposed rowwise ones; without them a launch writes the scale alone.
Saving productCost(const Plan& plan, const Step& step) {
  const QuantizeOperands operands(step, step.copies.front());
  if (operands.columnwise < 0) return {.bytes = 0, .launches = 1};
  const std::int64_t bytes = plan.spec(step.operands[static_cast<std::size_t>(operands.columnwise)]).bytes();
  return {.bytes = operands.rowwise < 0 ? 2 * bytes : bytes, .launches = 1};
}

std::int64_t bytesOf(const Plan& plan, const Step& step, const OperandKey& key) {
  const auto found = std::ranges::find(step.operands, key, &StepOperand::key);
  return found == step.operands.end() ? 0 : plan.spec(*found).bytes();
}

/// Forward reads an input that it keeps again when the amax is known; backward restores it in memory.
Saving cachedCost(const Plan& plan, const Step& step) {
  if (step.phase == Phase::Backward)
    return {.bytes = 2 * bytesOf(plan, step, {.kind = OperandKind::GradInput}), .launches = 1};
  if (bytesOf(plan, step, cached_activation::kCodes) == 0) return {};
  return {.bytes = bytesOf(plan, step, cached_activation::kInput), .launches = 1};
}

}  // namespace

Saving extraCostOf(const Plan& plan, const Step& step, const ClusterLimits& clusters) {
  if (step.kernel == "cached_activation") return cachedCost(plan, step);
  if (step.copies.empty()) return {};
  if (step.isQuantize()) return quantizeCost(step);
  if (isProduct(step)) return productCost(plan, step);
  return isNorm(step) ? normCost(plan, step, clusters) : Saving();
}

}  // namespace fuseline::cuda
