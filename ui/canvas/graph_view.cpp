// Pan, zoom, keyboard and drops. Key bindings follow Blender, Gaffer and Perfetto where they agree.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/graph_view.h"

#include "ui/canvas/graph_accessible.h"
#include "ui/canvas/metrics.h"
#include "ui/canvas/pinch.h"
#include "ui/canvas/port_shape.h"
#include "ui/canvas/search_popup.h"
#include "ui/library/palette_model.h"
#include "ui/numerics/numerics_model.h"
#include "ui/theme/format.h"

#include <QApplication>
#include <QDragEnterEvent>
#include <QKeyEvent>
#include <QMimeData>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr double kMinZoom = 0.05;
constexpr double kMaxZoom = 4.0;
constexpr int kFitMarginPx = 28;
/// Below it names and shapes cannot be read.
constexpr double kReadableZoom = 0.75;
constexpr int kFindWidthPx = 420;
constexpr int kGridStepPx = 24;
constexpr int kLegendMarginPx = 12;
constexpr int kLegendGapPx = 6;
constexpr int kLegendScalePx = 96;
constexpr QSize kLeastEditorSize(180, 32);
/// Before the id of a frame, where choices are told apart: no id of a node has a colon.
constexpr QLatin1String kFrameKey("frame:");

/// Every op of the library, and the blocks of the document.
Search opSearch(const PipelineDocument& document) {
  return [blocks = blockEntries(document)](const QString& query) {
    std::vector<SearchChoice> choices;
    for (const PaletteEntry& entry : searchEntries(query, blocks))
      choices.push_back({toQt(entry.name), entryTitle(entry), toQt(entry.category), entryTip(entry)});
    return choices;
  };
}

/// Those entries that may be used; and all, the others behind them with the reason.
struct Searches {
  Search usable;
  Search all;
};

/// whyNot: empty where the entry may be used.
Searches searchesOf(const PipelineDocument& document,
                    const std::function<std::string(const std::string& entry)>& whyNot) {
  QHash<QString, QString> reasons;
  for (const SearchChoice& choice : opSearch(document)({}))
    if (const std::string reason = whyNot(choice.key.toStdString()); !reason.empty())
      reasons.insert(choice.key, toQt(reason));
  const Search all = [search = opSearch(document), reasons](const QString& query) {
    std::vector<SearchChoice> choices = search(query);
    for (SearchChoice& choice : choices) choice.reason = reasons.value(choice.key);
    std::stable_partition(choices.begin(), choices.end(),
                          [](const SearchChoice& choice) { return choice.reason.isEmpty(); });
    return choices;
  };
  const Search usable = [all](const QString& query) {
    std::vector<SearchChoice> choices = all(query);
    std::erase_if(choices, [](const SearchChoice& choice) { return !choice.reason.isEmpty(); });
    return choices;
  };
  return {usable, all};
}

/// Those are usable that have a port which would take the wire.
Searches wireSearch(const CanvasScope& scope, const LooseWire& wire) {
  return searchesOf(scope.document(), [&](const std::string& entry) {
    const auto added = addAtWire(scope.document(), scope.analysis()->graph(), entry, wire, std::nullopt);
    return added ? std::string() : added.error().message;
  });
}

/// Those are usable that have ports for all wires of the op.
Searches replacementSearch(const CanvasScope& scope, const DocumentOp& op) {
  return searchesOf(scope.document(), [&](const std::string& entry) {
    if (entry == op.operation) return op.id + " is one already.";
    const auto replaced = replaceOp(scope.document(), scope.analysis()->graph(), op.id, entry);
    return replaced ? std::string() : replaced.error().message;
  });
}

}  // namespace

