// Shows the definition of a block as a pipeline, with the tensors of one of its instances.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/canvas_scope.h"

#include "core/document/block_operation.h"
#include "core/edit/apply_edit.h"
#include "core/edit/block_edits.h"
#include "core/edit/block_section.h"
#include "core/edit/links.h"
#include "core/edit/renaming.h"
#include "core/lowering/lowering.h"
#include "ui/theme/format.h"

#include <QScopedValueRollback>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fuseline::ui {

namespace {

/// Gives the inputs the tensors that the instance reads. False: not all of them are known.
bool takeTensors(std::vector<DocumentInput>& inputs, const PipelineDocument& around, const Graph& graph,
                 const std::string& instance) {
  bool isComplete = true;
  for (DocumentInput& input : inputs) {
    const auto link = linkInto(around, {instance, input.id});
    const Value* value = link ? valueAt(graph, link->from) : nullptr;
    isComplete = isComplete && value;
    if (!value) continue;
    input.dtype = std::string(dtypeName(value->spec.dtype));
    input.shape = Json(value->spec.shape);
    input.requiresGradient = value->needsGradient;
  }
  return isComplete;
}

/// Settings of the whole pipeline, such as its recipe, cannot be changed from inside a block.
bool isOfPipeline(const Edit& edit) {
  return std::holds_alternative<SetRecipe>(edit) || std::holds_alternative<SetFusion>(edit);
}

/// Shapes and dtypes are those of an instance: the block has none.
Edit withoutTensor(const Edit& edit) {
  const auto* added = std::get_if<AddInput>(&edit);
  if (!added) return edit;
  const DocumentInput& input = added->input;
  return AddInput{{.id = input.id, .dtype = {}, .shape = nullptr, .extra = input.extra}, added->index};
}

bool isOfDocument(const Edit& edit) {
  return std::holds_alternative<AddBlock>(edit) || std::holds_alternative<RemoveBlock>(edit) ||
         std::holds_alternative<ReplaceBlock>(edit) || std::holds_alternative<EditInBlock>(edit);
}

void addInBlock(std::vector<Edit>& edits, const std::string& block, const Edit& edit) {
  if (const auto* group = std::get_if<EditGroup>(&edit)) {
    for (const Edit& part : group->edits) addInBlock(edits, block, part);
    return;
  }
  if (isOfPipeline(edit)) return;
  if (isOfDocument(edit)) return edits.push_back(edit);
  auto* last = edits.empty() ? nullptr : std::get_if<EditInBlock>(&edits.back());
  if (last && last->name == block) return last->edits.push_back(withoutTensor(edit));
  edits.push_back(EditInBlock{block, {withoutTensor(edit)}});
}

/// The ids from an op of a place down to an instance of a block; empty: there is none. A block that holds itself ends.
QStringList wayTo(const PipelineDocument& document, const DocumentOp& op, std::string_view block, int depth = 0) {
  constexpr int kMostLevels = 64;
  if (blockNameOf(op) == block) return {toQt(op.id)};
  const DocumentBlock* inside = depth < kMostLevels ? document.findBlock(blockNameOf(op)) : nullptr;
  for (const DocumentOp& inner : inside ? inside->ops : std::vector<DocumentOp>())
    if (const QStringList way = wayTo(document, inner, block, depth + 1); !way.isEmpty())
      return QStringList{toQt(op.id)} + way;
  return {};
}

bool holdsItself(const PipelineDocument& document, const std::string& name) {
  const DocumentBlock* block = document.findBlock(name);
  const std::vector<std::string> used = block ? blocksUsedBy(document, block->ops) : std::vector<std::string>();
  return std::ranges::count(used, name) > 0;
}

}  // namespace

Edit editInBlock(const std::string& block, const Edit& edit) {
  EditGroup group{.label = fmt::format("{} in {}", fuseline::describe(edit), block), .edits = {}};
  addInBlock(group.edits, block, edit);
  return group;
}

