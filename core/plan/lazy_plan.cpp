// A thread that needs the plan while another one makes it waits, and makes it itself if the other one is stopped.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/lazy_plan.h"

namespace fuseline {

const Plan& LazyPlan::of(const Graph& graph) const {
  prepare(graph, {});
  return *m_plan;
}

void LazyPlan::prepare(const Graph& graph, const std::stop_token& stop) const {
  const std::lock_guard lock(m_mutex);
  if (!m_plan) m_plan = makePlan(graph, unfused(graph), m_options, stop);
}

}  // namespace fuseline
