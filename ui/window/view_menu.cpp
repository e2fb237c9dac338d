// Commands on what is seen, in the order of the menu.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/view_menu.h"

#include "core/profile/run_comparison.h"
#include "ui/canvas/node_moves.h"
#include "ui/session/baselines.h"
#include "ui/window/bookmark_commands.h"
#include "ui/window/overlay_commands.h"
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
  addDensityMenu();
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
  m_menu.addMenu(tr("Fu&sion outlines"))->addActions(hulls);
  addOverlayMenu();
  connect(addChecked(tr("R&un status on nodes")), &QAction::toggled, &scene().measured(),
          &MeasuredLooks::setStatusesVisible);
  scene().measured().setStatusesVisible(true);
  connect(addChecked(tr("Snap nodes to the &grid")), &QAction::toggled, &scene().moves(), &NodeMoves::setSnapping);
  auto* labels = new WireLabelCommands(scene(), m_parts.persistence == Persistence::Settings, this);
  labels->addMenu(m_menu);
  connect(addChecked(tr("&Minimap for large pipelines")), &QAction::toggled, &m_parts.overview,
          &OverviewMap::setWanted);
}

/// A new measurement is shown at once.
void ViewMenu::addOverlayMenu() {
  HeatOverlay& overlay = scene().measured().overlay();
  auto* commands = new OverlayCommands(overlay, this);
  commands->addMenu(m_menu, m_parts.view);
  connect(commands, &OverlayCommands::hint, this, &ViewMenu::hint);
  const Session& session = m_parts.view.session();
  connect(&session.runner(), &Runner::measured, this, [&overlay] { overlay.suggest(HeatMode::Time); });
  connect(&session.baselines(), &Baselines::pinned, this, [&overlay, &session] {
    const auto& run = session.results().lastRun();
    if (run && tookTurns(*session.baselines().reference()->record, run->record)) overlay.suggest(HeatMode::Change);
  });
  connect(&session.pipeline(), &OpenPipeline::replaced, this, [&overlay, &session] {
    if (session.results().openedRun()) overlay.suggest(HeatMode::Time);
  });
  connect(&session.runner(), &Runner::numericsFinished, this, [&overlay] { overlay.suggest(HeatMode::Error); });
}

void ViewMenu::addPaneCommands() {
  MenuBuilder& builder = m_parts.builder;
  Panes& panes = m_parts.panes;
  const QString outline = QStringLiteral("outline");
  m_menu.addActions(panes.toggles());
  builder.add(m_menu, tr("&Next pane"), QKeySequence(Qt::Key_F6), [&panes] { panes.goOn(1); });
  builder.add(m_menu, tr("Pre&vious pane"), QKeySequence(Qt::SHIFT | Qt::Key_F6), [&panes] { panes.goOn(-1); });
  builder.add(m_menu, tr("Go to &outline"), panes.keysOf(outline), [&panes, outline] { panes.goTo(outline); });
  Workspaces& workspaces = m_parts.workspaces;
  builder.add(m_menu, tr("&Restore default layout"), {}, [&workspaces] { workspaces.resetCurrent(); });
  workspaces.addTo(*m_menu.addMenu(tr("&Workspace")));
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
  add(tr("&High contrast"), ThemeChoice::HighContrast);
}

void ViewMenu::addDensityMenu() {
  QMenu* menu = m_menu.addMenu(tr("D&ensity"));
  auto* group = new QActionGroup(this);
  const auto add = [&](const QString& text, Density density) {
    QAction* action = group->addAction(menu->addAction(text));
    action->setCheckable(true);
    action->setChecked(m_parts.theme.density() == density);
    connect(action, &QAction::triggered, this, [this, density] {
      m_parts.theme.setDensity(density);
      if (m_parts.persistence == Persistence::Settings)
        QSettings().setValue(QStringLiteral("view/density"), static_cast<int>(density));
    });
  };
  add(tr("&Comfortable"), Density::Comfortable);
  add(tr("C&ompact"), Density::Compact);
}

void ViewMenu::setTheme(ThemeChoice choice) {
  m_parts.theme.apply(choice);
  if (m_parts.persistence == Persistence::Settings)
    QSettings().setValue(QStringLiteral("view/theme"), static_cast<int>(choice));
}

}  // namespace fuseline::ui
