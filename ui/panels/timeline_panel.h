// TimelinePanel: when each pass, step and kernel ran, the unfused plan above the fused one, from one origin.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/models/timeline_range.h"
#include "ui/models/timeline_tracks.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QLabel>
#include <QScrollArea>
#include <QWidget>

#include <optional>
#include <utility>
#include <vector>

namespace fuseline::ui {

/// Draws the tracks. The wheel, W and S zoom, dragging, A and D pan; Home shows all, F what is selected, Return what
/// the arrow keys stand on, Backspace what was shown before. Shift and a drag measure a stretch.
class TimelineView : public QWidget {
  Q_OBJECT

 public:
  TimelineView(Session& session, const Theme& theme, QWidget* parent = nullptr);

  /// Keeps what is in view as long as the tracks are as long.
  void setTracks(std::vector<TimelineTrack> tracks);
  const std::vector<TimelineTrack>& tracks() const { return m_tracks; }
  const TimelineRange& range() const { return m_range; }
  /// The box that the arrow keys go on from; nullptr before the first one.
  const TimelineItem* currentItem() const;
  /// Where a box is drawn, in the widget.
  QRectF areaOf(std::size_t track, std::size_t item) const;
  /// What Shift and a drag have measured; empty: nothing.
  QString measuredText() const;
  QSize sizeHint() const override;

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;

 private:
  struct Place {
    std::size_t track = 0;
    std::size_t item = 0;
  };
  struct Drag {
    QPointF from;
    double fromNs = 0.0;
    bool hasMoved = false;
    bool measures = false;
  };
  using Stretch = std::pair<double, double>;

  // Geometry.
  double trackTop(std::size_t track) const;
  double rowTop(std::size_t track, int row) const;
  QRectF cellArea(std::size_t track, const TimelineCell& cell) const;
  /// By item; null for what is not in view.
  std::vector<QRectF> areasOf(std::size_t track) const;
  double timeAt(double x) const { return m_range.timeAt(x, width()); }

  // Places.
  const TimelineItem& itemAt(Place place) const { return m_tracks[place.track].items[place.item]; }
  std::optional<std::pair<std::size_t, TimelineCell>> cellAt(QPointF position) const;
  QString tipAt(QPointF position) const;
  bool isSelected(const TimelineItem& item) const;
  std::optional<Place> neighbour(int key) const;
  std::optional<Place> besideInRow(Place from, int by) const;
  std::optional<Place> inNextRow(Place from, int by) const;
  std::vector<std::pair<std::size_t, int>> allRows() const;

  // Commands.
  bool isOwnKey(int key) const;
  bool handleView(int key);
  void jumpTo(double startNs, double endNs);
  void showSelection();
  void back();
  void select(Place place);
  void scrollAndZoom(QWheelEvent* event);

  // Painting.
  void paintRuler(QPainter& painter) const;
  void paintTrack(QPainter& painter, std::size_t track) const;
  void paintCell(QPainter& painter, std::size_t track, const TimelineCell& cell) const;
  void paintLabel(QPainter& painter, const QRectF& area, const TimelineItem& item, const QColor& ground) const;
  void paintLinks(QPainter& painter) const;
  void paintStretch(QPainter& painter) const;
  QColor fillOf(const TimelineItem& item) const;

  Session& m_session;
  const Theme& m_theme;
  std::vector<TimelineTrack> m_tracks;
  std::vector<std::pair<std::size_t, std::size_t>> m_links;  // of the first two tracks
  TimelineRange m_range;
  std::vector<TimelineRange> m_earlier;
  double m_totalNs = 0.0;
  std::optional<Place> m_cursor;
  std::optional<Drag> m_drag;
  std::optional<Stretch> m_stretch;
};

class TimelinePanel : public QWidget {
  Q_OBJECT

 public:
  TimelinePanel(Session& session, const Theme& theme, QWidget* parent = nullptr);
  TimelineView* view() const { return m_view; }
  QString caption() const { return m_caption->text(); }
  /// Why there is nothing to see; empty where there is.
  QString emptyText() const;

 private:
  void refresh();
  void refreshCaption();

  Session& m_session;
  const Theme& m_theme;
  QLabel* m_caption;
  QLabel* m_empty;
  QScrollArea* m_area;
  TimelineView* m_view;
};

}  // namespace fuseline::ui
