// RooflinePlot: the steps of a run as dots by intensity and speed, under the roofs that were measured with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/profile/run_record.h"
#include "ui/models/axis_range.h"

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
  bool isBackward = false;
  double intensity = 0.0;  // FLOP per byte
  double gflops = 0.0;
  double timeNs = 0.0;
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

/// What the data sheet of the device says of the roofs that were measured; empty where none is known.
struct RooflineSheet {
  double memoryGBps = 0.0;
  std::vector<RooflineCeiling> ceilings;

  bool isKnown() const { return memoryGBps > 0.0; }
  /// Where its memory meets its highest ceiling.
  double ridge() const { return ceilings.empty() ? 0.0 : ceilings.front().gflops / memoryGBps; }
};

struct RooflinePlot {
  std::vector<RooflineDot> dots;  // by plan, then in the order of the plan
  std::vector<RooflineArrow> arrows;
  double copyGBps = 0.0;                  // 0: no roofs
  std::vector<RooflineCeiling> ceilings;  // the highest first
  RooflineSheet sheet;
  int numWithoutArithmetic = 0;  // steps that only move bytes, and have no place on the axis

  bool hasRoofs() const { return copyGBps > 0.0; }
  /// Where memory and the highest ceiling meet, in FLOP per byte; 0: there are no roofs.
  double ridge() const { return hasRoofs() && !ceilings.empty() ? ceilings.front().gflops / copyGBps : 0.0; }
};

/// graph: of the pipeline that ran, for the categories of its ops; may be nullptr.
RooflinePlot rooflinePlot(const RunRecord& record, const Graph* graph);

/// Axes that show all dots, all ceilings and the ridge.
LogRange intensityRange(const RooflinePlot& plot);
LogRange speedRange(const RooflinePlot& plot);

}  // namespace fuseline::ui
