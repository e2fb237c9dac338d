// Exporter: writes a run in a format of other programs. One file each, and one line in exporters().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/drawing/graph_layout.h"
#include "core/profile/run_record.h"
#include "core/support/result.h"

#include <span>
#include <string>
#include <string_view>

namespace fuseline {

struct NamedRun;

struct Exporter {
  std::string_view name;     // "trace"
  std::string_view title;    // for people: "Chrome trace"
  std::string_view ending;   // of its files: ".json"
  std::string_view summary;  // what it is for, in one sentence
  /// Errors: a sentence what of the run it would need, and how it is measured.
  Result<std::string> (*write)(const RunRecord& record) = nullptr;
  /// Of formats that can set the run beside others or show its graph; else null. Errors: as those of write.
  Result<std::string> (*writeBeside)(const RunRecord& record, std::span<const NamedRun> bases,
                                     const LayOutGraph& layOut) = nullptr;

  /// By whichever of both has more to show.
  Result<std::string> writeWith(const RunRecord& record, std::span<const NamedRun> bases,
                                const LayOutGraph& layOut) const;
};

std::span<const Exporter> exporters();
/// nullptr when there is none.
const Exporter* findExporter(std::string_view name);

}  // namespace fuseline
