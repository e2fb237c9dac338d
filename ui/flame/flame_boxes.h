// FlameBoxes: the time of a plan as boxes beneath one another, each as wide as it took.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/graph/phase.h"
#include "core/profile/time_tree.h"

#include <QRegularExpression>
#include <QString>
#include <QStringList>

#include <cstddef>
#include <string>
#include <vector>

namespace fuseline::ui {

struct FlameBox {
  TimeLevel level = TimeLevel::Plan;
  int row = 0;
  std::size_t parent = 0;  // the plan is its own
  double startNs = 0.0;    // from the plan's left border
  double endNs = 0.0;
  QString name;   // the whole, for searches
  QString label;  // as much of it as a box needs
  QString tip;
  QString words;         // for assistive technology
  QStringList owners;    // none of the plan and its passes
  std::string category;  // of its op, for its color; empty for what holds several
  bool isFused = false;
  Phase phase = Phase::Forward;
  bool isEstimate = false;

  double lengthNs() const { return endNs - startNs; }
};

/// A box before those beneath it, and those from left to right; the first one is the plan. Empty where steps were not
/// timed. graph: of the pipeline that ran, for the categories of its ops; may be nullptr.
std::vector<FlameBox> flameBoxes(const RunRecord& record, const VariantRecord& variant, Instances instances,
                                 const Graph* graph);

/// Boxes whose names the expression is found in, by box. No expression: none.
std::vector<bool> matchingBoxes(const std::vector<FlameBox>& boxes, const QRegularExpression& expression);

/// Total time of the matches. A match inside another match counts once; estimates do not count.
double matchedNs(const std::vector<FlameBox>& boxes, const std::vector<bool>& isMatch);

}  // namespace fuseline::ui
