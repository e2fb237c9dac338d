// Commands become edits of what is shown.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/canvas_commands.h"

#include "core/edit/apply_edit.h"
#include "core/edit/block_edits.h"
#include "core/edit/chain_edits.h"
#include "core/edit/copy_place.h"
#include "core/edit/fold_repeats.h"
#include "core/lowering/document_operation.h"
#include "core/plan/fusion_toggle.h"
#include "ui/canvas/canvas_geometry.h"
#include "ui/canvas/metrics.h"
#include "ui/theme/format.h"

#include <QClipboard>
#include <QGuiApplication>

#include <span>
#include <utility>

namespace fuseline::ui {

namespace {

QSet<QString> setOf(const std::vector<std::string>& ids) {
  QSet<QString> set;
  for (const std::string& id : ids) set.insert(toQt(id));
  return set;
}

/// Below the originals, clear of other nodes.
Result<FragmentEdit> pasteBelow(const PipelineDocument& document, const QString& text, IncomingWires incoming) {
  const std::string copied = text.toStdString();
  return fuseline::pasteFragment(document, copied, offsetOfCopy(document, copied), incoming);
}

}  // namespace

CanvasCommands::CanvasCommands(const CanvasParts& parts) : m_parts(parts) {}

void CanvasCommands::insertAfterSelection(const std::string& entry) {
  const NodeEdit added = insertAfter(m_parts.scope.document(), m_parts.scope.analysis()->documentGraph(), entry,
                                     m_parts.scope.singleSelection().toStdString());
  if (m_parts.scope.apply(added.edit)) m_parts.scope.select({toQt(added.id)});
}

void CanvasCommands::insertAtWire(const std::string& entry, const LooseWire& wire, QPointF position) {
  // The port that takes the wire comes to stand where the wire was dropped.
  const QPointF corner(wire.isFromOutput ? 0.0 : kNodeWidthPx, kNodeHeightPx / 2.0);
  const auto added = addAtWire(m_parts.scope.document(), m_parts.scope.analysis()->documentGraph(), entry, wire,
                               snappedPosition(position - corner));
  if (added && m_parts.scope.apply(added->edit)) m_parts.scope.select({toQt(added->id)});
}

/// An output of a block goes only where it is itself removed: all of its instances have wires there.
OrphanedOutputs CanvasCommands::orphans() const {
  return m_parts.scope.isInside() ? OrphanedOutputs::Kept : OrphanedOutputs::Removed;
}

void CanvasCommands::removeSelected(Reconnect reconnect) {
  const std::vector<Link> links = m_parts.items.selectedWires();
  std::vector<Edit> edits = m_parts.frames.removals();
  if (std::vector<Edit> points = m_parts.items.reroutes().removals(); !points.empty())
    edits.emplace_back(EditGroup{"Remove reroute points", std::move(points)});
  const bool areFramesAlone = links.empty() && m_parts.scope.selection().isEmpty();
  if (areFramesAlone && edits.empty()) return;
  if (!areFramesAlone)
    edits.insert(edits.begin(),
                 removeNodes(m_parts.scope.document(), m_parts.scope.selection(), links, reconnect, orphans()));
  m_parts.scope.apply(EditGroup{.label = fuseline::describe(edits.front()), .edits = std::move(edits)});
}

void CanvasCommands::replace(const std::string& id, const std::string& entry) {
  const Result<Edit> edit = replaceOp(m_parts.scope.document(), m_parts.scope.analysis()->documentGraph(), id, entry);
  if (!edit) return Q_EMIT hint(toQt(edit.error().message));
  if (m_parts.scope.apply(*edit)) m_parts.scope.select({toQt(id)});
}

void CanvasCommands::repeatSelected(int count) {
  const Result<RepeatedOp> row =
      repeatOp(m_parts.scope.document(), m_parts.scope.singleSelection().toStdString(), count);
  if (!row) return Q_EMIT hint(toQt(row.error().message));
  if (!m_parts.scope.apply(row->edit)) return;
  m_parts.scope.select(setOf(row->ids));
}

void CanvasCommands::toggleBypass() {
  const Result<Edit> bypass = ui::toggleBypass(m_parts.scope.document(), m_parts.scope.selection());
  if (!bypass) return Q_EMIT hint(toQt(bypass.error().message));
  if (m_parts.scope.apply(*bypass))
    Q_EMIT hint(tr("Done: %1. Press D again to revert this.").arg(toQt(fuseline::describe(*bypass))));
}

void CanvasCommands::toggleFusions() {
  if (m_parts.scope.isInside())
    return Q_EMIT hint(tr("Fusions can be switched only outside of blocks. Press Ctrl+Up to leave the block, then T."));
  if (m_parts.session.plan().isAnalysing()) return;  // what is shown is not what would be switched
  const auto toggle = fusionToggle(m_parts.scope.document(), *m_parts.scope.analysis(), m_parts.scope.selection(),
                                   m_parts.session.selection().rule());
  if (!toggle)
    return Q_EMIT hint(tr("No fusion is selected. Select a fused op, or the label of a fusion, then press T."));
  if (m_parts.scope.apply(toggle->edit)) Q_EMIT hint(tr("%1 Press T to switch it back.").arg(toQt(toggle->hint)));
}

// -------------------------------------------------------------------------------------------------------- clipboard

void CanvasCommands::copySelected() const {
  const QString text = copyFragment(m_parts.scope.document(), m_parts.scope.selection(), m_parts.frames.selected());
  if (!text.isEmpty()) QGuiApplication::clipboard()->setText(text);
}

/// Removes only those selected items that were copied to the clipboard.
void CanvasCommands::cutSelected() {
  QSet<QString> ops;
  for (const DocumentOp& op : m_parts.scope.document().ops())
    if (m_parts.scope.selection().contains(toQt(op.id))) ops.insert(toQt(op.id));
  std::vector<Edit> edits = m_parts.frames.removals();
  if (ops.isEmpty() && edits.empty()) return Q_EMIT hint(tr("No ops are selected. Select the ops to cut."));
  copySelected();
  if (!ops.isEmpty())
    edits.insert(edits.begin(), removeNodes(m_parts.scope.document(), ops, {}, Reconnect::No, orphans()));
  m_parts.scope.apply(EditGroup{.label = fuseline::describe(edits.front()), .edits = std::move(edits)});
}

void CanvasCommands::paste() { pasteText(QGuiApplication::clipboard()->text()); }

void CanvasCommands::pasteWithWires() {
  const Result<FragmentEdit> pasted =
      pasteBelow(m_parts.scope.document(), QGuiApplication::clipboard()->text(), IncomingWires::Kept);
  pasted ? apply(*pasted) : Q_EMIT hint(toQt(pasted.error().message));
}

void CanvasCommands::pasteText(const QString& text) {
  const std::vector<Link> wires = m_parts.items.selectedWires();
  const bool isIntoWire = wires.size() == 1;
  const Result<FragmentEdit> into =
      isIntoWire ? pasteIntoWire(m_parts.scope.document(), text, wires.front()) : Result<FragmentEdit>(Error{});
  if (into) return apply(*into);
  const Result<FragmentEdit> pasted = pasteBelow(m_parts.scope.document(), text, IncomingWires::Dropped);
  if (!pasted) return Q_EMIT hint(toQt(pasted.error().message));
  apply(*pasted);
  if (isIntoWire)
    Q_EMIT hint(
        tr("Cannot insert into the wire to %1: %2").arg(toQt(toString(wires.front().to)), toQt(into.error().message)));
}

void CanvasCommands::apply(const FragmentEdit& pasted) {
  if (!m_parts.scope.apply(pasted.edit)) return;
  m_parts.scene.clearSelection();
  m_parts.scope.select(idsOf(pasted.ids));
  for (const std::string& id : pasted.frames)
    if (FrameItem* frame = m_parts.frames.item(id)) frame->setSelected(true);
}

void CanvasCommands::duplicateSelected() {
  const QString text = copyFragment(m_parts.scope.document(), m_parts.scope.selection(), m_parts.frames.selected());
  if (!text.isEmpty()) pasteText(text);
}

// ----------------------------------------------------------------------------------------------------------- blocks

void CanvasCommands::makeBlockOfSelected(const std::string& name) {
  std::vector<std::string> ids;
  for (const DocumentOp& op : m_parts.scope.document().ops()) {
    if (m_parts.scope.selection().contains(toQt(op.id))) ids.push_back(op.id);
  }
  const Result<NewBlock> made = makeBlock(m_parts.scope.document(), ids, name);
  if (!made) {
    Q_EMIT hint(toQt(made.error().message));
    return;
  }
  if (m_parts.scope.apply(made->edit, std::span(&made->moves, 1))) m_parts.scope.select({toQt(made->instance)});
}

void CanvasCommands::foldRepeats() {
  const std::optional<FoldedRepeats> folded = fuseline::foldRepeats(m_parts.scope.document());
  if (!folded)
    return Q_EMIT hint(
        tr("No repeated layers found. Folding needs a sequence of at least %1 ops that repeats without changes.")
            .arg(kFewestRepeatedOps));
  const PlaceMoves moves = movesOf(folded->places);
  if (m_parts.scope.apply(folded->edit, std::span(&moves, 1)))
    Q_EMIT hint(tr("Folded %1 repetitions into block %2.").arg(folded->numInstances).arg(toQt(folded->block)));
}

void CanvasCommands::expandSelected() {
  PipelineDocument scratch = m_parts.scope.document();
  EditGroup group{.label = "Expand block", .edits = {}};
  std::vector<PlaceMoves> moves;
  QSet<QString> ids;
  for (const DocumentOp& op : m_parts.scope.document().ops()) {
    if (!m_parts.scope.selection().contains(toQt(op.id)) || blockNameOf(op).empty()) continue;
    const Result<ExpandedBlock> expanded = expandBlock(scratch, op.id);
    if (!expanded || !applyEdit(scratch, expanded->edit)) continue;
    group.edits.push_back(expanded->edit);
    moves.push_back(expanded->moves);
    for (const std::string& inner : expanded->ids) ids.insert(toQt(inner));
  }
  if (group.edits.empty()) {
    Q_EMIT hint(tr("No block is selected. Select an instance of a block to expand it."));
  } else if (m_parts.scope.apply(group, moves)) {
    m_parts.scope.select(ids);
  }
}

}  // namespace fuseline::ui
