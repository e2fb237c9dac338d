// Tries the widths of the inputs in an op's attributes.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/attribute_repairs.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Values an integer attribute could take from the op's inputs: their widths.
std::vector<Json> candidates(const AttributeSpec& spec, const std::vector<TensorSpec>& inputs) {
  std::vector<Json> found;
  for (const TensorSpec& input : inputs) {
    Json value = input.cols();
    if (spec.type == AttributeType::IntegerList) value = Json::array({value});
    const auto width = static_cast<double>(input.cols());
    const bool isFit = (spec.type == AttributeType::Integer || spec.type == AttributeType::IntegerList) &&
                       width >= spec.minimum.value_or(width) && width <= spec.maximum.value_or(width);
    if (isFit && std::ranges::find(found, value) == found.end()) found.push_back(value);
  }
  return found;
}

}  // namespace

/// Until they are set, other missing attributes are tried with the width of the input. false: one cannot be tried.
bool AttributeRepairs::fillOthers(std::size_t index, const AttributeSpec& spec, const TensorSpec& input,
                                  Attributes& attributes) const {
  for (const AttributeSpec* other : m_section.attributes(index).missing) {
    if (other == &spec) continue;
    if (other->type == AttributeType::Integer)
      attributes.set(other->name, input.cols());
    else if (other->type == AttributeType::IntegerList)
      attributes.set(other->name, std::vector<std::int64_t>{input.cols()});
    else if (other->type == AttributeType::Real)
      attributes.set(other->name, 1.0);
    else
      return false;
  }
  return true;
}

bool AttributeRepairs::wouldFit(std::size_t index, const AttributeSpec& spec, const Json& value,
                                const std::vector<TensorSpec>& inputs) const {
  Attributes attributes = m_section.attributes(index).values;
  if (value.is_array())
    attributes.set(spec.name, value.get<std::vector<std::int64_t>>());
  else
    attributes.set(spec.name, value.get<std::int64_t>());
  if (!fillOthers(index, spec, inputs.front(), attributes)) return false;
  InferenceProblem ignored;
  const Result<std::vector<OpPart>> parts = m_parts.expandWith(index, attributes);
  return parts && inferChain(*parts, inputs, ignored).hasValue();
}

void AttributeRepairs::reportMissing(std::size_t index, const AttributeSpec& spec,
                                     const std::optional<std::vector<TensorSpec>>& inputs) {
  const DocumentOp& written = m_section.op(index);
  const std::string actual = inputs ? fmt::format(" It reads {}.", toString(inputs->front())) : "";
  Diagnostic& diagnostic = m_sink.error("missing-attribute", {opPointer(index) + "/attributes", written.id, {}},
                                        fmt::format("{}: {} needs the attribute {} ({}).{}", written.id,
                                                    written.operation, spec.name, typeName(spec.type), actual));
  if (!inputs || m_section.attributes(index).hasFailed) return;
  for (const Json& value : candidates(spec, *inputs))
    if (wouldFit(index, spec, value, *inputs)) diagnostic.repairs.push_back(setAttribute(written.id, spec.name, value));
}

/// The op's own inference refuses. Trying the widths of the inputs in its attributes finds repairs for any op.
void AttributeRepairs::reportMismatch(std::size_t index, const std::vector<TensorSpec>& inputs,
                                      const InferenceProblem& problem) {
  const DocumentOp& written = m_section.op(index);
  std::vector<Repair> repairs;
  std::string pointer = opPointer(index);
  for (const AttributeSpec& spec : m_section.type(index)->attributes) {
    for (const Json& value : candidates(spec, inputs)) {
      if (!wouldFit(index, spec, value, inputs)) continue;
      repairs.push_back(setAttribute(written.id, spec.name, value));
      if (written.attributes.contains(spec.name)) pointer = attributePointer(index, spec.name);
    }
  }
  const bool isOneInput = inputs.size() == 1;
  m_sink
      .error(problem.code,
             {std::move(pointer), written.id, isOneInput ? m_section.type(index)->inputs.front().name : ""},
             fmt::format("{}: {}", written.id, problem.message))
      .repairs = std::move(repairs);
}

}  // namespace fuseline
