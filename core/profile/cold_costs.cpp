// Sentences from the variants of a record.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/cold_costs.h"

#include "core/support/text.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// "120 ms unfused and 98 ms fused"; empty where one of them is not known.
std::string timesText(const RunRecord& record, double VariantRecord::*time, bool isNamed) {
  std::vector<std::string> times;
  for (const VariantRecord& variant : record.variants) {
    if (variant.*time <= 0.0) return {};
    times.push_back(formatDuration(variant.*time) + (isNamed ? " " + variant.name : ""));
  }
  return fmt::format("{}", fmt::join(times, " and "));
}

}  // namespace

std::string firstRunText(const RunRecord& record) {
  const std::string preparation = timesText(record, &VariantRecord::preparationNs, true);
  if (preparation.empty()) return {};
  const std::string first = timesText(record, &VariantRecord::firstRunNs, false);
  return fmt::format("Setup took {}{}; it is not counted.", preparation,
                     first.empty() ? "" : ", and the first run " + first);
}

std::string cachesText(const RunRecord& record) {
  if (!record.settings.startsCold) return {};
  return "The caches were filled with other data before every run: the first reads come from memory; data passed "
         "between steps may still be cached.";
}

}  // namespace fuseline
