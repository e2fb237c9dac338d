// Items, drags and commands of frames.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/frame_layer.h"

#include "core/document/json_text.h"
#include "ui/canvas/frame_palette.h"
#include "ui/canvas/graph_scene.h"
#include "ui/canvas/metrics.h"
#include "ui/canvas/node_moves.h"
#include "ui/theme/format.h"

#include <QScopedValueRollback>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr QSize kNoteSize(240, 96);
/// More nodes than this are counted.
constexpr qsizetype kMostNamed = 8;

double areaSizeOf(const FrameItem* item) { return item->sceneBox().width() * item->sceneBox().height(); }

QPoint cornerOf(const FrameArea& area) { return {area.x, area.y}; }

/// "Move note", "Color frame Attention", "Lock 3 frames".
std::string countLabel(const char* verb, const std::vector<DocumentFrame>& frames) {
  if (frames.size() > 1) return std::string(verb) + " " + std::to_string(frames.size()) + " frames";
  return std::string(verb) + (frames.front().isNote() ? " note" : " frame " + shortened(frames.front().title));
}

Position positionOnGrid(QPointF place) {
  return {static_cast<int>(onGrid(place.x())), static_cast<int>(onGrid(place.y()))};
}

}  // namespace

FrameLayer::FrameLayer(GraphScene& scene, CanvasScope& scope, const Theme& theme)
    : m_scene(scene), m_scope(scope), m_theme(theme) {}

FrameItem* FrameLayer::item(const std::string& id) const {
  const auto found = m_items.find(id);
  return found == m_items.end() ? nullptr : found->second;
}

FrameItem* FrameLayer::handleAt(QPointF scenePosition, Locked locked) const {
  FrameItem* best = nullptr;
  for (const auto& [id, item] : m_items) {
    const bool counts = locked == Locked::Included || !item->frame().isLocked();
    if (counts && item->isHandle(scenePosition) && (!best || areaSizeOf(item) < areaSizeOf(best))) best = item;
  }
  return best;
}

QRectF FrameLayer::contentRect() const {
  QRectF rect;
  for (const auto& [id, item] : m_items) rect = rect.united(item->sceneBoundingRect());
  return rect;
}

/// Smaller ones lie on top: one inside another can be seen and taken.
void FrameLayer::sync() {
  const std::vector<const DocumentFrame*> frames = drawnFrames(m_scope.document());
  std::map<std::string, FrameItem*> kept;
  std::vector<FrameItem*> stacked;
  for (const DocumentFrame* frame : frames) {
    FrameItem* known = item(frame->id);
    if (known) {
      // An item held by the mouse keeps its position.
      const bool isInHand = m_scene.mouseGrabberItem() && known->area() != known->frame().area;
      isInHand ? known->setFrameInHand(*frame) : known->setFrame(*frame);
    } else {
      known = new FrameItem(*frame, m_theme);
      m_scene.addItem(known);
    }
    kept[frame->id] = known;
    stacked.push_back(known);
  }
  for (const auto& [id, item] : m_items)
    if (!kept.contains(id)) delete item;
  m_items = std::move(kept);
  std::ranges::stable_sort(stacked, std::greater<>(), areaSizeOf);
  for (std::size_t i = 0; i < stacked.size(); ++i)
    stacked[i]->setZValue(static_cast<double>(i) - static_cast<double>(stacked.size()));
}

// -------------------------------------------------------------------------------------------------------- selection

std::vector<std::string> FrameLayer::selected() const {
  std::vector<std::string> ids;
  for (const DocumentFrame* frame : drawnFrames(m_scope.document()))
    if (const FrameItem* known = item(frame->id); known && known->isSelected()) ids.push_back(frame->id);
  return ids;
}

void FrameLayer::select(const std::string& id) {
  m_scene.clearSelection();
  if (FrameItem* known = item(id)) known->setSelected(true);
}

void FrameLayer::clearSelection() {
  for (const auto& [id, item] : m_items) item->setSelected(false);
}

void FrameLayer::selectNext(int step) {
  std::vector<const FrameItem*> ordered;
  for (const auto& [id, item] : m_items) ordered.push_back(item);
  if (ordered.empty()) return Q_EMIT m_scene.hint(tr("The pipeline has no frames or notes."));
  std::ranges::stable_sort(ordered, {}, [](const FrameItem* item) { return std::pair(item->y(), item->x()); });
  const auto size = static_cast<std::ptrdiff_t>(ordered.size());
  const auto current = std::ranges::find_if(ordered, [](const FrameItem* item) { return item->isSelected(); });
  const auto index = current - ordered.begin();
  const std::ptrdiff_t next = index < size ? index + step : (step > 0 ? 0 : size - 1);
  select(ordered[static_cast<std::size_t>((next + size) % size)]->frame().id);
}

