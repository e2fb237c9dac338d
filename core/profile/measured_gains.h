// Gains of fusions from a run: a gain for every place where one was measured, and the peak memory rate.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/gain.h"
#include "core/profile/run_record.h"
#include "core/support/result.h"

#include <string>
#include <string_view>

namespace fuseline {

/// The measured gain of every fused step, and as device model the highest rate at which an unfused step of the run
/// moved its least traffic. A run cannot separate the cost of a launch from the work: it counts as zero. `runName`:
/// name of the run in messages. Errors: the run does not have both variants.
Result<GainModel> gainsOf(const RunRecord& run, std::string_view runName);

/// Adds the gains of another run; if both measured the same place, `more` takes precedence.
void merge(GainModel& gains, GainModel more);

/// Do the run's figures hold for this pipeline? `pipeline` is the file's content; `settings` and `recipe` (null for
/// none) are those of the planned run. The verdict names the difference: the pipeline, a symbol, the pass, the device
/// or the recipe.
Verdict measuredSame(const RunRecord& run, const Json& pipeline, const RunSpec& settings, const Json& recipe);

}  // namespace fuseline