GraphView::GraphView(GraphScene& scene, Session& session, const Theme& theme, QWidget* parent)
    : QGraphicsView(&scene, parent),
      m_scene(scene),
      m_session(session),
      m_theme(theme),
      m_sentences(new NodeSentences(session, scene, this)) {
  installGraphAccessibility();
  setAccessibleName(tr("Pipeline canvas"));
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
  connect(&scene, &GraphScene::emptyDoubleClicked, this, &GraphView::searchAt);
  connect(&scene, &GraphScene::wireDropped, this, &GraphView::searchForWire);
  connect(&scene, &GraphScene::hint, this, &GraphView::describeWire);
  connect(&scene, &GraphScene::nodeActivated, this, &GraphView::propertiesRequested);
  connect(&scene.frames(), &FrameLayer::editWanted, this, &GraphView::editFrame);
  connect(&scene, &GraphScene::itemsChanged, this, [this] {
    if (m_cut) m_cut->mark();
  });
  connect(&scene, &QGraphicsScene::selectionChanged, this, &GraphView::describeSelection);
  connect(this, &GraphView::zoomChanged, this, &GraphView::placeEditor);
  connect(horizontalScrollBar(), &QScrollBar::valueChanged, this, &GraphView::placeEditor);
  connect(verticalScrollBar(), &QScrollBar::valueChanged, this, &GraphView::placeEditor);
  connect(&session, &Session::documentReplaced, this, [this] {
    if (m_editor) m_editor->close();
  });
  connect(&scene.scope(), &CanvasScope::selectionChanged, this, &GraphView::describeSelection);
  connect(&scene.scope(), &CanvasScope::pathAboutToChange, this, [this] {
    if (m_editor) m_editor->commit();
    rememberSeen();
  });
  connect(&scene.scope(), &CanvasScope::pathChanged, this, [this] {
    if (m_editor) m_editor->close();
    cancelCut();
    showScope();
  });
  connect(&session, &Session::analysisChanged, this, &GraphView::describeSelection);
  // Only a new document is fitted by itself: a view that moves with every edit moves under the user's hand.
  connect(&session, &Session::documentReplaced, this, [this] { m_isFitPending = true; });
  connect(&session, &Session::analysisChanged, this, [this] {
    if (std::exchange(m_isFitPending, false)) showFirst();
  });
  connect(&theme, &Theme::changed, this, [this] { viewport()->update(); });
}

void GraphView::rememberSeen() {
  m_path = m_scene.scope().path();
  m_around.resize(static_cast<std::size_t>(m_path.size()) + 1);
  m_around.back() = Seen{place(), mapToScene(QPoint()), m_showsBeginning};
}

