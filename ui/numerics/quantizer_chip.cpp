// Finds the quantizers at the end of a wire.
// SPDX-License-Identifier: Apache-2.0
#include "ui/numerics/quantizer_chip.h"

#include "core/quant/apply_recipe.h"
#include "core/quant/attention_quantizers.h"
#include "ui/theme/format.h"

#include <algorithm>

namespace fuseline::ui {

namespace {

QString formatText(const QuantizerSpec& quantizer) {
  return QStringLiteral("%1 · %2").arg(toQt(formatName(quantizer.format)), toQt(traitsOf(quantizer.scaling).name));
}

QString formatText(const std::optional<QuantizerSpec>& quantizer) {
  return quantizer ? formatText(*quantizer) : QStringLiteral("high precision");
}

QString tensorLine(const Node& node, TensorType type) {
  const TensorQuantizers& quantizers = quantizersOf(node, type);
  if (quantizers.rowwise == quantizers.columnwise || isQuantizedAttention(node))
    return QStringLiteral("%1: %2").arg(toQt(roleName(type)), formatText(quantizers.rowwise));
  return QStringLiteral("%1: %2 rowwise, %3 columnwise")
      .arg(toQt(roleName(type)), formatText(quantizers.rowwise), formatText(quantizers.columnwise));
}

QString tipFor(const Node& node) {
  const bool isPassedOn = node.operation->isView;
  const bool isOfAttention = isQuantizedAttention(node);
  const QString head = isOfAttention ? QStringLiteral("Queries, keys and values of %1:")
                       : isPassedOn  ? QStringLiteral("Output of %1:")
                                     : QStringLiteral("GEMM input of %1:");
  QStringList lines = {head.arg(toQt(node.id))};
  for (const TensorType type : {TensorType::Input, TensorType::Weight, TensorType::GradOutput})
    if ((!isPassedOn && !isOfAttention) || quantizersOf(node, type).any()) lines.append(tensorLine(node, type));
  return lines.join(u'\n');
}

/// The first input of a linear op; queries, keys and values of an FP8 attention.
bool isQuantizedInput(const Node& node, int slot) { return slot <= (isQuantizedAttention(node) ? 2 : 0); }

}  // namespace

QuantizerChip quantizerChip(const Graph& graph, const Value& value, const Link& link) {
  const auto reads = [&](const Use& use) {
    const Node& node = graph.node(use.node);
    return isQuantizedInput(node, use.slot) && node.isAt(link.to.node) && node.quantizers.input.any();
  };
  const auto use = std::ranges::find_if(value.uses, reads);
  if (use == value.uses.end()) return {};
  const Node& node = graph.node(use->node);
  const TensorQuantizers& input = node.quantizers.input;
  return {toQt(formatName((input.rowwise ? input.rowwise : input.columnwise)->format)), tipFor(node)};
}

}  // namespace fuseline::ui
