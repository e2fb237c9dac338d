// All exporters, in the order in which they are listed.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/exporter.h"

#include "core/export/chrome_trace.h"
#include "core/export/csv_table.h"
#include "core/support/text.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

std::span<const Exporter> exporters() {
  static const std::array all = {
      Exporter{.name = "trace",
               .title = "Chrome trace",
               .ending = ".json",
               .summary = "When each pass, step and kernel ran, for ui.perfetto.dev and chrome://tracing",
               .write = chromeTrace},
      Exporter{.name = "csv",
               .title = "CSV table",
               .ending = ".csv",
               .summary = "What each step took, a line each, in nanoseconds",
               .write = csvTable},
  };
  return all;
}

Result<const Exporter*> exporterNamed(std::string_view name) {
  const auto all = exporters();
  const auto found = std::ranges::find(all, name, &Exporter::name);
  if (found != all.end()) return &*found;
  std::vector<std::string> names;
  for (const Exporter& exporter : all) names.emplace_back(exporter.name);
  return Error{fmt::format("{}: there is no such format{} There is: {}.", name, didYouMean(nearest(name, names)),
                           fmt::join(names, ", ")),
               ErrorKind::Usage};
}

}  // namespace fuseline
