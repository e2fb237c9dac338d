// The trace event format of Chrome and Perfetto: one round of each variant, beside each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"
#include "core/support/result.h"

#include <string>

namespace fuseline {

/// A process per variant, all from the same origin; in it a thread per lane with passes, steps and kernels nested in
/// one another, named as in profilers; flows from an op's forward to its backward; counters of what steps reach.
/// Source of the format: "Trace Event Format", Google, and perfetto.dev/docs/getting-started/other-formats.
/// Errors: a run whose steps were not timed, or one that an older program wrote.
Result<std::string> chromeTrace(const RunRecord& record);

}  // namespace fuseline
