// Joins steps by their ops.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_links.h"

#include <algorithm>
#include <map>
#include <string>

namespace fuseline::ui {

namespace {

/// Steps by the pass and an op of theirs.
std::multimap<std::pair<Phase, std::string>, std::size_t> stepsByOp(const TimelineTrack& track) {
  std::multimap<std::pair<Phase, std::string>, std::size_t> byOp;
  for (std::size_t i = 0; i < track.items.size(); ++i)
    if (track.items[i].level == TimelineLevel::Step)
      for (const std::string& op : track.items[i].ops) byOp.emplace(std::pair(track.items[i].phase, op), i);
  return byOp;
}

std::vector<TimelineLink> withoutRepeats(std::vector<TimelineLink> links) {
  std::ranges::sort(links);
  links.erase(std::unique(links.begin(), links.end()), links.end());
  return links;
}

/// Links from each step of `a` that `isWanted` to the steps of `b` in a pass.
template <class IsWanted, class PassOf>
std::vector<TimelineLink> linksBetween(const TimelineTrack& a, const TimelineTrack& b, IsWanted isWanted,
                                       PassOf passOf) {
  const auto byOp = stepsByOp(b);
  std::vector<TimelineLink> links;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (a.items[i].level != TimelineLevel::Step || !isWanted(a.items[i])) continue;
    for (const std::string& op : a.items[i].ops) {
      const auto [first, last] = byOp.equal_range({passOf(a.items[i]), op});
      for (auto found = first; found != last; ++found) links.emplace_back(i, found->second);
    }
  }
  return withoutRepeats(std::move(links));
}

}  // namespace

std::vector<TimelineLink> sameWork(const TimelineTrack& a, const TimelineTrack& b) {
  return linksBetween(
      a, b, [](const TimelineItem&) { return true; }, [](const TimelineItem& item) { return item.phase; });
}

std::vector<TimelineLink> acrossPasses(const TimelineTrack& track) {
  return linksBetween(
      track, track, [](const TimelineItem& item) { return item.phase == Phase::Forward; },
      [](const TimelineItem&) { return Phase::Backward; });
}

}  // namespace fuseline::ui
