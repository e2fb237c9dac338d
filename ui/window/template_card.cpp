// The picture above, two lines of text below.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/template_card.h"

#include <QFontMetrics>

namespace fuseline::ui {

namespace {
constexpr int kPaddingPx = 10;
constexpr int kSummaryLines = 2;
constexpr double kCornerPx = 6.0;
constexpr int kNarrowestPx = 180;
}  // namespace

TemplateCard::TemplateCard(const QString& name, const QString& summary, const Theme& theme, QWidget* parent)
    : QAbstractButton(parent), m_summary(summary), m_theme(theme) {
  setText(name);
  setAccessibleName(name);
  setAccessibleDescription(summary);
  setFocusPolicy(Qt::StrongFocus);
  setCursor(Qt::PointingHandCursor);
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
}

void TemplateCard::setPicture(const QPixmap& picture) {
  m_picture = picture;
  update();
}

int TemplateCard::lineHeight() const { return fontMetrics().lineSpacing(); }

QSize TemplateCard::sizeHint() const {
  return {kPictureSize.width() + 2, kPictureSize.height() + (1 + kSummaryLines) * lineHeight() + 2 * kPaddingPx};
}

QSize TemplateCard::minimumSizeHint() const { return {kNarrowestPx, sizeHint().height()}; }

void TemplateCard::enterEvent(QEnterEvent* event) {
  QAbstractButton::enterEvent(event);
  update();
}

void TemplateCard::leaveEvent(QEvent* event) {
  QAbstractButton::leaveEvent(event);
  update();
}

void TemplateCard::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  painter.setRenderHints(QPainter::Antialiasing | QPainter::SmoothPixmapTransform);
  drawFrame(painter);
  drawPicture(painter);
  drawTexts(painter);
}

void TemplateCard::drawFrame(QPainter& painter) const {
  const ThemeColors& colors = m_theme.colors();
  painter.setBrush(underMouse() ? colors.alternate : colors.base);
  painter.setPen(QPen(hasFocus() ? colors.accent : colors.border, hasFocus() ? 2.0 : 1.0));
  painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), kCornerPx, kCornerPx);
}

/// Smaller where the card is narrow.
void TemplateCard::drawPicture(QPainter& painter) const {
  const QRect room(3, 3, width() - 6, kPictureSize.height());
  painter.fillRect(room, m_theme.colors().canvas);
  if (!hasPicture()) return;
  QRect target(QPoint(), kPictureSize.scaled(room.size().boundedTo(kPictureSize), Qt::KeepAspectRatio));
  target.moveCenter(room.center());
  painter.drawPixmap(target, m_picture);
}

void TemplateCard::drawTexts(QPainter& painter) const {
  QRect room = rect().adjusted(kPaddingPx, kPictureSize.height() + kPaddingPx, -kPaddingPx, -kPaddingPx / 2);
  painter.setPen(m_theme.colors().text);
  painter.setFont(scaledFont(1.0, QFont::DemiBold));
  painter.drawText(room, Qt::AlignLeft | Qt::AlignTop, text());
  room.setTop(room.top() + lineHeight());
  painter.setPen(m_theme.colors().dimText);
  painter.setFont(scaledFont(0.9));
  painter.drawText(room, Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, m_summary);
}

}  // namespace fuseline::ui
