// Times of collectives by latency and bandwidth.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/rank_prediction.h"

#include "core/profile/stats.h"
#include "core/support/output_schema.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr double kNsPerUs = 1e3;
constexpr double kSmallBytes = 1e6;
constexpr double kLargeBytes = 64e6;
constexpr double kSmallErrorNs = 10e3;
constexpr double kMiddleError = 0.30;
constexpr double kLargeError = 0.15;

/// Latencies of rings with the protocols LL, LL128 and Simple, as NCCL 2.30 assumes them (tuning.cc). Bandwidths: of
/// NVLink 4 also from there; of PCIe 5 about 50 GB/s of 64, of which LL uses a half and LL128 120 of 128 bytes.
std::vector<RankLink> knownLinks() {
  return {{.name = "nvlink4",
           .source = "NCCL's own model of 8 GPUs with NVLink 4",
           .protocols = {{6.6, 0.6, 141.0}, {14.0, 1.9, 341.0}, {8.4, 3.4, 371.0}}},
          {.name = "pcie5",
           .source = "NCCL's built-in latencies; PCIe 5.0 x16",
           .protocols = {{6.6, 1.0, 25.0}, {14.0, 2.5, 46.9}, {8.4, 5.7, 50.0}}}};
}

bool isBandwidth(double value) { return value > 0.0 && std::isfinite(value); }

/// "5us,100GB/s", "5us,100GB/s,20GB/s"
bool readNumbers(std::string_view text, RankLink& link) {
  const std::string copy(text);
  LinkProtocol protocol;
  int end = 0;
  int endOfSums = 0;
  const int found = std::sscanf(copy.c_str(), "%lfus,%lfGB/s%n,%lfGB/s%n", &protocol.hopUs, &protocol.bandwidthGBps,
                                &end, &link.sumGBps, &endOfSums);
  const bool hasSums = found == 3;
  link.protocols = {protocol};
  return found >= 2 && static_cast<std::size_t>(hasSums ? endOfSums : end) == copy.size() && protocol.hopUs >= 0.0 &&
         std::isfinite(protocol.hopUs) && isBandwidth(protocol.bandwidthGBps) &&
         (!hasSums || isBandwidth(link.sumGBps));
}

double sumNs(const RankLink& link, std::string_view kind, double wireBytes, int ranks) {
  const bool isSum = kind == "all-reduce" || kind == "reduce-scatter";
  if (!isSum || link.sumGBps == 0.0 || ranks < 2) return 0.0;
  const double sliceBytes = wireBytes / ((kind == "all-reduce" ? 2.0 : 1.0) * (ranks - 1));
  return sliceBytes * (ranks + 1) / link.sumGBps;
}

StepTime addStep(const StepRecord& step, const RankLink& link, RankPrediction& prediction) {
  if (!step.collective.empty()) {
    if (!step.exchanges()) return {};
    prediction.wireBytes += step.wireBytes;
    return timeOf(link, step.collective, step.wireBytes, prediction.ranks);
  }
  if (step.samplesNs.empty()) return {};
  const SampleStats stats = summarize(step.samplesNs);
  prediction.computeNs += stats.median;
  prediction.compute += {stats.lowerQuartile, stats.upperQuartile};
  return {.computeNs = stats.median};
}

RankPrediction predictOne(const VariantRecord& variant, const Plan& plan, const Graph& graph, int ranks,
                          const RankLink& link) {
  RankPrediction prediction{.ranks = ranks, .variant = variant.name};
  std::vector<StepTime> times;
  for (const StepRecord& step : variant.steps) times.push_back(addStep(step, link, prediction));
  for (const OverlapEstimate& each : estimateOverlap(plan, graph, ranks, times)) prediction.overlap += each;
  return prediction;
}

}  // namespace

Result<RankLink> parseLink(std::string_view text) {
  std::string names;
  for (RankLink& link : knownLinks()) {
    if (link.name == text) return std::move(link);
    names += link.name + ", ";
  }
  RankLink given{.name = std::string(text), .source = "the numbers given", .protocols = {}};
  if (readNumbers(text, given)) return given;
  return Error{
      fmt::format(
          "--link {}: expected {}or a latency and bandwidths of the link and of memory, such as 5us,100GB/s,20GB/s.",
          text, names),
      ErrorKind::Usage};
}

