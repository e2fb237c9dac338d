// A submenu of modes, and a key that cycles through them.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/overlay_commands.h"

#include "ui/canvas/menus/context_menu.h"

namespace fuseline::ui {

OverlayCommands::OverlayCommands(HeatOverlay& overlay, QObject* parent)
    : QObject(parent), m_overlay(overlay), m_modes(new QActionGroup(this)) {
  connect(&overlay, &HeatOverlay::changed, this, &OverlayCommands::refresh);
}

void OverlayCommands::addMenu(QMenu& viewMenu, QWidget& canvas) {
  QMenu* menu = viewMenu.addMenu(tr("&Overlay on nodes"));
  add(*menu, tr("&Off"), HeatMode::Off);
  add(*menu, tr("&Time"), HeatMode::Time);
  add(*menu, tr("&Share of the total"), HeatMode::Share);
  add(*menu, tr("&Distance from the roofline"), HeatMode::Roofline);
  add(*menu, tr("&Change from the baseline"), HeatMode::Change);
  add(*menu, tr("&RMS error"), HeatMode::Error);
  menu->addSeparator();
  QAction* next = menu->addAction(tr("&Next overlay"), this, [this] {
    m_overlay.chooseNext();
    Q_EMIT hint(m_overlay.description());
  });
  next->setShortcut(Qt::Key_O);
  next->setShortcutContext(Qt::WidgetShortcut);
  next->setProperty(kViewKeyProperty, true);
  canvas.addAction(next);
  refresh();
}

void OverlayCommands::add(QMenu& menu, const QString& text, HeatMode mode) {
  QAction* action = m_modes->addAction(menu.addAction(text));
  action->setCheckable(true);
  action->setData(static_cast<int>(mode));
  connect(action, &QAction::triggered, this, [this, mode] {
    m_overlay.choose(mode);
    Q_EMIT hint(m_overlay.description());
  });
}

void OverlayCommands::refresh() {
  for (QAction* action : m_modes->actions())
    action->setChecked(action->data().toInt() == static_cast<int>(m_overlay.mode()));
}

}  // namespace fuseline::ui
