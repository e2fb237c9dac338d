// Every command of the menus as one list.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QAction>
#include <QMenuBar>
#include <QPointer>
#include <QString>

#include <vector>

namespace fuseline::ui {

struct MenuCommand {
  QPointer<QAction> action;  // menus of files are filled anew
  QString name;              // without the mark of its mnemonic
  QString place;             // "File > Open recent"

  /// "File > Open recent > mlp.fuseline"
  QString path() const { return place + QStringLiteral(" > ") + name; }
};

/// Menus that fill themselves when they are shown are told that they are, or are taken as they stand.
enum class MenuFilling { AsShown, AsTheyStand };

std::vector<MenuCommand> menuCommands(const QMenuBar& menus, MenuFilling filling);

}  // namespace fuseline::ui
