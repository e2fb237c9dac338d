// Predictions: how long a pipeline would take on several ranks, from the computing time of one of them and a link.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"
#include "core/support/json.h"
#include "core/support/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// One way of a library to move a ring's data. Its time: startUs, and hopUs a hop, and the bytes by the bandwidth.
struct LinkProtocol {
  double startUs = 0.0;
  double hopUs = 0.0;
  double bandwidthGBps = 0.0;
};

struct RankLink {
  std::string name;
  std::string source;                   // of its numbers, for people
  std::vector<LinkProtocol> protocols;  // the fastest one counts
};

/// "nvlink4", "pcie5", or a latency and a bandwidth: "5us,100GB/s". Errors (Usage): neither, with the names.
Result<RankLink> parseLink(std::string_view text);

struct TimeRange {
  double lowNs = 0.0;
  double highNs = 0.0;
  TimeRange& operator+=(const TimeRange& other);
};

/// Time of a ring. kind: as in StepRecord::collective; wireBytes: sent by each rank. The range is the expected error of
/// such a model: 10 us below 1 MB, 30 % below 64 MB, 15 % above.
TimeRange collectiveTime(const RankLink& link, std::string_view kind, double wireBytes, int ranks);

struct RankPrediction {
  int ranks = 1;
  std::string variant;
  double computeNs = 0.0;  // measured: the sum of the steps' medians
  TimeRange compute;       // with the sums of their quartiles
  TimeRange communication;
  std::int64_t wireBytes = 0;

  TimeRange total() const { return {compute.lowNs + communication.lowNs, compute.highNs + communication.highNs}; }
};

/// From a run of rank 0 alone; nothing of the communication is hidden behind computing. One a variant.
std::vector<RankPrediction> predict(const RunRecord& rank0, const RankLink& link);

Json toJson(const std::vector<RankPrediction>& predictions, const RankLink& link);
Json predictionSchema();

}  // namespace fuseline
