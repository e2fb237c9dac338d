// RecipeChoice: which recipes a sweep measures, as a button with a menu that stays open while they are ticked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/sweep/sweep_choice.h"

#include <QMenu>
#include <QPushButton>
#include <QStringList>

#include <vector>

namespace fuseline::ui {

class RecipeChoice : public QPushButton {
  Q_OBJECT

 public:
  explicit RecipeChoice(QWidget* parent = nullptr);
  /// With room between the text and the arrow.
  QSize sizeHint() const override { return QPushButton::sizeHint() + QSize(16, 0); }

  /// Recipes that cannot run are shown with the reason and cannot be checked. Checked recipes stay checked if possible.
  void setOffered(std::vector<SweepRecipe> offered);
  const std::vector<SweepRecipe>& offered() const { return m_offered; }
  /// Keys of those that are ticked and can run, in the order that they are offered in.
  QStringList chosen() const;
  QMenu& choices() const { return *m_menu; }

 Q_SIGNALS:
  void chosenChanged();

 private:
  void addAll();
  void refreshText();

  QMenu* m_menu;
  std::vector<SweepRecipe> m_offered;
  QStringList m_wanted = {QString()};  // at first the pipeline's
};

}  // namespace fuseline::ui
