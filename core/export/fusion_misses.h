// Reasons why a measured plan does not have some fusions, as far as this version knows them.
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
  std::vector<FusionMiss> misses;      // the one with the largest gain first
  std::size_t numDistant = 0;          // rules that match only one op: not listed
  std::vector<std::string> differing;  // steps that only one of the plans has: the measured one, or this version's
};

FusionMisses fusionMissesOf(const RunRecord& record);

}  // namespace fuseline
