// Words for gates.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/gate_report.h"

#include "core/support/field_table.h"
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

static const FieldTable<GateReport>& fieldsOf(const GateReport*) {
  static const FieldTable<GateReport> table(
      {field("gate", &GateReport::gate, "Condition, as given on the command line."),
       field("isMet", &GateReport::isMet, "The metric is within its threshold."),
       field("sentence", &GateReport::sentence, "Result, with the figures.")});
  return table;
}

Json toJson(const std::vector<GateReport>& gates) { return fieldJson(gates); }

Json gatesSchema() { return fieldSchema<std::vector<GateReport>>(); }

Result<int> exitCodeOf(const std::vector<GateReport>& gates) {
  const auto first = std::ranges::find(gates, false, &GateReport::isMet);
  if (first == gates.end()) return 0;
  return Error{
      fmt::format("{} of {} conditions of --fail-if failed; the first is {}: {}.",
                  std::ranges::count(gates, false, &GateReport::isMet), gates.size(), first->gate, first->sentence),
      ErrorKind::ExpectationNotMet};
}

}  // namespace fuseline::cli
