// Searches open over the canvas; what is chosen becomes an edit, or is shown.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/canvas_search.h"

#include "core/document/file_format.h"
#include "core/lowering/document_operation.h"
#include "ui/canvas/canvas_commands.h"
#include "ui/canvas/drop_gesture.h"
#include "ui/canvas/search_popup.h"
#include "ui/library/palette_model.h"
#include "ui/theme/format.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr int kFindWidthPx = 420;
constexpr int kFindTopPx = 28;
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

/// The name of a node in the palette.
std::string entryOf(const PipelineDocument& document, const std::string& node) {
  const DocumentOp* op = document.findOp(node);
  return op ? op->operation : std::string(document.findInput(node) ? kInputEntry : kOutputEntry);
}

/// How often one kind of node reads another in the templates, by both names.
const std::map<std::pair<std::string, std::string>, int>& numLinks() {
  static const auto counts = [] {
    std::map<std::pair<std::string, std::string>, int> found;
    for (const DocumentTemplate& each : documentTemplates()) {
      const PipelineDocument document = parseDocument(each.text).document;
      for (const Link& link : linksOf(document))
        ++found[{entryOf(document, link.from.node), entryOf(document, link.to.node)}];
    }
    return found;
  }();
  return counts;
}

/// Before anything is typed, ops that usually stand at the other end of such a wire come first.
Search usualFirst(const Search& search, const std::string& here, bool isFromHere) {
  return [search, here, isFromHere](const QString& query) {
    std::vector<SearchChoice> choices = search(query);
    const auto rank = [&](const SearchChoice& choice) {
      if (!choice.reason.isEmpty()) return 1;  // it cannot be chosen
      const std::string other = choice.key.toStdString();
      const auto count = numLinks().find(isFromHere ? std::pair(here, other) : std::pair(other, here));
      return count == numLinks().end() ? 0 : -count->second;
    };
    if (query.trimmed().isEmpty()) std::ranges::stable_sort(choices, {}, rank);
    return choices;
  };
}

/// Those are usable that have a port which would take the wire.
Searches wireSearch(const CanvasScope& scope, const LooseWire& wire) {
  const Searches searches = searchesOf(scope.document(), [&](const std::string& entry) {
    const auto added = addAtWire(scope.document(), scope.analysis()->documentGraph(), entry, wire, std::nullopt);
    return added ? std::string() : added.error().message;
  });
  const std::string here = entryOf(scope.document(), wire.at.node);
  return {usualFirst(searches.usable, here, wire.isFromOutput), usualFirst(searches.all, here, wire.isFromOutput)};
}

/// Before anything is typed, ops with as many inputs and outputs as this one come first.
Search similarFirst(const Search& search, const PipelineDocument& document, const DocumentOp& op) {
  std::set<QString> similar;
  const OperationPointer here = operationOf(document, op);
  for (const SearchChoice& choice : search({})) {
    const OperationPointer other = operationOf(document, {.operation = choice.key.toStdString()});
    if (here && other && here->inputs.size() == other->inputs.size() && here->outputs.size() == other->outputs.size())
      similar.insert(choice.key);
  }
  return [search, similar](const QString& query) {
    std::vector<SearchChoice> choices = search(query);
    if (query.trimmed().isEmpty())
      std::ranges::stable_partition(choices, [&](const SearchChoice& choice) { return similar.contains(choice.key); });
    return choices;
  };
}

/// Those are usable that have ports for all wires of the op.
Searches replacementSearch(const CanvasScope& scope, const DocumentOp& op) {
  const Searches searches = searchesOf(scope.document(), [&](const std::string& entry) {
    if (entry == op.operation) return op.id + " is already of type " + entry + ".";
    const auto replaced = replaceOp(scope.document(), scope.analysis()->documentGraph(), op.id, entry);
    return replaced ? std::string() : replaced.error().message;
  });
  return {similarFirst(searches.usable, scope.document(), op), searches.all};
}

}  // namespace

CanvasSearch::CanvasSearch(QGraphicsView& view, GraphScene& scene, CanvasCamera& camera)
    : QObject(&view), m_view(view), m_scene(scene), m_camera(camera) {}

void CanvasSearch::insert() {
  const QPoint pointer = m_view.viewport()->mapFromGlobal(QCursor::pos());
  const QPoint at = m_view.viewport()->rect().contains(pointer) ? pointer : m_view.viewport()->rect().center();
  choose(m_view.viewport()->mapToGlobal(at),
         [this](const std::string& entry) { m_scene.commands().insertAfterSelection(entry); });
}

void CanvasSearch::insertAt(QPointF scenePosition, QPoint screenPosition) {
  choose(screenPosition,
         [this, scenePosition](const std::string& entry) { m_scene.drops().drop(entry, scenePosition); });
}

