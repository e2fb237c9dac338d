// FP8 with one scale a tensor, from its own amax.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/recipes/shared_fields.h"

namespace fuseline::recipes {

namespace {
namespace float8_current_scaling_parts {

std::optional<QuantizerSpec> quantizer(const Attributes& fields, OperandRole role) {
  if (!isQuantized(fields, role)) return std::nullopt;
  return QuantizerSpec{.format = formatOf(fields, role.tensor),
                       .scaling = Scaling::PerTensor,
                       .scale = scaleOptionsOf(fields, role.tensor)};
}

}  // namespace float8_current_scaling_parts
}  // namespace

RecipeDefinition float8_current_scaling() {
  using namespace float8_current_scaling_parts;
  return {
      .name = "Float8CurrentScaling",
      .summary = "FP8, one scale per tensor from its current amax; no state, two passes.",
      .source = "TransformerEngine Float8CurrentScaling",
      .fields =
          joined({{formatField("HYBRID"), flag("use_power_2_scales", false, "Round scales down to powers of two.")},
                  amaxEpsilons(),
                  attentionFlags(),
                  splitAccumulators(false),
                  {backwardOverride(), quantizedModelInit()}}),
      .hardware = HardwareNeed{.minimum = {8, 9}},
      .check = {},
      .quantizer = quantizer,
  };
}

}  // namespace fuseline::recipes
