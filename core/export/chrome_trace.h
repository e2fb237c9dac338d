// The trace event format of Chrome and Perfetto: one round of each variant, side by side.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"
#include "core/support/result.h"

#include <string>

namespace fuseline {

/// One process per variant, all with the same origin; in it one thread per lane with nested passes, steps and kernels,
/// named as in profilers; flows from an op's forward to its backward; counters of the steps' rates. Source of the
/// format: "Trace Event Format", Google, and perfetto.dev/docs/getting-started/other-formats.
/// Errors: a run with steps that were not timed, or one that an older program wrote.
Result<std::string> chromeTrace(const RunRecord& record);

}  // namespace fuseline
