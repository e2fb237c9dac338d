// The ground of what stands across the canvas: messages, bars that wait, tours.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"

#include <QWidget>

namespace fuseline::ui {

/// From now on, whatever the theme becomes.
void useMessageGround(QWidget& widget, const Theme& theme);

}  // namespace fuseline::ui
