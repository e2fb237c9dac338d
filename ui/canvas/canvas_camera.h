// CanvasCamera: which part of the canvas is in sight, and how large.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/graph_scene.h"
#include "ui/session/view_place.h"

#include <QGraphicsView>
#include <QObject>
#include <QStringList>

#include <optional>
#include <string>
#include <vector>

namespace fuseline::ui {

/// Everything is in sight, and stays so, until the user pans or zooms.
class CanvasCamera : public QObject {
  Q_OBJECT

 public:
  /// All of them live as long as this.
  CanvasCamera(QGraphicsView& view, GraphScene& scene, Session& session);

  /// Shows everything, never larger than life.
  void fit();
  /// Shows the selection, never larger than life; everything where nothing is selected.
  void fitSelection();
  /// Moves to the selection, unless all of it is in sight.
  void showSelected();
  /// Moves there, unless all of it is in sight.
  void showArea(const QRectF& area);
  /// As little as brings it into sight.
  void include(const QRectF& area);
  /// With this place in the middle.
  void showPlace(QPointF middle, double zoom);
  void zoomTo(double factor);
  /// This place of the view stays where it is.
  void zoomAt(QPointF viewPosition, double factor);
  void panBy(QPoint way);
  /// Keeps the current view from being fitted automatically.
  void hold() { m_isFitted = false; }
  /// The view has another size.
  void refit();

  double zoom() const { return m_view.transform().m11(); }
  /// Center of the visible area, in scene coordinates.
  QPointF middle() const { return m_view.mapToScene(m_view.viewport()->rect().center()); }
  /// The view that the user chose; nullopt if everything is fitted.
  std::optional<ViewPlace> place() const;
  /// View of the pipeline, even while the inside of a block is shown.
  std::optional<ViewPlace> pipelinePlace() const;
  /// Initial view of a document that is being opened, instead of fitting it.
  void setFirstPlace(const std::optional<ViewPlace>& place) { m_firstPlace = place; }

 Q_SIGNALS:
  void zoomChanged(double factor);

 private:
  /// A place, so that it is found again in a window that has another bar.
  struct Seen {
    std::optional<ViewPlace> place;
    QPointF corner;
    bool isBeginning = false;
  };
  void rememberSeen();
  void showScope();
  void showSeen(const Seen& seen);
  void showFirst();
  void showBeginning();
  void showRect(const QRectF& rect);
  void followSelection();
  std::vector<std::string> takeKnown();
  QRectF selectedArea() const;
  bool isInSight(const QRectF& area) const;

  QGraphicsView& m_view;
  GraphScene& m_scene;
  bool m_isFitted = true;         // nothing else was chosen to be seen
  bool m_showsBeginning = false;  // then: of what is too large, instead of all
  bool m_isFitPending = false;    // a new document is shown; its hulls are still to come
  std::optional<ViewPlace> m_firstPlace;
  QStringList m_path;                         // of the scope, as it is shown
  std::vector<std::optional<Seen>> m_around;  // what was seen at each depth of it
  std::vector<std::string> m_known;           // nodes that were there when something was selected last, ascending
};

}  // namespace fuseline::ui
