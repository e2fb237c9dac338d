// The colors of pinned runs. Each also has a letter: no run is told by its color alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"

#include <QColor>
#include <QPixmap>

namespace fuseline::ui {

/// Color of a slot, from 0, with a contrast of at least 3:1 on table backgrounds. Differs from the colors of ops and
/// verdicts.
QColor baselineColor(const Theme& theme, int slot);
/// A rounded square with the letter in it.
QPixmap baselineMark(const Theme& theme, int slot, int sizePx);

}  // namespace fuseline::ui
