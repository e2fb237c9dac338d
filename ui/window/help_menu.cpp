// Commands on the program itself, in the order of the menu.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/help_menu.h"

#include "core/document/guide.h"
#include "core/lowering/document_operation.h"
#include "ui/library/operation_card.h"
#include "ui/theme/format.h"
#include "ui/window/command_palette.h"
#include "ui/window/help.h"
#include "ui/window/shortcuts_dialog.h"

namespace fuseline::ui {

HelpMenu::HelpMenu(MenuBuilder& builder, StartCommands& start, const DeviceMemory& devices, const CanvasScope& scope,
                   Persistence persistence, QMenuBar& menus, QWidget& window)
    : QObject(&window), m_builder(builder), m_scope(scope), m_window(window), m_menu(*menus.addMenu(tr("&Help"))) {
  addKeyCommands(menus);
  m_menu.addSeparator();
  addGuideCommands();
  m_menu.addSeparator();
  builder.add(m_menu, tr("&Start page"), {}, [&start] { start.show(); });
  addTours(start);
  builder.add(m_menu, tr("&About Fuseline"), {}, [&devices, &window] { showAbout(devices.devices(), &window); });
  m_shortcuts = new Shortcuts(menus, persistence == Persistence::Settings, this);
}

void HelpMenu::addKeyCommands(const QMenuBar& menus) {
  m_builder.add(m_menu, tr("&Find a command..."), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_P),
                [this, &menus] { openCommandPalette(menus, &m_window); });
  m_builder.add(m_menu, tr("Help on the selected &op"), QKeySequence(Qt::Key_F1), [this] { showOpHelp(); });
  m_builder.add(m_menu, tr("&Keyboard shortcuts"), QKeySequence(Qt::Key_Question), [this] { showKeys(); });
}

void HelpMenu::showKeys() { ShortcutsDialog(*m_shortcuts, &m_window).exec(); }

/// With no op selected, the keys are what there is to help with.
void HelpMenu::showOpHelp() {
  const QString id = m_scope.singleSelection();
  const DocumentOp* op = m_scope.document().findOp(id.toStdString());
  const OperationPointer operation = op ? operationOf(m_scope.document(), *op) : nullptr;
  if (!operation) return showKeys();
  guide().showCard(tr("Help: %1").arg(toQt(operation->name)), operationCard(*operation, id));
}

void HelpMenu::addGuideCommands() {
  for (const GuidePage& page : guidePages())
    m_builder.add(m_menu, toQt(page.title), {}, [this, name = toQt(page.name)] { showGuide(name); });
}

void HelpMenu::addTours(StartCommands& start) {
  QMenu* menu = m_menu.addMenu(tr("Guided &tours"));
  menu->setToolTipsVisible(true);
  for (const Tour& tour : tours())
    m_builder.add(*menu, tour.title, {}, [&start, &tour] { start.startTour(tour); })->setToolTip(tour.summary);
}

GuideWindow& HelpMenu::guide() {
  if (!m_guide) m_guide = new GuideWindow(&m_window);
  return *m_guide;
}

GuideWindow& HelpMenu::showGuide(const QString& page, const QString& heading) {
  guide().showPage(page, heading);
  return guide();
}

}  // namespace fuseline::ui
