// Predictions: how long a pipeline would take on several ranks, from the computing time of one of them and a link.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"
#include "core/profile/run_record.h"
#include "core/runtime/overlap_estimate.h"
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
  /// Memory bandwidth of the sums, which ranks on the CPU make after the bytes have come; 0: they take no time.
  double sumGBps = 0.0;
};

/// "nvlink4", "pcie5", or a latency and a bandwidth, and that of sums: "5us,100GB/s", "5us,10GB/s,20GB/s". Errors
/// (Usage): neither, with the names.
Result<RankLink> parseLink(std::string_view text);

/// Time of a ring. kind: as in StepRecord::collective; wireBytes: sent by each rank. The range is the expected error of
/// such a model: 10 us below 1 MB, 30 % below 64 MB, 15 % above. A sum reads a slice of each rank and writes one.
TimeRange collectiveTime(const RankLink& link, std::string_view kind, double wireBytes, int ranks);
/// The same, as the time of a step.
StepTime timeOf(const RankLink& link, std::string_view kind, std::int64_t wireBytes, int ranks);

struct RankPrediction {
  int ranks = 1;
  std::string variant;
  double computeNs = 0.0;  // measured: the sum of the steps' medians
  TimeRange compute;       // with the sums of their quartiles
  OverlapEstimate overlap;
  std::int64_t wireBytes = 0;

  /// With the communication that the plan does not hide.
  TimeRange total() const;
};

/// From a run of rank 0 alone, with the plans of `analysis`. One a variant.
std::vector<RankPrediction> predict(const RunRecord& rank0, const Analysis& analysis, const RankLink& link);

/// Measured communication of a run on several ranks, which was planned as `plan`, and what Userbuffers would hide of
/// it.
OverlapEstimate measuredOverlap(const VariantRecord& variant, const Plan& plan, const Graph& graph, int ranks);

Json toJson(const std::vector<RankPrediction>& predictions, const RankLink& link);
Json predictionSchema();

}  // namespace fuseline
