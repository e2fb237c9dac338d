// DragSource: lets what a widget shows be dragged to other windows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QMimeData>
#include <QMouseEvent>
#include <QObject>
#include <QPoint>
#include <QWidget>

#include <functional>
#include <memory>

namespace fuseline::ui {

class DragSource : public QObject {
  Q_OBJECT

 public:
  /// Nothing: there is nothing to drag.
  using Maker = std::function<std::unique_ptr<QMimeData>()>;
  using Condition = std::function<bool(QPoint place)>;

  /// Belongs to the widget. mayBegin: whether a press here may begin a drag; of one that does, the widget sees no
  /// moves.
  DragSource(QWidget& widget, Condition mayBegin, Maker make);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  enum class State { Idle, Pressed, Dragged };
  void press(const QMouseEvent& event);
  bool move(const QMouseEvent& event);
  void drag();

  QWidget& m_widget;
  Condition m_mayBegin;
  Maker m_make;
  QPoint m_pressedAt;
  State m_state = State::Idle;
};

}  // namespace fuseline::ui
