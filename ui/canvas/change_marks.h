// ChangeMarks: shows a comparison on the canvas. Marks are children of the items that they are about, so that the
// canvas itself knows nothing of them; what is gone stands there as ghosts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/ghost_item.h"
#include "ui/canvas/graph_scene.h"
#include "ui/session/pipeline_comparison.h"

#include <QGraphicsPathItem>
#include <QTimer>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fuseline::ui {

/// The badge on a node, which has an outline as well.
class NodeMark : public QGraphicsItem {
 public:
  enum { Type = UserType + 5 };
  NodeMark(NodeItem& node, const Theme& theme);
  int type() const override { return Type; }
  DocumentChange::Kind kind() const { return m_kind; }
  void setKind(DocumentChange::Kind kind);
  /// Box of the node, in its own coordinates.
  QRectF box() const;
  QRectF boundingRect() const override;
  void paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget* widget) override;

 private:
  NodeItem& m_node;
  const Theme& m_theme;
  DocumentChange::Kind m_kind = DocumentChange::Kind::Changed;
};

/// The pipeline whose canvas is marked: the new one, or its base.
enum class ComparedSide { New, Old };

class ChangeMarks : public QObject {
  Q_OBJECT

 public:
  /// comparison: of the pipeline in the scene; of the side Old it is the comparison backwards.
  ChangeMarks(GraphScene& scene, const PipelineComparison& comparison, const Theme& theme, ComparedSide side,
              QObject* parent = nullptr);

  /// By their ids in the base.
  const std::map<std::string, GhostItem*>& ghosts() const { return m_ghosts; }
  /// How many wires that are gone are drawn.
  std::size_t numGoneLinks() const { return m_goneLinks.size(); }
  /// The mark of a node; nullptr: it has none.
  const NodeMark* markOf(const std::string& id) const;

  /// Outlines the ghost that a change is about; -1: none.
  void setCurrent(int change);
  /// Where these nodes, or the ghost of this change, are; null: nowhere.
  QRectF areaOf(const QStringList& nodes, int change) const;

 Q_SIGNALS:
  void ghostClicked(int change);

 private:
  void refresh();
  DocumentChange::Kind inOrder(DocumentChange::Kind kind) const;
  void markNodes();
  void markLinks();
  void placeGhosts();
  void placeGoneLinks();
  void clearGhosts();
  const NodePositions& basePositions();
  QPointF placeOf(const ChangeMap::Ghost& ghost);
  QPointF freePlace(QPointF wanted, QSizeF size) const;
  std::optional<QPointF> portOf(const ChangeMap::End& end, bool isOutput) const;

  GraphScene& m_scene;
  const PipelineComparison& m_comparison;
  const Theme& m_theme;
  const ComparedSide m_side;
  std::map<std::string, GhostItem*> m_ghosts;
  std::vector<QGraphicsItem*> m_goneLinks;
  std::shared_ptr<const ComparisonResult> m_shown;
  NodePositions m_basePositions;
  std::shared_ptr<const PipelineDocument> m_positionsOf;  // the base that they are of
  int m_current = -1;
  QTimer m_afterDrag;  // once for all nodes that moved together
};

}  // namespace fuseline::ui