QString FrameLayer::describe(const std::string& id) const {
  const FrameItem* known = item(id);
  if (!known) return {};
  const DocumentFrame& frame = known->frame();
  QStringList parts = {frame.isNote() ? tr("Note: %1").arg(toQt(shortened(*frame.text)).simplified())
                                      : tr("Frame %1").arg(frame.title.empty() ? tr("(untitled)") : toQt(frame.title))};
  QStringList nodes;
  for (const std::string& node : contentOf(m_scope.document(), frame, nodeBoxes()).nodes) nodes.append(toQt(node));
  if (nodes.size() > kMostNamed) nodes = {counted(nodes.size(), tr("node"), tr("nodes"))};
  if (!nodes.isEmpty()) parts.append(tr("around %1").arg(nodes.join(tr(" and "))));
  parts.append(frameColorTitle(frame.color).toLower());
  if (frame.isLocked()) parts.append(tr("locked"));
  return parts.join(QStringLiteral(", "));
}

// ------------------------------------------------------------------------------------------------------------- drags

NodeBoxes FrameLayer::nodeBoxes() const {
  NodeBoxes boxes;
  for (const auto& [id, item] : m_scene.nodes()) boxes[id] = item->sceneBox().toAlignedRect();
  return boxes;
}

void FrameLayer::beginDrag() {
  m_carried.clear();
  m_contents.clear();
  m_pressedNodes.clear();
  m_isCarrying = true;
  if (m_items.empty()) return;
  for (const auto& [id, node] : m_scene.nodes()) m_pressedNodes[id] = node->pos();
  const NodeBoxes boxes = nodeBoxes();
  for (const auto& [id, item] : m_items) m_contents[id] = contentOf(m_scope.document(), item->frame(), boxes);
}

/// Everything goes as far as the frame went since the mouse was pressed, so that nothing is moved twice.
void FrameLayer::frameMoved(const FrameItem& frame) {
  const auto content = m_contents.find(frame.frame().id);
  if (m_isMoving || content == m_contents.end()) return;
  const QScopedValueRollback guard(m_isMoving, true);
  const QPointF way = m_isCarrying ? frame.pos() - cornerOf(*frame.frame().area) : QPointF();
  std::map<std::string, QPointF> places;
  for (const std::string& id : content->second.nodes) {
    const NodeItem* node = m_scene.node(id);
    if (!node || node->isSelected()) continue;  // gone since, or it moves by itself
    places[id] = m_pressedNodes[id] + way;
    m_isCarrying ? (void)m_carried.insert(id) : (void)m_carried.erase(id);
  }
  for (const std::string& id : content->second.frames) {
    FrameItem* inner = item(id);
    const bool movesByItself = inner && inner->isSelected() && !inner->frame().isLocked();
    if (inner && !movesByItself) inner->setPos(cornerOf(*inner->frame().area) + way);
  }
  m_scene.moves().placeNodes(places);
}

bool FrameLayer::carries(const std::string& node) const { return m_carried.contains(node); }

std::vector<DocumentFrame> FrameLayer::changed() const {
  std::vector<DocumentFrame> frames;
  for (const auto& [id, item] : m_items) {
    if (item->area() == item->frame().area) continue;
    frames.push_back(item->frame());
    frames.back().area = item->area();
  }
  return frames;
}

std::vector<Edit> FrameLayer::changes() const {
  std::vector<Edit> edits;
  for (const DocumentFrame& frame : changed()) edits.emplace_back(ReplaceFrame{frame});
  return edits;
}

std::string FrameLayer::changeLabel() const {
  const auto isResized = [&](const DocumentFrame& frame) {
    const FrameArea& before = *item(frame.id)->frame().area;
    return frame.area->width != before.width || frame.area->height != before.height;
  };
  const std::vector<DocumentFrame> frames = changed();
  return countLabel(std::ranges::any_of(frames, isResized) ? "Resize" : "Move", frames);
}

// ---------------------------------------------------------------------------------------------------------- commands

/// The selected ones, or a hint.
std::vector<DocumentFrame> FrameLayer::chosen(const QString& what) const {
  std::vector<DocumentFrame> frames;
  for (const std::string& id : selected()) frames.push_back(item(id)->frame());
  if (frames.empty()) Q_EMIT m_scene.hint(tr("No frame or note is selected. Select one to %1.").arg(what));
  return frames;
}

void FrameLayer::apply(const std::string& label, const std::vector<DocumentFrame>& frames, const QString& mergeKey) {
  EditGroup group{.label = label, .edits = {}};
  for (const DocumentFrame& frame : frames) group.edits.emplace_back(ReplaceFrame{frame});
  m_scope.apply(group, mergeKey);
}

