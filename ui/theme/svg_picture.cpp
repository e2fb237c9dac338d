// Writes SVG by Qt's generator.
// SPDX-License-Identifier: Apache-2.0
#include "ui/theme/svg_picture.h"

#include <QBuffer>
#include <QImage>
#include <QRegularExpression>
#include <QSvgGenerator>

namespace fuseline::ui {

namespace {

/// Where the reader has not got the font of this window, texts should at least not be in one with serifs.
QByteArray withFallbackFonts(const QByteArray& svg) {
  static const QRegularExpression family(QStringLiteral("font-family=\"([^\"]*)\""));
  return QString::fromUtf8(svg).replace(family, QStringLiteral("font-family=\"\\1, sans-serif\"")).toUtf8();
}

}  // namespace

int screenDotsPerInch() { return QImage(1, 1, QImage::Format_RGB32).logicalDpiX(); }

QByteArray svgPicture(QSize size, const QString& title, const QString& description,
                      const std::function<void(QPaintDevice& device)>& paint) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  QSvgGenerator generator;
  generator.setOutputDevice(&buffer);
  generator.setResolution(screenDotsPerInch());
  generator.setSize(size);
  generator.setViewBox(QRect(QPoint(), size));
  generator.setTitle(title);
  generator.setDescription(description);
  paint(generator);
  return withFallbackFonts(bytes);
}

}  // namespace fuseline::ui
