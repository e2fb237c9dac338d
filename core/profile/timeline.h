// TimelineLayout: one round of a variant as boxes on lanes, ready to be drawn or written as a trace.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fuseline {

/// RankStep: a step on one of several ranks; Step: on the rank that ended last.
enum class TimelineLevel { Pass, Step, Activity, Launch, RankStep };

/// Two boxes of a lane are disjoint or nested; times in whole nanoseconds guarantee it.
struct TimelineBox {
  TimelineLevel level = TimelineLevel::Step;
  int lane = 0;
  int step = -1;      // index in VariantRecord::steps; of a pass its first one; -1: no step, or the launch of all
  int activity = -1;  // index in the step's activities, or in VariantRecord::unattributed
  std::int64_t startNs = 0;
  std::int64_t endNs = 0;

  std::int64_t durationNs() const { return endNs - startNs; }
};

struct TimelineLayout {
  /// By lane, then in the order in which they began, a box before those within it.
  std::vector<TimelineBox> boxes;
  /// Lane 0 has the passes and their steps; the others have concurrent work, such as copies, then the steps of each
  /// rank. The last one may be the host's, with its launches.
  int numLanes = 0;
  int numRanks = 0;  // lanes of ranks; 0: there is one rank
  bool hasHostLane = false;
  std::int64_t endNs = 0;

  int firstRankLane() const { return numLanes - numRanks - (hasHostLane ? 1 : 0); }
};

/// "it was cancelled before a round was complete": why a run has no timeline. Empty: it has one.
std::string whyNoTimeline(const RunRecord& record);

/// Empty where the record has no timeline.
TimelineLayout layOut(const VariantRecord& variant);

/// "steps", "beside the steps", "rank 1", "launches by the host".
std::string laneName(const TimelineLayout& layout, int lane);

/// Time that each rank was waiting for others in a collective, by the spans of its round: all ranks end together, so
/// the last one to begin waits for none. By step, then by rank; empty for a step that does not communicate.
std::vector<std::vector<double>> rankWaitsNs(const VariantRecord& variant);

/// The activity of a box; nullptr for the other levels.
const ActivityRecord* activityOf(const VariantRecord& variant, const TimelineBox& box);
/// "forward", "fc1.linear (BasicLinear, forward) [4096, 4096] bf16", a kernel's name, or "launch fc1.linear".
std::string nameOf(const VariantRecord& variant, const TimelineBox& box);

}  // namespace fuseline
