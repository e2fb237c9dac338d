// Texts about runs that stand beside their figures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_folder.h"
#include "ui/session/session.h"

#include <QString>

namespace fuseline::ui {

/// Reason why the figures do not belong to the shown pipeline and plan; empty if they do.
QString staleText(const LastRun& run);

/// "Measured 2026-11-26 on <b>NVIDIA H200</b> (cuda:0, sm_90, driver 570), opened from R.fuserun": of a run that was
/// not measured here; rich text.
QString originText(const LastRun& run);

/// "with M = 64, margin = 2, rules te, without ForwardLinearEpilogue@fc1": what options put in place of what the
/// pipeline says, besides the recipe's name; mostly empty.
QString overridesText(const RunSummary& summary);

}  // namespace fuseline::ui