CanvasScope::CanvasScope(Session& session) : m_session(session) {
  connect(&session.pipeline(), &OpenPipeline::changed, this, &CanvasScope::follow);
  connect(&session.plan(), &LivePlan::analysisChanged, this, &CanvasScope::follow);
  connect(&session.pipeline(), &OpenPipeline::replaced, this, [this] {
    m_open.forget();
    if (!m_path.isEmpty()) show({}, {});
  });
  connect(&session.selection(), &Selection::changed, this, &CanvasScope::noteSelection);
}

std::ptrdiff_t CanvasScope::numInstances() const {
  return fuseline::numInstances(m_session.pipeline().document(), blockName());
}

bool CanvasScope::canEnter(const std::string& id) const {
  const DocumentOp* op = closedDocument().findOp(id);
  return op && closedDocument().findBlock(blockNameOf(*op));
}

Verdict CanvasScope::enter(const QString& id) {
  if (!canEnter(id.toStdString())) return Verdict::no(tr("%1 is not an instance of a block.").arg(id).toStdString());
  const Result<Level> level = levelInside(id.toStdString());
  return level ? goInto(m_path + QStringList{id}) : Verdict::no(level.error().message);
}

void CanvasScope::leaveTo(qsizetype depth) {
  if (depth < 0 || depth >= m_path.size()) return;
  (void)goInto(m_path.first(depth), {m_path.at(depth)});
}

Verdict CanvasScope::goTo(const QString& place) {
  QStringList path = place.split(u'.');
  const QString id = path.takeLast();
  const Verdict verdict = goInto(path);
  if (verdict && document().idExists(id.toStdString())) select({id});
  return verdict;
}

Verdict CanvasScope::goToPointer(const QString& instance, const QString& pointer) {
  const QStringList parts = pointer.split(u'/');  // "", "blocks", name, "ops", index
  const DocumentOp* op = m_session.pipeline().document().findOp(instance.toStdString());
  if (!op || parts.size() < 5 || parts[1] != u"blocks" || parts[3] != u"ops") return Verdict::yes();
  const std::string name = parts[2].toStdString();
  const DocumentBlock* block = m_session.pipeline().document().findBlock(name);
  const QStringList way = wayTo(m_session.pipeline().document(), *op, name);
  const auto index = static_cast<std::size_t>(parts[4].toULongLong());
  if (!block || way.isEmpty() || index >= block->ops.size()) return Verdict::yes();
  return goTo((way + QStringList{toQt(block->ops[index].id)}).join(u'.'));
}

std::string CanvasScope::placeOf(const std::string& id) const {
  return m_path.isEmpty() ? id : m_path.join(u'.').toStdString() + "." + id;
}

std::string CanvasScope::idAt(const std::string& place) const {
  const std::string around = placeOf({});
  if (!place.starts_with(around)) return {};
  const std::string inside = place.substr(around.size());
  return inside.substr(0, inside.find('.'));
}

bool CanvasScope::apply(const Edit& edit, const QString& mergeKey) {
  const Edit own = m_open.inDocument(edit);
  if (!isInside()) return m_session.pipeline().apply(own, mergeKey);
  return applyWhole(editInBlock(blockName(), own), mergeKey);
}

bool CanvasScope::apply(const Edit& edit, std::span<const PlaceMoves> moves) {
  const Edit own = m_open.inDocument(edit);
  if (!isInside()) return m_session.pipeline().apply(own);
  EditGroup whole{.label = fmt::format("{} in {}", fuseline::describe(edit), blockName()),
                  .edits = {editInBlock(blockName(), own)}};
  PipelineDocument trial = m_session.pipeline().document();
  for (const PlaceMoves& each : moves) {
    std::vector<Edit> places;
    addMovedPlaces(places, trial, insideOf(m_session.pipeline().document(), blockName(), each));
    for (Edit& place : places) {
      if (!applyEdit(trial, place)) continue;
      whole.edits.push_back(std::move(place));
    }
  }
  return applyWhole(whole, {});
}

