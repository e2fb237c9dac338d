// FrameLayer: the frames and notes of the canvas. It keeps their items in step with the document, takes what lies in a
// frame along with it, and turns what is done to them into edits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_scope.h"
#include "ui/canvas/frame_geometry.h"
#include "ui/canvas/frame_item.h"

#include <QObject>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace fuseline::ui {

class GraphScene;

class FrameLayer : public QObject {
  Q_OBJECT

 public:
  FrameLayer(GraphScene& scene, CanvasScope& scope, const Theme& theme);

  /// Boxes of all nodes of the canvas.
  NodeBoxes nodeBoxes() const;
  const std::map<std::string, FrameItem*>& items() const { return m_items; }
  FrameItem* item(const std::string& id) const;
  /// The one of whose header or edge, or of which note, this is a place; of several the smallest. nullptr: there is
  /// none.
  enum class Locked { Included, LeftOut };
  FrameItem* handleAt(QPointF scenePosition, Locked locked) const;
  QRectF contentRect() const;
  void sync();

  /// In the document's order.
  std::vector<std::string> selected() const;
  /// This one alone, and no node.
  void select(const std::string& id);
  void clearSelection();
  /// The next one from left to right and from top to bottom, or the one before.
  void selectNext(int step);
  /// Description for assistive technology: "Frame Attention around norm, fc1, blue, locked".
  QString describe(const std::string& id) const;

  // Drags. The contents of frames are those at the mouse press.
  void beginDrag();
  /// Whether frames take along what lies in them.
  void setCarrying(bool isCarrying) { m_isCarrying = isCarrying; }
  /// Called by frames as they move.
  void frameMoved(const FrameItem& frame);
  /// Does a frame that has moved have this node with it? Then it stands where it should, be that off the grid.
  bool carries(const std::string& node) const;
  /// Edits for frames that were moved from their place in the document.
  std::vector<Edit> changes() const;
  /// "Move frame Attention".
  std::string changeLabel() const;

  // Commands; each is one undo step.
  /// Puts a frame around the selected nodes and frames, and asks for its title.
  void frameSelected();
  void addNote(QPointF centre);
  /// Asks for the title or the text of the selected one.
  void editSelected();
  /// A title is one line.
  void setText(const std::string& id, const QString& text);
  /// A name of kFrameColors, or empty for gray.
  void setColor(const std::string& color);
  /// Locks the selected ones, or unlocks them where all of them are.
  void toggleLock();
  /// Selects the nodes in the selected ones in their place.
  void selectContent();
  /// Each as large as what lies in it asks for.
  void fitSelected();
  void removeSelected();
  /// Edits that remove the selected frames. Locked frames stay, with a hint.
  std::vector<Edit> removals();

 Q_SIGNALS:
  /// Its title or its text is to be typed.
  void editWanted(const QString& id);

 private:
  std::vector<DocumentFrame> changed() const;
  std::vector<DocumentFrame> chosen(const QString& what) const;
  void apply(const std::string& label, const std::vector<DocumentFrame>& frames, const QString& mergeKey = {});
  void add(DocumentFrame frame, std::vector<Edit> before);

  GraphScene& m_scene;
  CanvasScope& m_scope;
  const Theme& m_theme;
  std::map<std::string, FrameItem*> m_items;
  std::map<std::string, QPointF> m_pressedNodes;   // where they stood when the mouse was pressed
  std::map<std::string, FrameContent> m_contents;  // by frame, then
  std::set<std::string> m_carried;                 // nodes
  bool m_isCarrying = true;
  bool m_isMoving = false;
  std::string m_newest;  // what is typed into it first belongs to its making
};

}  // namespace fuseline::ui
