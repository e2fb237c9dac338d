// FP8 with a float32 scale for every 128 elements, or every 128 x 128 of a weight.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/recipes/shared_fields.h"

#include <fmt/format.h>

namespace fuseline::recipes {

namespace {
namespace float8_block_scaling_parts {

AttributeSpec blockDim(const char* name, std::int64_t value, const char* help) {
  return {
      .name = name, .type = AttributeType::Integer, .defaultValue = value, .minimum = 1, .maximum = 2, .help = help};
}

const char* blockDimName(TensorType role) {
  if (role == TensorType::Input) return "x_block_scaling_dim";
  return role == TensorType::Weight ? "w_block_scaling_dim" : "grad_block_scaling_dim";
}

bool isSquare(const Attributes& fields, TensorType role) { return fields.integer(blockDimName(role)) == 2; }

Verdict checkBlocks(const Attributes& fields) {
  constexpr std::pair<TensorType, TensorType> kGemms[] = {{TensorType::Input, TensorType::Weight},
                                                          {TensorType::GradOutput, TensorType::Weight},
                                                          {TensorType::Input, TensorType::GradOutput}};
  for (const auto& [a, b] : kGemms)
    if (isSquare(fields, a) && isSquare(fields, b))
      return Verdict::no(
          fmt::format("{} and {} are both 2, but only one operand of a GEMM may have blocks of "
                      "128 x 128; set one of them to 1.",
                      blockDimName(a), blockDimName(b)));
  return Verdict::yes();
}

Verdict check(const Attributes& fields) {
  for (const AttributeSpec& accumulator : splitAccumulators(true))
    if (!fields.boolean(accumulator.name))
      return Verdict::no(fmt::format(
          "{} is false, but GEMMs with block scales always use split accumulators. Set it to true.", accumulator.name));
  for (const AttributeSpec& attention : attentionFlags())
    if (fields.boolean(attention.name))
      return Verdict::no(fmt::format("{} is true, but attention with block scales is not supported. Set it to false.",
                                     attention.name));
  return checkBlocks(fields);
}

/// GPUs after Hopper multiply such blocks as MXFP8 blocks (TransformerEngine does the same), with E8M0 scales.
Verdict checkDevice(const Attributes& fields, ComputeCapability device) {
  if (device < ComputeCapability{10, 0} || fields.boolean("use_power_2_scales")) return Verdict::yes();
  return Verdict::no(
      fmt::format("use_power_2_scales is false, but this device has {}, which multiplies only blocks whose scales are "
                  "powers of two; set it to true.",
                  toString(device)));
}

std::optional<QuantizerSpec> quantizer(const Attributes& fields, OperandRole role) {
  if (!isQuantized(fields, role)) return std::nullopt;
  return QuantizerSpec{.format = formatOf(fields, role.tensor),
                       .scaling = isSquare(fields, role.tensor) ? Scaling::Block128x128 : Scaling::Block1x128,
                       .scale = scaleOptionsOf(fields, role.tensor)};
}

}  // namespace float8_block_scaling_parts
}  // namespace

RecipeDefinition float8_block_scaling() {
  using namespace float8_block_scaling_parts;
  return {
      .name = "Float8BlockScaling",
      .summary = "FP8, one float32 scale per 128 elements, or per 128 x 128 block of a weight.",
      .source = "DeepSeek-AI 2024, arXiv:2412.19437; TransformerEngine Float8BlockScaling",
      .fields = joined({{formatField("E4M3"), flag("use_power_2_scales", true, "Round scales down to powers of two."),
                         blockDim("x_block_scaling_dim", 1, "Blocks of inputs: 1 for 1 x 128, 2 for 128 x 128."),
                         blockDim("w_block_scaling_dim", 2, "Blocks of weights: 1 for 1 x 128, 2 for 128 x 128."),
                         blockDim("grad_block_scaling_dim", 1, "Blocks of gradients: 1 for 1 x 128, 2 for 128 x 128.")},
                        amaxEpsilons(),
                        attentionFlags(),
                        splitAccumulators(true),
                        {backwardOverride(), quantizedModelInit()}}),
      .hardware = HardwareNeed{.minimum = {9, 0}},
      .check = check,
      .quantizer = quantizer,
      .checkDevice = checkDevice,
  };
}

}  // namespace fuseline::recipes
