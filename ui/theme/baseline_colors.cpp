// Colors and marks of pinned runs.
// SPDX-License-Identifier: Apache-2.0
#include "ui/theme/baseline_colors.h"

#include <QGuiApplication>
#include <QPainter>

#include <array>

namespace fuseline::ui {

namespace {

// Apart from each other in lightness, too.
constexpr std::array kOnLight = {"#7a4fb5", "#c2458a", "#5b7f1f", "#4b4f9e"};
constexpr std::array kOnDark = {"#b794f0", "#f08cc0", "#b5d36a", "#9aa8ff"};

}  // namespace

QColor baselineColor(const Theme& theme, int slot) {
  const auto& colors = theme.isDark() ? kOnDark : kOnLight;
  return QColor(colors[static_cast<std::size_t>(slot) % colors.size()]);
}

QPixmap baselineMark(const Theme& theme, int slot, int sizePx) {
  const double ratio = qGuiApp->devicePixelRatio();
  QPixmap mark(qRound(sizePx * ratio), qRound(sizePx * ratio));
  mark.setDevicePixelRatio(ratio);
  mark.fill(Qt::transparent);
  QPainter painter(&mark);
  painter.setRenderHint(QPainter::Antialiasing);
  const QRectF all(0, 0, sizePx, sizePx);
  painter.setPen(Qt::NoPen);
  painter.setBrush(baselineColor(theme, slot));
  painter.drawRoundedRect(all, 3, 3);
  QFont font = scaledFont(1.0, QFont::Bold);
  font.setPixelSize(qRound(sizePx * 0.75));
  painter.setFont(font);
  painter.setPen(textOn(baselineColor(theme, slot)));
  painter.drawText(all, Qt::AlignCenter, QString(QChar(u'A' + slot)));
  return mark;
}

}  // namespace fuseline::ui
