// Follows from the recipe's quantizers of a linear op's input and gradient.
// Source: TransformerEngine's FusedAttention, backend FP8, under Float8CurrentScaling.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/attention_quantizers.h"

#include "core/ops/attention_form.h"
#include "core/tensor/scaling.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr OperandRole kInput{TensorType::Input, GemmRole::Fprop};
constexpr OperandRole kGradOutput{TensorType::GradOutput, GemmRole::Dgrad};

std::optional<QuantizerSpec> quantizerOf(const Recipe& recipe, OperandRole role, const Node& node) {
  return recipe.quantizerFor(role, [&](const std::string& place) { return node.isAt(place); });
}

/// Attributes that no FP8 attention of TransformerEngine supports.
Verdict hasFp8Kernel(const Node& attention) {
  constexpr std::int64_t kChannelMultiple = 16;
  const AttentionForm form = attentionForm(attention.attributes);
  const auto refusal = [](std::string_view what) {
    return Verdict::no(fmt::format("FP8 attention supports no {}", what));
  };
  if (form.format == QkvFormat::Thd) return refusal("qkv_format thd");
  if (form.bias != AttentionBias::None) return refusal("bias");
  if (form.maskSlot >= 0) return refusal("arbitrary mask");
  if (form.softcap > 0.0) return refusal("softcap");
  if (form.dropout > 0.0) return refusal("attention_dropout");
  for (const std::int64_t channels : {form.qkChannels, form.vChannels})
    if (channels % kChannelMultiple != 0)
      return Verdict::no(
          fmt::format("kv_channels is {}, but FP8 attention needs a multiple of {}", channels, kChannelMultiple));
  return Verdict::yes();
}

}  // namespace

bool isAttention(const Node& node) { return node.operation->name == "DotProductAttention"; }

bool requestsFp8Attention(const Recipe& recipe) {
  return recipe.definition().field("fp8_dpa") && recipe.fields().boolean("fp8_dpa");
}

Verdict fitsFp8Attention(const Node& attention, const Recipe& recipe) {
  if (const Verdict verdict = hasFp8Kernel(attention); !verdict) return verdict;
  const std::optional<QuantizerSpec> input = quantizerOf(recipe, kInput, attention);
  if (!recipe.definition().isCustom && input && traitsOf(input->scaling).scaleFormat == ScaleFormat::E8M0)
    return Verdict::no(
        "Fuseline has no MXFP8 attention; TransformerEngine's needs a GPU of compute capability 10.0 and cuDNN 9.21");
  if (recipe.definition().isCustom || !input || input->scaling != Scaling::PerTensor)
    return Verdict::no(
        fmt::format("{} does not quantize its inputs with one scale per tensor, as DelayedScaling and "
                    "Float8CurrentScaling do",
                    recipe.name()));
  return Verdict::yes();
}

LinearQuantizers attentionQuantizers(const Node& attention, const Recipe& recipe) {
  LinearQuantizers quantizers;
  if (!requestsFp8Attention(recipe) || !fitsFp8Attention(attention, recipe)) return quantizers;
  quantizers.input.rowwise = quantizerOf(recipe, kInput, attention);
  quantizers.gradOutput.rowwise = quantizerOf(recipe, kGradOutput, attention);
  quantizers.gradOutput.isDequantizedInBackward = quantizers.gradOutput.rowwise.has_value();
  const auto isAt = [&](const std::string& place) { return attention.isAt(place); };
  quantizers.input.isDequantizedInBackward =
      quantizers.gradOutput.rowwise || recipe.isDequantized({TensorType::Input, GemmRole::Wgrad}, isAt);
  return quantizers;
}

bool isQuantizedAttention(const Node& node) { return node.quantizers.input.any() && isAttention(node); }

Attributes computedAttributes(const Node& node) {
  Attributes attributes = node.attributes;
  if (!isQuantizedAttention(node)) return attributes;
  attributes.set(kProbabilityFormat, std::string(formatName(node.quantizers.input.rowwise->format)));
  if (const auto& gradient = node.quantizers.gradOutput.rowwise)
    attributes.set(kScoreGradientFormat, std::string(formatName(gradient->format)));
  return attributes;
}

}  // namespace fuseline