/// What comes out of a block finds what it saw before it went in.
void GraphView::showScope() {
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

void GraphView::showSeen(const Seen& seen) {
  if (!seen.place) return seen.isBeginning ? showBeginning() : fit();
  zoomTo(seen.place->zoom);
  showPlace(seen.corner + QRectF(viewport()->rect()).center() / zoom(), zoom());
}

std::optional<ViewPlace> GraphView::pipelinePlace() const {
  const bool isAround = m_scene.scope().isInside() && !m_around.empty() && m_around.front();
  return isAround ? m_around.front()->place : place();
}

void GraphView::showFirst() {
  const std::optional<ViewPlace> place = std::exchange(m_firstPlace, std::nullopt);
  place ? showPlace(place->middle, place->zoom) : showBeginning();
}

/// Everything, if it can be read; else where it begins, at the left.
void GraphView::showBeginning() {
  fit();
  m_showsBeginning = true;
  if (zoom() >= kReadableZoom || m_scene.contentRect().isEmpty()) return;
  const double marginPx = kFitMarginPx / kReadableZoom;
  const QRectF content = m_scene.contentRect().adjusted(-marginPx, -marginPx, marginPx, marginPx);
  const QSizeF room = QSizeF(viewport()->size()) / kReadableZoom;
  const auto middleOf = [](double first, double length, double roomLength) {
    return first + std::min(length, roomLength) / 2;
  };
  setTransform(QTransform::fromScale(kReadableZoom, kReadableZoom));
  centerOn(middleOf(content.left(), content.width(), room.width()),
           middleOf(content.top(), content.height(), room.height()));
  Q_EMIT zoomChanged(kReadableZoom);
}

void GraphView::fit() {
  showRect(m_scene.contentRect());
  m_isFitted = true;
  m_showsBeginning = false;
}

QRectF GraphView::selectedArea() const {
  QRectF content;
  for (const QString& id : m_scene.scope().selection())
    if (const NodeItem* item = m_scene.node(id.toStdString())) content = content.united(item->sceneBoundingRect());
  for (const std::string& id : m_scene.frames().selected())
    content = content.united(m_scene.frames().item(id)->sceneBoundingRect());
  return content;
}

void GraphView::fitSelection() {
  const QRectF content = selectedArea();
  content.isEmpty() ? fit() : showRect(content);
}

void GraphView::showSelected() { showArea(selectedArea()); }

void GraphView::showRect(const QRectF& content) {
  if (content.isEmpty() || std::min(viewport()->width(), viewport()->height()) <= 2 * kFitMarginPx) return;
  const QSizeF room(viewport()->width() - 2 * kFitMarginPx, viewport()->height() - 2 * kFitMarginPx);
  const double factor = std::min({room.width() / content.width(), room.height() / content.height(), 1.0});
  setTransform(QTransform::fromScale(factor, factor));
  centerOn(content.center());
  m_isFitted = false;
  Q_EMIT zoomChanged(factor);
}

void GraphView::zoomTo(double factor) { zoomAt(viewport()->rect().center(), factor / zoom()); }

void GraphView::zoomAt(QPointF viewPosition, double factor) {
  const double wanted = std::clamp(zoom() * factor, kMinZoom, kMaxZoom);
  const QPointF before = mapToScene(viewPosition.toPoint());
  setTransform(QTransform::fromScale(wanted, wanted));
  const QPointF after = mapToScene(viewPosition.toPoint());
  const QPointF centre = mapToScene(viewport()->rect().center());
  centerOn(centre + before - after);
  m_isFitted = false;
  Q_EMIT zoomChanged(wanted);
}

bool GraphView::event(QEvent* event) {
  if (event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if (key->key() == Qt::Key_Tab && key->modifiers() == Qt::NoModifier) {
      openSearch();
      return true;
    }
  }
  return QGraphicsView::event(event);
}

/// Of the selection, or of the wire that is being drawn.
bool GraphView::move(QPointF direction) {
  if (!m_scene.isDrawingWire()) {
    m_scene.selectNeighbour(direction);
    showSelected();
    return true;
  }
  m_scene.aimWire(direction);
  showWire();
  return true;
}

bool GraphView::moveByKey(int key) {
  switch (key) {
    case Qt::Key_Left: return move({-1, 0});
    case Qt::Key_Right: return move({1, 0});
    case Qt::Key_Up: return move({0, -1});
    case Qt::Key_Down: return move({0, 1});
    default: return false;
  }
}

void GraphView::drawWire() {
  if (!m_scene.isDrawingWire()) m_keyboardBefore = hasFocus() ? nullptr : QApplication::focusWidget();
  m_scene.startWire();
  showWire();
  if (m_scene.isDrawingWire()) setFocus();
}

void GraphView::cancelWire() {
  m_scene.cancelWire();
  giveKeyboardBack();
}

void GraphView::giveKeyboardBack() {
  if (QWidget* const before = std::exchange(m_keyboardBefore, nullptr)) before->setFocus();
}

bool GraphView::finishWireByKey(int key) {
  const bool isEnter = key == Qt::Key_Return || key == Qt::Key_Enter;
  if (!isEnter || !m_scene.isDrawingWire()) return false;
  m_scene.finishWire();
  giveKeyboardBack();
  return true;
}

void GraphView::showWire() {
  if (!m_scene.isDrawingWire()) return;
  const QRectF end(m_scene.wireEnd() - QPointF(kNodeWidthPx, kNodeHeightPx) / 2, QSizeF(kNodeWidthPx, kNodeHeightPx));
  if (mapToScene(viewport()->rect()).boundingRect().contains(end)) return;
  ensureVisible(end);
  m_isFitted = false;
}

void GraphView::keyPressEvent(QKeyEvent* event) {
  const bool isPlain = !(event->modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::ShiftModifier));
  const bool isShift = event->modifiers() == Qt::ShiftModifier;
  const bool isSideways = event->key() == Qt::Key_Left || event->key() == Qt::Key_Right;
  if (event->modifiers() == Qt::ControlModifier && isSideways) {
    m_scene.followWire(event->key() == Qt::Key_Right);
    return showSelected();
  }
  if (isPlain && (moveByKey(event->key()) || finishWireByKey(event->key()))) return;
  if (isShift && event->key() == Qt::Key_A) return openSearch();
  if (isPlain && event->key() == Qt::Key_F) return fitSelection();
  if ((isPlain && event->key() == Qt::Key_Home) ||
      (isShift && (event->key() == Qt::Key_1 || event->key() == Qt::Key_Exclam))) {
    return fit();
  }
  const QString single = m_scene.scope().singleSelection();
  if (isPlain && event->key() == Qt::Key_F2 && m_scene.scope().isInside() && !single.isEmpty())
    return Q_EMIT renameRequested(single);
  if (isPlain && (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter || event->key() == Qt::Key_F2)) {
    const bool isFrame = m_scene.scope().selection().isEmpty() && !m_scene.frames().selected().empty();
    isFrame ? m_scene.frames().editSelected() : Q_EMIT propertiesRequested();
    return;
  }
  if (event->key() == Qt::Key_Space && !event->isAutoRepeat()) {
    m_isSpaceHeld = true;
    return showHandCursor();
  }
  if (isPlain && event->key() == Qt::Key_X && !event->isAutoRepeat()) {
    m_isCutHeld = true;
    return showHandCursor();
  }
  QGraphicsView::keyPressEvent(event);
}

