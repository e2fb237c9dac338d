// FP8 with one scale a tensor, from the amaxes of earlier steps. See core/quant/delayed_scaling.h for the state.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/recipes/shared_fields.h"

#include <fmt/format.h>

namespace fuseline::recipes {

namespace {
namespace delayed_scaling_parts {

std::vector<AttributeSpec> scaleFields() {
  return {formatField("HYBRID"),
          {.name = "margin",
           .type = AttributeType::Integer,
           .defaultValue = std::int64_t{0},
           .minimum = -100,
           .maximum = 100,
           .help = "Scales are this many powers of two below the maximum of the format."},
          {.name = "amax_history_len",
           .type = AttributeType::Integer,
           .defaultValue = std::int64_t{1024},
           .minimum = 1,
           .maximum = 1 << 20,
           .unit = "steps",
           .help = "Number of steps in the amax history. An infinite amax freezes the scale for as many steps."},
          choice("amax_compute_algo", "max", {"max", "most_recent"}, "Amax of the history that sets the scale."),
          flag("reduce_amax", true, "Use the largest amax of all ranks.")};
}

Verdict check(const Attributes& fields) {
  if (fields.text("backward_override") != "none")
    return Verdict::no(fmt::format(
        "backward_override is '{}', but must be 'none', because the backward GEMMs record the amax of gradients.",
        fields.text("backward_override")));
  return Verdict::yes();
}

std::optional<QuantizerSpec> quantizer(const Attributes& fields, OperandRole role) {
  return QuantizerSpec{.format = formatOf(fields, role.tensor), .scaling = Scaling::PerTensor, .isDelayed = true};
}

}  // namespace delayed_scaling_parts
}  // namespace

RecipeDefinition delayed_scaling() {
  using namespace delayed_scaling_parts;
  return {
      .name = "DelayedScaling",
      .summary = "FP8, one scale per tensor from the amax history; a single pass.",
      .source = "Micikevicius et al. 2022, arXiv:2209.05433; TransformerEngine DelayedScaling",
      .fields = joined(
          {scaleFields(), attentionFlags(), splitAccumulators(false), {backwardOverride(), quantizedModelInit()}}),
      .hardware = HardwareNeed{.minimum = {8, 9}},
      .hasState = true,
      .check = check,
      .quantizer = quantizer,
  };
}

}  // namespace fuseline::recipes
