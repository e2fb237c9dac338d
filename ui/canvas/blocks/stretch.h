// Stretch: places along one axis that make room for something between them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

namespace fuseline::ui {

class Stretch {
 public:
  /// Places from `from` on move by `byPx`.
  void add(int from, int byPx) { m_steps[from] += byPx; }
  bool isEmpty() const { return m_steps.empty(); }
  /// Where the place is shown.
  int shown(int place) const {
    int sum = 0;
    for (const auto& [from, byPx] : m_steps) sum += from <= place ? byPx : 0;
    return place + sum;
  }
  /// The inverse of that. A place within the room is where the room begins.
  int place(int shown) const {
    int sum = 0;
    for (const auto& [from, byPx] : m_steps) {
      if (shown < from + sum) break;
      if (shown < from + sum + byPx) return from;
      sum += byPx;
    }
    return shown - sum;
  }

 private:
  std::map<int, int> m_steps;  // from -> byPx
};

}  // namespace fuseline::ui
