// Quantizers tensor by tensor: a factory of TransformerEngine by its name, and overrides that name others.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/recipes/shared_fields.h"

#include <algorithm>
#include <array>

namespace fuseline::recipes {

namespace {

using Quantizer = std::optional<QuantizerSpec>;

/// As the recipe quantizes an operand by default.
Quantizer as(const char* recipe, OperandRole role) { return Recipe::create(*findRecipe(recipe))->quantizerFor(role); }

bool isOfForward(OperandRole role) { return role.gemm == GemmRole::Fprop; }

Quantizer plainNvfp4() { return QuantizerSpec{.format = ElementFormat::E2M1, .scaling = Scaling::Nv1x16}; }

/// Activations have a scale for each row.
Quantizer rowScaledNvfp4(OperandRole role) {
  if (!isOfForward(role)) return std::nullopt;
  const Scaling scaling = role.tensor == TensorType::Input ? Scaling::NvRow1x16 : Scaling::Nv1x16;
  return QuantizerSpec{.format = ElementFormat::E2M1, .scaling = scaling};
}

Quantizer ofRowwise(Quantizer quantizer, OperandRole role) {
  quantizer->isOfRowwise = directionOf(role) == Usage::Columnwise;
  return quantizer;
}

struct Factory {
  const char* name;
  Quantizer (*make)(OperandRole role);
  /// Backward reads forward's operands dequantized.
  bool isDequantized = false;
};

/// custom_recipes/quantizer_factories.py, then quantizer_factory_zoo.py.
constexpr std::array kFactories = {
    Factory{"high_precision_factory", [](OperandRole) -> Quantizer { return std::nullopt; }},
    Factory{"current_scaling_factory", [](OperandRole role) { return as("Float8CurrentScaling", role); }},
    Factory{"delayed_scaling_factory", [](OperandRole role) { return as("DelayedScaling", role); }},
    Factory{"float8_block_scaling_factory", [](OperandRole role) { return as("Float8BlockScaling", role); }},
    Factory{"mxfp8_factory", [](OperandRole role) { return as("MXFP8BlockScaling", role); }},
    Factory{"nvfp4_factory", [](OperandRole role) { return as("NVFP4BlockScaling", role); }},
    Factory{"high_precision_fwd_mxfp8_bwd_factory",
            [](OperandRole role) { return isOfForward(role) ? Quantizer() : as("MXFP8BlockScaling", role); }},
    Factory{"mxfp8_fwd_nvfp4_bwd_factory",
            [](OperandRole role) {
              if (isOfForward(role)) return as("MXFP8BlockScaling", role);
              return role.tensor == TensorType::Weight ? ofRowwise(plainNvfp4(), role) : as("NVFP4BlockScaling", role);
            }},
    Factory{"nvfp4_1d_weight_factory",
            [](OperandRole role) {
              return role.tensor == TensorType::Weight ? ofRowwise(plainNvfp4(), role) : as("NVFP4BlockScaling", role);
            }},
    Factory{"mxfp8_fwd_high_precision_bwd_factory",
            [](OperandRole role) { return isOfForward(role) ? as("MXFP8BlockScaling", role) : Quantizer(); }, true},
    // It is about grouped layers of te.pytorch: te.ops calls all of its layers linear.
    Factory{"nvfp4_row_scaled_fwd_mxfp8_bwd_factory", [](OperandRole role) { return as("MXFP8BlockScaling", role); }},
    Factory{"nvfp4_row_scaled_fwd_high_precision_bwd_factory", rowScaledNvfp4, true},
    // It is also about attention, which stays in high precision here.
    Factory{"nvfp4_linear_fp8_dpa_factory", [](OperandRole role) { return as("NVFP4BlockScaling", role); }},
};

const Factory& factoryOf(const Attributes& fields) {
  return *std::ranges::find_if(kFactories,
                               [&](const Factory& factory) { return fields.text("qfactory") == factory.name; });
}

std::vector<std::string> factoryNames() {
  std::vector<std::string> names;
  for (const Factory& factory : kFactories) names.emplace_back(factory.name);
  return names;
}

}  // namespace

RecipeDefinition custom_recipe() {
  return {
      .name = "CustomRecipe",
      .summary = "One quantizer per tensor and op; scalings can be mixed.",
      .source = "TransformerEngine CustomRecipe",
      .fields = joined({{choice("qfactory", kFactories.front().name, factoryNames(),
                                "TransformerEngine factory that selects quantizers; overrides take precedence.")},
                        attentionFlags(),
                        {backwardOverride(), quantizedModelInit()}}),
      .check = {},
      .quantizer = [](const Attributes& fields, OperandRole role) { return factoryOf(fields).make(role); },
      .isDequantized =
          [](const Attributes& fields, OperandRole role) {
            return factoryOf(fields).isDequantized && directionOf(role) == Usage::Columnwise;
          },
      .isCustom = true,
  };
}

}  // namespace fuseline::recipes