/// What a drag would do here.
void GraphView::showHandCursor() {
  if (m_isCutHeld || m_cut) return viewport()->setCursor(Qt::CrossCursor);
  m_isSpaceHeld ? viewport()->setCursor(Qt::OpenHandCursor) : viewport()->unsetCursor();
}

void GraphView::keyReleaseEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Space && !event->isAutoRepeat()) {
    m_isSpaceHeld = false;
    showHandCursor();
  }
  if (event->key() == Qt::Key_X && !event->isAutoRepeat()) {
    m_isCutHeld = false;
    showHandCursor();
  }
  QGraphicsView::keyReleaseEvent(event);
}

/// Keys that are let go elsewhere are not seen here.
void GraphView::focusOutEvent(QFocusEvent* event) {
  m_isSpaceHeld = false;
  m_isCutHeld = false;
  showHandCursor();
  QGraphicsView::focusOutEvent(event);
}

bool GraphView::viewportEvent(QEvent* event) {
  const std::optional<Pinch> pinch = pinchIn(*event);
  if (!pinch) return QGraphicsView::viewportEvent(event);
  zoomAt(pinch->position, pinch->factor);
  return true;
}

/// By the keyboard it is about the selection, wherever the pointer is.
void GraphView::contextMenuEvent(QContextMenuEvent* event) {
  const bool isByKey = event->reason() == QContextMenuEvent::Keyboard && !m_scene.scope().selection().isEmpty();
  isByKey ? QMenu::exec(actions(), event->globalPos(), nullptr, this) : menuAt(event->pos())->exec(event->globalPos());
}

std::unique_ptr<QMenu> GraphView::menuAt(QPoint place) {
  auto menu = std::make_unique<QMenu>(this);
  const QPointF position = mapToScene(place);
  const LinkItem* link = m_scene.linkAt(position);
  if (m_scene.isOverSelectable(position))
    menu->addActions(actions());
  else if (link)
    addWireCommands(*menu, link->link(), place);
  else
    addCanvasCommands(*menu, place);
  return menu;
}

