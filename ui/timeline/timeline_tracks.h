// TimelineTracks: one round of each variant as rows of boxes, from one origin.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/graph/phase.h"
#include "core/profile/timeline.h"
#include "ui/timeline/timeline_range.h"

#include <QString>
#include <QStringList>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fuseline::ui {

struct TimelineItem {
  TimelineLevel level = TimelineLevel::Step;
  int row = 0;  // of its track: passes, steps, kernels if any, what runs beside them, ranks, the host's launches
  double startNs = 0.0;
  double endNs = 0.0;
  QString label;                      // as much of a name as a box needs
  int step = -1;                      // index in the variant's steps; -1: no step's, or the launch of all
  QString stepName;                   // "fc1.linear"
  QString kernel;                     // of a step: what does its work, "BasicLinear"
  std::optional<std::int64_t> bytes;  // of a step: read and written, by the model's count
  QString tip;
  QStringList owners;
  std::vector<std::string> ops;
  std::string category;  // of its op, for its color; empty for a pass
  bool isFused = false;
  Phase phase = Phase::Forward;
  double waitNs = 0.0;  // at its start: for other ranks, in a collective
};

struct TimelineTrack {
  QString name;     // "unfused"
  QString summary;  // "12.3 ms, 97 % of it busy"
  /// Kinds of its rows: Pass, Step, ...; rows next to the steps are Activity rows, then a RankStep row for each rank;
  /// the last may be Launch.
  std::vector<TimelineLevel> rows;
  bool hasKernels = false;          // right below the steps, what was done for them
  std::vector<TimelineItem> items;  // by row, then by time
  double endNs = 0.0;
};

/// Variants without a timeline have no track. graph: of the pipeline that ran, for the categories of its ops; may be
/// nullptr.
std::vector<TimelineTrack> timelineTracks(const RunRecord& record, const Graph* graph);

/// Items of a row that are drawn as one box: one, or neighbors that are too narrow to be told apart.
struct TimelineCell {
  std::size_t first = 0;  // item
  std::size_t last = 0;   // of them, the last one
  double left = 0.0;      // in pixels, within the width
  double right = 0.0;
  bool isSeveral() const { return last > first; }
  /// Too narrow to be seen beside its neighbors.
  bool isNarrow() const { return right - left < kNarrowPx; }
  static constexpr double kNarrowPx = 3.0;
};

/// Visible cells at a width in pixels. Short cells are never dropped.
std::vector<TimelineCell> cellsInView(const TimelineTrack& track, const TimelineRange& range, double widthPx);

/// "7 steps, 1.2 ms of 1.3 ms in steps": what of a track lies between two moments.
QString spanSummary(const TimelineTrack& track, double startNs, double endNs);

}  // namespace fuseline::ui
