// FileMenu: the menu File, and its commands in the tool bar.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/window/comparison_commands.h"
#include "ui/window/file_commands.h"
#include "ui/window/menu_builder.h"

#include <QMenu>
#include <QObject>
#include <QToolBar>

namespace fuseline::ui {

class FileMenu : public QObject {
  Q_OBJECT

 public:
  /// All of them live as long as the window of the menu does.
  FileMenu(MenuBuilder& builder, FileCommands& files, ComparisonCommands& comparison, QMenu& menu, QToolBar& toolBar);

 private:
  void addNewCommands();
  void addOpenCommands();
  void addSaveCommands();
  void addDrawingCommands();

  MenuBuilder& m_builder;
  FileCommands& m_files;
  QMenu& m_menu;
  QToolBar& m_toolBar;
};

}  // namespace fuseline::ui