void GraphView::addWireCommands(QMenu& menu, const Link& link, QPoint place) {
  menu.addAction(tr("Insert op into the wire..."), this, [this, place] {
    m_scene.scope().select({});
    searchAt(mapToScene(place), viewport()->mapToGlobal(place));
  });
  menu.addAction(tr("Remove the wire to %1").arg(toQt(toString(link.to))), this,
                 [this, link] { m_scene.scope().apply(unlinkEdit(m_scene.scope().document(), link)); });
}

void GraphView::addCanvasCommands(QMenu& menu, QPoint place) {
  menu.addAction(tr("Insert op here..."), this, [this, place] {
    m_scene.scope().select({});
    searchAt(mapToScene(place), viewport()->mapToGlobal(place));
  });
  menu.addAction(tr("Paste"), &m_scene, &GraphScene::paste);
  menu.addSeparator();
  menu.addAction(tr("Lay out"), this, [this] {
    if (m_scene.layOut()) fit();
  });
  menu.addAction(tr("Show everything"), this, &GraphView::fit);
}

void GraphView::wheelEvent(QWheelEvent* event) {
  // A touchpad reports pixels: two fingers pan, as everywhere else. With Ctrl it zooms.
  const bool isTouchpad = !event->pixelDelta().isNull() && !(event->modifiers() & Qt::ControlModifier);
  if (isTouchpad) {
    horizontalScrollBar()->setValue(horizontalScrollBar()->value() - event->pixelDelta().x());
    verticalScrollBar()->setValue(verticalScrollBar()->value() - event->pixelDelta().y());
    m_isFitted = false;
  } else {
    zoomAt(event->position(), std::pow(1.0015, event->angleDelta().y()));
  }
  event->accept();
}

void GraphView::mousePressEvent(QMouseEvent* event) {
  const bool isPan = event->button() == Qt::MiddleButton || (event->button() == Qt::LeftButton && m_isSpaceHeld);
  if (isPan) return beginPan(event->pos());
  const bool isCut = event->button() == Qt::LeftButton && m_isCutHeld && !m_scene.isDrawingWire();
  isCut ? beginCut(mapToScene(event->pos())) : pressScene(*event);
}

void GraphView::beginPan(QPoint place) {
  m_isPanning = true;
  m_panFrom = place;
  viewport()->setCursor(Qt::ClosedHandCursor);
}

void GraphView::beginCut(QPointF from) {
  m_cut = std::make_unique<WireCut>(m_scene, m_theme, from);
  Q_EMIT m_scene.hint(tr("Draw across the wires to remove; Esc gives up."));
}

void GraphView::moveCut(QPointF end) {
  m_cut->moveTo(end);
  const std::size_t count = m_cut->crossed().size();
  Q_EMIT m_scene.hint(count == 1 ? tr("Let go to remove 1 wire; Esc gives up.")
                                 : tr("Let go to remove %1 wires; Esc gives up.").arg(count));
}

void GraphView::finishCut() {
  const std::vector<Link> links = m_cut->crossed();
  cancelCut();
  if (!links.empty())
    m_scene.scope().apply(removeNodes(m_scene.scope().document(), QSet<QString>(), links, Reconnect::No));
}

bool GraphView::cancelCut() {
  if (!m_cut) return false;
  m_cut.reset();
  showHandCursor();
  Q_EMIT m_scene.hint({});
  return true;
}

/// A band drawn with Shift adds to the selection, as Qt has it with Ctrl.
void GraphView::pressScene(QMouseEvent& event) {
  const bool addsBand = event.button() == Qt::LeftButton && event.modifiers() == Qt::ShiftModifier &&
                        !m_scene.isOverSelectable(mapToScene(event.position().toPoint()));
  if (!addsBand) return QGraphicsView::mousePressEvent(&event);
  QMouseEvent withCtrl(event.type(), event.position(), event.globalPosition(), event.button(), event.buttons(),
                       Qt::ControlModifier, event.pointingDevice());
  QGraphicsView::mousePressEvent(&withCtrl);
}

