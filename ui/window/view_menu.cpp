// Commands on what is seen, in the order of the menu.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/view_menu.h"

#include "ui/window/bookmark_commands.h"
#include "ui/window/wire_label_commands.h"

#include <QActionGroup>
#include <QSettings>

namespace fuseline::ui {

ViewMenu::ViewMenu(const Parts& parts, QMenu& menu, const QList<QAction*>& hulls)
    : QObject(&menu), m_parts(parts), m_menu(menu) {
  addZoomCommands();
  menu.addSeparator();
  addCanvasChoices(hulls);
  menu.addSeparator();
  addPaneCommands();
  menu.addSeparator();
  addThemeMenu();
}

void ViewMenu::addZoomCommands() {
  GraphView& view = m_parts.view;
  m_parts.builder.add(
      m_menu, tr("&Fit"), QKeySequence(Qt::CTRL | Qt::Key_9), [&view] { view.fit(); }, QStringLiteral("fit"));
  m_parts.builder.add(m_menu, tr("&100 %"), QKeySequence(Qt::CTRL | Qt::Key_0), [&view] { view.zoomTo(1.0); });
  auto* bookmarks = new BookmarkCommands(view.session(), view, m_parts.persistence == Persistence::Settings, this);
  connect(bookmarks, &BookmarkCommands::hint, this, &ViewMenu::hint);
  bookmarks->addMenu(m_menu);
}

QAction* ViewMenu::addChecked(const QString& text) {
  QAction* action = m_menu.addAction(text);
  action->setCheckable(true);
  action->setChecked(true);
  return action;
}

void ViewMenu::addCanvasChoices(const QList<QAction*>& hulls) {
  m_menu.addMenu(tr("Fusion &hulls"))->addActions(hulls);
  QAction* errors = addChecked(tr("&Errors on nodes"));
  errors->setShortcut(QKeySequence(QStringLiteral("Alt+5")));
  connect(errors, &QAction::toggled, &scene().measured(), &MeasuredLooks::setErrorsVisible);
  connect(addChecked(tr("R&un status on nodes")), &QAction::toggled, &scene().measured(),
          &MeasuredLooks::setStatusesVisible);
  scene().measured().setStatusesVisible(true);
  auto* labels = new WireLabelCommands(scene(), m_parts.persistence == Persistence::Settings, this);
  labels->addMenu(m_menu);
  connect(addChecked(tr("&Minimap for large pipelines")), &QAction::toggled, &m_parts.overview,
          &OverviewMap::setWanted);
}

void ViewMenu::addPaneCommands() {
  MenuBuilder& builder = m_parts.builder;
  Panes& panes = m_parts.panes;
  const QString outline = QStringLiteral("outline");
  m_menu.addActions(panes.toggles());
  builder.add(m_menu, tr("&Next pane"), QKeySequence(Qt::Key_F6), [&panes] { panes.goOn(1); });
  builder.add(m_menu, tr("Pre&vious pane"), QKeySequence(Qt::SHIFT | Qt::Key_F6), [&panes] { panes.goOn(-1); });
  builder.add(m_menu, tr("Go to &outline"), panes.keysOf(outline), [&panes, outline] { panes.goTo(outline); });
  builder.add(m_menu, tr("&Restore default layout"), {}, [&panes] { panes.restoreDefaultLayout(); });
  addPanesMenu();
}

/// Pane sets for a task; all other panes are hidden until they are needed.
void ViewMenu::addPanesMenu() {
  QMenu* menu = m_menu.addMenu(tr("Show panes &for"));
  const auto add = [&](const QString& text, const QStringList& hidden, const QString& front) {
    Panes& panes = m_parts.panes;
    m_parts.builder.add(*menu, text, {}, [&panes, hidden, front] { panes.showAllBut(hidden, front); });
  };
  const QString palette = QStringLiteral("palette");
  const QString inspector = QStringLiteral("inspector");
  const QString whyNot = QStringLiteral("whyNot");
  const QString suggestions = QStringLiteral("suggestions");
  add(tr("&Designing"), {}, QStringLiteral("problems"));
  add(tr("&Explaining fusions"), {palette, inspector}, QStringLiteral("rules"));
  add(tr("&Profiling"), {palette, inspector, whyNot, suggestions}, QStringLiteral("timings"));
  add(tr("&Comparing"), {palette, inspector, whyNot, suggestions}, QStringLiteral("changes"));
}

void ViewMenu::addThemeMenu() {
  QMenu* menu = m_menu.addMenu(tr("&Theme"));
  auto* group = new QActionGroup(this);
  const auto add = [&](const QString& text, ThemeChoice choice) {
    QAction* action = group->addAction(menu->addAction(text));
    action->setCheckable(true);
    action->setChecked(m_parts.theme.choice() == choice);
    connect(action, &QAction::triggered, this, [this, choice] { setTheme(choice); });
  };
  add(tr("&System"), ThemeChoice::System);
  add(tr("&Light"), ThemeChoice::Light);
  add(tr("&Dark"), ThemeChoice::Dark);
}

void ViewMenu::setTheme(ThemeChoice choice) {
  m_parts.theme.apply(choice);
  if (m_parts.persistence == Persistence::Settings)
    QSettings().setValue(QStringLiteral("view/theme"), static_cast<int>(choice));
}

}  // namespace fuseline::ui
