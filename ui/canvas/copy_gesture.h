// CopyGesture: copies of the selection that hang on the pointer until they are let go.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_commands.h"
#include "ui/canvas/canvas_parts.h"
#include "ui/canvas/drag_copy.h"

#include <QObject>

#include <memory>
#include <string>

namespace fuseline::ui {

class CopyGesture : public QObject {
  Q_OBJECT

 public:
  /// commands: put in what is let go.
  CopyGesture(const CanvasParts& parts, CanvasCommands& commands);
  ~CopyGesture() override;

  bool isActive() const { return m_copy != nullptr; }
  /// Begins to copy the selection, including the node at the pointer. False if it contains no op.
  bool begin(const std::string& id, QPointF position);
  void moveTo(QPointF position);
  void finish();
  /// False: there are none.
  bool cancel();

 Q_SIGNALS:
  /// A sentence for the status line; empty clears it.
  void hint(const QString& sentence);

 private:
  DragCopy::Content content() const;

  CanvasParts m_parts;
  CanvasCommands& m_commands;
  std::unique_ptr<DragCopy> m_copy;
};

}  // namespace fuseline::ui