void GraphView::mouseMoveEvent(QMouseEvent* event) {
  if (m_cut) return moveCut(mapToScene(event->pos()));
  if (!m_isPanning) return QGraphicsView::mouseMoveEvent(event);
  const QPoint moved = event->pos() - m_panFrom;
  m_panFrom = event->pos();
  horizontalScrollBar()->setValue(horizontalScrollBar()->value() - moved.x());
  verticalScrollBar()->setValue(verticalScrollBar()->value() - moved.y());
  m_isFitted = false;
}

void GraphView::mouseReleaseEvent(QMouseEvent* event) {
  if (m_cut && event->button() == Qt::LeftButton) return finishCut();
  if (!m_isPanning) return QGraphicsView::mouseReleaseEvent(event);
  m_isPanning = false;
  showHandCursor();
}

void GraphView::resizeEvent(QResizeEvent* event) {
  QGraphicsView::resizeEvent(event);
  if (m_isFitted) m_showsBeginning ? showBeginning() : fit();
}

void GraphView::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasFormat(QString::fromLatin1(kOpMimeType))) event->acceptProposedAction();
}

void GraphView::dragMoveEvent(QDragMoveEvent* event) {
  const QByteArray entry = event->mimeData()->data(QString::fromLatin1(kOpMimeType));
  if (entry.isEmpty()) return;
  m_scene.previewDrop(entry.toStdString(), mapToScene(event->position().toPoint()));
  event->acceptProposedAction();
}

void GraphView::dragLeaveEvent(QDragLeaveEvent*) { m_scene.previewDrop({}, std::nullopt); }

void GraphView::dropEvent(QDropEvent* event) {
  const QByteArray entry = event->mimeData()->data(QString::fromLatin1(kOpMimeType));
  if (entry.isEmpty()) return;
  m_isFitted = false;  // what was just placed should not move away
  m_scene.dropEntry(entry.toStdString(), mapToScene(event->position().toPoint()));
  event->acceptProposedAction();
  setFocus();
}

void GraphView::openSearch() {
  const QPoint pointer = viewport()->mapFromGlobal(QCursor::pos());
  const QPoint at = viewport()->rect().contains(pointer) ? pointer : viewport()->rect().center();
  searchAt(mapToScene(at), viewport()->mapToGlobal(at));
}

void GraphView::searchAt(QPointF scenePosition, QPoint screenPosition) {
  auto* popup = new SearchPopup(tr("Search an op by name or keyword"), opSearch(m_scene.scope().document()), this);
  connect(popup, &SearchPopup::chosen, this, [this, scenePosition](const QString& entry) {
    // With a node selected the new op goes behind it; otherwise it goes where the search was opened.
    if (m_scene.scope().singleSelection().isEmpty()) {
      m_scene.dropEntry(entry.toStdString(), scenePosition);
    } else {
      m_scene.insertAfterSelection(entry.toStdString());
    }
    setFocus();
  });
  popup->openAt(screenPosition);
}

void GraphView::openReplace() {
  const std::string id = m_scene.scope().singleSelection().toStdString();
  const DocumentOp* op = m_scene.scope().document().findOp(id);
  if (!op) return Q_EMIT m_scene.hint(tr("Select the op to replace."));
  const Searches searches = replacementSearch(m_scene.scope(), *op);
  auto* popup = new SearchPopup(tr("Search an op in place of %1").arg(toQt(id)), searches.usable, this);
  popup->setWider(searches.all);
  connect(popup, &SearchPopup::chosen, this, [this, id](const QString& entry) {
    m_scene.replace(id, entry.toStdString());
    setFocus();
  });
  showNode(toQt(id));
  popup->openAt(viewport()->mapToGlobal(mapFromScene(m_scene.node(id)->sceneBox().bottomLeft())));
}

