// Fields that several recipes have.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/recipes/shared_fields.h"

#include <algorithm>
#include <iterator>

namespace fuseline::recipes {

AttributeSpec flag(const char* name, bool value, const char* help) {
  return {.name = name, .type = AttributeType::Boolean, .defaultValue = value, .help = help};
}

AttributeSpec choice(const char* name, const char* value, std::vector<std::string> choices, const char* help) {
  return {.name = name,
          .type = AttributeType::Text,
          .defaultValue = std::string(value),
          .choices = std::move(choices),
          .help = help};
}

AttributeSpec formatField(const char* value) {
  return choice("fp8_format", value, {"HYBRID", "E4M3"},
                "HYBRID: E4M3 forward, E5M2 backward (larger range for gradients). E4M3: both.");
}

ElementFormat formatOf(const Attributes& fields, TensorType role) {
  const bool isHybrid = fields.text("fp8_format") == "HYBRID";
  return isHybrid && role == TensorType::GradOutput ? ElementFormat::E5M2 : ElementFormat::E4M3;
}

AttributeSpec backwardOverride() {
  return choice("backward_override", "none", {"none", "high_precision", "dequantized"},
                "Operands of the backward GEMMs: those of the recipe, the unquantized operands, or forward's operands "
                "dequantized. With unquantized or dequantized operands, the backward GEMMs run in high precision.");
}

AttributeSpec quantizedModelInit() {
  return flag(kQuantizedModelInit, false,
              "Store weights as quantized tensors only, quantized once from their initial values, as in "
              "TransformerEngine's context manager of the same name.");
}

bool isQuantized(const Attributes& fields, OperandRole role) {
  return role.gemm == GemmRole::Fprop || fields.text("backward_override") == "none";
}

std::vector<AttributeSpec> attentionFlags() {
  return {
      flag("fp8_dpa", false, "Multiply FP8 queries, keys and values in dot-product attention; they share one scale."),
      flag("fp8_mha", false, "FP8 between attention and its projections; ignored by Fuseline.")};
}

std::vector<AttributeSpec> splitAccumulators(bool forward) {
  return {flag("split_accumulator_fprop", forward,
               "Use split accumulators for fprop: Hopper adds partial sums in full float32."),
          flag("split_accumulator_dgrad", true, "Use split accumulators for dgrad."),
          flag("split_accumulator_wgrad", true, "Use split accumulators for wgrad.")};
}

namespace {

AttributeSpec amaxEpsilon(const char* name, const char* help) {
  return {
      .name = name, .type = AttributeType::Real, .defaultValue = 0.0, .minimum = 0.0, .maximum = 1e30, .help = help};
}

}  // namespace

std::vector<AttributeSpec> amaxEpsilons() {
  return {amaxEpsilon("amax_epsilon_input", "Minimum amax of an input."),
          amaxEpsilon("amax_epsilon_weight", "Minimum amax of a weight."),
          amaxEpsilon("amax_epsilon_grad_output", "Minimum amax of a gradient.")};
}

ScaleOptions scaleOptionsOf(const Attributes& fields, TensorType role) {
  const std::string name = "amax_epsilon_" + std::string(roleName(role));
  return {.epsilon = static_cast<float>(fields.real(name)), .isPowerOfTwo = fields.boolean("use_power_2_scales")};
}

std::vector<AttributeSpec> joined(std::vector<std::vector<AttributeSpec>> lists) {
  std::vector<AttributeSpec> all;
  for (std::vector<AttributeSpec>& list : lists) std::ranges::move(list, std::back_inserter(all));
  return all;
}

}  // namespace fuseline::recipes
