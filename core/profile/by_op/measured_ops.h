// MeasuredOps: times of each op of the document in a run, forward and backward apart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <map>
#include <string>

namespace fuseline {

/// Figures of an op in one pass.
struct OpPass {
  double ns = 0.0;        // sum of the medians of the steps that run it; 0: not timed
  double leastNs = 0.0;   // of the same steps by the device's peaks; 0: not known
  bool isShared = false;  // a fused step runs other ops, too: its time is that of all of them

  /// Time over the least time. 0: not known.
  double timesFromRoofline() const { return leastNs > 0.0 ? ns / leastNs : 0.0; }
};

struct OpTimes {
  OpPass forward;
  OpPass backward;
};

/// Times in the fused plan; in the unfused plan if only that was measured.
struct MeasuredOps {
  std::map<std::string, OpTimes> ops;  // by the document's id
  double sumNs = 0.0;                  // of all steps' medians
  double hottestNs = 0.0;              // of an op in one pass
  double farthest = 0.0;               // from the roofline limit, as a ratio; 0: not known
};
MeasuredOps measuredOps(const RunRecord& record);

}  // namespace fuseline
