// Each command asks the scene's scope.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/block_commands.h"

#include "ui/canvas/blocks/block_doors.h"
#include "ui/inspector/block_section.h"
#include "ui/theme/format.h"
#include "ui/widgets/expression_edit.h"

#include <QAction>
#include <QInputDialog>
#include <QLineEdit>
#include <QTimer>

#include <utility>

namespace fuseline::ui {

namespace {

/// From the instance inwards. Returns what holds the fields of the op; nullptr: there is nothing of it.
QWidget* openInside(const InspectorPanel& inspector, const QStringList& ops) {
  QWidget* around = inspector.page();
  for (const QString& op : ops) {
    const auto* section = around->findChild<BlockSection*>();
    around = section ? section->open(op) : nullptr;
    if (!around) return nullptr;
  }
  return around;
}

/// Without the instance, whose page it is.
QStringList opsOf(const CanvasScope& scope) { return scope.path().sliced(1) + QStringList{scope.singleSelection()}; }

}  // namespace

BlockCommands::BlockCommands(GraphScene& scene, GraphView& view, QObject* parent)
    : QObject(parent), m_scene(scene), m_view(view) {
  connect(&view, &GraphView::renameRequested, this, &BlockCommands::askForName);
}

/// The keys are the canvas's own: lists have a use for them.
void BlockCommands::add(QMenu& menu, const QString& text, const QKeySequence& shortcut, std::function<void()> run) {
  QAction* action = menu.addAction(text);
  action->setShortcut(shortcut);
  action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  m_view.addAction(action);
  connect(action, &QAction::triggered, this, std::move(run));
}

void BlockCommands::addTo(QMenu& editMenu) {
  add(editMenu, tr("E&nter block"), QKeySequence(Qt::CTRL | Qt::Key_Down),
      [this] { m_scene.blocks().enterSelected(); });
  add(editMenu, tr("Leave bl&ock"), QKeySequence(Qt::CTRL | Qt::Key_Up), [this] { m_scene.blocks().leave(); });
}

void BlockCommands::say(const Verdict& verdict) {
  if (!verdict) Q_EMIT m_scene.hint(toQt(verdict.reason()));
}

void BlockCommands::leave() { m_scene.scope().leaveTo(0); }

void BlockCommands::follow(const OutlinePanel& outline) {
  connect(outline.view(), &QTreeView::clicked, this, [this](const QModelIndex& index) {
    if (!index.parent().isValid()) leave();
  });
  connect(&outline, &OutlinePanel::propertiesRequested, this, &BlockCommands::leave);
  connect(&outline, &OutlinePanel::insideWanted, this, [this](const QString& place) {
    say(m_scene.scope().goTo(place));
    m_view.camera().fitSelection();
    m_view.setFocus();
  });
}

void BlockCommands::follow(const PlanPanel& plan) {
  connect(plan.lanesView(), &LanesView::chosen, this, &BlockCommands::leave);
}

void BlockCommands::follow(const ProblemsPanel& problems) {
  connect(&problems, &ProblemsPanel::nodeWanted, this, [this] {
    leave();
    m_view.camera().showSelected();
  });
  connect(&problems, &ProblemsPanel::insideWanted, this, [this](const QString& instance, const QString& pointer) {
    say(m_scene.scope().goToPointer(instance, pointer));
    m_view.camera().showSelected();
  });
}

void BlockCommands::lead(InspectorPanel& inspector) {
  const CanvasScope& scope = m_scene.scope();
  connect(&scope, &CanvasScope::selectionChanged, this, [&scope, &inspector] {
    // The page of the instance may still be to come.
    QTimer::singleShot(0, &inspector, [&scope, &inspector] {
      if (scope.isInside() && !scope.singleSelection().isEmpty()) openInside(inspector, opsOf(scope));
    });
  });
  connect(&m_view, &GraphView::propertiesRequested, this, [this, &inspector] { showProperties(inspector); });
}

/// Inside, the page is that of the instance: its first field is not about what is selected.
void BlockCommands::showProperties(InspectorPanel& inspector) {
  const CanvasScope& scope = m_scene.scope();
  if (!scope.isInside()) return inspector.focusFirstField();
  if (scope.singleSelection().isEmpty()) return Q_EMIT m_scene.hint(tr("Select one op of the block."));
  const QWidget* fields = openInside(inspector, opsOf(scope));
  auto* first = fields ? fields->findChild<ExpressionEdit*>() : nullptr;
  if (!first)
    return Q_EMIT m_scene.hint(
        tr("%1 has no editable attributes. Press F2 to rename it.").arg(scope.singleSelection()));
  inspector.ensureWidgetVisible(first);
  first->setFocus(Qt::OtherFocusReason);
}

void BlockCommands::askForName(const QString& node) {
  CanvasScope& scope = m_scene.scope();
  bool isAccepted = false;
  const QString name =
      QInputDialog::getText(&m_view, tr("Rename %1").arg(node), tr("Name in block %1").arg(toQt(scope.blockName())),
                            QLineEdit::Normal, node, &isAccepted);
  if (isAccepted && name.trimmed() != node) scope.rename(node, name.trimmed());
}

}  // namespace fuseline::ui
