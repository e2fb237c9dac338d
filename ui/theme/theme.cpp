// Theme: palettes, category colours and symbolic icons.
// SPDX-License-Identifier: Apache-2.0
#include "ui/theme/theme.h"

#include <QApplication>
#include <QFile>
#include <QPainter>
#include <QPixmapCache>
#include <QScopedValueRollback>
#include <QStyleFactory>
#include <QSvgRenderer>

#include <algorithm>
#include <array>
#include <cmath>

// A static library's resources are linked in by naming them; the macro must stand outside any namespace.
static void linkIcons() { Q_INIT_RESOURCE(icons); }

namespace fuseline::ui {

namespace {

ThemeColors lightColors() {
  ThemeColors c;
  c.canvas = QColor("#f4f5f7");
  c.grid = QColor("#d9dce2");
  c.panel = QColor("#eceef1");
  c.base = QColor("#ffffff");
  c.alternate = QColor("#f6f7f9");
  c.border = QColor("#c3c8d0");
  c.text = QColor("#1b1f26");
  c.dimText = QColor("#586170");
  c.disabledText = QColor("#8a929e");
  c.node = QColor("#ffffff");
  c.nodeBorder = QColor("#aab1bd");
  c.accent = QColor("#1f6feb");
  c.onAccent = QColor("#ffffff");
  c.error = QColor("#c0262d");
  c.warning = QColor("#8f5a00");
  c.note = QColor("#1f5fbf");
  c.good = QColor("#0b7a5b");
  c.forward = QColor("#0f6ab4");
  c.backward = QColor("#a2480c");
  c.joint = QColor("#7a3ea8");
  c.gemm = QColor("#2f6fd0");
  c.norm = QColor("#8250c4");
  c.activation = QColor("#2a9156");
  c.elementwise = QColor("#b98a00");
  c.branch = QColor("#7d6046");
  c.neutral = QColor("#78818f");
  return c;
}

ThemeColors darkColors() {
  ThemeColors c;
  c.canvas = QColor("#16181d");
  c.grid = QColor("#2b2f38");
  c.panel = QColor("#21242b");
  c.base = QColor("#191b21");
  c.alternate = QColor("#1f2229");
  c.border = QColor("#3c424e");
  c.text = QColor("#e4e7ec");
  c.dimText = QColor("#a3abb8");
  c.disabledText = QColor("#6f7785");
  c.node = QColor("#2a2e37");
  c.nodeBorder = QColor("#4d5563");
  c.accent = QColor("#5b9dff");
  c.onAccent = QColor("#0b1220");
  c.error = QColor("#ff7b7b");
  c.warning = QColor("#f0b429");
  c.note = QColor("#7db4ff");
  c.good = QColor("#4fd1a1");
  c.forward = QColor("#62b3f5");
  c.backward = QColor("#f39a57");
  c.joint = QColor("#c79bf2");
  c.gemm = QColor("#5b93ec");
  c.norm = QColor("#a97de6");
  c.activation = QColor("#4bbd7d");
  c.elementwise = QColor("#dcb33c");
  c.branch = QColor("#b8957a");
  c.neutral = QColor("#8d96a5");
  return c;
}

double linearised(double channel) {
  return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
}

double relativeLuminance(const QColor& color) {
  return 0.2126 * linearised(color.redF()) + 0.7152 * linearised(color.greenF()) + 0.0722 * linearised(color.blueF());
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

Theme::Theme(QObject* parent) : QObject(parent), m_systemPalette(QApplication::palette()), m_colors(lightColors()) {
  linkIcons();
}

void Theme::usePaperColors(bool isDark) {
  m_isDark = isDark;
  m_colors = isDark ? darkColors() : lightColors();
  m_colors.canvas = m_colors.base;
}

void Theme::apply(ThemeChoice choice) {
  const QScopedValueRollback guard(m_isApplying, true);
  m_choice = choice;
  const bool systemIsDark = m_systemPalette.color(QPalette::Window).lightness() < 128;
  m_isDark = choice == ThemeChoice::Dark || (choice == ThemeChoice::System && systemIsDark);
  m_colors = m_isDark ? darkColors() : lightColors();
  QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
  QApplication::setPalette(makePalette());
  // Fusion outlines fields with a darker tone, which a dark window swallows: there they are lighter instead.
  QPalette fields = makePalette();
  if (m_isDark) fields.setColor(QPalette::Base, QColor("#333842"));
  for (const char* widget : {"QCheckBox", "QLineEdit"}) QApplication::setPalette(fields, widget);
  Q_EMIT changed();
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
  const auto contains = [&](std::string_view word) { return category.find(word) != std::string_view::npos; };
  if (contains("inear") || contains("GEMM") || contains("Matrix")) return m_colors.gemm;
  if (contains("orm")) return m_colors.norm;
  if (contains("ctivation")) return m_colors.activation;
  if (contains("lementwise") || contains("ias") || contains("cale")) return m_colors.elementwise;
  if (contains("ranch") || contains("esidual") || contains("xtra") || contains("tructure")) return m_colors.branch;
  return m_colors.neutral;
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

QColor heatColor(double share) {
  static constexpr std::array<QRgb, 6> kStops = {0x440154, 0x414487, 0x2a788e, 0x22a884, 0x7ad151, 0xfde725};
  const double place = std::clamp(share, 0.0, 1.0) * (kStops.size() - 1);
  const auto first = std::min(static_cast<std::size_t>(place), kStops.size() - 2);
  const double rest = place - static_cast<double>(first);
  const QColor a(kStops[first]);
  const QColor b(kStops[first + 1]);
  const auto mixed = [rest](int from, int to) { return qRound(from + rest * (to - from)); };
  return {mixed(a.red(), b.red()), mixed(a.green(), b.green()), mixed(a.blue(), b.blue())};
}

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
