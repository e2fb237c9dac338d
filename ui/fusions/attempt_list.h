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
  /// Rules that only matched the first op of their chain, and those whose ops all are in one other fusion: not listed
  /// first.
  std::vector<const Attempt*> distant;
};

/// The attempts that touch one of the selected document ops; all of them for an empty selection. Where there are none,
/// those that end because one of these ops comes next. The pointers live as long as the analysis.
AttemptList attemptsFor(const Analysis& analysis, const QSet<QString>& selection);

/// The same attempt in several instances of a block, in the order of the list; a single one outside of blocks.
using InstanceAttempts = std::vector<const Attempt*>;
/// Lists attempts that differ only in the instance once, at the place of the first.
std::vector<InstanceAttempts> foldedAttempts(const Graph& graph, const std::vector<const Attempt*>& attempts);

/// "fc1, act" for one attempt; for several the names within their blocks.
QString opsText(const Graph& graph, const InstanceAttempts& attempts);

}  // namespace fuseline::ui
