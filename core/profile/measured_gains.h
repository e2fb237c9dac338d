// What a run says about fusions: a gain for every place where one was measured, and how fast memory was at best.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/gain.h"
#include "core/profile/run_record.h"
#include "core/support/result.h"

#include <string>
#include <string_view>

namespace fuseline {

/// The measured gain of every fused step, and as device model the highest rate at which an unfused step of the run
/// moved its least traffic. What a launch costs a run cannot tell apart from the work: it counts as nothing.
/// `runName` is what messages call the run. Errors: the run does not have both variants.
Result<GainModel> gainsOf(const RunRecord& run, std::string_view runName);

/// Adds what another run measured; where both measured the same place, `more` counts.
void merge(GainModel& gains, GainModel more);

/// Do the run's figures hold for this pipeline? `pipeline` is the file's content, `settings` and `recipe`, which is
/// null for none, what it is planned with. The sentence names what differs: the pipeline, a symbol, the pass, the
/// device or the recipe.
Verdict measuredSame(const RunRecord& run, const Json& pipeline, const RunSpec& settings, const Json& recipe);

}  // namespace fuseline
