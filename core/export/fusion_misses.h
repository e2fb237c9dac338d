// Why the fusions that a measured plan does not have were not made, as far as this version can say.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <string>
#include <vector>

namespace fuseline {

struct FusionMiss {
  std::string rule;
  std::string pass;     // "forward"
  std::string outcome;  // "condition failed"
  std::string ops;      // "fc1 + act"
  std::string explanation;
  std::vector<std::string> fixes;
  std::string gain;  // its predicted saving; empty: not known
};

/// A record does not contain the reasons: its pipeline is planned again, for its device's architecture, as if there
/// were a kernel for every fusion.
struct FusionMisses {
  std::string unknown;                 // why the misses are unknown; empty: they are known
  std::vector<FusionMiss> misses;      // that would gain most first
  std::size_t numDistant = 0;          // rules of which one op fits: not listed
  std::vector<std::string> differing;  // steps of only one of both plans: the one measured, and this version's
};

FusionMisses fusionMissesOf(const RunRecord& record);

}  // namespace fuseline