TimeRange collectiveTime(const RankLink& link, std::string_view kind, double wireBytes, int ranks) {
  const double hops = (kind == "all-reduce" ? 2.0 : 1.0) * (ranks - 1);
  double fastestNs = HUGE_VAL;
  for (const LinkProtocol& protocol : link.protocols)
    fastestNs =
        std::min(fastestNs, kNsPerUs * (protocol.startUs + hops * protocol.hopUs) + wireBytes / protocol.bandwidthGBps);
  fastestNs += sumNs(link, kind, wireBytes, ranks);
  const double errorNs = wireBytes < kSmallBytes   ? kSmallErrorNs
                         : wireBytes < kLargeBytes ? kMiddleError * fastestNs
                                                   : kLargeError * fastestNs;
  return {std::max(0.0, fastestNs - errorNs), fastestNs + errorNs};
}

StepTime timeOf(const RankLink& link, std::string_view kind, std::int64_t wireBytes, int ranks) {
  const TimeRange empty = collectiveTime(link, kind, 0.0, ranks);
  return {.communication = collectiveTime(link, kind, static_cast<double>(wireBytes), ranks),
          .latencyNs = std::max(0.0, empty.highNs - kSmallErrorNs)};
}

TimeRange RankPrediction::total() const {
  TimeRange sum = compute;
  return sum += overlap.exposed();
}

std::vector<RankPrediction> predict(const RunRecord& rank0, const Analysis& analysis, const RankLink& link) {
  std::vector<RankPrediction> predictions;
  for (const VariantRecord& variant : rank0.variants)
    predictions.push_back(predictOne(variant, variant.name == "fused" ? *analysis.fusedPlan : analysis.unfusedPlan(),
                                     analysis.graph(), rank0.settings.ranks, link));
  return predictions;
}

OverlapEstimate measuredOverlap(const VariantRecord& variant, const Plan& plan, const Graph& graph, int ranks) {
  OverlapEstimate sum;
  std::vector<StepTime> times;
  double hiddenNs = 0.0;
  for (const StepRecord& step : variant.steps) {
    const double wholeNs = step.exposedNs + step.hiddenNs;
    const bool computes = step.collective.empty() && !step.samplesNs.empty();
    times.push_back(
        {.computeNs = computes ? summarize(step.samplesNs).median : 0.0, .communication = {wholeNs, wholeNs}});
    hiddenNs += step.hiddenNs;
  }
  for (const OverlapEstimate& each : estimateOverlap(plan, graph, ranks, times)) sum += each;
  sum.hidden = {hiddenNs, hiddenNs};
  return sum;
}

Json toJson(const std::vector<RankPrediction>& predictions, const RankLink& link) {
  Json list = Json::array();
  for (const RankPrediction& each : predictions) {
    Json& prediction = list.emplace_back(toJson(each.overlap));
    prediction.update({{"ranks", each.ranks},
                       {"variant", each.variant},
                       {"computeNs", each.computeNs},
                       {"computeLowNs", each.compute.lowNs},
                       {"computeHighNs", each.compute.highNs},
                       {"totalLowNs", each.total().lowNs},
                       {"totalHighNs", each.total().highNs},
                       {"bytesSentPerRank", each.wireBytes}});
  }
  return {{"link", link.name}, {"linkSource", link.source}, {"predictions", list}};
}

Json predictionSchema() {
  schema::Fields fields = overlapEstimateFields();
  fields.insert(fields.end(), {{"ranks", schema::integer()},
                               {"variant", schema::text()},
                               {"computeNs", schema::number("Compute time of one rank, measured.")},
                               {"computeLowNs", schema::number("Sum of the lower quartiles.")},
                               {"computeHighNs", schema::number("Sum of the upper quartiles.")},
                               {"totalLowNs", schema::number("Compute time and exposed communication.")},
                               {"totalHighNs", schema::number("Compute time and exposed communication.")},
                               {"bytesSentPerRank", schema::integer("Bytes that each rank sends.")}});
  return schema::object({{"link", schema::text()},
                         {"linkSource", schema::text()},
                         {"predictions", schema::list(schema::object(fields))}});
}

}  // namespace fuseline
