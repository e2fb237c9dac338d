// Finds a lane for everything that ran, so that nothing lies half over something else.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// The first lane for steps; copies go to the other lanes, wherever they fit.
constexpr int kStepLane = 0;
constexpr int kFirstSideLane = 1;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

TimelineBox boxOf(const TimelineSpan& span) {
  return {.level = span.activity < 0 ? TimelineLevel::Step : TimelineLevel::Activity,
          .step = span.step,
          .activity = span.activity,
          .startNs = std::llround(span.startNs),
          .endNs = std::llround(span.startNs + span.durationNs)};
}

/// Clocks of a device tell the end of a kernel and the begin of the next one only so well apart.
bool isByTheClock(const TimelineBox& before, const TimelineBox& next) {
  constexpr std::int64_t kMostNs = 1000;
  constexpr std::int64_t kLeastShare = 20;  // of the shorter one
  const std::int64_t overlap = before.endNs - next.startNs;
  const std::int64_t shorter = std::min(before.endNs - before.startNs, next.endNs - next.startNs);
  return overlap > 0 && overlap <= kMostNs && overlap * kLeastShare <= shorter && before.endNs < next.endNs;
}

bool beginsFirst(const TimelineBox& a, const TimelineBox& b) {
  return std::tuple(a.startNs, a.level, a.endNs) < std::tuple(b.startNs, b.level, b.endNs);
}

class Lanes {
 public:
  explicit Lanes(const VariantRecord& variant) : m_variant(variant) {}

  TimelineLayout layOut() {
    std::vector<TimelineBox> boxes = stepsAndActivities();
    std::ranges::stable_sort(boxes, beginsFirst);
    for (TimelineBox& box : boxes) place(box);
    for (const TimelineBox& box : boxes) m_layout.endNs = std::max(m_layout.endNs, box.endNs);
    const std::vector<TimelineBox> passes = passesOf(boxes);
    boxes.insert(boxes.begin(), passes.begin(), passes.end());
    std::ranges::stable_sort(boxes, [](const TimelineBox& a, const TimelineBox& b) {
      return a.lane != b.lane ? a.lane < b.lane : beginsFirst(a, b);
    });
    m_layout.boxes = std::move(boxes);
    m_layout.numLanes = static_cast<int>(m_laneEnds.size());
    addRankLanes();
    addHostLane();
    return std::move(m_layout);
  }

 private:
  /// Where the device was traced, a step lasts from the first thing that was done for it to the last.
  std::vector<TimelineBox> stepsAndActivities() const {
    std::vector<TimelineBox> boxes;
    std::map<int, TimelineBox> steps;
    for (const TimelineBox& box : spansApart()) {
      if (box.activity >= 0) boxes.push_back(box);
      if (box.step < 0) continue;
      TimelineBox& step = steps.try_emplace(box.step, box).first->second;
      step.level = TimelineLevel::Step;
      step.activity = -1;
      step.startNs = std::min(step.startNs, box.startNs);
      step.endNs = std::max(step.endNs, box.endNs);
    }
    for (const auto& [index, step] : steps) boxes.push_back(step);
    return boxes;
  }

  /// Spans in the order of their start. The earlier one of two steps that overlap by the clock alone is cut.
  std::vector<TimelineBox> spansApart() const {
    std::vector<TimelineBox> spans;
    for (const TimelineSpan& span : m_variant.timeline.spans) spans.push_back(boxOf(span));
    std::ranges::stable_sort(spans, beginsFirst);
    TimelineBox* before = nullptr;
    for (TimelineBox& span : spans) {
      if (span.step < 0 || m_variant.steps[at(span.step)].isTransfer()) continue;
      if (before && before->step != span.step && isByTheClock(*before, span)) before->endNs = span.startNs;
      before = &span;
    }
    return spans;
  }

  /// Boxes come in the order of their start, a step before its activities.
  void place(TimelineBox& box) {
    const bool isInStep = box.level == TimelineLevel::Activity && box.step >= 0;
    if (isInStep && fitsIntoStep(box)) return;
    const bool isBeside = box.level == TimelineLevel::Activity || m_variant.steps[at(box.step)].isTransfer();
    box.lane = isBeside ? kFirstSideLane : kStepLane;
    while (endOf(box.lane) > box.startNs) ++box.lane;
    endOf(box.lane) = box.endNs;
    if (box.level == TimelineLevel::Step) m_placed[box.step] = {.lane = box.lane, .filledTo = box.startNs};
  }

  /// Concurrent activities of a step do not fit into its box.
  bool fitsIntoStep(TimelineBox& box) {
    PlacedStep& step = m_placed.at(box.step);
    if (step.filledTo > box.startNs) return false;
    step.filledTo = box.endNs;
    box.lane = step.lane;
    return true;
  }

  std::int64_t& endOf(int lane) {
    if (m_laneEnds.size() <= at(lane)) m_laneEnds.resize(at(lane) + 1, 0);
    return m_laneEnds[at(lane)];
  }

