// Pan, zoom and fit.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/canvas_camera.h"

#include "ui/theme/format.h"

#include <QScrollBar>

#include <algorithm>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr double kMinZoom = 0.05;
constexpr double kMaxZoom = 4.0;
constexpr int kFitMarginPx = 28;
/// Names and shapes are read with ease.
constexpr double kReadableZoom = 0.75;
/// A pipeline that needs less to be seen as a whole opens at its beginning.
constexpr double kLeastFirstZoom = 0.35;

}  // namespace

CanvasCamera::CanvasCamera(QGraphicsView& view, GraphScene& scene, Session& session)
    : QObject(&view), m_view(view), m_scene(scene) {
  connect(&scene.scope(), &CanvasScope::pathAboutToChange, this, &CanvasCamera::rememberSeen);
  connect(&scene.scope(), &CanvasScope::pathChanged, this, &CanvasCamera::showScope);
  connect(&scene.scope(), &CanvasScope::selectionChanged, this, &CanvasCamera::followSelection);
  // Only a new document is fitted by itself: a view that moves with every edit moves under the user's hand.
  connect(&session.pipeline(), &OpenPipeline::replaced, this, [this] { m_isFitPending = true; });
  connect(&session.plan(), &LivePlan::analysisChanged, this, [this] {
    if (std::exchange(m_isFitPending, false)) showFirst();
  });
}

std::optional<ViewPlace> CanvasCamera::place() const {
  return m_isFitted ? std::nullopt : std::optional(ViewPlace{middle(), zoom()});
}

void CanvasCamera::rememberSeen() {
  m_known.clear();
  m_path = m_scene.scope().path();
  m_around.resize(static_cast<std::size_t>(m_path.size()) + 1);
  m_around.back() = Seen{place(), m_view.mapToScene(QPoint()), m_showsBeginning};
}

/// Leaving a block restores the view from before entering it.
void CanvasCamera::showScope() {
  const QStringList before = std::exchange(m_path, m_scene.scope().path());
  const auto [left, parted] = std::ranges::mismatch(before, std::as_const(m_path));
  const auto depth = static_cast<std::size_t>(m_path.size());
  const bool isOut = parted == m_path.cend() && left != before.cend();
  const std::optional<Seen> seen = isOut && depth < m_around.size() ? m_around[depth] : std::nullopt;
  m_around.resize(std::min(m_around.size(), static_cast<std::size_t>(left - before.cbegin()) + 1));
  if (seen) return showSeen(*seen);
  showBeginning();
  if (isOut) showSelected();
}

void CanvasCamera::showSeen(const Seen& seen) {
  if (!seen.place) return seen.isBeginning ? showBeginning() : fit();
  zoomTo(seen.place->zoom);
  showPlace(seen.corner + QRectF(m_view.viewport()->rect()).center() / zoom(), zoom());
}

std::optional<ViewPlace> CanvasCamera::pipelinePlace() const {
  const bool isAround = m_scene.scope().isInside() && !m_around.empty() && m_around.front();
  return isAround ? m_around.front()->place : place();
}

void CanvasCamera::showFirst() {
  takeKnown();
  const std::optional<ViewPlace> place = std::exchange(m_firstPlace, std::nullopt);
  place ? showPlace(place->middle, place->zoom) : showBeginning();
}

/// The whole pipeline down to kLeastFirstZoom; a larger one from its beginning at the left.
void CanvasCamera::showBeginning() {
  fit();
  m_showsBeginning = true;
  if (zoom() >= kLeastFirstZoom || m_scene.contentRect().isEmpty()) return;
  const double marginPx = kFitMarginPx / kReadableZoom;
  const QRectF content = m_scene.contentRect().adjusted(-marginPx, -marginPx, marginPx, marginPx);
  const QSizeF room = QSizeF(m_view.viewport()->size()) / kReadableZoom;
  const auto middleOf = [](double first, double length, double roomLength) {
    return first + std::min(length, roomLength) / 2;
  };
  m_view.setTransform(QTransform::fromScale(kReadableZoom, kReadableZoom));
  m_view.centerOn(middleOf(content.left(), content.width(), room.width()),
                  middleOf(content.top(), content.height(), room.height()));
  Q_EMIT zoomChanged(kReadableZoom);
}

