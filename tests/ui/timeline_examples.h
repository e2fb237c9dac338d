// Runs whose timelines are known, and a window with one of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/ui/ui_test_support.h"

#include <string>
#include <utility>
#include <vector>

namespace fuseline::ui {

inline StepRecord measuredStep(std::string name, std::string phase, std::vector<std::string> ops,
                               std::string rule = {}) {
  return {.name = std::move(name),
          .rule = std::move(rule),
          .phase = std::move(phase),
          .kernel = "BasicLinear",
          .ops = ops,
          .owners = std::move(ops)};
}

/// a and b forward, a backward; the fused plan does both forward in one.
inline RunRecord twoVariants() {
  RunRecord record;
  record.variants = {
      {.name = "unfused",
       .steps = {measuredStep("a", "forward", {"a"}), measuredStep("b", "forward", {"b"}),
                 measuredStep("a", "backward", {"a"})},
       .timeline = {.spans = {{.step = 0, .startNs = 0, .durationNs = 100},
                              {.step = 1, .startNs = 100, .durationNs = 50},
                              {.step = 2, .startNs = 160, .durationNs = 40}}}},
      {.name = "fused",
       .steps = {measuredStep("R(a, b)", "forward", {"a", "b"}, "R"), measuredStep("a", "backward", {"a"})},
       .timeline = {
           .spans = {{.step = 0, .startNs = 0, .durationNs = 120}, {.step = 1, .startNs = 120, .durationNs = 40}}}}};
  return record;
}

/// A window with this run opened and its timeline in front.
struct OpenedTimeline : OpenedRun {
  explicit OpenedTimeline(const RunRecord& record) : OpenedRun(record, QStringLiteral("timeline")) {
    view().setFocus();
  }
  TimelineView& view() { return *window.timeline().view(); }
  QPoint middleOf(std::size_t track, std::size_t item) { return view().areaOf(track, item).center().toPoint(); }
};

/// twoVariants(), of which the fused one was traced: gemm and a copy in R(a, b), and a fill that no step launched.
inline RunRecord tracedVariant() {
  RunRecord record = twoVariants();
  VariantRecord& traced = record.variants[1];
  traced.steps[0].activities = {{"void a::b::gemm<c::d>(float*)", "grid 8", {100.0}},
                                {"copy, host to device", "", {20.0}}};
  traced.unattributed = {{"fill", "64 B", {5.0}}};
  traced.timeline.spans = {{.step = 0, .activity = 0, .startNs = 0, .durationNs = 100},
                           {.step = -1, .activity = 0, .startNs = 10, .durationNs = 5},
                           {.step = 0, .activity = 1, .startNs = 100, .durationNs = 20}};
  return record;
}

/// tracedVariant() as if the small pipeline had been measured so, which a window can open.
inline RunRecord tracedRun() {
  RunRecord record = measuredRun();
  record.variants = tracedVariant().variants;
  record.settings.timing = StepTiming::Cupti;
  return record;
}

}  // namespace fuseline::ui
