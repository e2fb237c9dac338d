// Shortcuts: the keys of the menus' commands, as they come, and as the user wants them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/window/menu_commands.h"

#include <QKeySequence>
#include <QObject>

#include <vector>

namespace fuseline::ui {

class Shortcuts : public QObject {
  Q_OBJECT

 public:
  struct Command {
    QAction* action = nullptr;
    QString path;  // "Edit > Duplicate": its name in the settings, too
    QList<QKeySequence> defaults;

    bool isChanged() const { return action->shortcuts() != defaults; }
  };

  /// The commands that the menus have now; those of menus that fill themselves are none of them. isKept: whether keys
  /// are read from the settings and written there.
  Shortcuts(const QMenuBar& menus, bool isKept, QObject* parent = nullptr);

  const std::vector<Command>& commands() const { return m_commands; }
  /// Command that already uses these keys, or keys that begin with them; nullptr if none does.
  const Command* holderOf(const QKeySequence& keys, const Command& except) const;
  /// Empty keys: none. Whoever had them loses them.
  void set(const Command& command, const QKeySequence& keys);
  void reset(const Command& command);
  void resetAll();

 Q_SIGNALS:
  void changed();

 private:
  void load();
  void apply(const Command& command, const QList<QKeySequence>& keys);

  std::vector<Command> m_commands;
  bool m_isKept;
};

}  // namespace fuseline::ui
