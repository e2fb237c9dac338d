// NodeMoves: nodes that are moved: by the mouse, by keys, in a row, or by the automatic layout.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/arrange.h"
#include "ui/canvas/canvas_parts.h"

#include <QObject>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace fuseline::ui {

class NodeMoves : public QObject {
  Q_OBJECT

 public:
  /// Whether a move ends on the grid: as the menu says, or as it does not.
  enum class Grid { AsChosen, Otherwise };

  explicit NodeMoves(const CanvasParts& parts);

  /// The selected nodes where there are two or more, around the corner where they are; else all, and returns true.
  bool layOut();
  /// Aligns or spaces the selected nodes.
  void arrangeSelected(Arrangement arrangement);
  /// Moves the selected nodes, and the selected frames with their contents, by this number of grid steps. Moves of
  /// one selection that follow each other are one undo step.
  void moveSelected(QPoint steps);

  /// Off: nodes stay where the mouse leaves them.
  void setSnapping(bool isOn) { m_isSnapping = isOn; }

  /// A node has moved.
  void noteMoved();
  /// Wires and hulls follow once all that move together have moved.
  void moveTogether(const std::function<void()>& move);
  /// Moves their items together; the document follows when the mouse is released.
  void placeNodes(const std::map<std::string, QPointF>& places);
  /// The document's places are those of the items now. Edits of one merge key that follow each other are one undo step.
  void commit(const QString& mergeKey = {}, Grid grid = Grid::AsChosen);

 Q_SIGNALS:
  /// Nodes are under way: once for all that are dragged together.
  void dragged();
  /// The document took no move: items are to go back.
  void refused();
  /// A sentence for the status line.
  void hint(const QString& sentence);

 private:
  void follow();
  void closeBlocks();
  void apply(const char* label, const std::vector<MoveNode>& moves, std::vector<Edit> others = {});
  Position placeOf(const std::string& id) const { return m_parts.items.positions().at(id); }

  CanvasParts m_parts;
  bool m_isSnapping = true;
  bool m_isPlacing = false;
  bool m_isMovingTogether = false;
  bool m_areNodesMoved = false;  // since wires and hulls were placed
};

}  // namespace fuseline::ui