void GraphView::searchForWire(const LooseWire& wire, QPointF scenePosition, QPoint screenPosition) {
  const QString port = toQt(toString(wire.at));
  const Searches searches = wireSearch(m_scene.scope(), wire);
  auto* popup = new SearchPopup(
      wire.isFromOutput ? tr("Search an op that reads %1").arg(port) : tr("Search an op for %1 to read").arg(port),
      searches.usable, this);
  popup->setWider(searches.all);
  connect(popup, &SearchPopup::chosen, this, [this, wire, scenePosition](const QString& entry) {
    m_isFitted = false;
    m_scene.insertAtWire(entry.toStdString(), wire, scenePosition);
    setFocus();
  });
  popup->openAt(screenPosition);
}

void GraphView::openFind() {
  auto* popup = new SearchPopup(
      tr("Find by name, type, shape, fusion or problem"),
      [this](const QString& query) {
        std::vector<SearchChoice> choices;
        for (const FoundNode& node : findNodes(m_scene.scope().document(), *m_scene.scope().analysis(), query))
          choices.push_back({node.isFrame ? kFrameKey + toQt(node.id) : toQt(node.id), node.title, node.detail});
        return choices;
      },
      this);
  connect(popup, &SearchPopup::chosen, this, [this, popup](const QString& key) {
    m_findQuery = popup->query();
    key.startsWith(kFrameKey) ? showFrame(key.sliced(kFrameKey.size())) : showNode(key);
    setFocus();
  });
  popup->openAt(viewport()->mapToGlobal(QPoint((viewport()->width() - kFindWidthPx) / 2, kFitMarginPx)), kFindWidthPx);
}

void GraphView::findNext(int step) {
  if (m_findQuery.isEmpty()) return openFind();
  const auto found = findNodes(m_scene.scope().document(), *m_scene.scope().analysis(), m_findQuery);
  if (found.empty()) return;
  const auto size = static_cast<std::ptrdiff_t>(found.size());
  const auto current =
      std::ranges::find_if(found, [this](const FoundNode& node) { return isSelected(node); }) - found.begin();
  const std::ptrdiff_t next = current < size ? current + step : (step > 0 ? 0 : size - 1);
  const FoundNode& node = found[static_cast<std::size_t>((next + size) % size)];
  node.isFrame ? showFrame(toQt(node.id)) : showNode(toQt(node.id));
}

bool GraphView::isSelected(const FoundNode& found) const {
  if (!found.isFrame) return m_scene.scope().singleSelection() == toQt(found.id);
  return std::ranges::count(m_scene.frames().selected(), found.id) > 0;
}

void GraphView::showFrame(const QString& id) {
  m_scene.frames().select(id.toStdString());
  if (const FrameItem* item = m_scene.frames().item(id.toStdString())) showArea(item->sceneBoundingRect());
}

void GraphView::showNode(const QString& id) {
  m_scene.scope().select({id});
  if (const NodeItem* item = m_scene.node(id.toStdString())) showArea(item->sceneBoundingRect());
}

void GraphView::goTo(const QString& node) {
  showNode(node);
  setFocus();
}

void GraphView::showPlace(QPointF middle, double zoom) {
  zoomTo(zoom);
  centerOn(middle);
  m_isFitted = false;
}

void GraphView::showArea(const QRectF& area) {
  if (area.isNull() || mapToScene(viewport()->rect()).boundingRect().contains(area)) return;
  centerOn(area.center());
  m_isFitted = false;
}

/// A field that is open is ended by the keyboard that the next one takes.
void GraphView::editFrame(const QString& id) {
  const FrameItem* item = m_scene.frames().item(id.toStdString());
  if (!item) return;
  showArea(item->sceneBox());
  const DocumentFrame& frame = item->frame();
  auto* editor = new FrameEditor(frame.isNote() ? FrameText::Note : FrameText::Title,
                                 toQt(frame.text.value_or(frame.title)), viewport());
  connect(editor, &FrameEditor::committed, this,
          [this, id](const QString& text) { m_scene.frames().setText(id.toStdString(), text); });
  connect(editor, &FrameEditor::ended, this, [this, editor] {
    if (editor->hasFocus() || !QApplication::focusWidget()) setFocus();
  });
  m_edited = id.toStdString();
  m_editor = editor;
  placeEditor();
  editor->show();
  editor->setFocus();
}

