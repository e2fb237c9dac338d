// GraphView: the window onto the canvas: pan, zoom, fit, keyboard, and drops from the palette.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/frame_editor.h"
#include "ui/canvas/graph_scene.h"
#include "ui/canvas/node_sentences.h"
#include "ui/canvas/wire_cut.h"
#include "ui/outline/node_search.h"
#include "ui/session/view_place.h"

#include <QGraphicsView>
#include <QMenu>
#include <QPointer>

#include <memory>
#include <optional>

namespace fuseline::ui {

class GraphView : public QGraphicsView {
  Q_OBJECT

 public:
  GraphView(GraphScene& scene, Session& session, const Theme& theme, QWidget* parent = nullptr);

  GraphScene& graph() const { return m_scene; }
  Session& session() const { return m_session; }
  /// What is said of nodes and wires.
  NodeSentences& sentences() const { return *m_sentences; }
  /// Selects the node, shows it and takes the keyboard.
  void goTo(const QString& node);
  /// Moves to the selection, unless all of it is in sight.
  void showSelected();
  /// Shows everything, never larger than life. The view stays fitted until the user pans or zooms.
  void fit();
  void zoomTo(double factor);
  double zoom() const { return transform().m11(); }
  /// Opens the search to insert an op at the middle of the view, or under the pointer when it is over the view.
  void openSearch();
  /// Opens the search for an op to put in place of the selected one.
  void openReplace();
  /// Begins a wire at the selected node, or at its next port; the arrow keys and Enter of the view go on with it. When
  /// a key ends the wire, the keyboard goes back to where it was.
  void drawWire();
  void cancelWire();
  /// Gives up the cut that is being drawn. False: there is none.
  bool cancelCut();
  /// Opens the search for a node that is there.
  void openFind();
  /// Selects the next node that the last search found, or the one before.
  void findNext(int step);
  /// Moves there, unless all of it is in sight.
  void showArea(const QRectF& area);
  /// Of what is in sight, in scene coordinates.
  QPointF middle() const { return mapToScene(viewport()->rect().center()); }
  /// What the user has chosen to see; nothing: everything is in sight.
  std::optional<ViewPlace> place() const {
    return m_isFitted ? std::nullopt : std::optional(ViewPlace{middle(), zoom()});
  }
  /// Of the pipeline, also while the inside of a block is shown.
  std::optional<ViewPlace> pipelinePlace() const;
  /// Of a document that is being opened, in place of everything.
  void setFirstPlace(const std::optional<ViewPlace>& place) { m_firstPlace = place; }
  /// With this place in the middle.
  void showPlace(QPointF middle, double zoom);
  /// Opens a field for the title or the text of a frame, in its place.
  void editFrame(const QString& id);
  /// Shows the selection, never larger than life; everything where nothing is selected.
  void fitSelection();
  /// What the menu offers at a place: the commands for the selection on what can be selected, else those for a wire or
  /// for the canvas.
  std::unique_ptr<QMenu> menuAt(QPoint place);

 Q_SIGNALS:
  void zoomChanged(double factor);
  void propertiesRequested();
  /// F2 inside a block, on one node.
  void renameRequested(const QString& node);

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
  void pressScene(QMouseEvent& event);
  void beginPan(QPoint place);
  void beginCut(QPointF from);
  void moveCut(QPointF end);
  void finishCut();
  void showHandCursor();
  void addWireCommands(QMenu& menu, const Link& link, QPoint place);
  void addCanvasCommands(QMenu& menu, QPoint place);
  void searchAt(QPointF scenePosition, QPoint screenPosition);
  void searchForWire(const LooseWire& wire, QPointF scenePosition, QPoint screenPosition);
  /// A place, so that it is found again in a window that has another bar.
  struct Seen {
    std::optional<ViewPlace> place;
    QPointF corner;
    bool isBeginning = false;
  };
  void rememberSeen();
  void showScope();
  void showSeen(const Seen& seen);
  QRectF selectedArea() const;
  void showFirst();
  void showBeginning();
  void showRect(const QRectF& rect);
  void showNode(const QString& id);
  void showFrame(const QString& id);
  bool isSelected(const FoundNode& found) const;
  void placeEditor();
  void zoomAt(QPointF viewPosition, double factor);
  bool move(QPointF direction);
  bool moveByKey(int key);
  bool finishWireByKey(int key);
  void giveKeyboardBack();
  void showWire();
  void describeSelection();
  void describeWire(const QString& sentence);
  void paintInvitation(QPainter& painter) const;
  void paintErrorLegend(QPainter& painter) const;
  void paintDtypeLegend(QPainter& painter) const;

  GraphScene& m_scene;
  Session& m_session;
  const Theme& m_theme;
  NodeSentences* m_sentences;
  QString m_findQuery;
  QPointer<FrameEditor> m_editor;
  std::string m_edited;                // the frame that it is in
  QPointer<QWidget> m_keyboardBefore;  // where it was when a wire was begun elsewhere
  bool m_isFitted = true;              // nothing else was chosen to be seen
  bool m_showsBeginning = false;       // then: of what is too large, instead of all
  std::optional<ViewPlace> m_firstPlace;
  QStringList m_path;                         // of the scope, as it is shown
  std::vector<std::optional<Seen>> m_around;  // what was seen at each depth of it
  bool m_isFitPending = false;                // a new document is shown; its hulls are still to come
  bool m_isSpaceHeld = false;
  bool m_isCutHeld = false;  // the key is down with which a drag cuts wires
  std::unique_ptr<WireCut> m_cut;
  bool m_isPanning = false;
  QPoint m_panFrom;
};

}  // namespace fuseline::ui
