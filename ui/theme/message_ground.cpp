// Follows the theme.
// SPDX-License-Identifier: Apache-2.0
#include "ui/theme/message_ground.h"

namespace fuseline::ui {

void useMessageGround(QWidget& widget, const Theme& theme) {
  const auto apply = [&widget, &theme] {
    QPalette colors = widget.palette();
    colors.setColor(QPalette::Window, theme.messageColor());
    widget.setPalette(colors);
  };
  widget.setAutoFillBackground(true);
  QObject::connect(&theme, &Theme::changed, &widget, apply);
  apply();
}

}  // namespace fuseline::ui
