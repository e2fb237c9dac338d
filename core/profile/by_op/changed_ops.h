// ChangedOps: how the time of each op changed from one run to another, forward and backward apart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_comparison.h"

#include <map>
#include <optional>
#include <string>

namespace fuseline {

/// Medians and ratio of an op in one pass; of all ops that a step of one of the runs has together, where it has
/// several. Nothing: one of the runs did not time it.
struct OpChange {
  std::optional<MetricChange> forward;
  std::optional<MetricChange> backward;
};

/// By the document's id. Compared are the fused plans; the unfused ones where one of the runs has no other.
std::map<std::string, OpChange> changedOps(const RunRecord& base, const RunRecord& next);

}  // namespace fuseline
