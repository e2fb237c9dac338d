// Menus as one list.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/command_palette.h"

#include "ui/canvas/search_popup.h"
#include "ui/library/op_search.h"
#include "ui/theme/format.h"
#include "ui/window/menu_commands.h"
#include "ui/window/panes.h"

#include <QAction>
#include <QPointer>

#include <algorithm>

namespace fuseline::ui {

namespace {

constexpr int kPopupTopPx = 48;
constexpr int kPopupWidthPx = 560;

struct Command {
  QPointer<QAction> action;  // menus of files are filled anew
  PaletteEntry entry;        // the category: where it is in the menus
};

std::vector<Command> usableCommands(const QMenuBar& menus) {
  std::vector<Command> commands;
  for (const MenuCommand& each : menuCommands(menus, MenuFilling::AsShown))
    if (each.action->isEnabled() && each.action->isVisible())
      commands.push_back(
          {each.action, {.name = each.name.toStdString(), .category = each.place.toStdString(), .keywords = {}}});
  return commands;
}

/// Every word is found in the name of the command or of its menu; the worst match counts.
std::optional<int> rankOf(const Command& command, const QString& query) {
  PaletteEntry entry = command.entry;
  entry.keywords = {entry.category};
  if (const std::optional<int> whole = matchRank(entry, query)) return whole;
  int worst = 0;
  for (const QString& word : query.split(u' ', Qt::SkipEmptyParts)) {
    const std::optional<int> rank = matchRank(entry, word);
    if (!rank) return std::nullopt;
    worst = std::max(worst, *rank);
  }
  return worst;
}

QString detailOf(const Command& command) {
  const QString keys = command.action ? command.action->shortcut().toString(QKeySequence::NativeText) : QString();
  const QString place = toQt(command.entry.category);
  return keys.isEmpty() ? place : QStringLiteral("%1   %2").arg(place, keys);
}

std::vector<SearchChoice> matching(const std::vector<Command>& commands, const QString& query) {
  std::vector<std::pair<int, std::size_t>> ranked;
  for (std::size_t i = 0; i < commands.size(); ++i)
    if (const std::optional<int> rank = rankOf(commands[i], query)) ranked.emplace_back(*rank, i);
  std::ranges::sort(ranked);
  std::vector<SearchChoice> choices;
  for (const auto& [rank, i] : ranked)
    choices.push_back({QString::number(i), toQt(commands[i].entry.name), detailOf(commands[i])});
  return choices;
}

}  // namespace

void openCommandPalette(const QMenuBar& menus, QWidget* window) {
  const std::vector<Command> commands = usableCommands(menus);
  auto* popup = new SearchPopup(
      QObject::tr("Find a command"), [commands](const QString& query) { return matching(commands, query); }, window);
  QObject::connect(popup, &SearchPopup::chosen, window, [commands](const QString& key) {
    QAction* const action = commands.at(key.toUInt()).action;
    if (auto* pane = qobject_cast<PaneToggle*>(action)) return pane->show();
    if (action) action->trigger();
  });
  popup->openAt(window->mapToGlobal(QPoint((window->width() - kPopupWidthPx) / 2, kPopupTopPx)), kPopupWidthPx);
}

}  // namespace fuseline::ui
