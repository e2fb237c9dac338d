// TimelineZoom: what of a timeline is in view, and what was before.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/timeline/timeline_range.h"

#include <vector>

namespace fuseline::ui {

class TimelineZoom {
 public:
  const TimelineRange& range() const { return m_range; }
  double totalNs() const { return m_totalNs; }
  /// Another length shows all, and forgets what was shown before. False: it is the same.
  bool setTotal(double totalNs);
  void zoom(double factor, double aroundNs) { m_range.zoom(factor, aroundNs); }
  /// share: of the length in view.
  void pan(double share) { m_range.pan(share * m_range.lengthNs()); }
  void panNs(double byNs) { m_range.pan(byNs); }
  void reveal(double startNs, double endNs) { m_range.reveal(startNs, endNs); }
  /// With a margin; back() returns.
  void jumpTo(double startNs, double endNs);
  void jumpToAll();
  void back();

 private:
  TimelineRange m_range;
  std::vector<TimelineRange> m_earlier;
  double m_totalNs = 0.0;
};

}  // namespace fuseline::ui
