// Reads widths from a trial lowering.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/filling.h"

#include "core/lowering/document_operation.h"
#include "core/lowering/lowering.h"

#include <algorithm>
#include <set>
#include <utility>

namespace fuseline {

namespace {

/// The name of the only symbol with this value; otherwise the number.
Json symbolOrNumber(const PipelineDocument& document, std::int64_t value) {
  std::string name;
  for (const auto& [symbol, definition] : document.symbols().items()) {
    if (!definition.is_number_integer() || definition.get<std::int64_t>() != value) continue;
    if (!name.empty()) return value;
    name = symbol;
  }
  return name.empty() ? Json(value) : Json(name);
}

bool hasGap(const PipelineDocument& document, const DocumentOp& op) {
  const OperationPointer operation = operationOf(document, op);
  return operation && std::ranges::any_of(operation->attributes, [&](const AttributeSpec& spec) {
           return spec.isRequired() && !op.attributes.contains(spec.name);
         });
}

std::set<std::string> gapsFrom(const PipelineDocument& document, const std::string& start) {
  const std::set<std::string> nodes = reachable(document, start, FlowDirection::Downstream);
  std::set<std::string> gaps;
  for (const DocumentOp& op : document.ops())
    if (nodes.contains(op.id) && hasGap(document, op)) gaps.insert(op.id);
  return gaps;
}

/// false: the tensor at its main input is not known.
bool fillOp(EditScript& script, const Graph& graph, const std::string& id) {
  const DocumentOp op = *script.document().findOp(id);
  const OperationPointer operation = operationOf(script.document(), op);
  if (operation->inputs.empty()) return false;
  const auto link = linkInto(script.document(), {id, operation->inputs.front().name});
  const Value* const source = link ? valueAt(graph, link->from) : nullptr;
  if (!source) return false;
  const Json guessed = guessAttributes(script.document(), *operation, source);
  for (const auto& [name, value] : guessed.items())
    if (!op.attributes.contains(name)) script.add(SetAttribute{.id = id, .name = name, .value = value});
  return true;
}

}  // namespace

Json guessAttributes(const PipelineDocument& document, const FusibleOperation& operation, const Value* source) {
  Json attributes = Json::object();
  if (!source) return attributes;
  const Json width = symbolOrNumber(document, source->spec.cols());
  for (const AttributeSpec& spec : operation.attributes) {
    if (!spec.isRequired()) continue;
    if (spec.type == AttributeType::Integer) attributes[spec.name] = width;
    if (spec.type == AttributeType::IntegerList)  // -1 where an extent may follow from the others
      attributes[spec.name] = spec.minimum.value_or(0.0) < 0.0 ? Json::array({-1, width}) : Json::array({width});
    if (spec.type == AttributeType::Real)  // such as a scale, or a probability
      attributes[spec.name] = spec.maximum ? *spec.maximum / 2 : 1.0;
  }
  return attributes;
}

void fillAttributes(EditScript& script, const std::string& start) {
  std::set<std::string> gaps = gapsFrom(script.document(), start);
  while (!gaps.empty()) {
    const LoweredGraph lowered = lower(script.document());
    if (std::erase_if(gaps, [&](const std::string& id) { return fillOp(script, lowered.graph, id); }) == 0) return;
  }
}

Edit connectEdit(const PipelineDocument& document, const Endpoint& from, const Endpoint& to) {
  EditScript script(document);
  addLink(script, from, to);
  fillAttributes(script, to.node);
  return std::move(script).finish("Connect " + toString(from) + " to " + toString(to));
}

}  // namespace fuseline
