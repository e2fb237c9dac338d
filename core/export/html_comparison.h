// The part of a report that sets its run beside others.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/html.h"
#include "core/profile/run_record.h"

#include <string>

namespace fuseline {

/// A run that another is set beside, and what it is called.
struct NamedRun {
  std::string name;
  RunRecord record;
};

/// What is not the same, then every total and step with its change: better, worse, perhaps chance, new or gone.
/// Runs without a plan in common are a sentence.
Html comparisonOf(const NamedRun& base, const RunRecord& run);

}  // namespace fuseline
