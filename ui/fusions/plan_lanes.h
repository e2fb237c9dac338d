// PlanLanes: the forward and the backward plan as two rows of boxes over the pipeline's basic ops.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fusion_stages.h"
#include "core/plan/analysis.h"

#include <QString>
#include <QStringList>

#include <cstddef>
#include <vector>

namespace fuseline::ui {

struct LaneBox {
  int firstColumn = 0;
  int lastColumn = 0;
  QString label;
  QString rule;  // empty: a basic op
  QStringList owners;
  std::size_t entry = 0;  // of the stage's report
  bool isFused = false;
  bool isJoint = false;
  bool operator==(const LaneBox&) const = default;
};

struct PlanLanes {
  /// Ids of the basic ops in topological order: one column each.
  QStringList columns;
  /// In execution order of the forward pass. Backward runs from right to left.
  std::vector<LaneBox> forward;
  std::vector<LaneBox> backward;
  bool operator==(const PlanLanes&) const = default;
};

/// As the fuser left them after this stage.
PlanLanes planLanes(const Analysis& analysis, FusionStage stage = FusionStage::FusedOperands);
/// The tip of a box of these lanes; made for the one that is pointed at, because there are very many.
QString laneTip(const Analysis& analysis, FusionStage stage, const LaneBox& box, Phase phase);
/// "forward: 5 launches instead of 8 · backward: 9 instead of 12 · peak memory ..."; empty without a plan.
QString planSummary(const Analysis& analysis);
/// "Forward rules".
QString stageName(FusionStage stage);
/// Fusions of this stage: "Forward rules: ForwardLinearEpilogue (fc1, act)."
QString stageSummary(const Analysis& analysis, FusionStage stage);

}  // namespace fuseline::ui
