// The part of a report that compares its run with others.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/html.h"
#include "core/profile/run_record.h"

#include <string>

namespace fuseline {

/// A run to compare with, and its name.
struct NamedRun {
  std::string name;
  RunRecord record;
};

/// The differences in environment, then every total and step with its change: better, worse, not statistically
/// significant, new or gone. Runs without a common plan are reported in a sentence.
Html comparisonOf(const NamedRun& base, const RunRecord& run);

}  // namespace fuseline
