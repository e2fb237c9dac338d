// Results of --fail-if gates, for people and for programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"
#include "core/support/result.h"

#include <string>
#include <vector>

namespace fuseline::cli {

struct GateReport {
  std::string gate;  // as given
  bool isMet = false;
  std::string sentence;  // with the figures
};

/// "FAILED median>+5%: ...", one line each.
std::string toString(const std::vector<GateReport>& gates);
Json toJson(const std::vector<GateReport>& gates);
Json gatesSchema();

/// Errors (ExpectationNotMet): how many failed, and the first of them.
Result<int> exitCodeOf(const std::vector<GateReport>& gates);

/// The reports of results such as GateResult.
template <class GateResult>
std::vector<GateReport> reportsOf(const std::vector<GateResult>& results) {
  std::vector<GateReport> reports;
  for (const GateResult& result : results)
    reports.push_back({.gate = result.gate.text, .isMet = result.isMet, .sentence = result.sentence});
  return reports;
}

}  // namespace fuseline::cli
