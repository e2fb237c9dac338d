// Keyboard, mouse and drops. Key bindings follow Blender, Gaffer and Perfetto where they agree.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/graph_view.h"

#include "ui/canvas/canvas_commands.h"
#include "ui/canvas/canvas_legend.h"
#include "ui/canvas/canvas_selection.h"
#include "ui/canvas/drop_gesture.h"
#include "ui/canvas/frame_editing.h"
#include "ui/canvas/graph_accessible.h"
#include "ui/canvas/menus/context_menu.h"
#include "ui/canvas/pinch.h"
#include "ui/canvas/wire_gesture.h"
#include "ui/library/palette_model.h"
#include "ui/theme/format.h"

#include <QDragEnterEvent>
#include <QKeyEvent>
#include <QMimeData>
#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>

#include <cmath>
#include <optional>

namespace fuseline::ui {

namespace {

constexpr int kGridStepPx = 24;

std::optional<QPointF> directionOf(int key) {
  switch (key) {
    case Qt::Key_Left: return QPointF(-1, 0);
    case Qt::Key_Right: return QPointF(1, 0);
    case Qt::Key_Up: return QPointF(0, -1);
    case Qt::Key_Down: return QPointF(0, 1);
    default: return std::nullopt;
  }
}

}  // namespace

GraphView::GraphView(GraphScene& scene, Session& session, const Theme& theme, QWidget* parent)
    : QGraphicsView(&scene, parent),
      m_scene(scene),
      m_session(session),
      m_theme(theme),
      m_sentences(new NodeSentences(session, scene, this)),
      m_camera(new CanvasCamera(*this, scene, session)),
      m_search(new CanvasSearch(*this, scene, *m_camera)),
      m_hand(new CanvasHand(*this, scene, *m_camera, theme)),
      m_wireKeys(*this, scene, *m_camera) {
  installGraphAccessibility();
  applyLook();
  new FrameEditing(*this, scene, *m_camera, session);
  connectScene();
  connect(m_camera, &CanvasCamera::zoomChanged, this, &GraphView::zoomChanged);
  connect(m_search, &CanvasSearch::hint, &scene, &GraphScene::hint);
  connect(m_hand, &CanvasHand::hint, &scene, &GraphScene::hint);
  connect(&session.plan(), &LivePlan::analysisChanged, this, &GraphView::describeSelection);
  connect(&theme, &Theme::changed, this, [this] { viewport()->update(); });
}

void GraphView::applyLook() {
  setAccessibleName(tr("Pipeline canvas"));
  setLayoutDirection(Qt::LeftToRight);  // data flows to the right in all languages
  setRenderHint(QPainter::Antialiasing);
  setDragMode(RubberBandDrag);
  setTransformationAnchor(NoAnchor);
  setResizeAnchor(NoAnchor);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setViewportUpdateMode(FullViewportUpdate);
  setFrameShape(NoFrame);
  setAcceptDrops(true);
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
}

void GraphView::connectScene() {
  connect(&m_scene, &GraphScene::emptyDoubleClicked, m_search, &CanvasSearch::insertAt);
  connect(&m_scene.wires(), &WireGesture::dropped, m_search, &CanvasSearch::insertAtWire);
  connect(&m_scene, &GraphScene::hint, this, &GraphView::describeWire);
  connect(&m_scene, &GraphScene::nodeActivated, this, &GraphView::propertiesRequested);
  connect(&m_scene, &QGraphicsScene::selectionChanged, this, &GraphView::describeSelection);
  connect(&m_scene.scope(), &CanvasScope::selectionChanged, this, &GraphView::describeSelection);
}

void GraphView::goTo(const QString& node) {
  m_search->showNode(node);
  setFocus();
}

bool GraphView::event(QEvent* event) {
  if (event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if (key->key() == Qt::Key_Tab && key->modifiers() == Qt::NoModifier) {
      m_search->insert();
      return true;
    }
  }
  return QGraphicsView::event(event);
}

/// Moves the selection, or the end of the wire that is being drawn.
void GraphView::move(QPointF direction) {
  if (m_wireKeys.aim(direction)) return;
  m_scene.selection().selectNeighbour(direction);
  m_camera->showSelected();
}

void GraphView::keyPressEvent(QKeyEvent* event) {
  const bool isPlain = !(event->modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::ShiftModifier));
  const bool isShift = event->modifiers() == Qt::ShiftModifier;
  const bool isSideways = event->key() == Qt::Key_Left || event->key() == Qt::Key_Right;
  if (event->modifiers() == Qt::ControlModifier && isSideways) {
    m_scene.selection().followWire(event->key() == Qt::Key_Right);
    return m_camera->showSelected();
  }
  const bool isEnter = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
  if (const auto direction = isPlain ? directionOf(event->key()) : std::nullopt) return move(*direction);
  if (isPlain && isEnter && m_wireKeys.finish()) return;
  if (isShift && event->key() == Qt::Key_A) return m_search->insert();
  if (isPlain && event->key() == Qt::Key_F) return m_camera->fitSelection();
  if ((isPlain && event->key() == Qt::Key_Home) ||
      (isShift && (event->key() == Qt::Key_1 || event->key() == Qt::Key_Exclam))) {
    return fit();
  }
  const QString single = m_scene.scope().singleSelection();
  if (isPlain && event->key() == Qt::Key_F2 && m_scene.scope().isInside() && !single.isEmpty())
    return Q_EMIT renameRequested(single);
  if (isPlain && (isEnter || event->key() == Qt::Key_F2)) {
    const bool isFrame = m_scene.scope().selection().isEmpty() && !m_scene.frames().selected().empty();
    isFrame ? m_scene.frames().editSelected() : Q_EMIT propertiesRequested();
    return;
  }
  if (!m_hand->pressKey(*event)) QGraphicsView::keyPressEvent(event);
}

