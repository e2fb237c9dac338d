// How the passes of a training step look and are called in pictures of time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/phase.h"
#include "ui/theme/theme.h"

#include <QString>

namespace fuseline::ui {

/// "Forward →", "← Backward", "Optimizer"; another name as it is.
QString passLabel(const QString& name);
QColor passColor(const ThemeColors& colors, Phase phase);

}  // namespace fuseline::ui
