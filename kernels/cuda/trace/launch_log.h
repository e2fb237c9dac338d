// The most recent launches, for messages about faults.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>

namespace fuseline::cuda {

/// The step that was launched last: asynchronous faults surface long after their launch.
class LaunchLog {
 public:
  void add(const std::string& step) {
    const std::lock_guard lock(m_mutex);
    m_lastStep = step;
  }
  std::string lastStep() const {
    const std::lock_guard lock(m_mutex);
    return m_lastStep.empty() ? "none" : m_lastStep;
  }

 private:
  mutable std::mutex m_mutex;
  std::string m_lastStep;
};

}  // namespace fuseline::cuda
