// Commands on the program itself, in the order of the menu.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/help_menu.h"

#include "core/document/guide.h"
#include "ui/theme/format.h"
#include "ui/window/command_palette.h"
#include "ui/window/help.h"
#include "ui/window/shortcuts_dialog.h"

namespace fuseline::ui {

HelpMenu::HelpMenu(MenuBuilder& builder, StartCommands& start, const DeviceMemory& devices, Persistence persistence,
                   QMenuBar& menus, QWidget& window)
    : QObject(&window), m_builder(builder), m_window(window), m_menu(*menus.addMenu(tr("&Help"))) {
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
  QAction* keys = m_builder.add(m_menu, tr("&Keyboard shortcuts"), QKeySequence(Qt::Key_F1),
                                [this] { ShortcutsDialog(*m_shortcuts, &m_window).exec(); });
  keys->setShortcuts({QKeySequence(Qt::Key_F1), QKeySequence(Qt::Key_Question)});
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

GuideWindow& HelpMenu::showGuide(const QString& page, const QString& heading) {
  if (!m_guide) m_guide = new GuideWindow(&m_window);
  m_guide->showPage(page, heading);
  return *m_guide;
}

}  // namespace fuseline::ui
