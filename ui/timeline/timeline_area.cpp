// Selects the boxes to count, clips them to the time range and sums them.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_area.h"

#include "ui/widgets/translated.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

namespace fuseline::ui {

namespace {

using Items = std::vector<const TimelineItem*>;

double partNs(const TimelineItem& item, const TimelineArea& area) {
  return std::min(item.endNs, area.endNs) - std::max(item.startNs, area.startNs);
}

/// Items of a track in the time range and in selected rows, by start time.
Items itemsIn(const TimelineTrack& track, std::size_t index, const TimelineArea& area) {
  Items items;
  for (const TimelineItem& item : track.items)
    if (area.has(index, item.row) && partNs(item, area) > 0.0) items.push_back(&item);
  std::ranges::stable_sort(items, {}, [](const TimelineItem* item) { return item->startNs; });
  return items;
}

std::set<int> stepsOf(const Items& items, TimelineLevel level) {
  std::set<int> steps;
  for (const TimelineItem* item : items)
    if (item->level == level && item->step >= 0) steps.insert(item->step);
  return steps;
}

Items ofLevel(const Items& items, TimelineLevel level) {
  Items chosen;
  std::ranges::copy_if(items, std::back_inserter(chosen), [&](const auto* item) { return item->level == level; });
  return chosen;
}

/// Steps, and what was done for none of them; by kernel, what was done, and steps of which that is not known.
Items withoutRepeats(const Items& items, SumsBy by) {
  const bool isByKernel = by == SumsBy::Kernel;
  const TimelineLevel first = isByKernel ? TimelineLevel::Activity : TimelineLevel::Step;
  const TimelineLevel second = isByKernel ? TimelineLevel::Step : TimelineLevel::Activity;
  const std::set<int> known = stepsOf(items, first);
  Items chosen;
  for (const TimelineItem* item : items)
    if (item->level == first || (item->level == second && !known.contains(item->step))) chosen.push_back(item);
  if (chosen.empty()) chosen = ofLevel(items, TimelineLevel::RankStep);
  if (chosen.empty()) chosen = ofLevel(items, TimelineLevel::Pass);
  return chosen.empty() ? ofLevel(items, TimelineLevel::Launch) : chosen;
}

QString nameOf(const TimelineItem& item, SumsBy by) {
  const bool isWork = item.level != TimelineLevel::Pass && item.level != TimelineLevel::Launch;
  if (!isWork) return item.label;
  const bool isOfStep = item.step >= 0;
  switch (by) {
    case SumsBy::Step: return isOfStep ? item.stepName : item.label;
    case SumsBy::Category: {
      if (!isOfStep) return translated("outside of all steps");
      return item.category.empty() ? translated("other") : QString::fromStdString(item.category);
    }
    case SumsBy::Kernel:
      return item.level == TimelineLevel::Activity || item.kernel.isEmpty() ? item.label : item.kernel;
  }
  return {};
}

/// Work of the same name forward and backward is not the same step.
QString passOf(const TimelineItem& item, SumsBy by) {
  if (by != SumsBy::Step || item.step < 0 || item.level == TimelineLevel::Pass) return {};
  return toQt(phaseName(item.phase));
}

double medianOf(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// One row of the table while it is added up.
class Adder {
 public:
  explicit Adder(TimelineSum named) : m_sum(std::move(named)) { m_sum.bytes = 0.0; }

  void add(const TimelineItem& item, double partNs, double idleNs) {
    ++m_sum.count;
    m_sum.sumNs += partNs;
    m_sum.idleNs += idleNs;
    m_partsNs.push_back(partNs);
    if (!item.bytes) m_sum.bytes.reset();
    if (m_sum.bytes) *m_sum.bytes += static_cast<double>(*item.bytes) * partNs / (item.endNs - item.startNs);
    for (const QString& owner : item.owners)
      if (!m_sum.owners.contains(owner)) m_sum.owners.append(owner);
  }
  void addIdle(double idleNs) { m_sum.idleNs += idleNs; }

  TimelineSum done() const {
    TimelineSum sum = m_sum;
    sum.medianNs = m_partsNs.empty() ? 0.0 : medianOf(m_partsNs);
    return sum;
  }

 private:
  TimelineSum m_sum;
  std::vector<double> m_partsNs;
};

struct TrackSums {
  std::vector<TimelineSum> byName;
  TimelineSum total;
};

TrackSums sumsOfTrack(const TimelineTrack& track, std::size_t index, const TimelineArea& area, SumsBy by) {
  std::map<std::pair<QString, QString>, Adder> byName;
  Adder total({.track = index});
  double busyUntilNs = area.startNs;
  for (const TimelineItem* item : withoutRepeats(itemsIn(track, index, area), by)) {
    const double idleNs = std::max(0.0, item->startNs - busyUntilNs);
    busyUntilNs = std::max(busyUntilNs, std::min(item->endNs, area.endNs));
    const std::pair key(nameOf(*item, by), passOf(*item, by));
    Adder& adder =
        byName.try_emplace(key, TimelineSum{.track = index, .name = key.first, .pass = key.second}).first->second;
    adder.add(*item, partNs(*item, area), idleNs);
    total.add(*item, partNs(*item, area), idleNs);
  }
  total.addIdle(area.endNs - busyUntilNs);
  TrackSums sums{.byName = {}, .total = total.done()};
  for (const auto& [key, adder] : byName) sums.byName.push_back(adder.done());
  std::ranges::stable_sort(sums.byName, std::greater<>(), &TimelineSum::sumNs);
  return sums;
}

}  // namespace

bool TimelineArea::has(std::size_t track, int row) const {
  return std::ranges::find(rows, std::pair(track, row)) != rows.end();
}

std::vector<std::size_t> TimelineArea::tracks() const {
  std::vector<std::size_t> tracks;
  for (const auto& [track, row] : rows)
    if (std::ranges::find(tracks, track) == tracks.end()) tracks.push_back(track);
  return tracks;
}

TimelineArea areaBetween(const TimelineStack& stack, std::pair<double, double> timesNs, std::pair<double, double> yPx) {
  const auto [startNs, endNs] = std::minmax(timesNs.first, timesNs.second);
  const auto [top, bottom] = std::minmax(yPx.first, yPx.second);
  const auto isTouched = [top = top, bottom = bottom](double from, double heightPx) {
    return from <= bottom && top < from + heightPx;
  };
  TimelineArea area{.startNs = startNs, .endNs = endNs, .rows = {}};
  for (const auto& [track, row] : stack.tracks().rows())
    if (isTouched(stack.top(track), TimelineStack::kHeadHeightPx) ||
        isTouched(stack.rowTop(track, row), stack.rowHeight(track, row)))
      area.rows.emplace_back(track, row);
  if (area.rows.empty()) area.rows = stack.tracks().rows();
  return area;
}

TimelineArea areaOfBox(const ArrangedTracks& tracks, std::size_t track, const TimelineItem& item) {
  TimelineArea area{.startNs = item.startNs, .endNs = item.endNs, .rows = {}};
  for (const auto& place : tracks.rows())
    if (place.first == track) area.rows.push_back(place);
  return area;
}

std::optional<double> TimelineSum::bandwidthGBps() const {
  if (!bytes || *bytes <= 0.0 || sumNs <= 0.0) return std::nullopt;
  return *bytes / sumNs;  // bytes a nanosecond are GB a second
}

std::vector<TimelineSum> sumsOf(const std::vector<TimelineTrack>& tracks, const TimelineArea& area, SumsBy by) {
  std::vector<TimelineSum> sums;
  std::vector<TimelineSum> totals;
  for (const std::size_t track : area.tracks()) {
    TrackSums ofTrack = sumsOfTrack(tracks[track], track, area, by);
    std::ranges::move(ofTrack.byName, std::back_inserter(sums));
    totals.push_back(std::move(ofTrack.total));
  }
  std::ranges::move(totals, std::back_inserter(sums));
  return sums;
}

}  // namespace fuseline::ui
