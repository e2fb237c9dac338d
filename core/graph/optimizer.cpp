// Reads the optimizer's options, and lists what it updates.
// SPDX-License-Identifier: Apache-2.0
#include "core/graph/optimizer.h"

#include "core/graph/graph.h"
#include "core/support/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

struct AdamWField {
  const char* name;
  double AdamW::*member;
  double most;  // excluded
};

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr std::array kFields = {AdamWField{"lr", &AdamW::lr, kUnbounded}, AdamWField{"beta1", &AdamW::beta1, 1.0},
                                AdamWField{"beta2", &AdamW::beta2, 1.0}, AdamWField{"eps", &AdamW::eps, kUnbounded},
                                AdamWField{"weight_decay", &AdamW::weightDecay, kUnbounded}};

std::string rangeText(const AdamWField& field) {
  return field.most == kUnbounded ? "a number of 0 or more" : fmt::format("a number from 0 to below {}", field.most);
}

Error problem(const std::string& name, const std::string& value, const std::string& text) {
  return {fmt::format("--optimizer-set {}={}: {}.", name, cutText(value, 40), text), ErrorKind::Usage};
}

Result<void> setField(const std::string& name, const std::string& value, AdamW& options) {
  const auto field = std::ranges::find(kFields, name, [](const AdamWField& each) { return std::string(each.name); });
  if (field == kFields.end()) {
    std::vector<std::string> names;
    for (const AdamWField& each : kFields) names.emplace_back(each.name);
    return problem(name, value, fmt::format("valid names: {}", fmt::join(names, ", ")));
  }
  double number = -1.0;
  const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (failure != std::errc() || end != value.data() + value.size() || !(number >= 0.0 && number < field->most))
    return problem(name, value, "expected " + rangeText(*field));
  options.*field->member = number;
  return {};
}

}  // namespace

Result<AdamW> adamWFrom(const std::vector<std::pair<std::string, std::string>>& fields) {
  AdamW options;
  for (const auto& [name, value] : fields)
    if (Result<void> set = setField(name, value, options); !set) return set.error();
  return options;
}

std::vector<std::string> TrainedParameter::stateNames() const {
  std::vector<std::string> names = {name + std::string(kExpAvg), name + std::string(kExpAvgSq)};
  if (hasMaster()) names.push_back(name + std::string(kMasterParam));
  return names;
}

TensorSpec optimizerStepSpec() { return {.dtype = DType::I64, .shape = {1}}; }

std::vector<TrainedParameter> trainedParameters(const Graph& graph) {
  std::vector<TrainedParameter> trained;
  if (!graph.optimizer()) return trained;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot) {
      const auto index = static_cast<std::size_t>(slot);
      if (!node.needs.parameters[index]) continue;
      trained.push_back({.node = id,
                         .slot = slot,
                         .name = node.parameterName(slot),
                         .gradient = node.parameterGradientName(slot),
                         .spec = node.parameters[index],
                         .gradientSpec = node.parameterGradients[index],
                         .isGradientAdded = node.gradientSink(slot) == GradientSink::Accumulate});
    }
  }
  return trained;
}

}  // namespace fuseline
