// WindowStyle: the Fusion style, in a second density for small screens, and with outlines for high contrast.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QProxyStyle>

namespace fuseline::ui {

enum class Density { Comfortable, Compact };

/// A pixelMetric() of this style: the height that rows of tables have beyond their text.
inline constexpr auto kRowRoomMetric = static_cast<QStyle::PixelMetric>(QStyle::PM_CustomBase + 1);

/// A property of tab bars: only the current tab has room for its text.
inline constexpr const char* kIconTabsProperty = "hasIconTabs";
/// A tab without its text also needs less room around it.
inline constexpr int kIconTabSavedPx = 12;

class WindowStyle : public QProxyStyle {
  Q_OBJECT

 public:
  enum class Outlines { AsFusion, OfTextColor };

  WindowStyle(Density density, Outlines outlines);
  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override;
  QSize sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size,
                         const QWidget* widget) const override;
  void drawControl(ControlElement element, const QStyleOption* option, QPainter* painter,
                   const QWidget* widget) const override;
  int pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const override;

 private:
  Density m_density;
  Outlines m_outlines;
};

}  // namespace fuseline::ui
