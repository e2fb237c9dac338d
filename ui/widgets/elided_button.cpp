// A button that gives way to its surroundings.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/elided_button.h"

#include <QStyleOptionButton>
#include <QStylePainter>

#include <algorithm>

namespace fuseline::ui {

namespace {

constexpr int kLeastButtonPx = 60;

}  // namespace

ElidedButton::ElidedButton(const QString& text, QWidget* parent) : QPushButton(text, parent) { setToolTip(text); }

QSize ElidedButton::minimumSizeHint() const {
  return {std::min(kLeastButtonPx, sizeHint().width()), QPushButton::minimumSizeHint().height()};
}

void ElidedButton::paintEvent(QPaintEvent*) {
  QStylePainter painter(this);
  QStyleOptionButton option;
  initStyleOption(&option);
  const int room = style()->subElementRect(QStyle::SE_PushButtonContents, &option, this).width();
  option.text = fontMetrics().elidedText(option.text, Qt::ElideRight, room, Qt::TextShowMnemonic);
  painter.drawControl(QStyle::CE_PushButton, option);
}

}  // namespace fuseline::ui
