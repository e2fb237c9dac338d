// Lays out what ranks exchange, and which of them is the slowest.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/communication_table.h"

#include "app/cli/stat_cells.h"
#include "app/cli/table.h"
#include "app/cli/terminal.h"
#include "core/profile/comparison_text.h"
#include "core/support/text.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cli {

namespace {
namespace communication_table_parts {

double longestNs(const VariantRecord& variant) {
  double longest = 0.0;
  for (const StepRecord& step : variant.steps)
    if (step.exchanges()) longest = std::max(longest, step.exposedNs + step.hiddenNs);
  return longest;
}

/// Bytes of the whole tensor by time, and bytes on the wire by time, as NCCL's tests define them.
std::string bandwidthText(const StepRecord& step, int ranks) {
  if (step.transferNs <= 0.0) return {};
  const double bus = static_cast<double>(step.wireBytes) / step.transferNs;
  const double sentShare = (step.collective == "all-reduce" ? 2.0 : 1.0) * (ranks - 1) / ranks;
  return fmt::format("{}, {}", threeDigits(bus / sentShare), threeDigits(bus));
}

std::string tableOf(const VariantRecord& variant, int ranks, bool hasColour) {
  const ColumnUnit unit = timeUnitFor(longestNs(variant));
  Table table({{variant.name, Align::Left},
               {"collective", Align::Left},
               {"sent"},
               {fmt::format("exposed {}", unit.name)},
               {fmt::format("hidden {}", unit.name)},
               {fmt::format("transfer {}", unit.name)},
               {"algo, bus GB/s"},
               {"slowest"}});
  for (const StepRecord& step : variant.steps) {
    if (!step.exchanges()) continue;
    table.addRow({fmt::format("{} ({})", step.name, step.phase), step.collective, formatBytes(step.wireBytes),
                  fmt::format("{:.3f}", step.exposedNs / unit.size), fmt::format("{:.3f}", step.hiddenNs / unit.size),
                  fmt::format("{:.3f}", step.transferNs / unit.size), bandwidthText(step, ranks),
                  slowestRankText(step.rankNs)});
  }
  return table.toString(hasColour);
}

std::string computeText(const VariantRecord& variant) {
  const std::vector<double> sums = computeNsByRank(variant);
  if (sums.empty()) return {};
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < sums.size(); ++rank)
    texts.push_back(fmt::format("rank {} {}", rank, formatDuration(sums[rank])));
  return fmt::format("Computing, {}: {}; slowest rank {}.\n", variant.name, fmt::join(texts, ", "),
                     slowestRankText(sums));
}

std::string rangeText(const TimeRange& range, const ColumnUnit& unit) {
  return fmt::format("{:.3f} to {:.3f}", range.lowNs / unit.size, range.highNs / unit.size);
}

/// "1.42 to 1.61": how much faster than the measured time of the first row of the variant.
std::string speedupText(const RankPrediction& prediction, const std::vector<RankPrediction>& all) {
  const auto first = std::ranges::find(all, prediction.variant, &RankPrediction::variant);
  if (first->ranks == prediction.ranks || prediction.total().lowNs <= 0.0) return {};
  return fmt::format("{:.2f} to {:.2f}", first->compute.lowNs / prediction.total().highNs,
                     first->compute.highNs / prediction.total().lowNs);
}

std::string userbuffersLines(const std::vector<RankPrediction>& predictions) {
  std::string text;
  for (const RankPrediction& each : predictions)
    if (const std::string sentence = userbuffersText(each.overlap); !sentence.empty())
      text += wrappedLines(fmt::format("{} ranks, {}: {}\n", each.ranks, each.variant, sentence), 0);
  return text;
}

}  // namespace communication_table_parts
}  // namespace

std::string predictionTable(const std::vector<RankPrediction>& predictions, const RankLink& link, bool hasColour) {
  using namespace communication_table_parts;
  double longestNs = 0.0;
  for (const RankPrediction& each : predictions) longestNs = std::max(longestNs, each.total().highNs);
  const ColumnUnit unit = timeUnitFor(longestNs);
  Table table({{"ranks"},
               {"plan", Align::Left},
               {fmt::format("computing {}", unit.name)},
               {"sent"},
               {fmt::format("communication {}", unit.name)},
               {fmt::format("hidden {}", unit.name)},
               {fmt::format("total {}", unit.name)},
               {"speed-up"}});
  for (const RankPrediction& each : predictions)
    table.addRow({fmt::format("{}", each.ranks), each.variant, fmt::format("{:.3f}", each.computeNs / unit.size),
                  formatBytes(each.wireBytes), rangeText(each.overlap.communication, unit),
                  rangeText(each.overlap.hidden, unit), rangeText(each.total(), unit), speedupText(each, predictions)});
  return table.toString(hasColour) + userbuffersLines(predictions) +
         wrappedLines(fmt::format("Predicted. Only compute time is measured: the steps of one rank alone on this "
                                  "device, with quartiles. Communication is modeled for the link {} ({}). Hidden: "
                                  "its part that overlaps with other steps of the plan (--no-overlap: none). Error "
                                  "of the model: 10 us below 1 MB, 30 % below 64 MB, 15 % above.",
                                  link.name, link.source),
                      0) +
         "\n";
}

std::string communicationTable(const RunRecord& record, bool hasColour) {
  using namespace communication_table_parts;
  if (record.settings.ranks == 1) return {};
  std::string text = fmt::format("\nRanks: {}; communicator: {}; sums: {}\n", record.fact("ranks"),
                                 record.fact("communicator"), record.fact("sums"));
  for (const VariantRecord& variant : record.variants) text += tableOf(variant, record.settings.ranks, hasColour);
  for (const VariantRecord& variant : record.variants) text += computeText(variant);
  return text +
         "Times of steps and runs are those of the slowest rank. Exposed: time in which that rank only communicated; "
         "hidden: the rest,\noverlapped with other steps (--no-overlap: none). Transfer: time on the rank that waited "
         "least for others. Sent: bytes per rank by\nthe ring algorithm; divided by the transfer time, this is the bus "
         "bandwidth. Memory is the sum over all ranks.\n";
}

}  // namespace fuseline::cli
