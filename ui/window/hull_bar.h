// HullBar: the toolbar that chooses whose fusions the canvas outlines.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/graph_scene.h"

#include <QActionGroup>
#include <QList>
#include <QToolBar>

namespace fuseline::ui {

/// The menu View has the same choices.
class HullBar : public QToolBar {
  Q_OBJECT

 public:
  /// The keys B and U of the canvas go from pass to pass, and hide the hulls or show them again.
  HullBar(GraphScene& scene, QWidget& canvas, QWidget* parent);
  /// For the menu.
  const QList<QAction*>& commands() const { return m_commands; }

 private:
  void add(const QString& text, const QString& key, HullFilter filter);
  void addKey(QWidget& canvas, const QString& text, Qt::Key key, void (HullBar::*run)());
  void chooseNext();
  void hideOrShow();
  int current() const;

  GraphScene& m_scene;
  QActionGroup* m_group;
  QList<QAction*> m_commands;
  int m_lastShown = 0;  // in m_group
};

}  // namespace fuseline::ui
