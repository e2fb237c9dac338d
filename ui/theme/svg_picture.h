// Pictures as SVG, with texts that readers without the window's font can show, too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QByteArray>
#include <QPaintDevice>
#include <QSize>
#include <QString>

#include <functional>

namespace fuseline::ui {

/// Resolution of screen texts, which pictures are laid out with.
int screenDotsPerInch();

/// The bytes of a file. paint: draws on the device, whose pixels are those of `size`.
QByteArray svgPicture(QSize size, const QString& title, const QString& description,
                      const std::function<void(QPaintDevice& device)>& paint);

}  // namespace fuseline::ui
