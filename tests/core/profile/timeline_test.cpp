// Boxes of a timeline: nothing lies half over something else, and nothing is lost.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

VariantRecord variantOf(const std::vector<std::pair<std::string, std::string>>& steps,
                        std::vector<TimelineSpan> spans) {
  VariantRecord variant{.name = "fused"};
  for (const auto& [name, phase] : steps)
    variant.steps.push_back(
        {.name = name, .phase = phase, .kernel = name, .activities = {{"k", "", {}}, {"l", "", {}}}});
  variant.unattributed = {{"fill", "", {}}};
  variant.timeline = {.round = 0, .spans = std::move(spans)};
  return variant;
}

std::string toText(const VariantRecord& variant, const TimelineLayout& layout) {
  std::string text;
  for (const TimelineBox& box : layout.boxes) {
    const ActivityRecord* activity = activityOf(variant, box);
    const std::string name = activity ? activity->name
                             : box.level == TimelineLevel::Pass
                                 ? nameOf(variant, box)
                                 : variant.steps[static_cast<std::size_t>(box.step)].name;
    text += std::to_string(box.lane) + ":" + name + "[" + std::to_string(box.startNs) + "," +
            std::to_string(box.endNs) + "] ";
  }
  return text;
}

TEST(Timeline, PutsStepsIntoTheirPasses) {
  const VariantRecord variant =
      variantOf({{"a", "forward"}, {"b", "forward"}, {"c", "backward"}}, {{.step = 0, .startNs = 0, .durationNs = 10},
                                                                          {.step = 1, .startNs = 12, .durationNs = 5},
                                                                          {.step = 2, .startNs = 17, .durationNs = 3}});
  EXPECT_EQ(toText(variant, layOut(variant)), "0:forward[0,17] 0:a[0,10] 0:b[12,17] 0:backward[17,20] 0:c[17,20] ");
  EXPECT_EQ(layOut(variant).endNs, 20);
}

/// The second kernel of the first step overlaps the first one; something that no step launched runs at the same time.
TEST(Timeline, PutsWhatIsDoneAtOnceBesideTheSteps) {
  const VariantRecord variant =
      variantOf({{"a", "forward"}}, {{.step = -1, .activity = 0, .startNs = 0, .durationNs = 2},
                                     {.step = 0, .activity = 0, .startNs = 1, .durationNs = 9},
                                     {.step = 0, .activity = 1, .startNs = 5, .durationNs = 9}});
  EXPECT_EQ(toText(variant, layOut(variant)), "0:forward[1,14] 0:a[1,14] 0:k[1,10] 1:fill[0,2] 1:l[5,14] ");
}

TEST(Timeline, GivesTheHostALaneOfItsOwn) {
  VariantRecord variant =
      variantOf({{"a", "forward"}, {"b", "forward"}},
                {{.step = 0, .startNs = 0, .durationNs = 10}, {.step = 1, .startNs = 12, .durationNs = 5}});
  EXPECT_FALSE(layOut(variant).hasHostLane);
  variant.timeline.launches = {{.step = 0, .startNs = 0, .durationNs = 4}, {.step = 1, .startNs = 4, .durationNs = 20}};
  const TimelineLayout layout = layOut(variant);
  EXPECT_TRUE(layout.hasHostLane);
  EXPECT_EQ(layout.numLanes, 2);
  EXPECT_EQ(layout.endNs, 24);
  EXPECT_EQ(toText(variant, layout), "0:forward[0,17] 0:a[0,10] 0:b[12,17] 1:a[0,4] 1:b[4,24] ");
  EXPECT_EQ(nameOf(variant, layout.boxes.back()), "launch b");
  variant.timeline.launches = {{.step = -1, .startNs = 0, .durationNs = 4}};
  EXPECT_EQ(nameOf(variant, layOut(variant).boxes.back()), "launch all steps");
}

