// RooflinePlot: the steps of a run as dots by arithmetic intensity and FLOP/s, under the peaks measured with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/graph/phase.h"
#include "core/profile/run_record.h"
#include "ui/widgets/axis_range.h"

#include <QSet>
#include <QString>
#include <QStringList>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace fuseline::ui {

struct RooflineDot {
  QString label;  // the step's name
  QString tip;    // rich text
  QString words;  // the same in plain words, for assistive technology
  QStringList owners;
  std::string category;
  bool isOfFusedPlan = false;
  Phase phase = Phase::Forward;
  double intensity = 0.0;  // FLOP per byte
  double gflops = 0.0;
  double timeNs = 0.0;

  /// Whether one of its ops is selected.
  bool isOneOf(const QSet<QString>& selection) const;
};

/// From a step of the unfused plan to the fused one that does its work; indices of dots.
struct RooflineArrow {
  std::size_t from = 0;
  std::size_t to = 0;
};

struct RooflineCeiling {
  QString name;  // "bf16"
  double gflops = 0.0;
};

/// Peaks of a device, measured or published.
struct RooflineLines {
  double memoryGBps = 0.0;                // 0: they are not known
  std::vector<RooflineCeiling> ceilings;  // the highest first

  bool isKnown() const { return memoryGBps > 0.0; }
  /// Where memory and the highest ceiling meet, in FLOP per byte; 0: they do not.
  double ridge() const { return isKnown() && !ceilings.empty() ? ceilings.front().gflops / memoryGBps : 0.0; }
};

struct RooflinePlot {
  std::vector<RooflineDot> dots;  // by plan, then in the order of the plan
  std::vector<RooflineArrow> arrows;
  RooflineLines measured;
  RooflineLines published;       // by the device's data sheet, of what was measured
  int numWithoutArithmetic = 0;  // steps that only move bytes, and have no place on the axis
};

/// graph: of the pipeline that ran, for the categories of its ops; may be nullptr.
RooflinePlot rooflinePlot(const RunRecord& record, const Graph* graph);

/// Axes that show all dots, all ceilings and the ridge.
LogRange intensityRange(const RooflinePlot& plot);
LogRange speedRange(const RooflinePlot& plot);

}  // namespace fuseline::ui
