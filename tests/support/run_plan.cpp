// Runs a graph under a report and compares two results by name.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/run_plan.h"

#include "core/numerics/random.h"
#include "core/plan/plan.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"

#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace fuseline::testing {

namespace {

template <class T>
T valueOf(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

double rms(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return values.empty() ? 0.0 : std::sqrt(sum / static_cast<double>(values.size()));
}

std::string worstElement(const std::string& name, const std::vector<double>& actual,
                         const std::vector<double>& expected, double rtol, double atol) {
  if (actual.size() != expected.size())
    return fmt::format("{}: {} elements instead of {}", name, actual.size(), expected.size());
  const double scale = rms(expected);
  double worst = 1.0;
  std::string text;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double share = std::abs(actual[i] - expected[i]) / (rtol * (std::abs(expected[i]) + scale) + atol);
    if (share <= worst) continue;  // NaN compares false and is reported below
    worst = share;
    text = fmt::format("{}[{}]: {} instead of {} ({:.1f} times the tolerance)", name, i, actual[i], expected[i], share);
  }
  for (std::size_t i = 0; i < actual.size(); ++i)
    if (std::isnan(actual[i]) != std::isnan(expected[i]))
      return fmt::format("{}[{}]: {} instead of {}", name, i, actual[i], expected[i]);
  return text;
}

std::string missingResult(const RunResults& actual, const RunResults& expected) {
  for (const auto& [name, values] : expected)
    if (!actual.contains(name)) return name + " is missing";
  return "";
}

}  // namespace

RunResults runPlan(const Graph& graph, const FusionReport& report, std::shared_ptr<Backend> backend, std::uint64_t seed,
                   const NamedTensors& given) {
  return runPlan(graph, makePlan(graph, report), std::move(backend), seed, given);
}

RunResults runPlan(const Graph& graph, const Plan& plan, std::shared_ptr<Backend> backend, std::uint64_t seed,
                   const NamedTensors& given) {
  const NamedTensors bindings = valueOf(makeBindings(graph, seed, given));
  const auto executor = valueOf(Executor::create(std::move(backend), graph, plan, bindings));
  valueOf(executor->run());
  RunResults results;
  for (const PlanTensor& tensor : plan.tensors)
    if (isResult(tensor.role)) results[tensor.name] = valueOf(executor->read(tensor.name)).toDoubles();
  return results;
}

NamedTensors uniformData(const Graph& graph, double offset) {
  NamedTensors tensors = valueOf(makeBindings(graph, 1234));
  for (auto& [name, tensor] : tensors) {
    std::vector<double> values(static_cast<std::size_t>(tensor.spec.numElements()));
    RandomStream(1234, name).uniforms(0, values);
    for (double& value : values) value += offset;
    tensor = Tensor::fromDoubles(tensor.spec, values);
  }
  return tensors;
}

std::string firstDifference(const RunResults& actual, const RunResults& expected, double rtol, double atol) {
  if (std::string text = missingResult(actual, expected); !text.empty()) return text;
  for (const auto& [name, values] : expected)
    if (std::string text = worstElement(name, actual.at(name), values, rtol, atol); !text.empty()) return text;
  return actual.size() == expected.size() ? "" : "there are results that nobody expects";
}

std::string firstDifferenceInNorm(const RunResults& actual, const RunResults& expected, double rtol) {
  if (std::string text = firstNonFiniteDifference(actual, expected); !text.empty()) return text;
  for (const auto& [name, values] : expected) {
    const std::vector<double>& others = actual.at(name);
    double errors = 0.0;
    double squares = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) continue;
      errors += (others[i] - values[i]) * (others[i] - values[i]);
      squares += values[i] * values[i];
    }
    if (errors > rtol * rtol * squares)
      return fmt::format("{} is off by {:.3g} of its norm, allowed is {:.3g}", name, std::sqrt(errors / squares), rtol);
  }
  return "";
}

std::string firstNonFiniteDifference(const RunResults& actual, const RunResults& expected) {
  if (std::string text = missingResult(actual, expected); !text.empty()) return text;
  for (const auto& [name, values] : expected) {
    const std::vector<double>& others = actual.at(name);
    if (others.size() != values.size())
      return fmt::format("{}: {} elements instead of {}", name, others.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i]) && std::isfinite(others[i])) continue;
      if (std::isnan(values[i]) && std::isnan(others[i])) continue;
      if (values[i] != others[i]) return fmt::format("{}[{}]: {} instead of {}", name, i, others[i], values[i]);
    }
  }
  return "";
}

}  // namespace fuseline::testing