TEST(Timeline, GivesEachRankALane) {
  VariantRecord variant =
      variantOf({{"a", "forward"}, {"gather", "forward"}},
                {{.step = 0, .startNs = 0, .durationNs = 10}, {.step = 1, .startNs = 10, .durationNs = 5}});
  variant.steps[1].collective = "all-gather";
  variant.timeline.launches = {{.step = 0, .startNs = 0, .durationNs = 1}};
  variant.timeline.rankSpans = {{.step = 0, .startNs = 0, .durationNs = 10, .rank = 1},
                                {.step = 1, .startNs = 10, .durationNs = 5, .rank = 1},
                                {.step = 0, .startNs = 0, .durationNs = 4, .rank = 0},
                                {.step = 1, .startNs = 4, .durationNs = 11, .rank = 0}};
  const TimelineLayout layout = layOut(variant);
  EXPECT_EQ(layout.numRanks, 2);
  EXPECT_EQ(layout.numLanes, 4);
  EXPECT_EQ(toText(variant, layout),
            "0:forward[0,15] 0:a[0,10] 0:gather[10,15] 1:a[0,4] 1:gather[4,15] 2:a[0,10] 2:gather[10,15] 3:a[0,1] ");
  for (const auto& [lane, name] : {std::pair(0, "steps"), {1, "rank 0"}, {2, "rank 1"}, {3, "launches by the host"}})
    EXPECT_EQ(laneName(layout, lane), name);
  // Rank 1 came last and waited for none.
  const std::vector<std::vector<double>> expected = {{}, {6.0, 0.0}};
  EXPECT_EQ(rankWaitsNs(variant), expected);
}

/// A copy must not push a concurrent step out of its lane.
TEST(Timeline, PutsCopiesOfOffloadingBesideTheSteps) {
  const VariantRecord variant = variantOf({{"a", "forward"}, {"offload", "forward"}, {"b", "forward"}},
                                          {{.step = 0, .activity = 0, .startNs = 0, .durationNs = 5},
                                           {.step = 1, .activity = 0, .startNs = 5, .durationNs = 30},
                                           {.step = 2, .activity = 0, .startNs = 6, .durationNs = 10}});
  EXPECT_EQ(toText(variant, layOut(variant)),
            "0:forward[0,16] 0:a[0,5] 0:k[0,5] 0:b[6,16] 0:k[6,16] 1:offload[5,35] 1:k[5,35] ");
}

/// If the device was not traced, its clock shows when the copy ran, and the step that began it ends at once.
TEST(Timeline, StretchesAStepToTheCopyThatItBegan) {
  const VariantRecord variant = variantOf({{"a", "forward"}, {"offload", "forward"}, {"b", "forward"}},
                                          {{.step = 0, .startNs = 0, .durationNs = 5},
                                           {.step = 1, .startNs = 5, .durationNs = 1},
                                           {.step = 2, .startNs = 6, .durationNs = 10},
                                           {.step = 1, .activity = 0, .startNs = 5, .durationNs = 30}});
  EXPECT_EQ(toText(variant, layOut(variant)), "0:forward[0,16] 0:a[0,5] 0:b[6,16] 1:offload[5,35] 1:k[5,35] ");
}

/// A device's clock lets a kernel begin 64 ns before the end of the one that it waited for.
TEST(Timeline, KeepsStepsInOneLaneThatOverlapByTheClockAlone) {
  const auto laidOut = [](double overlapNs) {
    const VariantRecord variant =
        variantOf({{"a", "forward"}, {"b", "forward"}},
                  {{.step = 0, .activity = 0, .startNs = 0, .durationNs = 30000},
                   {.step = 1, .activity = 0, .startNs = 30000 - overlapNs, .durationNs = 10000}});
    return toText(variant, layOut(variant));
  };
  EXPECT_EQ(laidOut(64), "0:forward[0,39936] 0:a[0,29936] 0:k[0,29936] 0:b[29936,39936] 0:k[29936,39936] ");
  EXPECT_EQ(laidOut(600), "0:forward[0,30000] 0:a[0,30000] 0:k[0,30000] 1:b[29400,39400] 1:k[29400,39400] ");
}

