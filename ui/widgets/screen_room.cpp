// A dialog that is higher than the screen has its buttons below its edge.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/screen_room.h"

#include <QScreen>

namespace fuseline::ui {

QSize sizeOnScreen(QSize wanted, QSize available) {
  constexpr QSize kFrame(16, 40);
  return wanted.boundedTo(available - kFrame);
}

void resizeOnScreen(QWidget& window, QSize wanted) {
  window.resize(sizeOnScreen(wanted, window.screen()->availableGeometry().size()));
}

}  // namespace fuseline::ui
