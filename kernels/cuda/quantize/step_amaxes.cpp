// Which amaxes are clear, and the launches that clear them.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/quantize/step_amaxes.h"

#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/quantize/quantize_launch.h"

#include <utility>

namespace fuseline::cuda {

std::size_t PlanAmaxes::add() {
  m_entries.emplace_back();
  return m_entries.size() - 1;
}

void PlanAmaxes::clear(std::size_t index, std::span<float> values, Stream stream) {
  Entry& entry = m_entries[index];
  const bool isSame = entry.values.data() == values.data();
  entry.values = values;
  if (index == 0)
    clearAll(stream);
  else if (!isSame || !entry.isClear)
    launchClear({&values, 1}, stream);
  entry.isClear = false;
}

void PlanAmaxes::clearAll(Stream stream) {
  std::vector<std::span<float>> all;
  for (Entry& entry : m_entries) {
    entry.isClear = !entry.values.empty();
    if (entry.isClear) all.push_back(entry.values);
  }
  launchClear(all, stream);
}

std::shared_ptr<PlanAmaxes> AmaxesByPlan::of(const Plan& plan) {
  const std::lock_guard lock(m_mutex);
  std::erase_if(m_amaxes, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<PlanAmaxes>& known = m_amaxes[&plan];
  std::shared_ptr<PlanAmaxes> amaxes = known.lock();
  if (!amaxes) known = amaxes = std::make_shared<PlanAmaxes>();
  return amaxes;
}

StepAmaxes::StepAmaxes(const CompileRequest& request, std::size_t count) : m_count(count) {
  if (count > 0) m_memory = request.device.allocate(count * sizeof(float));
  if (request.step.runsOnce) return;
  m_plan = request.device.amaxes->of(request.plan);
  m_index = m_plan->add();
}

std::span<float> StepAmaxes::cleared(Stream stream) const {
  const std::span<float> values{reinterpret_cast<float*>(m_memory->data()), m_count};
  clear(values, stream);
  return values;
}

float* StepAmaxes::cleared(float* amax, Stream stream) const {
  clear({amax, 1}, stream);
  return amax;
}

void StepAmaxes::clear(std::span<float> values, Stream stream) const {
  m_plan ? m_plan->clear(m_index, values, stream) : launchClear({&values, 1}, stream);
}

}  // namespace fuseline::cuda
