// Patience: how long ranks wait for one that does not come.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace fuseline {

using Seconds = std::chrono::duration<double>;

/// How long ranks wait for one that does not come to a collective.
class Patience {
 public:
  /// nothing: 120 s the first time, and then 50 times the longest wait so far, at least 30 s.
  explicit Patience(std::optional<Seconds> limit = std::nullopt) : m_fixed(limit) {}

  Seconds limit() const {
    if (m_fixed) return *m_fixed;
    return m_longest ? std::max(Seconds(30.0), 50.0 * *m_longest) : Seconds(120.0);
  }
  void waited(Seconds time) { m_longest = std::max(m_longest.value_or(Seconds(0.0)), time); }

 private:
  std::optional<Seconds> m_fixed;
  std::optional<Seconds> m_longest;
};

}  // namespace fuseline
