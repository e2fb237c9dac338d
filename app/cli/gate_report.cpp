// Words for gates.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/gate_report.h"

#include "core/support/visible_text.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cli {

std::string toString(const std::vector<GateReport>& gates) {
  std::string text;
  for (const GateReport& gate : gates)
    text += fmt::format("{} {}\n", gate.isMet ? "passed" : "FAILED",
                        visibleText(fmt::format("{}: {}.", gate.gate, gate.sentence)));
  return text;
}

Json toJson(const std::vector<GateReport>& gates) {
  Json list = Json::array();
  for (const GateReport& gate : gates)
    list.push_back({{"gate", gate.gate}, {"isMet", gate.isMet}, {"sentence", gate.sentence}});
  return list;
}

Result<int> exitCodeOf(const std::vector<GateReport>& gates) {
  const auto first = std::ranges::find(gates, false, &GateReport::isMet);
  if (first == gates.end()) return 0;
  return Error{
      fmt::format("{} of {} gates failed; the first is {}: {}.", std::ranges::count(gates, false, &GateReport::isMet),
                  gates.size(), first->gate, first->sentence),
      ErrorKind::ExpectationNotMet};
}

}  // namespace fuseline::cli