bool CanvasScope::applyWhole(const Edit& whole, const QString& mergeKey) {
  PipelineDocument trial = m_session.pipeline().document();
  if (applyEdit(trial, whole) && holdsItself(trial, blockName()) &&
      !holdsItself(m_session.pipeline().document(), blockName())) {
    Q_EMIT m_session.pipeline().editRefused(
        tr("Block %1 would contain itself. Add the op outside, or expand the block first.").arg(toQt(blockName())));
    return false;
  }
  return m_session.pipeline().apply(whole, mergeKey.isEmpty() ? mergeKey : toQt(blockName()) + u'/' + mergeKey);
}

bool CanvasScope::rename(const QString& id, const QString& newId) {
  if (!isInside()) return m_session.rename(id, newId);
  if (!m_session.pipeline().apply(
          renameInBlock(m_session.pipeline().document(), blockName(), id.toStdString(), newId.toStdString())))
    return false;
  select({newId});
  return true;
}

void CanvasScope::select(const QSet<QString>& ids) {
  if (!isInside()) return m_session.selection().select(ids);
  if (ids == m_selection) return;
  m_selection = ids;
  Q_EMIT selectionChanged();
}

QString CanvasScope::singleSelection() const { return selection().size() == 1 ? *selection().begin() : QString(); }

Result<CanvasScope::Level> CanvasScope::levelInside(const std::string& instance) const {
  if (!canEnter(instance)) return Error{instance + " is not an instance of a block."};
  const std::string name(blockNameOf(*closedDocument().findOp(instance)));
  DocumentBlock block = *m_session.pipeline().document().findBlock(name);
  const bool areKnown = takeTensors(block.inputs, closedDocument(), analysis()->documentGraph(), instance);
  PipelineDocument section = blockSection(m_session.pipeline().document(), std::move(block));
  Analysis known;
  if (areKnown) known.lowered = lower(section, {.pass = m_session.setup().pass()});
  return Level{name, std::move(section), std::make_shared<const Analysis>(std::move(known))};
}

/// An op at the index of the old instance, among equally many ops, is that instance under a new id.
QString CanvasScope::nameNow(qsizetype depth) const {
  const QString& id = m_path.at(depth);
  if (closedDocument().findOp(id.toStdString()) || depth >= std::ssize(m_stands)) return id;
  const Stand& stand = m_stands[static_cast<std::size_t>(depth)];
  const std::vector<DocumentOp>& ops = closedDocument().ops();
  const bool isThere = ops.size() == stand.numOps && blockNameOf(ops[stand.index]) == stand.block;
  return isThere ? toQt(ops[stand.index].id) : id;
}

CanvasScope::Stand CanvasScope::standOf(const std::string& instance) const {
  const std::vector<DocumentOp>& ops = closedDocument().ops();
  const auto op = std::ranges::find(ops, instance, &DocumentOp::id);
  return {std::string(blockNameOf(*op)), static_cast<std::size_t>(op - ops.begin()), ops.size()};
}

/// As far as the path leads; it ends there. Returns whether something that was selected inside is gone.
bool CanvasScope::makeLevels() {
  std::vector<Stand> stands;
  m_levels.clear();
  m_whyNot.clear();
  for (qsizetype depth = 0; depth < m_path.size(); ++depth) {
    m_path[depth] = nameNow(depth);
    Result<Level> level = levelInside(m_path.at(depth).toStdString());
    if (!level) m_whyNot = level.error().message;
    if (!level) break;
    stands.push_back(standOf(m_path.at(depth).toStdString()));
    m_levels.push_back(std::move(*level));
  }
  m_stands = std::move(stands);
  m_path = m_path.first(std::ssize(m_levels));
  return m_selection.removeIf([this](const QString& id) { return !closedDocument().idExists(id.toStdString()); }) > 0;
}

