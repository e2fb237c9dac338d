// Size of a window that has never been shown.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QSize>

namespace fuseline::ui {

/// In logical pixels. available: the screen without the panels of the desktop. A title bar fits above the window.
QSize firstWindowSize(QSize available);

}  // namespace fuseline::ui
