// OverviewMap: the whole canvas in a corner of its view, with a frame around what is in view.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/graph_view.h"

#include <QPixmap>
#include <QTimer>
#include <QTransform>
#include <QWidget>

#include <optional>

namespace fuseline::ui {

/// A press or a drag shows that place. It hides where everything is in view already, and where there are few nodes.
class OverviewMap : public QWidget {
  Q_OBJECT

 public:
  /// Few nodes are found without a map.
  static constexpr int kFewestNodes = 15;

  OverviewMap(const GraphScene& scene, GraphView& view, const Theme& theme);

  void setWanted(bool isWanted);
  bool isWanted() const { return m_isWanted; }
  /// From scene coordinates to the map's.
  QTransform toMap() const;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;

 private:
  QRectF shownRect() const;
  const QRectF& content() const;
  QRectF mappedRect() const;
  void paintNodes(QPainter& painter, const QTransform& map) const;
  bool isNeeded() const;
  bool isPictureKept() const;
  void refresh();
  void forgetPicture();
  void place();
  void showPlace(QPointF position);
  void paintFrames(QPainter& painter, const QTransform& map) const;

  const GraphScene& m_scene;
  GraphView& m_view;
  const Theme& m_theme;
  bool m_isWanted = true;
  QTransform m_pressedMap;
  // Kept between paints, until the scene changes: the view moves much more often than the nodes.
  mutable std::optional<QRectF> m_content;
  int m_revision = 0;  // of the items that the picture is of
  QPixmap m_picture;
  QTransform m_pictureMap;
  bool m_isPictureOld = true;
  QTimer m_pause;  // in which an old picture of many nodes is kept, so that edits do not wait for it
};

}  // namespace fuseline::ui
