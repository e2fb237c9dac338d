// Where the keys of commands on the selection reach.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/selection_commands.h"

#include <QApplication>

#include <utility>

namespace fuseline::ui {

QAction* SelectionCommands::add(QMenu& menu, const QString& text, const QKeySequence& shortcut,
                                std::function<void()> run) {
  QAction* action = m_builder.add(menu, text, shortcut, onSelection(std::move(run)));
  addToCanvas(*action);
  return action;
}

QAction* SelectionCommands::addHere(QMenu& menu, const QString& text, const QKeySequence& shortcut,
                                    std::function<void()> run) {
  QAction* action = add(menu, text, shortcut, std::move(run));
  action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  return action;
}

QAction* SelectionCommands::addLetter(QMenu& menu, const QString& text, Qt::Key key, std::function<void()> run) {
  QAction* action = addHere(menu, text, QKeySequence(key), std::move(run));
  m_plan.lanesView()->addAction(action);
  return action;
}

std::function<void()> SelectionCommands::onSelection(std::function<void()> run) const {
  return [this, run = std::move(run)] {
    const QWidget* focus = QApplication::focusWidget();
    if (focus && (m_outline.isAncestorOf(focus) || m_plan.isAncestorOf(focus))) m_view.graph().scope().leaveTo(0);
    run();
  };
}

void SelectionCommands::addToCanvas(QAction& action) {
  m_view.addAction(&action);
  m_outline.view()->addAction(&action);
}

}  // namespace fuseline::ui
