// A shade over the window, with the text on a card in its middle.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/drops/drop_overlay.h"

#include "ui/theme/theme.h"

#include <QPainter>

namespace fuseline::ui {

namespace {

constexpr int kShade = 130;  // of 255
constexpr int kInsetPx = 10;
constexpr int kPaddingPx = 28;
constexpr double kCornerPx = 8.0;

}  // namespace

DropOverlay::DropOverlay(QWidget& window) : QLabel(&window) {
  setAlignment(Qt::AlignCenter);
  setFont(scaledFont(1.4, QFont::DemiBold));
  setAttribute(Qt::WA_TransparentForMouseEvents);  // the drag goes on below
  hide();
}

void DropOverlay::announce(const QString& text) {
  setText(text);
  setGeometry(parentWidget()->rect());
  show();
  raise();
}

void DropOverlay::paintEvent(QPaintEvent* event) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(rect(), QColor(0, 0, 0, kShade));
  painter.setPen(QPen(palette().highlight(), 3, Qt::DashLine));
  painter.drawRoundedRect(QRectF(rect()).adjusted(kInsetPx, kInsetPx, -kInsetPx, -kInsetPx), kCornerPx, kCornerPx);
  QRect card = fontMetrics().boundingRect(rect(), static_cast<int>(alignment()), text());
  card.adjust(-kPaddingPx, -kPaddingPx / 2, kPaddingPx, kPaddingPx / 2);
  painter.setPen(Qt::NoPen);
  painter.setBrush(palette().window());
  painter.drawRoundedRect(card, kCornerPx, kCornerPx);
  painter.end();
  QLabel::paintEvent(event);
}

}  // namespace fuseline::ui
