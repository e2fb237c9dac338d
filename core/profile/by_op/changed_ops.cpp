// Two runs may fuse differently. What is compared are the smallest groups of ops that no step of either run leaves.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/by_op/changed_ops.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

namespace {

/// Sets of ops, each named by one of its members.
class OpGroups {
 public:
  void join(const std::vector<std::string>& ops) {
    for (const std::string& op : ops) m_parents[groupOf(op)] = groupOf(ops.front());
  }
  const std::string& groupOf(const std::string& op) {
    const auto found = m_parents.emplace(op, op).first;
    return found->second == op ? found->first : found->second = groupOf(found->second);
  }

 private:
  std::map<std::string, std::string> m_parents;
};

/// Round by round.
using Samples = std::map<std::string, std::vector<double>>;

bool isTimed(const StepRecord& step, std::string_view phase) {
  return step.phase == phase && !step.isView && !step.owners.empty() && !step.samplesNs.empty();
}

void add(const std::vector<double>& samples, std::vector<double>& sum) {
  if (sum.empty()) sum.resize(samples.size());
  sum.resize(std::min(sum.size(), samples.size()));
  for (std::size_t round = 0; round < sum.size(); ++round) sum[round] += samples[round];
}

Samples samplesOf(const VariantRecord& variant, std::string_view phase, OpGroups& groups) {
  Samples sums;
  for (const StepRecord& step : variant.steps)
    if (isTimed(step, phase)) add(step.samplesNs, sums[groups.groupOf(step.owners.front())]);
  return sums;
}

const char* variantOf(const RunRecord& base, const RunRecord& next) {
  return base.variant("fused") && next.variant("fused") ? "fused" : "unfused";
}

/// The changes of all ops in one pass.
std::map<std::string, MetricChange> passChanges(const RunRecord& base, const RunRecord& next, std::string_view phase) {
  const VariantRecord* const before = base.variant(variantOf(base, next));
  const VariantRecord* const after = next.variant(variantOf(base, next));
  if (!before || !after) return {};
  OpGroups groups;
  std::set<std::string> ops;
  for (const VariantRecord* variant : {before, after})
    for (const StepRecord& step : variant->steps)
      if (isTimed(step, phase)) {
        groups.join(step.owners);
        ops.insert(step.owners.begin(), step.owners.end());
      }
  const Samples was = samplesOf(*before, phase, groups);
  const Samples is = samplesOf(*after, phase, groups);
  std::map<std::string, MetricChange> ofGroups;
  for (const auto& [group, samples] : was)
    if (const auto now = is.find(group); now != is.end())
      ofGroups.emplace(group, MetricChange{.name = group,
                                           .phase = std::string(phase),
                                           .unit = "ns",
                                           .base = summarize(samples),
                                           .next = summarize(now->second),
                                           .change = changeBetween(base, next, samples, now->second)});
  std::map<std::string, MetricChange> changes;
  for (const std::string& op : ops)
    if (const auto found = ofGroups.find(groups.groupOf(op)); found != ofGroups.end())
      changes.emplace(op, found->second).first->second.name = op;
  return changes;
}

}  // namespace

std::map<std::string, OpChange> changedOps(const RunRecord& base, const RunRecord& next) {
  std::map<std::string, OpChange> changes;
  for (auto& [op, change] : passChanges(base, next, phaseName(Phase::Forward))) changes[op].forward = std::move(change);
  for (auto& [op, change] : passChanges(base, next, phaseName(Phase::Backward)))
    changes[op].backward = std::move(change);
  return changes;
}

}  // namespace fuseline
