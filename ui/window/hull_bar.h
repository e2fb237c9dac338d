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
  HullBar(GraphScene& scene, QWidget* parent);
  const QList<QAction*>& choices() const { return m_choices; }

 private:
  void add(const QString& text, const QString& key, HullFilter filter);

  GraphScene& m_scene;
  QActionGroup* m_group;
  QList<QAction*> m_choices;
};

}  // namespace fuseline::ui