TEST(Timeline, IsEmptyWhereNothingWasTimed) {
  EXPECT_TRUE(layOut(variantOf({{"a", "forward"}}, {})).boxes.empty());
  EXPECT_EQ(layOut(variantOf({{"a", "forward"}}, {})).numLanes, 0);
}

TEST(Timeline, IsMissingForAReason) {
  RunRecord record{.createdWith = "fuseline 0.0.9"};
  record.variants = {variantOf({{"a", "forward"}}, {})};
  EXPECT_EQ(whyNoTimeline(record), "fuseline 0.0.9, which wrote it, stored none");
  record.isPartial = true;
  EXPECT_EQ(whyNoTimeline(record), "it was cancelled before a round was complete");
  record.settings.timing = StepTiming::None;
  EXPECT_EQ(whyNoTimeline(record), "it was measured with --timing none, as whole runs only");
  record.variants = {variantOf({{"a", "forward"}}, {{.step = 0, .durationNs = 1}})};
  EXPECT_EQ(whyNoTimeline(record), "");
}

VariantRecord arbitraryVariant() {
  const int numSteps = *rc::gen::inRange(1, 6);
  std::vector<std::pair<std::string, std::string>> steps;
  for (int i = 0; i < numSteps; ++i)
    steps.emplace_back(*rc::gen::element<std::string>("a", "offload", "reload_wait"), i < 3 ? "forward" : "backward");
  const bool isTraced = *rc::gen::arbitrary<bool>();
  std::vector<TimelineSpan> spans;
  const int numSpans = isTraced ? *rc::gen::inRange(0, 30) : numSteps;
  for (int i = 0; i < numSpans; ++i) {
    const int step = isTraced ? *rc::gen::inRange(-1, numSteps) : i;
    spans.push_back({.step = step,
                     .activity = !isTraced  ? -1
                                 : step < 0 ? 0
                                            : *rc::gen::inRange(0, 2),
                     .startNs = *rc::gen::inRange(0, 4000) / 16.0,
                     .durationNs = *rc::gen::inRange(0, 900) / 16.0});
  }
  return variantOf(steps, std::move(spans));
}

bool isApartOrNested(const TimelineBox& a, const TimelineBox& b) {
  if (a.endNs <= b.startNs || b.endNs <= a.startNs) return true;
  return (a.startNs <= b.startNs && b.endNs <= a.endNs) || (b.startNs <= a.startNs && a.endNs <= b.endNs);
}

TEST(Timeline, NestsStrictlyAndLosesNothing) {
  EXPECT_TRUE(rc::check([] {
    const VariantRecord variant = arbitraryVariant();
    const TimelineLayout layout = layOut(variant);
    std::size_t numActivities = 0;
    std::set<int> steps;
    for (std::size_t i = 0; i < layout.boxes.size(); ++i) {
      const TimelineBox& box = layout.boxes[i];
      RC_ASSERT(box.lane < layout.numLanes);
      RC_ASSERT(box.startNs <= box.endNs && box.endNs <= layout.endNs);
      numActivities += box.level == TimelineLevel::Activity;
      if (box.level == TimelineLevel::Step) RC_ASSERT(steps.insert(box.step).second);
      for (std::size_t other = 0; other < i; ++other) {
        const TimelineBox& before = layout.boxes[other];
        if (before.lane != box.lane) continue;
        RC_ASSERT(isApartOrNested(before, box));
        RC_ASSERT(before.startNs < box.startNs || (before.startNs == box.startNs && before.level <= box.level));
        if (before.level == box.level) RC_ASSERT(before.endNs <= box.startNs);
      }
    }
    std::set<int> seen;
    for (const TimelineSpan& span : variant.timeline.spans)
      if (span.step >= 0) seen.insert(span.step);
    RC_ASSERT(steps == seen);
    RC_ASSERT(numActivities ==
              static_cast<std::size_t>(std::ranges::count_if(
                  variant.timeline.spans, [](const TimelineSpan& span) { return span.activity >= 0; })));
  }));
}

}  // namespace
}  // namespace fuseline
