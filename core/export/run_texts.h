// Sentences of a run's report: the result, the method, and the parts that were not measured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <string>
#include <utility>
#include <vector>

namespace fuseline {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

/// "1.22x, from 12.300 ms ± 0.4 % unfused to 10.100 ms ± 0.3 % fused", or the available end-to-end times.
std::string headlineOf(const Comparison& comparison);

/// Settings of the run: {"device", "NVIDIA H200"}, {"pass", "train"}, {"recipe", "MXFP8BlockScaling"}, {"symbols",
/// "M=4096"} ...
NamedTexts settingsOf(const RunRecord& record);

/// How the times were measured, the meaning of the figures, and the unmeasured parts: one sentence each, without text
/// from the run.
std::vector<std::string> methodOf(const RunRecord& record, const Comparison& comparison);

/// The device's remarks about the run: why steps were not timed otherwise, and the chosen implementations of launches
/// and GEMMs. One sentence each; usually none.
std::vector<std::string> notesOf(const RunRecord& record);

/// A quantity of both plans: {"peak memory", "1.50 MiB", "1.25 MiB", "256 KiB"}.
struct RunFigure {
  std::string name, unfused, fused, saved;
};
std::vector<RunFigure> planFiguresOf(const RunRecord& record);

}  // namespace fuseline
