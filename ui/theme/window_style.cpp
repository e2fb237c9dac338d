// Compact heads, rows, tabs, buttons and margins are lower. Black swallows Fusion's outlines of fields.
// SPDX-License-Identifier: Apache-2.0
#include "ui/theme/window_style.h"

#include <QPainter>
#include <QStyleOption>

#include <algorithm>

namespace fuseline::ui {

namespace {

constexpr int kLeastHeightPx = 16;
constexpr int kRowRoomPx = 5;
constexpr int kCompactRowRoomPx = 1;

/// How much lower this is in the compact density.
int heightSaved(QStyle::ContentsType type) {
  switch (type) {
    case QStyle::CT_HeaderSection: return 4;
    case QStyle::CT_TabBarTab:
    case QStyle::CT_PushButton:
    case QStyle::CT_ToolButton:
    case QStyle::CT_ComboBox: return 3;
    case QStyle::CT_LineEdit:
    case QStyle::CT_SpinBox:
    case QStyle::CT_MenuItem: return 2;
    default: return 0;
  }
}

bool isMargin(QStyle::PixelMetric metric) {
  switch (metric) {
    case QStyle::PM_LayoutLeftMargin:
    case QStyle::PM_LayoutTopMargin:
    case QStyle::PM_LayoutRightMargin:
    case QStyle::PM_LayoutBottomMargin:
    case QStyle::PM_LayoutHorizontalSpacing:
    case QStyle::PM_LayoutVerticalSpacing: return true;
    default: return false;
  }
}

bool hasOutline(QStyle::PrimitiveElement element) {
  switch (element) {
    case QStyle::PE_FrameLineEdit:
    case QStyle::PE_IndicatorCheckBox:
    case QStyle::PE_IndicatorRadioButton:
    case QStyle::PE_IndicatorItemViewItemCheck: return true;
    default: return false;
  }
}

/// Does the tab show its icon alone?
const QStyleOptionTab* iconTab(const QStyleOption* option, const QWidget* widget) {
  const auto* tab = qstyleoption_cast<const QStyleOptionTab*>(option);
  const bool isNarrow = tab && widget && widget->property(kIconTabsProperty).toBool();
  return isNarrow && !tab->icon.isNull() && !(tab->state & QStyle::State_Selected) ? tab : nullptr;
}

}  // namespace

WindowStyle::WindowStyle(Density density, Outlines outlines)
    : QProxyStyle(QStringLiteral("Fusion")), m_density(density), m_outlines(outlines) {}

void WindowStyle::drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                                const QWidget* widget) const {
  QProxyStyle::drawPrimitive(element, option, painter, widget);
  if (m_outlines == Outlines::AsFusion || !hasOutline(element)) return;
  painter->save();
  painter->setPen(option->palette.color(QPalette::WindowText));
  painter->setBrush(Qt::NoBrush);
  const QRect edge = option->rect.adjusted(0, 0, -1, -1);
  element == PE_IndicatorRadioButton ? painter->drawEllipse(edge) : painter->drawRect(edge);
  painter->restore();
}

QSize WindowStyle::sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size,
                                    const QWidget* widget) const {
  QSize whole = QProxyStyle::sizeFromContents(type, option, size, widget);
  if (const auto* tab = type == CT_TabBarTab ? iconTab(option, widget) : nullptr)
    whole.rwidth() -= tab->fontMetrics.size(Qt::TextShowMnemonic, tab->text).width() + kIconTabSavedPx;
  const int saved = m_density == Density::Compact ? heightSaved(type) : 0;
  return saved == 0 ? whole
                    : QSize(whole.width(), std::max(std::min(kLeastHeightPx, whole.height()), whole.height() - saved));
}

void WindowStyle::drawControl(ControlElement element, const QStyleOption* option, QPainter* painter,
                              const QWidget* widget) const {
  const auto* tab = element == CE_TabBarTabLabel ? iconTab(option, widget) : nullptr;
  if (!tab) return QProxyStyle::drawControl(element, option, painter, widget);
  QRect place(QPoint(), tab->iconSize);
  place.moveCenter(tab->rect.center());
  tab->icon.paint(painter, place, Qt::AlignCenter, tab->state & State_Enabled ? QIcon::Normal : QIcon::Disabled);
}

int WindowStyle::pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const {
  if (metric == kRowRoomMetric) return m_density == Density::Compact ? kCompactRowRoomPx : kRowRoomPx;
  const int whole = QProxyStyle::pixelMetric(metric, option, widget);
  return m_density == Density::Compact && isMargin(metric) ? whole * 2 / 3 : whole;
}

}  // namespace fuseline::ui
