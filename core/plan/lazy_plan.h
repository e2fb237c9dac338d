// LazyPlan: the plan without fusions, made when it is first needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan.h"

#include <mutex>
#include <optional>
#include <stop_token>

namespace fuseline {

/// May be used by several threads.
class LazyPlan {
 public:
  explicit LazyPlan(const PlanOptions& options) : m_options(options) {}

  /// graph: one for which the plan holds, the same graph or an equal one in every call.
  const Plan& of(const Graph& graph) const;
  /// Makes the plan in advance, unless it is stopped.
  void prepare(const Graph& graph, const std::stop_token& stop) const;

 private:
  const PlanOptions m_options;
  mutable std::mutex m_mutex;  // of m_plan, which never changes once it is there
  mutable std::optional<Plan> m_plan;
};

}  // namespace fuseline
