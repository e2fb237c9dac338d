// Adds up the medians of steps.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/by_op/measured_ops.h"

#include <algorithm>

namespace fuseline {

namespace {

/// Where one step has no limit, the sum has none.
void add(OpPass& pass, const SampleStats& time, const Efficiency& efficiency, bool isShared) {
  const bool isFirst = pass.ns == 0.0;
  const bool isKnown = efficiency.leastNs > 0.0 && (isFirst || pass.leastNs > 0.0);
  pass.ns += time.median;
  pass.leastNs = isKnown ? pass.leastNs + efficiency.leastNs : 0.0;
  pass.isShared = pass.isShared || isShared;
}

void addRow(MeasuredOps& measured, const ComparisonRow& row, bool isFused) {
  const SampleStats& time = isFused ? row.fused : row.unfused;
  if (row.depth > 0 || row.isView || time.count == 0) return;
  measured.sumNs += time.median;
  for (const std::string& owner : row.owners) {
    OpTimes& times = measured.ops[owner];
    OpPass& pass = row.phase == phaseName(Phase::Backward) ? times.backward : times.forward;
    add(pass, time, isFused ? row.fusedEfficiency : row.unfusedEfficiency, row.owners.size() > 1);
  }
}

}  // namespace

MeasuredOps measuredOps(const RunRecord& record) {
  MeasuredOps measured;
  const bool isFused = record.variant("fused") != nullptr;
  for (const ComparisonRow& row : compareVariants(record).rows) addRow(measured, row, isFused);
  for (const auto& [id, times] : measured.ops)
    for (const OpPass* pass : {&times.forward, &times.backward}) {
      measured.hottestNs = std::max(measured.hottestNs, pass->ns);
      measured.farthest = std::max(measured.farthest, pass->timesFromRoofline());
    }
  return measured;
}

}  // namespace fuseline
