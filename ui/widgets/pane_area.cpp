// The pane is as large as the area, or as its layout needs.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/pane_area.h"

#include <QEvent>
#include <QLayout>

#include <algorithm>

namespace fuseline::ui {

PaneArea::PaneArea(QWidget& pane) {
  setFrameShape(QFrame::NoFrame);
  setFocusPolicy(Qt::NoFocus);
  setWidget(&pane);  // which watches it
  fit();
}

/// As QScrollArea's of a widget that it resizes.
QSize PaneArea::sizeHint() const {
  constexpr QSize kMostLines(36, 24);
  return widget()->sizeHint().boundedTo(kMostLines * fontMetrics().height());
}

void PaneArea::fit() {
  QSize least = widget()->minimumSizeHint().expandedTo(widget()->minimumSize());
  const int width = std::max(viewport()->width(), least.width());
  if (const QLayout* layout = widget()->layout(); layout && layout->hasHeightForWidth())
    least.setHeight(layout->minimumHeightForWidth(width));
  widget()->resize(viewport()->size().expandedTo(least));
}

void PaneArea::resizeEvent(QResizeEvent* event) {
  fit();
  QScrollArea::resizeEvent(event);
}

/// A pane without a layout asks its parent, where its smallest size changes.
bool PaneArea::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::LayoutRequest) fit();
  return QScrollArea::viewportEvent(event);
}

bool PaneArea::eventFilter(QObject* watched, QEvent* event) {
  if (watched == widget() && event->type() == QEvent::LayoutRequest) fit();
  return QScrollArea::eventFilter(watched, event);
}

}  // namespace fuseline::ui