void CanvasSearch::choose(QPoint screenPosition, std::function<void(const std::string& entry)> insert) {
  auto* popup = new SearchPopup(tr("Find an op by name or keyword"), opSearch(m_scene.scope().document()), &m_view);
  connect(popup, &SearchPopup::chosen, this, [this, insert = std::move(insert)](const QString& entry) {
    insert(entry.toStdString());
    m_view.setFocus();
  });
  popup->openAt(screenPosition);
}

void CanvasSearch::replace() {
  const std::string id = m_scene.scope().singleSelection().toStdString();
  const DocumentOp* op = m_scene.scope().document().findOp(id);
  if (!op) return Q_EMIT hint(tr("No op is selected. Select the op to replace."));
  const Searches searches = replacementSearch(m_scene.scope(), *op);
  auto* popup = new SearchPopup(tr("Find an op to replace %1").arg(toQt(id)), searches.usable, &m_view);
  popup->setWider(searches.all);
  connect(popup, &SearchPopup::chosen, this, [this, id](const QString& entry) {
    m_scene.commands().replace(id, entry.toStdString());
    m_view.setFocus();
  });
  showNode(toQt(id));
  popup->openAt(m_view.viewport()->mapToGlobal(m_view.mapFromScene(m_scene.node(id)->sceneBox().bottomLeft())));
}

void CanvasSearch::insertAtWire(const LooseWire& wire, QPointF scenePosition, QPoint screenPosition) {
  const QString port = toQt(toString(wire.at));
  const Searches searches = wireSearch(m_scene.scope(), wire);
  auto* popup = new SearchPopup(
      wire.isFromOutput ? tr("Find an op to connect %1 to").arg(port) : tr("Find an op to feed %1").arg(port),
      searches.usable, &m_view);
  popup->setWider(searches.all);
  connect(popup, &SearchPopup::chosen, this, [this, wire, scenePosition](const QString& entry) {
    m_camera.hold();
    m_scene.commands().insertAtWire(entry.toStdString(), wire, scenePosition);
    m_view.setFocus();
  });
  popup->openAt(screenPosition);
}

/// Times were measured of ops of the pipeline, not of those inside of blocks.
std::vector<FoundNode> CanvasSearch::foundNodes(const QString& query) const {
  const CanvasScope& scope = m_scene.scope();
  const MeasuredOps* const times = scope.isInside() ? nullptr : m_scene.measured().overlay().measured();
  return findNodes(scope.document(), *scope.analysis(), query, times);
}

void CanvasSearch::find() {
  auto* popup = new SearchPopup(
      tr("Find by name, type, shape, fusion or problem, or by value: out_features>4096"),
      [this](const QString& query) {
        std::vector<SearchChoice> choices;
        for (const FoundNode& node : foundNodes(query))
          choices.push_back({node.isFrame ? kFrameKey + toQt(node.id) : toQt(node.id), node.title, node.detail});
        return choices;
      },
      &m_view);
  connect(popup, &SearchPopup::chosen, this, [this, popup](const QString& key) {
    m_query = popup->query();
    key.startsWith(kFrameKey) ? showFrame(key.sliced(kFrameKey.size())) : showNode(key);
    m_view.setFocus();
  });
  popup->openAt(m_view.viewport()->mapToGlobal(QPoint((m_view.viewport()->width() - kFindWidthPx) / 2, kFindTopPx)),
                kFindWidthPx);
}

void CanvasSearch::findNext(int step) {
  if (m_query.isEmpty()) return find();
  const auto found = foundNodes(m_query);
  if (found.empty()) return;
  const auto size = static_cast<std::ptrdiff_t>(found.size());
  const auto current =
      std::ranges::find_if(found, [this](const FoundNode& node) { return isSelected(node); }) - found.begin();
  const std::ptrdiff_t next = current < size ? current + step : (step > 0 ? 0 : size - 1);
  const FoundNode& node = found[static_cast<std::size_t>((next + size) % size)];
  node.isFrame ? showFrame(toQt(node.id)) : showNode(toQt(node.id));
}

bool CanvasSearch::isSelected(const FoundNode& found) const {
  if (!found.isFrame) return m_scene.scope().singleSelection() == toQt(found.id);
  return std::ranges::count(m_scene.frames().selected(), found.id) > 0;
}

void CanvasSearch::showFrame(const QString& id) {
  m_scene.frames().select(id.toStdString());
  if (const FrameItem* item = m_scene.frames().item(id.toStdString())) m_camera.showArea(item->sceneBoundingRect());
}

void CanvasSearch::showNode(const QString& id) {
  m_scene.scope().select({id});
  if (const NodeItem* item = m_scene.node(id.toStdString())) m_camera.showArea(item->sceneBoundingRect());
}

}  // namespace fuseline::ui
