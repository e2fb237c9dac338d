// A choice for each pass, for both and for none.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/hull_bar.h"

#include <QLabel>

namespace fuseline::ui {

HullBar::HullBar(GraphScene& scene, QWidget* parent)
    : QToolBar(tr("Fusion outlines"), parent), m_scene(scene), m_group(new QActionGroup(this)) {
  setObjectName(QStringLiteral("hullBar"));
  addWidget(new QLabel(tr("Outlines: "), this));
  add(tr("Forward"), QStringLiteral("Alt+1"), HullFilter::Forward);
  add(tr("Backward"), QStringLiteral("Alt+2"), HullFilter::Backward);
  add(tr("Both"), QStringLiteral("Alt+3"), HullFilter::Both);
  add(tr("None"), QStringLiteral("Alt+4"), HullFilter::None);
}

void HullBar::add(const QString& text, const QString& key, HullFilter filter) {
  QAction* action = m_group->addAction(text);
  action->setCheckable(true);
  action->setChecked(filter == HullFilter::Both);
  action->setShortcut(QKeySequence(key));
  action->setToolTip(tr("Show fusions: %1 (%2)").arg(text, key));
  connect(action, &QAction::triggered, this, [this, filter] { m_scene.canvasItems().setHullFilter(filter); });
  addAction(action);
  m_choices.append(action);
}

}  // namespace fuseline::ui
