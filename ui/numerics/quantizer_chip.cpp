// Finds the quantizers at the end of a wire.
// SPDX-License-Identifier: Apache-2.0
#include "ui/numerics/quantizer_chip.h"

#include "core/quant/apply_recipe.h"
#include "core/quant/attention_quantizers.h"
#include "ui/theme/format.h"

#include <span>

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
std::span<const ValueId> quantizedInputs(const Node& node) {
  return std::span(node.inputs).first(isQuantizedAttention(node) ? 3 : 1);
}

}  // namespace

QuantizerChips::QuantizerChips(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (!node.quantizers.input.any()) continue;
    for (const ValueId input : quantizedInputs(node)) addReader(graph.value(input), node);
  }
}

/// An op's parts are named after it: "layer1.fc1.linear" is a part of "layer1" and of "layer1.fc1".
void QuantizerChips::addReader(const Value& value, const Node& node) {
  const std::string_view id = node.id;
  m_readers.try_emplace({&value, node.owner}, &node);
  m_readers.try_emplace({&value, id}, &node);
  for (std::size_t dot = id.find('.'); dot != std::string_view::npos; dot = id.find('.', dot + 1))
    m_readers.try_emplace({&value, id.substr(0, dot)}, &node);
}

QuantizerChip QuantizerChips::at(const Value& value, const Link& link) const {
  const auto reader = m_readers.find({&value, link.to.node});
  if (reader == m_readers.end()) return {};
  const TensorQuantizers& input = reader->second->quantizers.input;
  return {toQt(formatName((input.rowwise ? input.rowwise : input.columnwise)->format)), tipFor(*reader->second)};
}

}  // namespace fuseline::ui
