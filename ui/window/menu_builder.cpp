// Commands of menus, and their icons.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/menu_builder.h"

#include <utility>

namespace fuseline::ui {

MenuBuilder::MenuBuilder(const Theme& theme, QObject* parent) : QObject(parent), m_theme(theme) {
  connect(&theme, &Theme::changed, this, &MenuBuilder::refresh);
}

QAction* MenuBuilder::add(QMenu& menu, const QString& text, const QKeySequence& shortcut, std::function<void()> run,
                          const QString& icon) {
  auto* action = menu.addAction(text);
  if (!shortcut.isEmpty()) action->setShortcut(shortcut);
  connect(action, &QAction::triggered, this, std::move(run));
  if (icon.isEmpty()) return action;
  action->setIcon(m_theme.icon(icon));
  m_icons.append({action, icon});
  return action;
}

void MenuBuilder::refresh() {
  for (const auto& [action, name] : std::as_const(m_icons)) action->setIcon(m_theme.icon(name));
}

}  // namespace fuseline::ui
