// Each command asks the scene's scope.
// SPDX-License-Identifier: Apache-2.0
#include "ui/block_commands.h"

#include "ui/panels/block_section.h"

#include <QAction>
#include <QTimer>

#include <utility>

namespace fuseline::ui {

namespace {

/// From the instance inwards.
void openInside(InspectorPanel& inspector, const QStringList& ops) {
  const QWidget* around = &inspector;
  for (const QString& op : ops) {
    auto* section = around->findChild<BlockSection*>();
    QToolButton* opener = section ? section->openerOf(op) : nullptr;
    if (!opener) return;
    opener->setChecked(true);
    around = section;
  }
}

}  // namespace

BlockCommands::BlockCommands(GraphScene& scene, GraphView& view, QObject* parent)
    : QObject(parent), m_scene(scene), m_view(view) {}

/// The keys are the canvas's own: lists have a use for them.
void BlockCommands::add(QMenu& menu, const QString& text, const QKeySequence& shortcut, std::function<void()> run) {
  QAction* action = menu.addAction(text);
  action->setShortcut(shortcut);
  action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  m_view.addAction(action);
  connect(action, &QAction::triggered, this, std::move(run));
}

void BlockCommands::addTo(QMenu& editMenu) {
  add(editMenu, tr("Go i&nto block"), QKeySequence(Qt::CTRL | Qt::Key_Down), [this] { m_scene.enterSelected(); });
  add(editMenu, tr("G&o out of block"), QKeySequence(Qt::CTRL | Qt::Key_Up), [this] { m_scene.leaveBlock(); });
}

void BlockCommands::follow(const OutlinePanel& outline) {
  connect(&outline, &OutlinePanel::insideWanted, this, [this](const QString& place) {
    m_scene.scope().goTo(place);
    m_view.fitSelection();
    m_view.setFocus();
  });
}

void BlockCommands::follow(const ProblemsPanel& problems) {
  connect(&problems, &ProblemsPanel::insideWanted, this,
          [this](const QString& instance, const QString& pointer) { m_scene.scope().goToPointer(instance, pointer); });
}

void BlockCommands::lead(InspectorPanel& inspector) {
  const CanvasScope& scope = m_scene.scope();
  connect(&scope, &CanvasScope::selectionChanged, this, [&scope, &inspector] {
    // The page of the instance may still be to come.
    QTimer::singleShot(0, &inspector, [&scope, &inspector] {
      if (scope.isInside() && !scope.singleSelection().isEmpty())
        openInside(inspector, scope.path().sliced(1) + QStringList{scope.singleSelection()});
    });
  });
}

}  // namespace fuseline::ui
