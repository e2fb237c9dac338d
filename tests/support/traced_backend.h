// The reference device with its own clock and a trace that may fail.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/wrapped_backend.h"

#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace fuseline::testing {

inline constexpr int kAlways = 1000;

struct TraceFaults {
  int numLosses = 0;        // number of first runs whose records are lost
  int numStarts = kAlways;  // after this number of starts, the trace does not start
};

/// Every step has two activities, of 10 ns and 1 ns; one activity outside all steps takes 100 ns.
class TestTrace final : public DeviceTrace {
 public:
  explicit TestTrace(const TraceFaults& faults) : m_faults(faults) {}
  void beginStep(std::size_t step) override {
    if (!m_isOn) return;
    const double startNs = 200.0 * static_cast<double>(m_seen.size());
    m_seen.push_back({.name = "k", .configuration = "", .step = step, .startNs = startNs, .durationNs = 10.0});
    m_seen.push_back({.name = "k", .configuration = "", .step = step, .startNs = startNs + 15.0, .durationNs = 1.0});
  }
  void endStep() override {}
  void start() override {
    if (m_faults.numStarts-- <= 0) throw std::runtime_error("the trace does not start.");
    m_isOn = true;
    m_seen = {{.name = "fill", .configuration = "", .durationNs = 100.0}};
  }
  std::vector<DeviceActivity> stop() override {
    m_isOn = false;
    if (m_faults.numLosses-- > 0) throw std::runtime_error("records were lost.");
    return m_seen;
  }

 private:
  TraceFaults m_faults;
  bool m_isOn = false;
  std::vector<DeviceActivity> m_seen;
};

/// Has a clock, and a trace if `makeTrace` returns one.
class TimedBackend final : public ClockedBackend {
 public:
  using MakeTrace = std::function<Result<std::unique_ptr<DeviceTrace>>()>;
  explicit TimedBackend(MakeTrace makeTrace) : m_makeTrace(std::move(makeTrace)) {}

  Result<std::unique_ptr<DeviceTrace>> makeTrace() override { return m_makeTrace(); }

 private:
  MakeTrace m_makeTrace;
};

inline std::shared_ptr<Backend> tracedBackend(const TraceFaults& faults = {}) {
  return std::make_shared<TimedBackend>(
      [faults] { return std::unique_ptr<DeviceTrace>(std::make_unique<TestTrace>(faults)); });
}

}  // namespace fuseline::testing
