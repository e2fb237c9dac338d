// Zoom and pan within bounds.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_range.h"

#include <algorithm>
#include <cmath>

namespace fuseline::ui {

namespace {

/// Clocks do not tell less apart.
constexpr double kShortestNs = 10.0;

}  // namespace

void TimelineRange::setTotal(double totalNs) {
  m_totalNs = std::max(totalNs, kShortestNs);
  fit();
}

void TimelineRange::fit() { show(0.0, m_totalNs); }

void TimelineRange::show(double startNs, double endNs) {
  m_lengthNs = std::clamp(endNs - startNs, std::min(kShortestNs, m_totalNs), m_totalNs);
  const double middleNs = (startNs + endNs) / 2;
  m_startNs = std::clamp(middleNs - m_lengthNs / 2, 0.0, m_totalNs - m_lengthNs);
}

void TimelineRange::zoom(double factor, double aroundNs) {
  const double share = (aroundNs - m_startNs) / m_lengthNs;
  m_lengthNs = std::clamp(m_lengthNs / factor, std::min(kShortestNs, m_totalNs), m_totalNs);
  m_startNs = std::clamp(aroundNs - share * m_lengthNs, 0.0, m_totalNs - m_lengthNs);
}

void TimelineRange::pan(double byNs) { m_startNs = std::clamp(m_startNs + byNs, 0.0, m_totalNs - m_lengthNs); }

void TimelineRange::reveal(double startNs, double endNs) {
  if (endNs > this->endNs()) pan(endNs - this->endNs());
  if (startNs < m_startNs) pan(startNs - m_startNs);
}

std::vector<double> TimelineRange::ticks(int mostTicks) const {
  const double least = m_lengthNs / std::max(mostTicks, 1);
  double apart = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {2.0, 2.5, 2.0})  // 1, 2, 5, 10
    if (apart < least) apart *= factor;
  std::vector<double> moments;
  for (double index = std::ceil(m_startNs / apart); index * apart <= endNs(); ++index) moments.push_back(index * apart);
  return moments;
}

}  // namespace fuseline::ui
