// Ticks recipes.
// SPDX-License-Identifier: Apache-2.0
#include "ui/sweep/recipe_choice.h"

#include "ui/theme/format.h"

#include <QAction>
#include <QKeyEvent>
#include <QMouseEvent>

#include <algorithm>

namespace fuseline::ui {

namespace {

/// Ticks without closing, so that several can be ticked.
class StayingMenu : public QMenu {
 public:
  using QMenu::QMenu;

 protected:
  void mouseReleaseEvent(QMouseEvent* event) override {
    if (!tick(actionAt(event->position().toPoint()))) QMenu::mouseReleaseEvent(event);
  }

  void keyPressEvent(QKeyEvent* event) override {
    const bool isTick = event->key() == Qt::Key_Space && tick(activeAction());
    if (!isTick) QMenu::keyPressEvent(event);
  }

 private:
  static bool tick(QAction* action) {
    if (!action || !action->isCheckable() || !action->isEnabled()) return false;
    action->trigger();
    return true;
  }
};

}  // namespace

RecipeChoice::RecipeChoice(QWidget* parent) : QPushButton(parent), m_menu(new StayingMenu(this)) {
  m_menu->setToolTipsVisible(true);
  setMenu(m_menu);
  setAccessibleName(tr("Recipes"));
  setToolTip(tr("Recipes to measure every size with. Space: select or clear one"));
}

void RecipeChoice::setOffered(std::vector<SweepRecipe> offered) {
  m_offered = std::move(offered);
  m_menu->clear();
  for (const SweepRecipe& recipe : m_offered) {
    const QString text = recipe.whyNot.isEmpty() ? recipe.label : tr("%1 (cannot run here)").arg(recipe.label);
    QAction* action = m_menu->addAction(text);
    action->setCheckable(true);
    action->setEnabled(recipe.whyNot.isEmpty());
    action->setToolTip(recipe.whyNot);
    action->setChecked(recipe.whyNot.isEmpty() && m_wanted.contains(recipe.key));
    connect(action, &QAction::toggled, this, [this, key = recipe.key](bool isTicked) {
      m_wanted.removeAll(key);
      if (isTicked) m_wanted.append(key);
      refreshText();
      Q_EMIT chosenChanged();
    });
  }
  m_menu->addSeparator();
  connect(m_menu->addAction(tr("All available")), &QAction::triggered, this, &RecipeChoice::addAll);
  refreshText();
}

void RecipeChoice::addAll() {
  for (QAction* action : m_menu->actions())
    if (action->isCheckable() && action->isEnabled()) action->setChecked(true);
}

QStringList RecipeChoice::chosen() const {
  QStringList keys;
  for (const SweepRecipe& recipe : m_offered)
    if (recipe.whyNot.isEmpty() && m_wanted.contains(recipe.key)) keys.append(recipe.key);
  return keys;
}

void RecipeChoice::refreshText() {
  const QStringList keys = chosen();
  if (keys.size() != 1) return setText(counted(keys.size(), tr("recipe"), tr("recipes")));
  const auto only = std::ranges::find(m_offered, keys.front(), &SweepRecipe::key);
  setText(only->label);
}

}  // namespace fuseline::ui
