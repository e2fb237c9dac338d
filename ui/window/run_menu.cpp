// Commands on runs, in the order of the menu.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/run_menu.h"

#include "ui/numerics/tensor_panel.h"
#include "ui/widgets/expression_edit.h"
#include "ui/window/run_commands.h"

namespace fuseline::ui {

RunMenu::RunMenu(const Parts& parts, QMenu& menu, QWidget& window) : QObject(&menu), m_parts(parts), m_menu(menu) {
  addMeasuringCommands();
  window.addAction(parts.runBar.refusalAction());
  addTensorCommand();
  parts.builder.add(menu, tr("S&weep sizes and recipes"), {}, [this] { m_parts.panes.goTo(QStringLiteral("sweep")); });
  menu.addAction(parts.runBar.stopAction());
  menu.addSeparator();
  addRunCommands(window);
}

void RunMenu::addMeasuringCommands() {
  Session& session = m_parts.session;
  QAction* const run = m_parts.runBar.runAction();
  m_menu.addAction(run);
  connect(run, &QAction::triggered, this, [&session] {
    commitTypedField();
    session.runner().run();
  });
  const auto measure = [&session] {
    commitTypedField();
    session.runner().measureNumerics();
  };
  QAction* const numerics = m_parts.builder.add(m_menu, tr("Measure &numerics"),
                                                QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Return), measure);
  connect(&session.runner(), &Runner::runningChanged, numerics,
          [&session, numerics] { numerics->setEnabled(!session.runner().isRunning()); });
}

/// Inspects tensors of the selected op; also available in the canvas and the outline.
void RunMenu::addTensorCommand() {
  const auto look = [this] {
    commitTypedField();
    m_parts.panes.show(QStringLiteral("tensor"));
    m_parts.panes.get<TensorPanel>().lookAtSelected();
  };
  m_parts.selection.addToCanvas(
      *m_parts.builder.add(m_menu, tr("&Inspect tensors"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_T), look));
}

void RunMenu::addRunCommands(QWidget& window) {
  auto* commands = new RunCommands(m_parts.session, window);
  connect(commands, &RunCommands::message, this, &RunMenu::message);
  commands->addTimingMenu(m_menu);
  commands->addCommands(m_menu);
}

}  // namespace fuseline::ui
