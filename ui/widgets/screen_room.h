// Room on the screen for dialogs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QSize>
#include <QWidget>

namespace fuseline::ui {

/// available: the screen without the panels of the desktop. Leaves room for the title bar and the frame.
QSize sizeOnScreen(QSize wanted, QSize available);
/// On the widget's own screen.
void resizeOnScreen(QWidget& window, QSize wanted);

}  // namespace fuseline::ui
