// Painting helpers of plots: small texts, marks, and axis numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"
#include "ui/widgets/axis_range.h"

#include <QColor>
#include <QFont>
#include <QPainter>
#include <QPointF>
#include <QPolygonF>
#include <QRectF>
#include <QString>

namespace fuseline::ui {

QFont plotFont();
double plotTextHeight();
double plotTextWidth(const QString& text);
/// "0.001", "1e+06"
QString axisNumber(double value);
/// "1.5 ms": without the zeros of a measured time.
QString tickTime(double ns);
QColor faded(QColor color, double alpha);
/// share: of a, 0 to 1; the rest is of b.
QColor mixed(const QColor& a, const QColor& b, double share);
QPolygonF diamond(QPointF centre, double radius);

/// A horizontal axis below the area, with a line up through it at each of its numbers.
void paintTimeAxis(QPainter& painter, const QRectF& area, const LinearRange& axis, const Theme& theme);

constexpr int kNumMarks = 8;
/// A shape of its own for each look: circle, square, diamond, triangles up and down, cross, plus, star; then again.
void paintMark(QPainter& painter, int look, QPointF centre, double radius);

}  // namespace fuseline::ui
