// A choice for each pass, for both and for none.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/hull_bar.h"

#include "ui/canvas/menus/context_menu.h"

#include <QLabel>

namespace fuseline::ui {

HullBar::HullBar(GraphScene& scene, QWidget& canvas, QWidget* parent)
    : QToolBar(tr("Fusion outlines"), parent), m_scene(scene), m_group(new QActionGroup(this)) {
  setObjectName(QStringLiteral("hullBar"));
  addWidget(new QLabel(tr("Outlines: "), this));
  add(tr("Forward"), QStringLiteral("Alt+1"), HullFilter::Forward);
  add(tr("Backward"), QStringLiteral("Alt+2"), HullFilter::Backward);
  add(tr("Both"), QStringLiteral("Alt+3"), HullFilter::Both);
  add(tr("None"), QStringLiteral("Alt+4"), HullFilter::None);
  addKey(canvas, tr("Ne&xt pass"), Qt::Key_B, &HullBar::chooseNext);
  addKey(canvas, tr("&Hide or show outlines"), Qt::Key_U, &HullBar::hideOrShow);
}

void HullBar::add(const QString& text, const QString& key, HullFilter filter) {
  QAction* action = m_group->addAction(text);
  action->setCheckable(true);
  action->setChecked(filter == HullFilter::Both);
  action->setShortcut(QKeySequence(key));
  action->setToolTip(tr("Show fusions: %1 (%2)").arg(text, key));
  connect(action, &QAction::triggered, this, [this, filter] { m_scene.canvasItems().setHullFilter(filter); });
  addAction(action);
  m_commands.append(action);
}

void HullBar::addKey(QWidget& canvas, const QString& text, Qt::Key key, void (HullBar::*run)()) {
  auto* action = new QAction(text, this);
  action->setShortcut(key);
  action->setShortcutContext(Qt::WidgetShortcut);
  action->setProperty(kViewKeyProperty, true);
  connect(action, &QAction::triggered, this, run);
  canvas.addAction(action);
  m_commands.append(action);
}

int HullBar::current() const { return static_cast<int>(m_group->actions().indexOf(m_group->checkedAction())); }

void HullBar::chooseNext() {
  const int numShown = static_cast<int>(m_group->actions().size()) - 1;  // the last one is None
  m_group->actions()[(current() + 1) % (numShown + 1) % numShown]->trigger();
}

void HullBar::hideOrShow() {
  const int none = static_cast<int>(m_group->actions().size()) - 1;
  if (current() != none) m_lastShown = current();
  m_group->actions()[current() == none ? m_lastShown : none]->trigger();
}

}  // namespace fuseline::ui
