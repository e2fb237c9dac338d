// Nodes as boxes in the colors of their categories, and frames, as a picture that is kept until they change.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/overview_map.h"

#include "ui/canvas/frame_palette.h"
#include "ui/canvas/node_item.h"

#include <QEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>

#include <algorithm>
#include <cmath>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr QSize kSize(200, 130);
constexpr int kMapMarginPx = 12;
constexpr int kLeastHeightPx = 44;
constexpr double kPaddingPx = 6.0;
constexpr double kLeastBoxPx = 2.0;
constexpr std::size_t kManyNodes = 1000;
constexpr int kPauseMs = 150;

}  // namespace

OverviewMap::OverviewMap(const GraphScene& scene, GraphView& view, const Theme& theme)
    : QWidget(&view), m_scene(scene), m_view(view), m_theme(theme) {
  setAccessibleName(tr("Minimap"));
  setToolTip(tr("Click or drag to move the view"));
  setCursor(Qt::PointingHandCursor);
  view.installEventFilter(this);
  connect(&scene, &QGraphicsScene::changed, this, &OverviewMap::forgetPicture);
  connect(&scene, &GraphScene::itemsChanged, this, [this] {
    const int revision = m_scene.canvasItems().shown().revision;
    const bool hasChanged = std::exchange(m_revision, revision) != revision;
    if (hasChanged || !m_scene.frames().items().empty()) forgetPicture();
  });
  connect(&view, &GraphView::zoomChanged, this, &OverviewMap::refresh);
  connect(view.horizontalScrollBar(), &QScrollBar::valueChanged, this, &OverviewMap::refresh);
  connect(view.verticalScrollBar(), &QScrollBar::valueChanged, this, &OverviewMap::refresh);
  connect(&theme, &Theme::changed, this, &OverviewMap::forgetPicture);
  m_pause.setSingleShot(true);
  m_pause.setInterval(kPauseMs);
  connect(&m_pause, &QTimer::timeout, this, [this] {
    m_content.reset();
    refresh();
  });
  refresh();
}

void OverviewMap::setWanted(bool isWanted) {
  m_isWanted = isWanted;
  refresh();
}

QRectF OverviewMap::shownRect() const { return m_view.mapToScene(m_view.viewport()->rect()).boundingRect(); }

/// The content, and what is in view beside it: the frame never leaves the map.
QRectF OverviewMap::mappedRect() const { return content().united(shownRect()); }

const QRectF& OverviewMap::content() const {
  if (!m_content) m_content = m_scene.contentRect();
  return *m_content;
}

bool OverviewMap::isNeeded() const {
  return m_isWanted && std::ssize(m_scene.nodes()) >= kFewestNodes && !shownRect().contains(content());
}

void OverviewMap::forgetPicture() {
  m_isPictureOld = true;
  if (m_scene.nodes().size() > kManyNodes && m_content)
    m_pause.start();
  else
    m_content.reset();
  refresh();
}

bool OverviewMap::isPictureKept() const {
  return m_picture.size() == size() * devicePixelRatioF() && m_isPictureOld && m_pause.isActive();
}

/// A scene that is destroyed detaches from its views, whose scroll bars then move again.
void OverviewMap::refresh() {
  if (!m_view.scene()) return;
  place();
  setVisible(isNeeded());
  update();
}

/// As high as the pipeline needs: a long row would leave most of it empty.
void OverviewMap::place() {
  const QSize most = kSize.boundedTo(m_view.size() / 3);
  const double needed = content().height() / std::max(content().width(), 1.0) * (most.width() - 2 * kPaddingPx);
  const int neededPx = static_cast<int>(std::ceil(needed + 2 * kPaddingPx));
  resize(most.width(), std::clamp(neededPx, std::min(kLeastHeightPx, most.height()), most.height()));
  move(m_view.width() - width() - kMapMarginPx, m_view.height() - height() - kMapMarginPx);
}

QTransform OverviewMap::toMap() const {
  const QRectF mapped = mappedRect();
  const QSizeF room(width() - 2 * kPaddingPx, height() - 2 * kPaddingPx);
  const double factor = std::min(room.width() / mapped.width(), room.height() / mapped.height());
  QTransform transform;
  transform.translate(width() / 2.0, height() / 2.0);
  transform.scale(factor, factor);
  transform.translate(-mapped.center().x(), -mapped.center().y());
  return transform;
}

bool OverviewMap::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize) refresh();
  return QWidget::eventFilter(watched, event);
}

void OverviewMap::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  const ThemeColors& colors = m_theme.colors();
  painter.setPen(colors.border);
  painter.setBrush(colors.panel);
  painter.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
  const QTransform map = isPictureKept() ? m_pictureMap : toMap();
  const QSize pixels = size() * devicePixelRatioF();
  if (m_picture.size() != pixels || m_pictureMap != map || (m_isPictureOld && !isPictureKept())) {
    m_isPictureOld = false;
    m_picture = QPixmap(pixels);
    m_picture.setDevicePixelRatio(devicePixelRatioF());
    m_picture.fill(Qt::transparent);
    m_pictureMap = map;
    QPainter nodes(&m_picture);
    paintFrames(nodes, map);
    paintNodes(nodes, map);
  }
  painter.drawPixmap(0, 0, m_picture);
  painter.setPen(QPen(colors.text, 1.0));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(map.mapRect(shownRect()));
}

void OverviewMap::paintNodes(QPainter& painter, const QTransform& map) const {
  for (const auto& [id, node] : m_scene.nodes()) {
    QRectF box = map.mapRect(node->sceneBox());
    box.setSize(box.size().expandedTo({kLeastBoxPx, kLeastBoxPx}));
    painter.fillRect(box, node->isSelected() ? m_theme.colors().accent : m_theme.categoryColor(node->look().category));
  }
}

/// Outer ones first.
void OverviewMap::paintFrames(QPainter& painter, const QTransform& map) const {
  std::vector<const FrameItem*> frames;
  for (const auto& [id, item] : m_scene.frames().items()) frames.push_back(item);
  std::ranges::sort(frames, {}, &FrameItem::zValue);
  for (const FrameItem* frame : frames) {
    painter.setPen(frameColor(m_theme, frame->frame().color));
    painter.setBrush(headerGround(m_theme, frame->frame().color));
    painter.drawRect(map.mapRect(frame->sceneBox()));
  }
}

void OverviewMap::showPlace(QPointF position) { m_view.centerOn(m_pressedMap.inverted().map(position)); }

/// The map may change its scale as the view moves; under a drag it would run away.
void OverviewMap::mousePressEvent(QMouseEvent* event) {
  m_pressedMap = toMap();
  showPlace(event->position());
}

void OverviewMap::mouseMoveEvent(QMouseEvent* event) {
  if (event->buttons() & Qt::LeftButton) showPlace(event->position());
}

}  // namespace fuseline::ui
