// RunMenu: the menu Run: measures the pipeline, and leads to what is measured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/runs/run_bar.h"
#include "ui/session/session.h"
#include "ui/window/menu_builder.h"
#include "ui/window/panes.h"
#include "ui/window/selection_commands.h"

#include <QMenu>
#include <QObject>

namespace fuseline::ui {

class RunMenu : public QObject {
  Q_OBJECT

 public:
  /// Objects that the menu's commands use; all outlive the window of the menu.
  struct Parts {
    MenuBuilder& builder;
    SelectionCommands& selection;
    Session& session;
    RunBar& runBar;
    Panes& panes;
  };
  RunMenu(const Parts& parts, QMenu& menu, QWidget& window);

 Q_SIGNALS:
  void message(const QString& sentence, Severity severity);

 private:
  void addMeasuringCommands();
  void addTensorCommand();
  void addRunCommands(QWidget& window);

  Parts m_parts;
  QMenu& m_menu;
};

}  // namespace fuseline::ui
