// Watches the mouse over a widget.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/drag_source.h"

#include <QAbstractButton>
#include <QApplication>
#include <QDrag>
#include <QMouseEvent>

#include <utility>

namespace fuseline::ui {

DragSource::DragSource(QWidget& widget, Condition mayBegin, Maker make)
    : QObject(&widget), m_widget(widget), m_mayBegin(std::move(mayBegin)), m_make(std::move(make)) {
  widget.installEventFilter(this);
}

bool DragSource::eventFilter(QObject* watched, QEvent* event) {
  switch (event->type()) {
    case QEvent::MouseButtonPress: press(*static_cast<QMouseEvent*>(event)); return false;
    case QEvent::MouseMove: return move(*static_cast<QMouseEvent*>(event));
    case QEvent::MouseButtonRelease: return std::exchange(m_state, State::Idle) == State::Dragged;
    default: return QObject::eventFilter(watched, event);
  }
}

void DragSource::press(const QMouseEvent& event) {
  const bool isPlain = event.button() == Qt::LeftButton && event.modifiers() == Qt::NoModifier;
  m_state = isPlain && m_mayBegin(event.pos()) ? State::Pressed : State::Idle;
  m_pressedAt = event.pos();
}

bool DragSource::move(const QMouseEvent& event) {
  if (m_state == State::Idle || !(event.buttons() & Qt::LeftButton)) return false;
  const bool isFar = (event.pos() - m_pressedAt).manhattanLength() >= QApplication::startDragDistance();
  if (m_state == State::Pressed && isFar) {
    m_state = State::Dragged;
    drag();
  }
  return true;
}

/// The button is released over whatever takes the drag, of which the widget hears nothing.
void DragSource::drag() {
  std::unique_ptr<QMimeData> data = m_make();
  if (auto* button = qobject_cast<QAbstractButton*>(&m_widget)) button->setDown(false);
  if (!data) return;
  auto* drag = new QDrag(&m_widget);
  drag->setMimeData(data.release());
  drag->exec(Qt::CopyAction);
}

}  // namespace fuseline::ui
