// Walks through the menus.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/menu_commands.h"

#include <QMenu>

namespace fuseline::ui {

namespace {

QString plainText(QString text) { return text.remove(u'&'); }

void collect(const QList<QAction*>& actions, const QString& place, MenuFilling filling,
             std::vector<MenuCommand>& commands) {
  for (QAction* action : actions) {
    const QString text = plainText(action->text());
    if (QMenu* menu = action->menu()) {
      if (filling == MenuFilling::AsShown) Q_EMIT menu->aboutToShow();
      collect(menu->actions(), place.isEmpty() ? text : place + QStringLiteral(" > ") + text, filling, commands);
    } else if (!action->isSeparator()) {
      commands.push_back({action, text, place});
    }
  }
}

}  // namespace

std::vector<MenuCommand> menuCommands(const QMenuBar& menus, MenuFilling filling) {
  std::vector<MenuCommand> commands;
  collect(menus.actions(), {}, filling, commands);
  return commands;
}

}  // namespace fuseline::ui
