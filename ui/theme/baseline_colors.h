// The colours of pinned runs. Each also has a letter: no run is told by its colour alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"

#include <QColor>
#include <QPixmap>

namespace fuseline::ui {

/// Of a slot from 0 up, with a contrast of 3:1 at least on the ground of tables. No colour of ops or verdicts.
QColor baselineColor(const Theme& theme, int slot);
/// A rounded square with the letter in it.
QPixmap baselineMark(const Theme& theme, int slot, int sizePx);

}  // namespace fuseline::ui