void CanvasCamera::fit() {
  showRect(m_scene.contentRect());
  m_isFitted = true;
  m_showsBeginning = false;
}

QRectF CanvasCamera::selectedArea() const {
  QRectF content;
  for (const QString& id : m_scene.scope().selection())
    if (const NodeItem* item = m_scene.node(id.toStdString())) content = content.united(item->sceneBoundingRect());
  for (const std::string& id : m_scene.frames().selected())
    content = content.united(m_scene.frames().item(id)->sceneBoundingRect());
  return content;
}

void CanvasCamera::fitSelection() {
  const QRectF content = selectedArea();
  content.isEmpty() ? fit() : showRect(content);
}

/// A node that was just inserted is selected, and may be out of sight: the view moves as little as it takes.
void CanvasCamera::followSelection() {
  const std::vector<std::string> known = takeKnown();
  const auto isKnown = [&](const QString& id) { return std::ranges::binary_search(known, id.toStdString()); };
  const auto isStillThere = [&](const std::string& id) { return m_scene.node(id) != nullptr; };
  const bool isInserted = !m_scene.scope().selection().isEmpty() &&
                          std::ranges::none_of(m_scene.scope().selection(), isKnown) &&
                          std::ranges::any_of(known, isStillThere);
  if (isInserted && !m_isFitPending) include(selectedArea());
}

/// Those known before; from now on all that are there.
std::vector<std::string> CanvasCamera::takeKnown() {
  std::vector<std::string> nodes;
  nodes.reserve(m_scene.nodes().size());
  for (const auto& [id, item] : m_scene.nodes()) nodes.push_back(id);
  return std::exchange(m_known, std::move(nodes));
}

void CanvasCamera::showSelected() { showArea(selectedArea()); }

void CanvasCamera::showRect(const QRectF& content) {
  if (content.isEmpty() || std::min(m_view.viewport()->width(), m_view.viewport()->height()) <= 2 * kFitMarginPx)
    return;
  const QSizeF room(m_view.viewport()->width() - 2 * kFitMarginPx, m_view.viewport()->height() - 2 * kFitMarginPx);
  const double factor = std::min({room.width() / content.width(), room.height() / content.height(), 1.0});
  m_view.setTransform(QTransform::fromScale(factor, factor));
  m_view.centerOn(content.center());
  m_isFitted = false;
  Q_EMIT zoomChanged(factor);
}

void CanvasCamera::zoomTo(double factor) { zoomAt(m_view.viewport()->rect().center(), factor / zoom()); }

void CanvasCamera::zoomAt(QPointF viewPosition, double factor) {
  const double wanted = std::clamp(zoom() * factor, kMinZoom, kMaxZoom);
  const QPointF before = m_view.mapToScene(viewPosition.toPoint());
  m_view.setTransform(QTransform::fromScale(wanted, wanted));
  const QPointF after = m_view.mapToScene(viewPosition.toPoint());
  const QPointF centre = m_view.mapToScene(m_view.viewport()->rect().center());
  m_view.centerOn(centre + before - after);
  m_isFitted = false;
  Q_EMIT zoomChanged(wanted);
}

void CanvasCamera::showPlace(QPointF middle, double zoom) {
  zoomTo(zoom);
  m_view.centerOn(middle);
  m_isFitted = false;
}

void CanvasCamera::showArea(const QRectF& area) {
  if (area.isNull() || isInSight(area)) return;
  m_view.centerOn(area.center());
  m_isFitted = false;
}

void CanvasCamera::include(const QRectF& area) {
  if (isInSight(area)) return;
  m_view.ensureVisible(area);
  m_isFitted = false;
}

bool CanvasCamera::isInSight(const QRectF& area) const {
  return m_view.mapToScene(m_view.viewport()->rect()).boundingRect().contains(area);
}

void CanvasCamera::panBy(QPoint way) {
  m_view.horizontalScrollBar()->setValue(m_view.horizontalScrollBar()->value() - way.x());
  m_view.verticalScrollBar()->setValue(m_view.verticalScrollBar()->value() - way.y());
  m_isFitted = false;
}

void CanvasCamera::refit() {
  if (m_isFitted) m_showsBeginning ? showBeginning() : fit();
}

}  // namespace fuseline::ui
