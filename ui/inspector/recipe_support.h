// Why a recipe cannot run on the device that was chosen.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"
#include "ui/session/session.h"

#include <QString>

namespace fuseline::ui {

/// A sentence; empty: it can. Pipelines are planned with it all the same. On a CPU every recipe is emulated.
QString whyNotOn(const RunTarget& target, const Recipe& recipe);

}  // namespace fuseline::ui
