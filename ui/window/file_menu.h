// FileMenu: the menu File, and its commands in the toolbar.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/window/comparison_commands.h"
#include "ui/window/drawing_commands.h"
#include "ui/window/file_commands.h"
#include "ui/window/menu_builder.h"

#include <QMenu>
#include <QObject>
#include <QToolBar>

namespace fuseline::ui {

class FileMenu : public QObject {
  Q_OBJECT

 public:
  /// Objects that the menu's commands use; all outlive the window of the menu.
  struct Parts {
    MenuBuilder& builder;
    FileCommands& files;
    DrawingCommands& drawings;
    ComparisonCommands& comparison;
  };
  FileMenu(const Parts& parts, QMenu& menu, QToolBar& toolBar);

 private:
  void addNewCommands();
  void addOpenCommands();
  void addSaveCommands();
  void addDrawingCommands();

  MenuBuilder& m_builder;
  FileCommands& m_files;
  DrawingCommands& m_drawings;
  QMenu& m_menu;
  QToolBar& m_toolBar;
};

}  // namespace fuseline::ui
