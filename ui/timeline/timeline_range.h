// TimelineRange: the part of a timeline that is in view, and where its moments are on the screen.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace fuseline::ui {

/// Always a part of [0, total], in nanoseconds.
class TimelineRange {
 public:
  double startNs() const { return m_startNs; }
  double endNs() const { return m_startNs + m_lengthNs; }
  double lengthNs() const { return m_lengthNs; }
  bool isWhole() const { return m_lengthNs >= m_totalNs; }

  /// Another timeline: all of it is in view.
  void setTotal(double totalNs);
  void fit();
  void show(double startNs, double endNs);
  /// Nearer by `factor`, below 1 farther away; the moment stays where it is on the screen.
  void zoom(double factor, double aroundNs);
  void pan(double byNs);
  /// Pans as little as brings this into view.
  void reveal(double startNs, double endNs);

  /// widthPx: of the screen's part.
  double xAt(double timeNs, double widthPx) const { return (timeNs - m_startNs) / m_lengthNs * widthPx; }
  double timeAt(double x, double widthPx) const { return m_startNs + x / widthPx * m_lengthNs; }
  /// Round times in view, at most this number: 1, 2 or 5 times a power of ten apart.
  std::vector<double> ticks(int mostTicks) const;

  bool operator==(const TimelineRange&) const = default;

 private:
  double m_totalNs = 1.0;
  double m_startNs = 0.0;
  double m_lengthNs = 1.0;
};

}  // namespace fuseline::ui
