// Costs of a run before and at its start, as text: preparation, the first run, cold caches.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <string>

namespace fuseline {

/// "Getting ready took 120 ms unfused and 98 ms fused, and the first run 14.2 ms and 11 ms: not counted." Empty if the
/// record does not contain the times.
std::string firstRunText(const RunRecord& record);

/// States that every run began with cold caches; empty if it did not.
std::string cachesText(const RunRecord& record);

}  // namespace fuseline
