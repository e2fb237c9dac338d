// Theme: every color of the window, for light, dark and high contrast. Text colors reach a contrast of 4.5:1 on their
// ground, and 7:1 in high contrast.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/window_style.h"

#include <QColor>
#include <QFont>
#include <QIcon>
#include <QObject>
#include <QPalette>

#include <string_view>

namespace fuseline::ui {

enum class ThemeChoice { System, Light, Dark, HighContrast };

/// Colors by meaning. A fact told by one of these is always told by a word, a pattern or a shape as well.
struct ThemeColors {
  QColor canvas, grid, panel, base, alternate, border;
  QColor text, dimText, disabledText;
  QColor node, nodeBorder;
  QColor accent, onAccent;
  QColor error, warning, note, good;
  QColor forward, backward, joint;
  QColor gemm, norm, activation, elementwise, branch, neutral;
};

/// The theme in force. One object for the process, owned by the application and handed to whoever draws.
class Theme : public QObject {
  Q_OBJECT

 public:
  explicit Theme(QObject* parent = nullptr);

  /// Sets style and palette of the application. System follows the brightness and the contrast of the desktop's own
  /// palette.
  void apply(ThemeChoice choice);
  /// The same colors, with more or less room around texts.
  void setDensity(Density density);
  Density density() const { return m_density; }
  /// Changes colors only, for a picture: the application stays as it is. The background is white, or nearly black.
  void usePaperColors(bool isDark);
  /// Sets a changed palette of the desktop.
  void setSystemPalette(const QPalette& palette);
  /// Is the application's palette being changed by this?
  bool isApplying() const { return m_isApplying; }
  ThemeChoice choice() const { return m_choice; }
  bool isDark() const { return m_isDark; }
  /// The ground of messages across the canvas.
  QColor messageColor() const { return m_isDark ? QColor("#4a3a12") : QColor("#fdf0cf"); }
  const ThemeColors& colors() const { return m_colors; }

  /// The color of an op's category, the same on the canvas, in the palette and in the tables.
  QColor categoryColor(std::string_view category) const;
  QColor dtypeColor(std::string_view dtype) const;
  /// A symbolic icon from resources/icons in the text color, or in the given one.
  QIcon icon(const QString& name) const;
  QIcon icon(const QString& name, const QColor& color) const;

 Q_SIGNALS:
  void changed();

 private:
  QPalette makePalette() const;
  QPalette m_systemPalette;
  ThemeChoice m_choice = ThemeChoice::System;
  Density m_density = Density::Comfortable;
  bool m_isDark = false;
  bool m_isApplying = false;
  ThemeColors m_colors;
};

/// From dark blue, 0, through green to yellow, 1: even steps to the eye, and in gray, too. Source: matplotlib's
/// viridis.
QColor heatColor(double share);
/// From blue, -1, through grey to orange, 1.
QColor divergingColor(double change);
/// Black or white, whichever is read better on the ground.
QColor textOn(const QColor& ground);

/// The application's font, `factor` times its size.
QFont scaledFont(double factor, QFont::Weight weight = QFont::Normal);
/// WCAG 2.1 contrast of two opaque colors, 1 to 21.
double contrastRatio(const QColor& a, const QColor& b);

}  // namespace fuseline::ui
