// Jumps and the way back.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_zoom.h"

#include <utility>

namespace fuseline::ui {

namespace {

constexpr double kMarginShare = 0.08;
constexpr double kRoomBehind = 1.01;  // so that the last boxes do not touch the border

}  // namespace

bool TimelineZoom::setTotal(double totalNs) {
  if (std::exchange(m_totalNs, totalNs) == totalNs) return false;
  m_range.setTotal(totalNs * kRoomBehind);
  m_earlier.clear();
  return true;
}

void TimelineZoom::jumpTo(double startNs, double endNs) {
  const double marginNs = (endNs - startNs) * kMarginShare;
  m_earlier.push_back(m_range);
  m_range.show(startNs - marginNs, endNs + marginNs);
}

void TimelineZoom::jumpToAll() { jumpTo(0.0, m_totalNs * kRoomBehind); }

void TimelineZoom::back() {
  if (m_earlier.empty()) return;
  m_range = m_earlier.back();
  m_earlier.pop_back();
}

}  // namespace fuseline::ui
