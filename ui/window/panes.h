// Panes: the panes of a window: where they stand, which are in front, and which one has the keyboard.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/widgets/pane_ring.h"
#include "ui/window/pane_catalog.h"

#include <QAction>
#include <QByteArray>
#include <QDockWidget>
#include <QList>
#include <QMainWindow>
#include <QObject>
#include <QStringList>

#include <vector>

namespace fuseline::ui {

class Panes : public QObject {
  Q_OBJECT

 public:
  /// The window's central widget is there; the canvas, which stands in it, is one of the panes for who goes from pane
  /// to pane.
  Panes(QMainWindow& window, QWidget& canvas, const PaneNeeds& needs);

  /// The pane of this class, of which the catalog has one.
  template <typename Panel>
  Panel& get() const;
  QStringList ids() const;
  QKeySequence keysOf(const QString& id) const;
  QDockWidget& dock(const QString& id) const;
  /// Makes those that show and hide a pane, in the order of the catalog.
  QList<QAction*> toggles();

  /// Brings it to the front. False: there is none of this id.
  bool show(const QString& id);
  /// Gives it the keyboard, too.
  void goTo(const QString& id);
  /// Beside its title; 0: the title alone.
  void setCount(const QString& id, int count);
  /// All but these, in their default places, with one in front.
  void showAllBut(const QStringList& hidden, const QString& front);
  /// Moves these to tabs right of `left`, the first one in front. Both get this share of the window's height.
  void moveBeside(const QStringList& ids, const QString& left, double heightShare);
  bool isInFront(const QString& id) const;
  bool isInSight(QWidget& pane) const { return visible().contains(&pane); }
  /// Moves the keyboard focus by `step` panes. Tab belongs to the canvas, so panes have their own key, as in other
  /// editors.
  void goOn(int step);

  /// Docks at their places, in sizes that fit the window as it is now.
  void restoreDefaultLayout();
  QByteArray layout() const;
  void restoreLayout(const QByteArray& layout);

 private:
  Qt::DockWidgetArea readingArea(Qt::DockWidgetArea area) const;
  void addDock(const PaneRow& row, const PaneNeeds& needs);
  void gather();
  void applyDefaultLayout();
  QList<QWidget*> visible() const;
  void focus(QWidget& pane);

  QMainWindow& m_window;
  QWidget& m_canvas;
  std::vector<PaneRow> m_rows;
  QList<QDockWidget*> m_docks;  // in the order of the rows
  QList<QWidget*> m_panes;      // the contents of m_docks, each in a scroll area
  PaneRing* m_ring;
  QByteArray m_gathered;  // before the first default layout: of no size yet
};

template <typename Panel>
Panel& Panes::get() const {
  Panel* found = nullptr;
  for (QWidget* pane : m_panes)
    if (auto* panel = qobject_cast<Panel*>(pane)) found = panel;
  Q_ASSERT(found);
  return *found;
}

/// The menu's command of a pane: brings it to the front, also from behind another tab, or closes it where it is there.
class PaneToggle : public QAction {
  Q_OBJECT

 public:
  PaneToggle(Panes& panes, const QString& id, const QString& title);

  /// Never closes it.
  void show();

 private:
  void toggle();

  Panes& m_panes;
  QString m_id;
};

}  // namespace fuseline::ui
