// CanvasSearch: the lists in which ops are found: to put one in, to replace one, to go to one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_camera.h"
#include "ui/outline/node_search.h"
#include "ui/session/edits.h"

#include <QObject>

namespace fuseline::ui {

class CanvasSearch : public QObject {
  Q_OBJECT

 public:
  /// All of them live as long as this.
  CanvasSearch(QGraphicsView& view, GraphScene& scene, CanvasCamera& camera);

  /// Opens the search to insert an op at the middle of the view, or under the pointer when it is over the view.
  void insert();
  /// With a node selected the new op goes behind it; otherwise it goes where the search was opened.
  void insertAt(QPointF scenePosition, QPoint screenPosition);
  /// Opens the search for an op to put in place of the selected one.
  void replace();
  void insertAtWire(const LooseWire& wire, QPointF scenePosition, QPoint screenPosition);
  /// Opens the search for a node that is there.
  void find();
  /// Selects the next node that the last search found, or the one before.
  void findNext(int step);
  /// Selects the node, and moves there.
  void showNode(const QString& id);

 Q_SIGNALS:
  /// A sentence for the status line.
  void hint(const QString& sentence);

 private:
  std::vector<FoundNode> foundNodes(const QString& query) const;
  bool isSelected(const FoundNode& found) const;
  void showFrame(const QString& id);

  QGraphicsView& m_view;
  GraphScene& m_scene;
  CanvasCamera& m_camera;
  QString m_query;  // of the last search for a node
};

}  // namespace fuseline::ui
