// Replaces leading extents of inputs.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/symbol_edits.h"

#include "core/edit/edit_script.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

std::optional<std::int64_t> leadingNumber(const DocumentInput& input) {
  const bool hasNumber = input.shape.is_array() && !input.shape.empty() && input.shape.front().is_number_integer();
  return hasNumber ? std::optional(input.shape.front().get<std::int64_t>()) : std::nullopt;
}

std::string freeSymbol(const PipelineDocument& document) {
  std::string name = "M";
  for (int number = 2; document.symbols().contains(name); ++number) name = fmt::format("M{}", number);
  return name;
}

}  // namespace

std::optional<NewSymbol> leadingExtentAsSymbol(const PipelineDocument& document) {
  const auto& inputs = document.inputs();
  const auto first = std::ranges::find_if(inputs, [](const auto& input) { return leadingNumber(input).has_value(); });
  if (first == inputs.end()) return std::nullopt;
  const std::int64_t value = *leadingNumber(*first);
  const std::string name = freeSymbol(document);
  EditScript script(document);
  script.add(SetSymbol{.name = name, .value = value});
  for (const DocumentInput& input : inputs) {
    if (leadingNumber(input) != value) continue;
    DocumentInput changed = input;
    changed.shape.front() = name;
    script.add(ReplaceInput{.id = input.id, .input = changed});
  }
  return NewSymbol{std::move(script).finish(fmt::format("Make {} the symbol {}", value, name)), name, value};
}

}  // namespace fuseline