  /// Passes from the boxes of the steps' lane, in order: successive boxes of the same phase.
  std::vector<TimelineBox> passesOf(const std::vector<TimelineBox>& boxes) const {
    std::vector<TimelineBox> passes;
    for (const TimelineBox& box : boxes) {
      if (box.level != TimelineLevel::Step || box.lane != kStepLane) continue;
      const auto phaseOf = [&](int step) -> const std::string& { return m_variant.steps[at(step)].phase; };
      if (passes.empty() || phaseOf(passes.back().step) != phaseOf(box.step)) {
        passes.push_back(box);
        passes.back().level = TimelineLevel::Pass;
      }
      passes.back().endNs = std::max(passes.back().endNs, box.endNs);
    }
    return passes;
  }

  /// A rank does one thing at a time.
  void addRankLanes() {
    const int first = m_layout.numLanes;
    const auto begin = static_cast<std::ptrdiff_t>(m_layout.boxes.size());
    for (const TimelineSpan& span : m_variant.timeline.rankSpans) {
      TimelineBox box = boxOf(span);
      box.level = TimelineLevel::RankStep;
      box.lane = first + span.rank;
      m_layout.numRanks = std::max(m_layout.numRanks, span.rank + 1);
      m_layout.endNs = std::max(m_layout.endNs, box.endNs);
      m_layout.boxes.push_back(box);
    }
    std::stable_sort(m_layout.boxes.begin() + begin, m_layout.boxes.end(), [](const auto& a, const auto& b) {
      return std::tuple(a.lane, a.startNs) < std::tuple(b.lane, b.startNs);
    });
    m_layout.numLanes += m_layout.numRanks;
  }

  /// The host does one thing at a time.
  void addHostLane() {
    m_layout.hasHostLane = !m_variant.timeline.launches.empty();
    if (!m_layout.hasHostLane) return;
    const int lane = m_layout.numLanes++;
    for (const TimelineSpan& launch : m_variant.timeline.launches) {
      TimelineBox box = boxOf(launch);
      box.level = TimelineLevel::Launch;
      box.lane = lane;
      m_layout.endNs = std::max(m_layout.endNs, box.endNs);
      m_layout.boxes.push_back(box);
    }
  }

  struct PlacedStep {
    int lane = 0;
    std::int64_t filledTo = 0;
  };
  const VariantRecord& m_variant;
  TimelineLayout m_layout;
  std::vector<std::int64_t> m_laneEnds;
  std::map<int, PlacedStep> m_placed;
};

}  // namespace

std::string whyNoTimeline(const RunRecord& record) {
  const auto hasSpans = [](const VariantRecord& variant) { return !variant.timeline.spans.empty(); };
  if (std::ranges::any_of(record.variants, hasSpans)) return {};
  if (!record.settings.timesSteps()) return "it was measured with --timing none, as whole runs only";
  if (record.isPartial) return "it was cancelled before a round was complete";
  return fmt::format("{}, which wrote it, stored none", record.createdWith);
}

TimelineLayout layOut(const VariantRecord& variant) { return Lanes(variant).layOut(); }

std::string laneName(const TimelineLayout& layout, int lane) {
  if (lane == kStepLane) return "steps";
  const int rank = lane - layout.firstRankLane();
  if (rank >= layout.numRanks) return "launches by the host";
  if (rank >= 0) return fmt::format("rank {}", rank);
  return lane == kFirstSideLane ? "concurrent with the steps" : fmt::format("concurrent with the steps, {}", lane);
}

std::vector<std::vector<double>> rankWaitsNs(const VariantRecord& variant) {
  std::vector<std::vector<double>> waits(variant.steps.size());
  for (const TimelineSpan& span : variant.timeline.rankSpans) {
    if (variant.steps[at(span.step)].collective.empty()) continue;
    std::vector<double>& ofStep = waits[at(span.step)];
    ofStep.resize(std::max(ofStep.size(), at(span.rank) + 1));
    ofStep[at(span.rank)] = span.durationNs;
  }
  for (std::vector<double>& ofStep : waits) {
    if (ofStep.empty()) continue;
    const double leastNs = *std::ranges::min_element(ofStep);
    for (double& waitNs : ofStep) waitNs -= leastNs;
  }
  return waits;
}

const ActivityRecord* activityOf(const VariantRecord& variant, const TimelineBox& box) {
  if (box.level != TimelineLevel::Activity) return nullptr;
  const auto& activities = box.step < 0 ? variant.unattributed : variant.steps[at(box.step)].activities;
  return &activities[at(box.activity)];
}

std::string nameOf(const VariantRecord& variant, const TimelineBox& box) {
  if (const ActivityRecord* activity = activityOf(variant, box)) return activity->name;
  if (box.step < 0) return "launch all steps";
  const StepRecord& step = variant.steps[at(box.step)];
  if (box.level == TimelineLevel::Launch) return "launch " + step.name;
  return box.level == TimelineLevel::Pass ? step.phase : step.range();
}

}  // namespace fuseline
