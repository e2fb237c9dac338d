// One row where the caption has room in it, else two.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/pane_head.h"

#include <QEvent>

namespace fuseline::ui {

namespace {

constexpr int kCaptionPx = 380;  // about a sentence in two lines
constexpr QMargins kMargins(10, 6, 10, 6);

}  // namespace

PaneHead::PaneHead(QLabel& caption, QWidget* parent)
    : QWidget(parent), m_layout(new QBoxLayout(QBoxLayout::LeftToRight, this)), m_controls(new QHBoxLayout) {
  m_layout->setContentsMargins(kMargins);
  m_layout->addWidget(&caption, 1);
  m_layout->addLayout(m_controls);
  m_controls->addStretch(1);
}

void PaneHead::add(QWidget& control) {
  m_controls->insertWidget(m_controls->count() - 1, &control, 0, Qt::AlignTop);
  arrange();
}

/// The pane was resized, or a control came or went.
bool PaneHead::event(QEvent* event) {
  if (event->type() == QEvent::Resize || event->type() == QEvent::LayoutRequest) arrange();
  return QWidget::event(event);
}

void PaneHead::arrange() {
  const int room = width() - kMargins.left() - kMargins.right() - m_layout->spacing();
  const bool isNarrow = room - m_controls->sizeHint().width() < kCaptionPx;
  m_layout->setDirection(isNarrow ? QBoxLayout::TopToBottom : QBoxLayout::LeftToRight);
}

}  // namespace fuseline::ui