namespace {

/// As the canvas has them: beside nodes that the user has placed, it keeps the others where they were.
NodePositions placesIn(const PipelineDocument& document, const std::vector<NodeLook>& looks, bool isBlock,
                       NodePositions kept) {
  NodePositions places(document.positions().begin(), document.positions().end());
  if (!places.empty()) places.merge(kept);
  if (!std::ranges::all_of(looks, [&](const NodeLook& look) { return places.contains(look.id); }))
    return nodePlaces(document, looks, isBlock);
  if (isBlock) placePorts(places, document);
  return places;
}

}  // namespace

/// For the instances that are open in what is shown.
void CanvasScope::makeRoom() {
  OpenBlocks::Insides insides;
  if (!m_open.isEmpty())
    for (const DocumentOp& op : closedDocument().ops()) {
      if (!m_open.isOpen(placeOf(op.id))) continue;
      const Result<Level> level = levelInside(op.id);
      if (level) insides[op.id] = std::make_shared<const BlockInside>(blockInside(level->document, *level->analysis));
    }
  const auto looks = insides.empty() ? std::vector<NodeLook>() : nodeLooks(closedDocument(), *analysis(), {});
  const NodePositions places =
      insides.empty() ? NodePositions()
                      : placesIn(closedDocument(), looks, isInside(), m_keptPlaces ? m_keptPlaces() : NodePositions());
  m_open.follow(closedDocument(), looks, places, std::move(insides));
}

Verdict CanvasScope::toggleOpen(const std::string& id) {
  if (!m_open.isOpen(placeOf(id)))
    if (const Result<Level> level = levelInside(id); !level) return Verdict::no(level.error().message);
  m_open.toggle(placeOf(id));
  makeRoom();
  Q_EMIT openChanged();
  return Verdict::yes();
}

/// Goes out where an instance is gone.
void CanvasScope::follow() {
  if (m_path.isEmpty()) return makeRoom();
  const qsizetype depth = m_path.size();
  const bool isSelectionLess = makeLevels();
  makeRoom();
  const bool isCutOff = m_path.size() < depth;
  const bool wasInstanceLost = std::exchange(m_isInstanceLost, false);
  if (wasInstanceLost) selectInstance();
  isCutOff ? Q_EMIT pathChanged() : Q_EMIT contentChanged();
  if (isSelectionLess || isCutOff || wasInstanceLost) Q_EMIT selectionChanged();
}

/// Yes: it could be gone to its end.
Verdict CanvasScope::goInto(const QStringList& path, const QSet<QString>& selection) {
  if (path == m_path) return Verdict::yes();
  Q_EMIT pathAboutToChange();
  show(path, selection);
  return m_path == path ? Verdict::yes() : Verdict::no(m_whyNot);
}

void CanvasScope::show(const QStringList& path, const QSet<QString>& selection) {
  m_path = path;
  m_selection = selection;
  m_stands.clear();
  (void)makeLevels();
  makeRoom();
  selectInstance();
  Q_EMIT pathChanged();
  Q_EMIT selectionChanged();
}

/// So that the other panes are about it.
void CanvasScope::selectInstance() {
  if (m_path.isEmpty()) return;
  const QScopedValueRollback guard(m_isSelecting, true);
  m_session.selection().select({m_path.first()});
}

/// Keeps the selection visible: selecting an op outside leaves the block. An instance that is renamed or removed
/// is lost from the selection first: follow() then knows which.
void CanvasScope::noteSelection() {
  if (m_isSelecting || m_path.isEmpty()) return Q_EMIT selectionChanged();
  if (m_session.selection().ids() == QSet<QString>{m_path.first()}) return;
  m_isInstanceLost = !m_session.pipeline().document().findOp(m_path.first().toStdString());
  if (!m_isInstanceLost) (void)goInto({});
}

}  // namespace fuseline::ui
