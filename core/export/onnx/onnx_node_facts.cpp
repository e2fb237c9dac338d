// Access by number, so that rules read like the tables of the ONNX operators.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_node_facts.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

OnnxNodeFacts::OnnxNodeFacts(const ::onnx::NodeProto& node, OnnxFactSymbols& symbols, const Lookup& lookup)
    : m_node(node), m_symbols(symbols), m_outputs(static_cast<std::size_t>(node.output_size())) {
  for (const std::string& input : node.input()) m_inputs.push_back(input.empty() ? nullptr : lookup(input));
}

const OnnxFact& OnnxNodeFacts::input(std::size_t index) const {
  static const OnnxFact kNothing;
  return index < m_inputs.size() && m_inputs[index] ? *m_inputs[index] : kNothing;
}

std::optional<std::size_t> OnnxNodeFacts::rank(std::size_t index) const {
  return shape(index) ? std::optional(shape(index)->size()) : std::nullopt;
}

std::optional<OnnxArray> OnnxNodeFacts::array(std::size_t index) const {
  const OnnxFact& fact = input(index);
  if (!fact.values || !fact.shape || !areNumbers(*fact.shape)) return std::nullopt;
  OnnxArray array{.shape = {}, .elements = *fact.values};
  for (const OnnxExtent& extent : *fact.shape) array.shape.push_back(*extent.number());
  const bool isWhole = numElements(array.shape) == static_cast<std::int64_t>(array.elements.size());
  return isWhole ? std::optional(std::move(array)) : std::nullopt;
}

std::optional<OnnxExtents> OnnxNodeFacts::list(std::size_t index, std::string_view attribute) const {
  if (findAttribute(m_node, attribute)) {
    const std::vector<std::int64_t> values = integers(attribute);
    return OnnxExtents(values.begin(), values.end());
  }
  return has(index) ? input(index).values : std::nullopt;
}

std::optional<std::vector<std::int64_t>> OnnxNodeFacts::numbers(std::size_t index, std::string_view attribute) const {
  const std::optional<OnnxExtents> extents = list(index, attribute);
  if (!extents) return std::nullopt;
  std::vector<std::int64_t> values;
  for (const OnnxExtent& extent : *extents) {
    m_symbols.needNumber(extent);
    const std::optional<std::int64_t> number = extent.number();
    if (!number) return std::nullopt;
    values.push_back(*number);
  }
  return values;
}

std::int64_t OnnxNodeFacts::integer(std::string_view attribute, std::int64_t otherwise) const {
  return integerOf(m_node, attribute, otherwise);
}

std::vector<std::int64_t> OnnxNodeFacts::integers(std::string_view attribute) const {
  const ::onnx::AttributeProto* const found = findAttribute(m_node, attribute);
  return found ? std::vector<std::int64_t>(found->ints().begin(), found->ints().end()) : std::vector<std::int64_t>();
}

void OnnxNodeFacts::setType(std::size_t output, std::int32_t elementType) {
  if (output < m_outputs.size() && elementType != 0) m_outputs[output].elementType = elementType;
}

/// An unknown extent gets a symbol.
void OnnxNodeFacts::setShape(std::size_t output, std::optional<OnnxExtents> shape) {
  if (output >= m_outputs.size()) return;
  for (std::size_t axis = 0; shape && axis < shape->size(); ++axis)
    if (OnnxExtent& extent = (*shape)[axis]; extent.isUnknown() || extent.number().value_or(0) < 0)
      extent = fresh(output, axis);
  m_outputs[output].shape = std::move(shape);
}

OnnxExtent OnnxNodeFacts::fresh(std::size_t output, std::size_t axis) {
  return m_symbols.fresh(fmt::format("{}:{}", m_node.output(static_cast<int>(output)), axis));
}

std::optional<std::size_t> axisOf(std::int64_t axis, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis < -size || axis >= size) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
}

}  // namespace fuseline
