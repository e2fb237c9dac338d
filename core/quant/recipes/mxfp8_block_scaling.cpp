// FP8 with a power of two for every 32 elements.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/recipes/shared_fields.h"

namespace fuseline::recipes {

namespace {
namespace mxfp8_block_scaling_parts {

std::optional<QuantizerSpec> quantizer(const Attributes& fields, OperandRole role) {
  if (!isQuantized(fields, role)) return std::nullopt;
  const bool isSquare = role.tensor == TensorType::Weight && fields.boolean("enable_2d_quantization");
  return QuantizerSpec{.format = formatOf(fields, role.tensor),
                       .scaling = isSquare ? Scaling::Mx32x32 : Scaling::Mx1x32};
}

}  // namespace mxfp8_block_scaling_parts
}  // namespace

RecipeDefinition mxfp8_block_scaling() {
  using namespace mxfp8_block_scaling_parts;
  return {
      .name = "MXFP8BlockScaling",
      .summary = "FP8, one power-of-two scale per 32 elements.",
      .source = "OCP Microscaling Formats v1.0; TransformerEngine MXFP8BlockScaling",
      .fields =
          joined({{formatField("E4M3"),
                   flag("enable_2d_quantization", false,
                        "Weights share a scale per 32 x 32 block, so that forward and backward use the same values.")},
                  attentionFlags(),
                  {backwardOverride(), quantizedModelInit()}}),
      // On 12.x some versions of cuBLASLt support it in one layout only: the library decides which GEMMs a device runs.
      .hardware = HardwareNeed{.minimum = {10, 0}},
      .check = {},
      .quantizer = quantizer,
  };
}

}  // namespace fuseline::recipes
