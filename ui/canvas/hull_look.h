// HullLook: what the canvas shows of one fusion, computed from the plan and the last run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_scope.h"
#include "ui/session/session.h"

#include <QString>
#include <QStringList>

#include <memory>
#include <vector>

namespace fuseline::ui {

/// Forward hulls are solid with their label above, backward ones dashed and hatched with it below, joint ones
/// dash-dotted and cross-hatched: the kinds can be told apart without color. What is switched off is dotted and empty.
enum class HullKind { Forward, Backward, Joint };

struct HullLook {
  HullKind kind = HullKind::Forward;
  QString rule;
  QString label;
  QString farLabel;  // shorter, with the measured gain first
  QString tip;
  bool isOff = false;  // switched off at this place: only where it would be
  QStringList owners;  // ops of what is shown, in forward order
  bool operator==(const HullLook&) const = default;
};

enum class HullFilter { None, Forward, Backward, Both };

/// All that hulls depend on, besides the run's figures.
struct HullSource {
  std::shared_ptr<const Analysis> analysis;
  Json fusion;
  bool isMeasured = false;  // the last run is about this pipeline
  QStringList scope;
  HullFilter filter = HullFilter::None;
  bool hasSpeedups = false;
  bool operator==(const HullSource&) const = default;
};
HullSource hullSource(const Session& session, const CanvasScope& scope, HullFilter filter, bool withSpeedups);

/// Hulls of the shown fused entries of both plans, and of fusions that are switched off at one place.
/// Inside a block: only hulls with ops in the entered instance.
/// withSpeedups: labels show measured speed-ups, if the last run belongs to this pipeline.
std::vector<HullLook> hullLooks(const Session& session, const CanvasScope& scope, HullFilter filter, bool withSpeedups);
/// The same of another analysis than the session's.
std::vector<HullLook> hullLooksOf(const Analysis& analysis, const Session& session, const CanvasScope& scope,
                                  HullFilter filter, bool withSpeedups);

}  // namespace fuseline::ui
