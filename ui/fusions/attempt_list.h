// Which attempts "why not?" shows for a selection, and in which order. Pure, so that it is easily tested.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"

#include <QSet>
#include <QString>

#include <vector>

namespace fuseline::ui {

struct AttemptList {
  /// Fusions that apply first, then misses, each by what they gain, most first: measured, or else predicted.
  std::vector<const Attempt*> shown;
  /// Rules that only matched the first op of their chain: too far from a fusion to be listed first.
  std::vector<const Attempt*> distant;
};

/// The attempts that touch one of the selected document ops; all of them for an empty selection. Where there are none,
/// those that end because one of these ops comes next. The pointers live as long as the analysis.
AttemptList attemptsFor(const Analysis& analysis, const QSet<QString>& selection);

}  // namespace fuseline::ui
