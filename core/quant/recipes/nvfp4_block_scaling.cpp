// FP4 with an E4M3 scale for every 16 elements and a float32 scale a tensor.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/recipes/shared_fields.h"

#include <fmt/format.h>

namespace fuseline::recipes {

namespace {
namespace nvfp4_block_scaling_parts {

std::vector<AttributeSpec> refinements() {
  return {flag("row_scaled_activation", false, "One float32 scale per row of an activation, instead of per tensor."),
          choice("nvfp4_4over6", "none", {"none", "weights", "activations", "all"},
                 "Tensors whose blocks may map their amax to 4 or to 6."),
          choice("nvfp4_4over6_e4m3_use_256", "all", {"none", "weights", "activations", "all"},
                 "Tensors whose block scales reach at most 256 instead of 448 under nvfp4_4over6."),
          choice("nvfp4_4over6_err_mode", "MAE", {"MAE", "MSE"},
                 "Error measure by which each block chooses between 4 and 6 under nvfp4_4over6.")};
}

/// Does a field that names scopes, "weights", "activations", "all" or "none", name the tensor's? Gradients are of none.
bool isInScope(const Attributes& fields, const char* field, TensorType type) {
  const std::string& scope = fields.text(field);
  if (type == TensorType::GradOutput) return false;
  return scope == "all" || scope == (type == TensorType::Weight ? "weights" : "activations");
}

std::optional<FourOverSix> fourOverSixOf(const Attributes& fields, TensorType type) {
  if (!isInScope(fields, "nvfp4_4over6", type)) return std::nullopt;
  return FourOverSix{.scaleMax = isInScope(fields, "nvfp4_4over6_e4m3_use_256", type) ? 256 : 448,
                     .isBySquares = fields.text("nvfp4_4over6_err_mode") == "MSE"};
}

/// Options of TransformerEngine that exclude each other.
Verdict check(const Attributes& fields) {
  if (fields.boolean("row_scaled_activation") && !fields.boolean("disable_rht"))
    return Verdict::no(
        "row_scaled_activation is true, but activations use the random Hadamard transform, for which TransformerEngine "
        "raises. Set disable_rht to true.");
  if (fourOverSixOf(fields, TensorType::Input) && !fields.boolean("disable_rht"))
    return Verdict::no(
        fmt::format("nvfp4_4over6 is '{}', but activations use the random Hadamard transform, for which "
                    "TransformerEngine raises. Set disable_rht to true, or nvfp4_4over6 to 'weights'.",
                    fields.text("nvfp4_4over6")));
  return Verdict::yes();
}

Scaling scalingOf(const Attributes& fields, TensorType type) {
  if (type == TensorType::Input && fields.boolean("row_scaled_activation")) return Scaling::NvRow1x16;
  return type == TensorType::Weight && !fields.boolean("disable_2d_quantization") ? Scaling::Nv16x16 : Scaling::Nv1x16;
}

std::optional<QuantizerSpec> quantizer(const Attributes& fields, OperandRole role) {
  if (!isQuantized(fields, role)) return std::nullopt;
  const bool isWeight = role.tensor == TensorType::Weight;
  const bool isGrad = role.tensor == TensorType::GradOutput;
  return QuantizerSpec{.format = ElementFormat::E2M1,
                       .scaling = scalingOf(fields, role.tensor),
                       .transformsColumnwise = !isWeight && !fields.boolean("disable_rht"),
                       .roundsStochastically = isGrad && !fields.boolean("disable_stochastic_rounding"),
                       .fourOverSix = fourOverSixOf(fields, role.tensor)};
}

}  // namespace nvfp4_block_scaling_parts
}  // namespace

RecipeDefinition nvfp4_block_scaling() {
  using namespace nvfp4_block_scaling_parts;
  return {
      .name = "NVFP4BlockScaling",
      .summary = "FP4, one scale per 16 elements and one per tensor.",
      .source = "NVIDIA 2025, arXiv:2509.25149; TransformerEngine NVFP4BlockScaling",
      .fields =
          joined({{choice("fp4_format", "E2M1", {"E2M1"}, "Format of the elements."),
                   choice("fp8_format", "E4M3", {"E4M3"}, "Format of the block scales."),
                   flag("disable_rht", false, "Disable the random Hadamard transform of wgrad operands."),
                   flag("disable_stochastic_rounding", false, "Disable stochastic rounding of gradients."),
                   flag("disable_2d_quantization", false, "Disable 16 x 16 blocks for weights; use blocks of 16.")},
                  refinements(),
                  attentionFlags(),
                  {backwardOverride(), quantizedModelInit()}}),
      .hardware = HardwareNeed{.minimum = {10, 0}},
      .check = check,
      .quantizer = quantizer,
  };
}

}  // namespace fuseline::recipes
