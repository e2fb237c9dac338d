// The badge of a change on the canvas: its sign in a disc of its color.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/compare/document_difference.h"
#include "ui/theme/theme.h"

#include <QPainter>
#include <QRectF>

namespace fuseline::ui {

/// At the upper left corner of a node's box, where no other badge stands; larger where nodes are seen from far away.
void paintChangeBadge(QPainter& painter, const QRectF& box, DocumentChange::Kind kind, const Theme& theme, bool isFar);

/// Around a point, as it is on wires.
void paintSmallChangeBadge(QPainter& painter, QPointF centre, DocumentChange::Kind kind, const Theme& theme);

}  // namespace fuseline::ui
