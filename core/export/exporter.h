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
  std::string_view summary;  // its purpose, in one sentence
  /// Errors: a sentence with the part of the run that is missing, and how to measure it.
  Result<std::string> (*write)(const RunRecord& record) = nullptr;
  /// For formats that can compare the run with others or draw its graph; else null. Errors: those of write.
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
