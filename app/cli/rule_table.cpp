// Counts and sums of attempts, by rule.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/rule_table.h"

#include "app/cli/table.h"
#include "core/fusion/rule_text.h"
#include "core/support/output_schema.h"
#include "core/support/text.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cli {

namespace {
namespace rule_table_parts {

/// Indentation of text after a bullet.
constexpr std::size_t kHang = 4;

std::string countText(std::int64_t count) { return count == 0 ? "" : fmt::format("{}", count); }

std::int64_t numMisses(const RuleUse& use, Outcome outcome) {
  return std::ranges::count(use.misses, outcome, &Attempt::outcome);
}

std::string_view standingName(RuleStanding standing) {
  switch (standing) {
    case RuleStanding::Tried: return "tried";
    case RuleStanding::OutsideBook: return "not in rule set";
    case RuleStanding::OutsidePass: return "not in pass";
  }
  return "";
}

std::string stateText(const RuleUse& use) {
  if (use.standing == RuleStanding::OutsideBook) return "not in this rule set";
  if (use.standing == RuleStanding::OutsidePass) return "not in this pass";
  if (numMisses(use, Outcome::OnRequest) > 0) return "on request";
  const std::int64_t numOff = numMisses(use, Outcome::SwitchedOff);
  return numOff == 0 ? "" : fmt::format("off at {} place{}", numOff, numOff == 1 ? "" : "s");
}

std::string timeText(const Saving& saving, const DeviceModel& device) {
  const std::optional<double> ns = predictedNs(saving, device);
  return ns && saving != Saving{} ? formatDuration(*ns) : "";
}

std::vector<Cell> savingCells(const Saving& saving, const DeviceModel& device) {
  return {saving.bytes == 0 ? "" : formatBytes(saving.bytes), countText(saving.launches), timeText(saving, device)};
}

std::vector<Cell> rowOf(std::string name, std::int64_t hits, std::int64_t misses, const Saving& saving,
                        const DeviceModel& device, std::string state) {
  std::vector<Cell> cells = {std::move(name), countText(hits), countText(misses)};
  std::ranges::move(savingCells(saving, device), std::back_inserter(cells));
  cells.emplace_back(std::move(state));
  return cells;
}

std::string modelText(const DeviceModel& device) {
  const std::string least = "Predicted by a model of minimum memory traffic and launches, not measured. ";
  if (!device.isKnown()) return least + "For times add --measured RUN.fuserun, or --bandwidth and --launch.";
  return least + fmt::format("Times assume {:.1f} GB/s and {:.1f} us per launch: {}.",
                             device.bandwidthBytesPerSecond / 1e9, device.launchSeconds * 1e6, device.source);
}

std::string opsText(const Graph& graph, const Attempt& attempt) {
  std::vector<std::string> ids;
  for (const NodeId id : attempt.nodes) ids.push_back(graph.node(id).id);
  return fmt::format("{}", fmt::join(ids, " + "));
}

std::string missText(const Graph& graph, const Attempt& miss) {
  return wrappedLines(fmt::format("  · {}: {}", opsText(graph, miss), shellExplanation(graph, miss)), kHang) + "\n";
}

std::string hitText(const Graph& graph, const Attempt& hit, const DeviceModel& device, bool hasColour) {
  std::string text = fmt::format("  {} {}", styled("✓", Style::Good, hasColour), opsText(graph, hit));
  if (hit.saving && *hit.saving != Saving{}) text += ": " + gainText(*hit.saving, hit.measured.get(), device);
  return text + "\n";
}

}  // namespace rule_table_parts
}  // namespace

std::string ruleUseTable(const std::vector<RuleUse>& uses, const DeviceModel& device, bool hasColour) {
  using namespace rule_table_parts;
  Table table({{"rule", Align::Left},
               {"applied"},
               {"not applied"},
               {"saves"},
               {"launches"},
               {"time (model)"},
               {"", Align::Left}});
  std::string pass;
  std::int64_t allHits = 0;
  std::int64_t allMisses = 0;
  for (const RuleUse& use : uses) {
    const auto hits = static_cast<std::int64_t>(use.hits.size());
    const auto misses = static_cast<std::int64_t>(use.misses.size());
    if (const std::string own = listName(use.rule->pass); own != pass) table.addHeading(pass = own);
    table.addRow(rowOf("  " + use.rule->name, hits, misses, use.saved(), device, stateText(use)));
    allHits += hits;
    allMisses += misses;
  }
  table.addRule();
  table.addRow(rowOf("all", allHits, allMisses, savedBy(uses), device, ""));
  return table.toString(hasColour) + wrappedLines(modelText(device), 0) + "\n";
}

std::string ruleUseText(const RuleUse& use, const Graph& graph, const DeviceModel& device, bool hasColour) {
  using namespace rule_table_parts;
  const auto counted = [](std::size_t count, const char* one, const char* several) {
    return fmt::format("{} {}", count, count == 1 ? one : several);
  };
  std::string text =
      fmt::format("\n{}, {}", counted(use.hits.size(), "place where it applies", "places where it applies"),
                  counted(use.misses.size(), "where it does not apply", "where it does not apply"));
  if (const std::string state = stateText(use); !state.empty()) text += ", " + state;
  if (const Saving saved = use.saved(); saved != Saving{})
    text += fmt::format("; predicted to save {} together", toString(saved, device));
  text += "\n";
  for (const Attempt* hit : use.hits) text += hitText(graph, *hit, device, hasColour);
  for (const Attempt* miss : use.misses) text += missText(graph, *miss);
  return text + wrappedLines(modelText(device), 0) + "\n";
}

Json useJson(const RuleUse& use, const DeviceModel& device) {
  using namespace rule_table_parts;
  const Saving saved = use.saved();
  const std::optional<double> ns = predictedNs(saved, device);
  return {{"state", standingName(use.standing)},
          {"applied", use.hits.size()},
          {"notApplied", use.misses.size()},
          {"switchedOff", numMisses(use, Outcome::SwitchedOff)},
          {"bytesSaved", saved.bytes},
          {"launchesSaved", saved.launches},
          {"predictedNs", ns ? Json(*ns) : Json()}};
}

Json modelJson(const DeviceModel& device) {
  if (!device.isKnown()) return nullptr;
  return {{"bandwidthGBps", device.bandwidthBytesPerSecond / 1e9},
          {"launchUs", device.launchSeconds * 1e6},
          {"source", device.source}};
}

/// Results of a rule in the given pipeline.
Json useSchema() {
  return schema::object(
      {{"state", schema::choice({"tried", "not in rule set", "not in pass"})},
       {"applied", schema::integer("Places where the rule is applied.")},
       {"notApplied", schema::integer("Places where the rule was tried but not applied.")},
       {"switchedOff", schema::integer("Places at which the rule is switched off.")},
       {"bytesSaved", schema::integer("Minimum memory traffic that the rule saves in the pipeline.")},
       {"launchesSaved", schema::integer("Launches that the rule saves in the pipeline.")},
       {"predictedNs", schema::orNull(schema::number("Predicted time saved; null: there is no device model."))}});
}

Json modelSchema() {
  return schema::object({{"bandwidthGBps", schema::number("Memory bandwidth.")},
                         {"launchUs", schema::number("Time of one launch.")},
                         {"source", schema::text("Source of both figures.")}});
}

}  // namespace fuseline::cli
