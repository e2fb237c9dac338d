// Reads the optimizer's options, and lists what it updates.
// SPDX-License-Identifier: Apache-2.0
#include "core/graph/optimizer.h"

#include "core/graph/graph.h"
#include "core/support/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

struct AdamWField {
  const char* name;
  std::variant<double AdamW::*, std::int64_t AdamW::*, LearningRateSchedule AdamW::*> member;
  double most = std::numeric_limits<double>::infinity();  // excluded
};

constexpr std::array kFields = {AdamWField{"lr", &AdamW::lr},
                                AdamWField{"beta1", &AdamW::beta1, 1.0},
                                AdamWField{"beta2", &AdamW::beta2, 1.0},
                                AdamWField{"eps", &AdamW::eps},
                                AdamWField{"weight_decay", &AdamW::weightDecay},
                                AdamWField{"max_grad_norm", &AdamW::maxGradNorm},
                                AdamWField{"schedule", &AdamW::schedule},
                                AdamWField{"warmup_steps", &AdamW::warmupSteps},
                                AdamWField{"training_steps", &AdamW::trainingSteps}};

Error problem(std::string_view name, const std::string& value, const std::string& text) {
  return {fmt::format("--optimizer-set {}={}: {}.", name, cutText(value, 40), text), ErrorKind::Usage};
}

/// Reads a text into one member of the options.
class FieldReader {
 public:
  FieldReader(const AdamWField& field, const std::string& text, AdamW& options)
      : m_field(field), m_text(text), m_options(options) {}

  Result<void> operator()(double AdamW::*member) const {
    const bool isBounded = m_field.most < std::numeric_limits<double>::infinity();
    const std::string expected =
        isBounded ? fmt::format("a number from 0 to below {}", m_field.most) : "a number of 0 or more";
    return readNumber(member, m_field.most, expected);
  }

  Result<void> operator()(std::int64_t AdamW::*member) const {
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    return readNumber(member, kMost, "a whole number of 0 or more");
  }

  Result<void> operator()(LearningRateSchedule AdamW::*member) const {
    const auto schedule = enumNamed<LearningRateSchedule>(m_text);
    if (!schedule) return refusal(fmt::format("{}", fmt::join(enumTexts<LearningRateSchedule>(), ", ")));
    m_options.*member = *schedule;
    return {};
  }

 private:
  Error refusal(const std::string& expected) const { return problem(m_field.name, m_text, "expected " + expected); }

  template <class Number>
  Result<void> readNumber(Number AdamW::*member, Number most, const std::string& expected) const {
    Number number = -1;
    const char* const last = m_text.data() + m_text.size();
    const auto [end, failure] = std::from_chars(m_text.data(), last, number);
    if (failure != std::errc() || end != last || !(number >= 0 && number < most)) return refusal(expected);
    m_options.*member = number;
    return {};
  }

  const AdamWField& m_field;
  const std::string& m_text;
  AdamW& m_options;
};

Result<void> setField(const std::string& name, const std::string& value, AdamW& options) {
  const auto field = std::ranges::find_if(kFields, [&](const AdamWField& each) { return name == each.name; });
  if (field != kFields.end()) return std::visit(FieldReader(*field, value, options), field->member);
  std::vector<std::string> names;
  for (const AdamWField& each : kFields) names.emplace_back(each.name);
  return problem(name, value, fmt::format("valid names: {}", fmt::join(names, ", ")));
}

/// A schedule that falls needs its end; a constant one has none.
Result<void> checkSchedule(const AdamW& options) {
  const bool isConstant = options.schedule == LearningRateSchedule::Constant;
  if (isConstant && options.trainingSteps > 0)
    return problem("training_steps", fmt::format("{}", options.trainingSteps),
                   "a constant schedule has no end. Add --optimizer-set schedule=linear or schedule=cosine");
  if (isConstant || options.trainingSteps > options.warmupSteps) return {};
  return problem("schedule", nameOf(options.schedule),
                 fmt::format("training_steps is {}, but must be greater than warmup_steps, which is {}",
                             options.trainingSteps, options.warmupSteps));
}

}  // namespace

Result<AdamW> adamWFrom(const std::vector<std::pair<std::string, std::string>>& fields) {
  AdamW options;
  for (const auto& [name, value] : fields)
    if (Result<void> set = setField(name, value, options); !set) return set.error();
  if (Result<void> fits = checkSchedule(options); !fits) return fits.error();
  return options;
}

std::vector<std::string> TrainedParameter::stateNames() const {
  std::vector<std::string> names = {name + std::string(kExpAvg), name + std::string(kExpAvgSq)};
  if (hasMaster()) names.push_back(name + std::string(kMasterParam));
  return names;
}

TensorSpec optimizerStepSpec() { return {.dtype = DType::I64, .shape = {1}}; }

TensorSpec gradientSquaresSpec() { return {.dtype = DType::F32, .shape = {2}}; }

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
                         .isGradientAdded = node.gradientSink(slot) == GradientSink::Accumulate,
                         .isShard = node.hasShardedParameters,
                         .isFrozen = node.hasFrozenParameters});
    }
  }
  return trained;
}

}  // namespace fuseline
