// Keys that differ from the program's own are in the settings, by the command's path.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/shortcuts.h"

#include <QSettings>

#include <algorithm>

namespace fuseline::ui {

namespace {

/// A slash in a key of the settings would begin a group.
QString settingOf(const Shortcuts::Command& command) {
  QString path = command.path;
  return QStringLiteral("shortcuts/") + path.replace(u'/', u'|');
}

bool clash(const QKeySequence& a, const QKeySequence& b) {
  if (a.isEmpty() || b.isEmpty()) return false;
  return a.matches(b) != QKeySequence::NoMatch || b.matches(a) != QKeySequence::NoMatch;
}

bool hasKeys(const Shortcuts::Command& command, const QKeySequence& keys) {
  return std::ranges::any_of(command.action->shortcuts(), [&](const QKeySequence& own) { return clash(own, keys); });
}

}  // namespace

Shortcuts::Shortcuts(const QMenuBar& menus, bool isKept, QObject* parent) : QObject(parent), m_isKept(isKept) {
  for (const MenuCommand& command : menuCommands(menus, MenuFilling::AsTheyStand))
    m_commands.push_back({command.action, command.path(), command.action->shortcuts()});
  load();
}

void Shortcuts::load() {
  if (!m_isKept) return;
  const QSettings settings;
  for (const Command& command : m_commands) {
    const QVariant kept = settings.value(settingOf(command));
    if (kept.isValid()) command.action->setShortcuts(QKeySequence::listFromString(kept.toString()));
  }
}

const Shortcuts::Command* Shortcuts::holderOf(const QKeySequence& keys, const Command& except) const {
  const auto holds = [&](const Command& other) { return other.action != except.action && hasKeys(other, keys); };
  const auto found = std::ranges::find_if(m_commands, holds);
  return found == m_commands.end() ? nullptr : &*found;
}

void Shortcuts::set(const Command& command, const QKeySequence& keys) {
  while (const Command* holder = holderOf(keys, command)) {
    QList<QKeySequence> left = holder->action->shortcuts();
    left.removeIf([&](const QKeySequence& own) { return clash(own, keys); });
    apply(*holder, left);
  }
  apply(command, keys.isEmpty() ? QList<QKeySequence>() : QList<QKeySequence>{keys});
  Q_EMIT changed();
}

void Shortcuts::reset(const Command& command) {
  for (const QKeySequence& keys : command.defaults)
    if (holderOf(keys, command)) set(command, keys);  // whoever took them loses them
  apply(command, command.defaults);
  Q_EMIT changed();
}

void Shortcuts::resetAll() {
  for (const Command& command : m_commands) apply(command, command.defaults);
  Q_EMIT changed();
}

void Shortcuts::apply(const Command& command, const QList<QKeySequence>& keys) {
  command.action->setShortcuts(keys);
  if (!m_isKept) return;
  QSettings settings;
  if (command.isChanged())
    settings.setValue(settingOf(command), QKeySequence::listToString(keys));
  else
    settings.remove(settingOf(command));
}

}  // namespace fuseline::ui
