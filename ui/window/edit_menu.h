// EditMenu: the menu Edit: what is undone, what is done to the selection, how it is laid out, and what is found.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/graph_view.h"
#include "ui/session/session.h"
#include "ui/window/block_commands.h"
#include "ui/window/comparison_commands.h"
#include "ui/window/menu_builder.h"
#include "ui/window/panes.h"
#include "ui/window/selection_commands.h"

#include <QMenu>
#include <QObject>
#include <QToolBar>

namespace fuseline::ui {

class EditMenu : public QObject {
  Q_OBJECT

 public:
  /// Objects that the menu's commands use; all outlive the window of the menu.
  struct Parts {
    MenuBuilder& builder;
    SelectionCommands& selection;
    Session& session;
    GraphView& view;
    Panes& panes;
    BlockCommands& blocks;
    ComparisonCommands& comparison;
    const Theme& theme;
  };
  EditMenu(const Parts& parts, QMenu& menu, QToolBar& toolBar);

 private:
  GraphScene& scene() const { return m_parts.view.graph(); }
  void addUndoCommands(QToolBar& toolBar);
  void refreshUndo();
  void addClipboardCommands();
  void addOpCommands();
  void addBlockCommands();
  void addLayoutCommands();
  void addArrangeMenu();
  void addFindCommands();
  void selectAll();
  /// Asks for a name.
  void makeBlock();
  /// Asks how many times.
  void repeatOp();

  Parts m_parts;
  QMenu& m_menu;
  QAction* m_undo = nullptr;
  QAction* m_redo = nullptr;
};

}  // namespace fuseline::ui
