// ViewMenu: the menu View: what the canvas shows, which panes there are, and the theme.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/graph_view.h"
#include "ui/canvas/overview_map.h"
#include "ui/theme/theme.h"
#include "ui/window/menu_builder.h"
#include "ui/window/panes.h"
#include "ui/window/workspaces.h"

#include <QMenu>
#include <QObject>

namespace fuseline::ui {

class ViewMenu : public QObject {
  Q_OBJECT

 public:
  /// Objects that the menu's commands use; all outlive the window of the menu.
  struct Parts {
    MenuBuilder& builder;
    GraphView& view;
    OverviewMap& overview;
    Panes& panes;
    Workspaces& workspaces;
    Theme& theme;
    Persistence persistence;
  };
  /// hulls: the choices of whose fusions are outlined.
  ViewMenu(const Parts& parts, QMenu& menu, const QList<QAction*>& hulls);

 Q_SIGNALS:
  /// A sentence for the status line.
  void hint(const QString& sentence);

 private:
  void addDensityMenu();
  GraphScene& scene() const { return m_parts.view.graph(); }
  void addZoomCommands();
  void addCanvasChoices(const QList<QAction*>& hulls);
  void addOverlayMenu();
  void addPaneCommands();
  void addThemeMenu();
  QAction* addChecked(const QString& text);
  void setTheme(ThemeChoice choice);

  Parts m_parts;
  QMenu& m_menu;
};

}  // namespace fuseline::ui
