// Theme: palettes, category colors and symbolic icons.
// SPDX-License-Identifier: Apache-2.0
#include "ui/theme/theme.h"

#include "core/export/drawing/palette.h"

#include <QApplication>
#include <QFile>
#include <QPainter>
#include <QPixmapCache>
#include <QScopedValueRollback>
#include <QSvgRenderer>

#include <algorithm>
#include <cstdint>

// A static library's resources are linked in by naming them; the macro must stand outside any namespace.
static void linkIcons() { Q_INIT_RESOURCE(icons); }

namespace fuseline::ui {

namespace {

/// Colors of the window alone, light and dark.
struct WindowColor {
  QColor ThemeColors::*color;
  const char* light;
  const char* dark;
};
constexpr WindowColor kWindowColors[] = {
    {&ThemeColors::canvas, "#f4f5f7", "#16181d"}, {&ThemeColors::grid, "#d9dce2", "#2b2f38"},
    {&ThemeColors::panel, "#eceef1", "#21242b"},  {&ThemeColors::alternate, "#f6f7f9", "#1f2229"},
    {&ThemeColors::border, "#c3c8d0", "#3c424e"}, {&ThemeColors::disabledText, "#8a929e", "#6f7785"},
    {&ThemeColors::accent, "#1f6feb", "#5b9dff"}, {&ThemeColors::onAccent, "#ffffff", "#0b1220"},
    {&ThemeColors::error, "#c0262d", "#ff7b7b"},  {&ThemeColors::warning, "#8f5a00", "#f0b429"},
    {&ThemeColors::note, "#1f5fbf", "#7db4ff"},   {&ThemeColors::good, "#0b7a5b", "#4fd1a1"},
};

/// Colors that drawings have, too.
struct SharedColor {
  QColor ThemeColors::*color;
  const char* DrawingPalette::*shared;
};
constexpr SharedColor kSharedColors[] = {
    {&ThemeColors::base, &DrawingPalette::paper},
    {&ThemeColors::text, &DrawingPalette::text},
    {&ThemeColors::dimText, &DrawingPalette::dimText},
    {&ThemeColors::node, &DrawingPalette::node},
    {&ThemeColors::nodeBorder, &DrawingPalette::nodeBorder},
    {&ThemeColors::forward, &DrawingPalette::forward},
    {&ThemeColors::backward, &DrawingPalette::backward},
    {&ThemeColors::joint, &DrawingPalette::joint},
    {&ThemeColors::gemm, &DrawingPalette::gemm},
    {&ThemeColors::norm, &DrawingPalette::norm},
    {&ThemeColors::activation, &DrawingPalette::activation},
    {&ThemeColors::elementwise, &DrawingPalette::elementwise},
    {&ThemeColors::branch, &DrawingPalette::branch},
    {&ThemeColors::neutral, &DrawingPalette::neutral},
};

ThemeColors colorsOf(bool isDark) {
  ThemeColors colors;
  for (const WindowColor& each : kWindowColors) colors.*each.color = QColor(isDark ? each.dark : each.light);
  for (const SharedColor& each : kSharedColors)
    colors.*each.color = QColor((isDark ? kDarkPalette : kLightPalette).*each.shared);
  return colors;
}

/// White on black, with outlines as bright as texts.
ThemeColors highContrastColors() {
  ThemeColors colors = colorsOf(true);
  for (QColor ThemeColors::*ground : {&ThemeColors::canvas, &ThemeColors::panel, &ThemeColors::base,
                                      &ThemeColors::alternate, &ThemeColors::node, &ThemeColors::onAccent})
    colors.*ground = Qt::black;
  for (QColor ThemeColors::*line :
       {&ThemeColors::text, &ThemeColors::dimText, &ThemeColors::border, &ThemeColors::nodeBorder})
    colors.*line = Qt::white;
  colors.accent = QColor("#ffe14d");
  colors.error = QColor("#ff9c9c");
  return colors;
}

/// A desktop whose texts differ from their ground as far as colors can.
bool isHighContrast(const QPalette& palette) {
  constexpr double kHighContrast = 20.0;
  return contrastRatio(palette.color(QPalette::WindowText), palette.color(QPalette::Window)) >= kHighContrast;
}

double relativeLuminance(const QColor& color) {
  const auto channel = [](int value) { return static_cast<std::uint8_t>(value); };
  return fuseline::relativeLuminance({channel(color.red()), channel(color.green()), channel(color.blue())});
}

QByteArray svgSource(const QString& name) {
  QFile file(QStringLiteral(":/icons/%1.svg").arg(name));
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

QPixmap renderIcon(QByteArray svg, const QColor& color, int sizePx) {
  svg.replace("currentColor", color.name().toUtf8());
  QSvgRenderer renderer(svg);
  QPixmap pixmap(sizePx, sizePx);
  pixmap.fill(Qt::transparent);
  QPainter painter(&pixmap);
  renderer.render(&painter);
  return pixmap;
}

/// Tables ask for the icon of a cell whenever they draw it.
QPixmap iconPixmap(const QString& name, const QColor& color, int sizePx) {
  const QString key = QStringLiteral("icon/%1/%2/%3").arg(name, color.name()).arg(sizePx);
  QPixmap pixmap;
  if (QPixmapCache::find(key, &pixmap)) return pixmap;
  pixmap = renderIcon(svgSource(name), color, sizePx);
  QPixmapCache::insert(key, pixmap);
  return pixmap;
}

}  // namespace

Theme::Theme(QObject* parent) : QObject(parent), m_systemPalette(QApplication::palette()), m_colors(colorsOf(false)) {
  linkIcons();
}

void Theme::usePaperColors(bool isDark) {
  m_isDark = isDark;
  m_colors = colorsOf(isDark);
  m_colors.canvas = m_colors.base;
}

void Theme::apply(ThemeChoice choice) {
  const QScopedValueRollback guard(m_isApplying, true);
  m_choice = choice;
  const bool isSystem = choice == ThemeChoice::System;
  const bool systemIsDark = m_systemPalette.color(QPalette::Window).lightness() < 128;
  const bool isContrast =
      choice == ThemeChoice::HighContrast || (isSystem && systemIsDark && isHighContrast(m_systemPalette));
  m_isDark = choice == ThemeChoice::Dark || isContrast || (isSystem && systemIsDark);
  m_colors = isContrast ? highContrastColors() : colorsOf(m_isDark);
  QApplication::setStyle(
      new WindowStyle(m_density, isContrast ? WindowStyle::Outlines::OfTextColor : WindowStyle::Outlines::AsFusion));
  QApplication::setPalette(makePalette());
  // Fusion outlines fields with a darker tone, which a dark window swallows: there they are lighter instead.
  QPalette fields = makePalette();
  if (m_isDark && !isContrast) fields.setColor(QPalette::Base, QColor("#333842"));
  for (const char* widget : {"QCheckBox", "QLineEdit"}) QApplication::setPalette(fields, widget);
  Q_EMIT changed();
}

void Theme::setDensity(Density density) {
  m_density = density;
  apply(m_choice);
}

void Theme::setSystemPalette(const QPalette& palette) {
  m_systemPalette = palette;
  apply(m_choice);
}

QPalette Theme::makePalette() const {
  const ThemeColors& c = m_colors;
  QPalette palette(c.text, c.panel, c.panel.lighter(m_isDark ? 150 : 104), c.panel.darker(m_isDark ? 160 : 150),
                   c.border, c.text, c.text, c.base, c.panel);
  palette.setColor(QPalette::AlternateBase, c.alternate);
  palette.setColor(QPalette::Button, m_isDark ? QColor("#2d313a") : QColor("#f5f6f8"));
  palette.setColor(QPalette::Highlight, c.accent);
  palette.setColor(QPalette::HighlightedText, c.onAccent);
  palette.setColor(QPalette::Link, c.note);
  palette.setColor(QPalette::ToolTipBase, m_isDark ? QColor("#323741") : QColor("#ffffff"));
  palette.setColor(QPalette::ToolTipText, c.text);
  palette.setColor(QPalette::PlaceholderText, c.dimText);
  for (const auto role : {QPalette::Text, QPalette::WindowText, QPalette::ButtonText}) {
    palette.setColor(QPalette::Disabled, role, c.disabledText);
  }
  return palette;
}

QColor Theme::categoryColor(std::string_view category) const {
  return QColor((m_isDark ? kDarkPalette : kLightPalette).*toneOf(category).color);
}

QColor Theme::dtypeColor(std::string_view dtype) const {
  if (dtype == "bf16") return m_colors.forward;
  if (dtype == "f16") return m_colors.good;
  if (dtype == "f32") return m_colors.neutral;
  return m_colors.joint;
}

QIcon Theme::icon(const QString& name) const {
  QIcon icon = this->icon(name, m_colors.text);
  for (const int sizePx : {16, 24, 32, 48}) {
    icon.addPixmap(iconPixmap(name, m_colors.disabledText, sizePx), QIcon::Disabled);
  }
  return icon;
}

QIcon Theme::icon(const QString& name, const QColor& color) const {
  QIcon icon;
  for (const int sizePx : {16, 24, 32, 48}) {
    icon.addPixmap(iconPixmap(name, color, sizePx));
    icon.addPixmap(iconPixmap(name, m_colors.onAccent, sizePx), QIcon::Selected);  // in a chosen row of a table
  }
  return icon;
}

namespace {

QColor colorOf(const Rgb& color) { return {color.red, color.green, color.blue}; }

}  // namespace

QColor heatColor(double share) { return colorOf(fuseline::heatColor(share)); }

QColor divergingColor(double change) { return colorOf(fuseline::divergingColor(change)); }

QColor textOn(const QColor& ground) {
  return contrastRatio(Qt::black, ground) > contrastRatio(Qt::white, ground) ? Qt::black : Qt::white;
}

QFont scaledFont(double factor, QFont::Weight weight) {
  QFont font = QApplication::font();
  font.setPointSizeF(font.pointSizeF() * factor);
  font.setWeight(weight);
  return font;
}

double contrastRatio(const QColor& a, const QColor& b) {
  const double first = relativeLuminance(a);
  const double second = relativeLuminance(b);
  return (std::max(first, second) + 0.05) / (std::min(first, second) + 0.05);
}

}  // namespace fuseline::ui
