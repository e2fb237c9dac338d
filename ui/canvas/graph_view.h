// GraphView: the window onto the canvas: what keys, the mouse and drops do over it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_camera.h"
#include "ui/canvas/canvas_hand.h"
#include "ui/canvas/canvas_search.h"
#include "ui/canvas/graph_scene.h"
#include "ui/canvas/node_sentences.h"
#include "ui/canvas/wire_keys.h"

#include <QGraphicsView>

namespace fuseline::ui {

class GraphView : public QGraphicsView {
  Q_OBJECT

 public:
  GraphView(GraphScene& scene, Session& session, const Theme& theme, QWidget* parent = nullptr);

  GraphScene& graph() const { return m_scene; }
  Session& session() const { return m_session; }
  CanvasCamera& camera() const { return *m_camera; }
  CanvasSearch& search() const { return *m_search; }
  CanvasHand& hand() const { return *m_hand; }
  WireKeys& wireKeys() { return m_wireKeys; }
  /// Descriptions of nodes and wires.
  NodeSentences& sentences() const { return *m_sentences; }
  /// Selects the node, shows it and takes the keyboard.
  void goTo(const QString& node);
  /// Shows everything, never larger than life. The view stays fitted until the user pans or zooms.
  void fit() { m_camera->fit(); }
  void zoomTo(double factor) { m_camera->zoomTo(factor); }
  double zoom() const { return m_camera->zoom(); }

 Q_SIGNALS:
  void zoomChanged(double factor);
  void propertiesRequested();
  /// F2 inside a block, on one node.
  void renameRequested(const QString& node);
  /// A tensor of the pipeline is to be inspected.
  void tensorWanted(const QString& name);

 protected:
  bool event(QEvent* event) override;
  bool viewportEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void keyReleaseEvent(QKeyEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dragMoveEvent(QDragMoveEvent* event) override;
  void dragLeaveEvent(QDragLeaveEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void drawBackground(QPainter* painter, const QRectF& rect) override;
  void drawForeground(QPainter* painter, const QRectF& rect) override;

 private:
  void applyLook();
  void connectScene();
  void move(QPointF direction);
  void describeSelection();
  void describeWire(const QString& sentence);

  GraphScene& m_scene;
  Session& m_session;
  const Theme& m_theme;
  NodeSentences* m_sentences;
  CanvasCamera* m_camera;
  CanvasSearch* m_search;
  CanvasHand* m_hand;
  WireKeys m_wireKeys;
};

}  // namespace fuseline::ui
