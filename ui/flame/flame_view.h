// FlameView: where the time of a plan goes, each box beneath the one that it is a part of.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/flame/flame_boxes.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QPainter>
#include <QWidget>

#include <optional>
#include <vector>

namespace fuseline::ui {

/// A click or the arrow keys select; a double click or Return zooms to a box, Backspace one level out, Home or Escape
/// to the whole plan. Boxes are drawn at least a pixel wide.
class FlameView : public QWidget {
  Q_OBJECT

 public:
  FlameView(Session& session, const Theme& theme, QWidget* parent = nullptr);

  /// Keeps the zoom where the boxes have the same names.
  void setBoxes(std::vector<FlameBox> boxes);
  const std::vector<FlameBox>& boxes() const { return m_boxes; }
  /// Boxes that do not match are faded, if any does.
  void setSearch(const QRegularExpression& expression);
  int numMatches() const { return m_numMatches; }
  double matchedShare() const;  // of the plan, 0 to 1
  /// Goes to the next box that matches.
  void selectNextMatch();
  /// To the box that it is zoomed to; 0: the whole plan.
  std::size_t zoomed() const { return m_zoomed; }
  void zoomTo(std::size_t box);
  /// The box that the arrow keys go on from.
  std::optional<std::size_t> currentBox() const { return m_cursor; }
  /// Where it is drawn; empty: out of view.
  QRectF areaOf(std::size_t box) const;
  /// The visible part as an SVG file, in colors for paper.
  QByteArray toSvg(const QString& title) const;
  QString tipAt(QPointF position) const;
  QSize sizeHint() const override;

 Q_SIGNALS:
  void zoomChanged();

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;

 private:
  int numRows() const;
  void findMatches();
  void goBackTo(const QStringList& names);
  bool isOwnKey(int key) const;
  bool isAboveZoomed(std::size_t box) const;
  std::optional<std::size_t> boxAt(QPointF position) const;
  bool isSelected(const FlameBox& box) const;
  void followSelection();
  std::optional<std::size_t> neighbour(int key) const;
  std::optional<std::size_t> besideInRow(std::size_t from, int by) const;
  std::optional<std::size_t> widestBeneath(std::size_t box) const;
  bool handleZoom(int key);
  void select(std::size_t box);
  void describe();
  void paintBoxes(QPainter& painter, const Theme& theme) const;
  void paintBox(QPainter& painter, const Theme& theme, std::size_t index, const QRectF& area) const;
  void paintLabel(QPainter& painter, const FlameBox& box, const QRectF& area, const QColor& ground) const;
  QColor fillOf(const FlameBox& box, const Theme& theme) const;

  Session& m_session;
  const Theme& m_theme;
  std::vector<FlameBox> m_boxes;
  std::vector<bool> m_isMatch;
  QRegularExpression m_search;
  int m_numMatches = 0;
  double m_rowPx = 0.0;  // by the font
  std::size_t m_zoomed = 0;
  std::optional<std::size_t> m_cursor;
};

}  // namespace fuseline::ui
