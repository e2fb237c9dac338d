// Holds the errors of a run against limits.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/numerics_gate.h"

#include "core/support/percent.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

Error parseError(std::string_view text, std::string_view problem) {
  return {fmt::format("--fail-if \"{}\": {} Expected a condition such as \"error>tolerance\" or \"float-error>2%\".",
                      text, problem),
          ErrorKind::Usage};
}

bool isWithin(const ErrorNumerics& error, const NumericsGate& gate) {
  return gate.percent ? error.isFinite && 100.0 * error.rmsRelative <= *gate.percent : error.isWithin();
}

/// The one that is furthest beyond the limit, or nearest to it.
const ErrorNumerics* worstOf(const std::vector<ErrorNumerics>& errors, const NumericsGate& gate) {
  const auto rank = [&](const ErrorNumerics& error) {
    return std::pair(!isWithin(error, gate), gate.percent ? error.rmsRelative : error.toleranceShare);
  };
  const auto found = std::ranges::max_element(errors, {}, rank);
  return found == errors.end() ? nullptr : &*found;
}

std::string sentenceOf(const ErrorNumerics& error, const NumericsGate& gate) {
  if (!error.isFinite) return fmt::format("{} has NaN, or infinity where a number is expected", error.name);
  if (gate.percent) return fmt::format("the largest is {:.3g} %, of {}", 100.0 * error.rmsRelative, error.name);
  return fmt::format("the largest is {:.3g} times its tolerance, of {}", error.toleranceShare, error.name);
}

}  // namespace

Result<NumericsGate> parseNumericsGate(std::string_view text) {
  const std::size_t sign = text.find('>');
  if (sign == std::string_view::npos) return parseError(text, "expected a name, > and a limit.");
  const std::string_view name = text.substr(0, sign);
  const std::string_view limit = text.substr(sign + 1);
  if (name != "error" && name != "float-error")
    return parseError(text, fmt::format("expected error or float-error, found '{}'.", name));
  const std::optional<double> percent = parsePercent(limit);
  if (limit != "tolerance" && !(percent && *percent >= 0.0))
    return parseError(text, fmt::format("expected tolerance, or a percentage such as 0.5%, found '{}'.", limit));
  return NumericsGate{.text = std::string(text), .isAgainstFloat = name == "float-error", .percent = percent};
}

NumericsGateResult check(const NumericsGate& gate, const NumericsReport& report) {
  const ErrorNumerics* const worst = worstOf(gate.isAgainstFloat ? report.errors : report.fusionErrors, gate);
  if (!worst) return {.gate = gate, .isMet = false, .sentence = "there are no results to compare"};
  return {.gate = gate, .isMet = isWithin(*worst, gate), .sentence = sentenceOf(*worst, gate)};
}

}  // namespace fuseline
