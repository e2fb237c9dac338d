// CanvasHand: drags that move the view, and drags that cut wires.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_camera.h"
#include "ui/canvas/wire_cut.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QObject>

#include <memory>

namespace fuseline::ui {

class CanvasHand : public QObject {
  Q_OBJECT

 public:
  /// All of them live as long as this.
  CanvasHand(QGraphicsView& view, GraphScene& scene, CanvasCamera& camera, const Theme& theme);

  // Each: false where the event is about something else.
  bool press(const QMouseEvent& event);
  bool move(const QMouseEvent& event);
  bool release(const QMouseEvent& event);
  /// Space and X: what a drag does while they are held.
  bool pressKey(const QKeyEvent& event);
  void releaseKey(const QKeyEvent& event);
  /// Keys that are let go elsewhere are not seen here.
  void releaseKeys();
  /// Cancels the cut being drawn. False: there is none.
  bool cancelCut();

 Q_SIGNALS:
  /// A sentence for the status line; empty clears it.
  void hint(const QString& sentence);

 private:
  void beginPan(QPoint place);
  void pan(QPoint place);
  void beginCut(QPointF from);
  void moveCut(QPointF end);
  void finishCut();
  void showCursor();

  QGraphicsView& m_view;
  GraphScene& m_scene;
  CanvasCamera& m_camera;
  const Theme& m_theme;
  bool m_isSpaceHeld = false;
  bool m_isCutHeld = false;  // the key is down with which a drag cuts wires
  bool m_isPanning = false;
  QPoint m_panFrom;
  std::unique_ptr<WireCut> m_cut;
};

}  // namespace fuseline::ui
