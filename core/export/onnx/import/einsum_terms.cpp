// Source: github.com/onnx/onnx, docs/Operators.md, Einsum.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/einsum_terms.h"

#include <algorithm>
#include <map>

namespace fuseline {

namespace {

constexpr const char* kEllipsis = "...";

/// Each "..." as one character.
std::string withShortEllipses(std::string text) {
  for (std::size_t at = text.find(kEllipsis); at != std::string::npos; at = text.find(kEllipsis, at))
    text.replace(at, 3, ".");
  return text;
}

bool isTerm(const std::string& term) {
  const auto isAxis = [](char axis) {
    return axis == '.' || (axis >= 'a' && axis <= 'z') || (axis >= 'A' && axis <= 'Z');
  };
  return std::ranges::all_of(term, isAxis) && std::ranges::count(term, '.') <= 1;
}

std::string implicitOutput(const std::vector<std::string>& inputs) {
  std::map<char, int> counts;
  for (const std::string& input : inputs)
    for (const char axis : input) ++counts[axis];
  std::string output(counts.contains('.') ? 1 : 0, '.');
  for (const auto& [axis, count] : counts)
    if (axis != '.' && count == 1) output.push_back(axis);
  return output;
}

}  // namespace

std::optional<EinsumTerms> einsumTerms(std::string equation) {
  std::erase(equation, ' ');
  equation = withShortEllipses(std::move(equation));
  const std::size_t arrow = equation.find("->");
  EinsumTerms terms{.inputs = {""}, .output = {}};
  for (const char each : equation.substr(0, arrow))
    if (each == ',')
      terms.inputs.emplace_back();
    else
      terms.inputs.back().push_back(each);
  terms.output = arrow == std::string::npos ? implicitOutput(terms.inputs) : equation.substr(arrow + 2);
  return isTerm(terms.output) && std::ranges::all_of(terms.inputs, isTerm) ? std::optional(terms) : std::nullopt;
}

}  // namespace fuseline
