// Sentences that every panel with a run's figures shows beside them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"

#include <QString>

namespace fuseline::ui {

/// What keeps the figures from being those of the pipeline and the plan as they are shown; mostly empty.
QString staleText(const LastRun& run);

}  // namespace fuseline::ui
