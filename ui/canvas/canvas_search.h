// CanvasSearch: the lists in which ops are found: to put one in, to replace one, to go to one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_camera.h"
#include "ui/outline/node_search.h"
#include "ui/session/edits.h"

#include <QObject>

#include <functional>
#include <string>

namespace fuseline::ui {

class CanvasSearch : public QObject {
  Q_OBJECT

 public:
  /// All of them live as long as this.
  CanvasSearch(QGraphicsView& view, GraphScene& scene, CanvasCamera& camera);

  /// Opens the search for an op to go after the selected node, else after the last one.
  void insert();
  /// The same for an op to go to this place.
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
  void choose(QPoint screenPosition, std::function<void(const std::string& entry)> insert);
  std::vector<FoundNode> foundNodes(const QString& query) const;
  bool isSelected(const FoundNode& found) const;
  void showFrame(const QString& id);

  QGraphicsView& m_view;
  GraphScene& m_scene;
  CanvasCamera& m_camera;
  QString m_query;  // of the last search for a node
};

}  // namespace fuseline::ui
