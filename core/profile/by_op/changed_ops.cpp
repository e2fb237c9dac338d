// Two runs may fuse differently. What is compared are the smallest groups of ops that no step of either run leaves.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/by_op/changed_ops.h"

#include <algorithm>
#include <cstddef>
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

class PassChanges {
 public:
  PassChanges(const RunRecord& base, const RunRecord& next, std::string_view phase)
      : m_base(base), m_next(next), m_phase(phase) {
    const VariantRecord* const before = base.variant(variantOf(base, next));
    const VariantRecord* const after = next.variant(variantOf(base, next));
    if (!before || !after) return;
    for (const VariantRecord* variant : {before, after})
      for (const StepRecord& step : variant->steps)
        if (isTimed(step, phase)) m_groups.join(step.owners);
    m_before = samplesOf(*before, phase, m_groups);
    m_after = samplesOf(*after, phase, m_groups);
    for (const VariantRecord* variant : {before, after})
      for (const StepRecord& step : variant->steps)
        if (isTimed(step, phase)) m_ops.insert(m_ops.end(), step.owners.begin(), step.owners.end());
  }

  /// set(op, change)
  template <class Set>
  void forEach(const Set& set) {
    for (const std::string& op : m_ops) {
      const auto before = m_before.find(m_groups.groupOf(op));
      const auto after = m_after.find(m_groups.groupOf(op));
      if (before != m_before.end() && after != m_after.end()) set(op, change(op, before->second, after->second));
    }
  }

 private:
  MetricChange change(const std::string& op, const std::vector<double>& before,
                      const std::vector<double>& after) const {
    return {.name = op,
            .phase = std::string(m_phase),
            .unit = "ns",
            .base = summarize(before),
            .next = summarize(after),
            .change = changeBetween(m_base, m_next, before, after)};
  }

  const RunRecord& m_base;
  const RunRecord& m_next;
  std::string_view m_phase;
  OpGroups m_groups;
  Samples m_before;
  Samples m_after;
  std::vector<std::string> m_ops;
};

}  // namespace

std::map<std::string, OpChange> changedOps(const RunRecord& base, const RunRecord& next) {
  std::map<std::string, OpChange> changes;
  PassChanges(base, next, phaseName(Phase::Forward)).forEach([&](const std::string& op, MetricChange change) {
    changes[op].forward = std::move(change);
  });
  PassChanges(base, next, phaseName(Phase::Backward)).forEach([&](const std::string& op, MetricChange change) {
    changes[op].backward = std::move(change);
  });
  return changes;
}

}  // namespace fuseline
