// HelpMenu: the menu Help: commands and keys, the guide, the start page and tours, and what the program is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_scope.h"
#include "ui/window/device_memory.h"
#include "ui/window/guide_window.h"
#include "ui/window/menu_builder.h"
#include "ui/window/shortcuts.h"
#include "ui/window/start_commands.h"

#include <QMenu>
#include <QMenuBar>
#include <QObject>

namespace fuseline::ui {

/// It is the last menu: shortcuts are those of the commands that the menus have by then.
class HelpMenu : public QObject {
  Q_OBJECT

 public:
  /// All of them live as long as the window does.
  HelpMenu(MenuBuilder& builder, StartCommands& start, const DeviceMemory& devices, const CanvasScope& scope,
           Persistence persistence, QMenuBar& menus, QWidget& window);

  /// A page of the guide, from this heading on.
  GuideWindow& showGuide(const QString& page, const QString& heading = {});
  /// On the selected op.
  void showOpHelp();
  Shortcuts& shortcuts() { return *m_shortcuts; }

 private:
  void addKeyCommands(const QMenuBar& menus);
  void showKeys();
  GuideWindow& guide();
  void addGuideCommands();
  void addTours(StartCommands& start);

  MenuBuilder& m_builder;
  const CanvasScope& m_scope;
  QWidget& m_window;
  QMenu& m_menu;
  GuideWindow* m_guide = nullptr;  // as soon as it was wanted
  Shortcuts* m_shortcuts = nullptr;
};

}  // namespace fuseline::ui
