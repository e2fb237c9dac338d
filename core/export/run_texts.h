// What a report of a run says in sentences: the result, how it was measured, and what was not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <string>
#include <utility>
#include <vector>

namespace fuseline {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

/// "1.22x, from 12.300 ms ± 0.4 % unfused to 10.100 ms ± 0.3 % fused", or what else was measured from end to end.
std::string headlineOf(const Comparison& comparison);

/// What was run: {"device", "NVIDIA H200"}, {"pass", "train"}, {"recipe", "MXFP8BlockScaling"}, {"symbols", "M=4096"}
/// ...
NamedTexts settingsOf(const RunRecord& record);

/// How the times came about, what the figures mean and what was not measured: a sentence each, in words of ours only.
std::vector<std::string> methodOf(const RunRecord& record, const Comparison& comparison);

/// What the device says of the run: why steps were not timed otherwise, how launches and products were made where there
/// was a choice. A sentence each; mostly none.
std::vector<std::string> notesOf(const RunRecord& record);

/// A quantity of the plans beside each other: {"peak memory", "1.50 MiB", "1.25 MiB", "256 KiB"}.
struct RunFigure {
  std::string name, unfused, fused, saved;
};
std::vector<RunFigure> planFiguresOf(const RunRecord& record);

}  // namespace fuseline