/// Never smaller than can be typed into. A scene that ends takes leave of its views, whose scroll bars then move once
/// more.
void GraphView::placeEditor() {
  const FrameItem* item = m_editor && scene() ? m_scene.frames().item(m_edited) : nullptr;
  if (!item) return;
  const QRect area = mapFromScene(item->textArea()).boundingRect();
  m_editor->setGeometry(QRect(area.topLeft(), area.size().expandedTo(kLeastEditorSize)));
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

/// For who does not see where the wire aims.
void GraphView::describeWire(const QString& sentence) {
  m_scene.isDrawingWire() ? setAccessibleDescription(sentence) : describeSelection();
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
  const PipelineDocument& document = m_scene.scope().document();
  if (document.ops().empty() && document.inputs().empty()) paintInvitation(*painter);
  if (m_scene.hasErrors()) paintErrorLegend(*painter);
  paintDtypeLegend(*painter);
  painter->restore();
}

void GraphView::paintInvitation(QPainter& painter) const {
  painter.setFont(scaledFont(1.1));
  painter.setPen(m_theme.colors().dimText);
  painter.drawText(viewport()->rect(), Qt::AlignCenter,
                   tr("Drag an op here from the palette, press Tab to search,\n"
                      "or choose a template from File > New from template."));
}

/// The shapes and colours of ports and wires, where there is more than one; above the other legend.
void GraphView::paintDtypeLegend(QPainter& painter) const {
  const std::set<DType> dtypes = m_scene.dtypes();
  if (dtypes.size() < 2) return;
  painter.setFont(scaledFont(0.85));
  const QFontMetrics metrics(painter.font());
  const int rows = m_scene.hasErrors() ? 3 : 1;
  const double middle = viewport()->height() - kLegendMarginPx - (rows - 0.5) * metrics.height();
  double left = kLegendMarginPx;
  for (const DType dtype : dtypes) {
    const QString name = toQt(dtypeName(dtype));
    painter.setPen(QPen(m_theme.dtypeColor(dtypeName(dtype)), 1.8));
    painter.setBrush(m_theme.colors().node);
    painter.drawPath(portShape(dtype, QPointF(left + kPortRadiusPx, middle), kPortRadiusPx));
    left += 2 * kPortRadiusPx + kLegendGapPx;
    painter.setPen(m_theme.colors().dimText);
    painter.drawText(QPointF(left, middle + metrics.ascent() - metrics.height() / 2.0), name);
    left += metrics.horizontalAdvance(name) + 2 * kLegendGapPx;
  }
}

/// What the figures on nodes are, and their colours.
void GraphView::paintErrorLegend(QPainter& painter) const {
  painter.setFont(scaledFont(0.85));
  const QString title = tr("RMS error against float32");
  const QString lowest = QStringLiteral("≤ %1").arg(formatError(kCoolestError));
  const QString highest = formatError(1.0);
  const QFontMetrics metrics(painter.font());
  const int height = metrics.height();
  const int top = viewport()->height() - kLegendMarginPx - 2 * height;
  const int scaleLeft = kLegendMarginPx + metrics.horizontalAdvance(lowest) + kLegendGapPx;
  painter.setPen(m_theme.colors().dimText);
  painter.drawText(kLegendMarginPx, top + metrics.ascent(), title);
  painter.drawText(kLegendMarginPx, top + height + metrics.ascent(), lowest);
  painter.drawText(scaleLeft + kLegendScalePx + kLegendGapPx, top + height + metrics.ascent(), highest);
  for (int x = 0; x < kLegendScalePx; ++x)
    painter.fillRect(scaleLeft + x, top + height + 3, 1, height - 6,
                     heatColor(static_cast<double>(x) / (kLegendScalePx - 1)));
}

}  // namespace fuseline::ui