/// Nodes that are laid out automatically would leave the frame with the next op: they stay where they are.
void FrameLayer::frameSelected() {
  const NodeBoxes boxes = nodeBoxes();
  const PipelineDocument& document = m_scope.document();
  std::vector<std::string> chosen;
  for (const auto& [id, item] : m_scene.nodes())
    if (item->isSelected()) chosen.push_back(id);
  FrameContent content = contentAround(document, chosen, boxes);
  std::ranges::copy(selected(), std::back_inserter(content.frames));
  const std::optional<FrameArea> area = areaAround(document, content, boxes);
  if (!area) return Q_EMIT m_scene.hint(tr("No ops are selected. Select the ops to put into a frame."));
  DocumentFrame frame{.title = tr("Frame").toStdString(), .area = area};
  std::vector<Edit> before = makeRoomFor(document, *area, chosen, boxes);
  for (const std::string& id : contentOf(document, frame, boxes).nodes) {
    const QPoint corner = m_scene.node(id)->pos().toPoint();
    if (std::ranges::none_of(document.positions(), [&](const auto& entry) { return entry.first == id; }))
      before.emplace_back(MoveNode{.id = id, .position = Position{corner.x(), corner.y()}});
  }
  add(std::move(frame), std::move(before));
}

void FrameLayer::addNote(QPointF centre) {
  const Position corner = positionOnGrid(centre - QPointF(kNoteSize.width(), kNoteSize.height()) / 2);
  add({.id = {},
       .text = tr("Note").toStdString(),
       .area = FrameArea{corner.x, corner.y, kNoteSize.width(), kNoteSize.height()},
       .color = "yellow"},
      {});
}

void FrameLayer::add(DocumentFrame frame, std::vector<Edit> before) {
  frame.id = m_scope.document().freeFrameId(frame.isNote() ? "note" : "frame");
  const std::string id = frame.id;
  EditGroup group{.label = fuseline::describe(AddFrame{frame}), .edits = std::move(before)};
  group.edits.emplace_back(AddFrame{std::move(frame)});
  m_newest = id;
  if (!m_scope.apply(group, QStringLiteral("new frame ") + toQt(id))) return;
  select(id);
  Q_EMIT editWanted(toQt(id));
}

void FrameLayer::editSelected() {
  const std::vector<DocumentFrame> frames = chosen(tr("edit its text"));
  if (!frames.empty()) Q_EMIT editWanted(toQt(frames.front().id));
}

void FrameLayer::setText(const std::string& id, const QString& text) {
  const FrameItem* known = item(id);
  const bool isNew = std::exchange(m_newest, {}) == id;
  if (!known) return;
  DocumentFrame changed = known->frame();
  if (changed.isNote())
    changed.text = text.toStdString();
  else
    changed.title = text.simplified().toStdString();
  if (changed == known->frame()) return;
  apply(countLabel(changed.isNote() ? "Edit" : "Rename", {changed}), {changed},
        isNew ? QStringLiteral("new frame ") + toQt(id) : QString());
}

void FrameLayer::setColor(const std::string& color) {
  std::vector<DocumentFrame> frames = chosen(tr("choose its color"));
  std::erase_if(frames, [&](const DocumentFrame& frame) { return frame.color == color; });
  if (frames.empty()) return;
  for (DocumentFrame& frame : frames) frame.color = color;
  apply(countLabel("Color", frames), frames);
}

void FrameLayer::toggleLock() {
  std::vector<DocumentFrame> frames = chosen(tr("lock or unlock it"));
  if (frames.empty()) return;
  const bool locks = !std::ranges::all_of(frames, &DocumentFrame::isLocked);
  for (DocumentFrame& frame : frames) frame.locked = locks ? std::optional(true) : std::nullopt;
  apply(countLabel(locks ? "Lock" : "Unlock", frames), frames);
}

void FrameLayer::selectContent() {
  const std::vector<DocumentFrame> frames = chosen(tr("select its contents"));
  QSet<QString> ids;
  for (const DocumentFrame& frame : frames)
    for (const std::string& id : contentOf(m_scope.document(), frame, nodeBoxes()).nodes) ids.insert(toQt(id));
  if (!ids.isEmpty()) m_scope.select(ids);
}

void FrameLayer::fitSelected() {
  std::vector<DocumentFrame> frames = chosen(tr("fit it to its contents"));
  const NodeBoxes boxes = nodeBoxes();
  const PipelineDocument& document = m_scope.document();
  for (DocumentFrame& frame : frames) {
    const std::optional<FrameArea> area = areaAround(document, contentOf(document, frame, boxes), boxes);
    if (area && !frame.isLocked()) frame.area = area;
  }
  std::erase_if(frames, [&](const DocumentFrame& frame) { return frame == item(frame.id)->frame(); });
  if (!frames.empty()) apply(countLabel("Fit", frames), frames);
}

void FrameLayer::removeSelected() {
  if (chosen(tr("remove it")).empty()) return;
  std::vector<Edit> edits = removals();
  if (!edits.empty()) m_scope.apply(EditGroup{.label = "Remove frames", .edits = std::move(edits)});
}

std::vector<Edit> FrameLayer::removals() {
  std::vector<Edit> edits;
  for (const std::string& id : selected()) {
    if (item(id)->frame().isLocked())
      Q_EMIT m_scene.hint(tr("%1 is locked. Unlock it before you remove it.").arg(describe(id)));
    else
      edits.emplace_back(RemoveFrame{id});
  }
  return edits;
}

}  // namespace fuseline::ui