void GraphView::keyReleaseEvent(QKeyEvent* event) {
  m_hand->releaseKey(*event);
  QGraphicsView::keyReleaseEvent(event);
}

void GraphView::focusOutEvent(QFocusEvent* event) {
  m_hand->releaseKeys();
  QGraphicsView::focusOutEvent(event);
}

bool GraphView::viewportEvent(QEvent* event) {
  const std::optional<Pinch> pinch = pinchIn(*event);
  if (!pinch) return QGraphicsView::viewportEvent(event);
  m_camera->zoomAt(pinch->position, pinch->factor);
  return true;
}

/// By the keyboard it is about the selection, wherever the pointer is.
void GraphView::contextMenuEvent(QContextMenuEvent* event) {
  const bool isByKey = event->reason() == QContextMenuEvent::Keyboard && !m_scene.scope().selection().isEmpty();
  isByKey ? QMenu::exec(actions(), event->globalPos(), nullptr, this)
          : contextMenuAt(*this, event->pos())->exec(event->globalPos());
}

void GraphView::wheelEvent(QWheelEvent* event) {
  // A touchpad reports pixels: two fingers pan, as everywhere else. With Ctrl it zooms.
  const bool isTouchpad = !event->pixelDelta().isNull() && !(event->modifiers() & Qt::ControlModifier);
  if (isTouchpad) {
    m_camera->panBy(event->pixelDelta());
  } else {
    m_camera->zoomAt(event->position(), std::pow(1.0015, event->angleDelta().y()));
  }
  event->accept();
}

/// A band drawn with Shift adds to the selection, as Qt has it with Ctrl.
void GraphView::mousePressEvent(QMouseEvent* event) {
  if (m_hand->press(*event)) return;
  const bool addsBand = event->button() == Qt::LeftButton && event->modifiers() == Qt::ShiftModifier &&
                        !m_scene.selection().isOver(mapToScene(event->position().toPoint()));
  if (!addsBand) return QGraphicsView::mousePressEvent(event);
  QMouseEvent withCtrl(event->type(), event->position(), event->globalPosition(), event->button(), event->buttons(),
                       Qt::ControlModifier, event->pointingDevice());
  QGraphicsView::mousePressEvent(&withCtrl);
}

void GraphView::mouseMoveEvent(QMouseEvent* event) {
  if (!m_hand->move(*event)) QGraphicsView::mouseMoveEvent(event);
}

void GraphView::mouseReleaseEvent(QMouseEvent* event) {
  if (!m_hand->release(*event)) QGraphicsView::mouseReleaseEvent(event);
}

void GraphView::resizeEvent(QResizeEvent* event) {
  QGraphicsView::resizeEvent(event);
  m_camera->refit();
}

void GraphView::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasFormat(QString::fromLatin1(kOpMimeType))) event->acceptProposedAction();
}

void GraphView::dragMoveEvent(QDragMoveEvent* event) {
  const QByteArray entry = event->mimeData()->data(QString::fromLatin1(kOpMimeType));
  if (entry.isEmpty()) return;
  m_scene.drops().preview(entry.toStdString(), mapToScene(event->position().toPoint()));
  event->acceptProposedAction();
}

void GraphView::dragLeaveEvent(QDragLeaveEvent*) { m_scene.drops().preview({}, std::nullopt); }

void GraphView::dropEvent(QDropEvent* event) {
  const QByteArray entry = event->mimeData()->data(QString::fromLatin1(kOpMimeType));
  if (entry.isEmpty()) return;
  m_camera->hold();  // what was just placed should not move away
  m_scene.drops().drop(entry.toStdString(), mapToScene(event->position().toPoint()));
  event->acceptProposedAction();
  setFocus();
}

void GraphView::describeSelection() {
  QStringList frames;
  for (const std::string& id : m_scene.frames().selected()) frames.append(m_scene.frames().describe(id));
  if (m_scene.scope().selection().isEmpty() && !frames.isEmpty()) return setAccessibleDescription(frames.join(u"; "));
  QStringList ids(m_scene.scope().selection().begin(), m_scene.scope().selection().end());
  ids.sort();
  const QString single = m_scene.scope().singleSelection();
  if (!single.isEmpty()) return setAccessibleDescription(m_sentences->of(single.toStdString()));
  setAccessibleDescription(ids.isEmpty() ? tr("Nothing selected") : tr("Selected: %1").arg(ids.join(u", ")));
}

/// Announces the target of the wire to assistive technology.
void GraphView::describeWire(const QString& sentence) {
  m_scene.wires().isDrawing() ? setAccessibleDescription(sentence) : describeSelection();
}

void GraphView::drawBackground(QPainter* painter, const QRectF& rect) {
  painter->fillRect(rect, m_theme.colors().canvas);
  if (zoom() < 0.4) return;
  painter->setPen(QPen(m_theme.colors().grid, 1.6 / zoom(), Qt::SolidLine, Qt::RoundCap));
  QList<QPointF> dots;
  for (double x = std::floor(rect.left() / kGridStepPx) * kGridStepPx; x < rect.right(); x += kGridStepPx) {
    for (double y = std::floor(rect.top() / kGridStepPx) * kGridStepPx; y < rect.bottom(); y += kGridStepPx) {
      dots.append(QPointF(x, y));
    }
  }
  painter->drawPoints(dots.constData(), static_cast<int>(dots.size()));
}

void GraphView::drawForeground(QPainter* painter, const QRectF&) {
  painter->save();
  painter->resetTransform();
  paintLegends(*painter, viewport()->rect(), m_scene, m_theme);
  painter->restore();
}

}  // namespace fuseline::ui
