// ComparisonCommands: the commands of comparing two pipelines, and what joins its list, its marks and the canvas.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"
#include "ui/canvas/change_marks.h"
#include "ui/canvas/graph_view.h"
#include "ui/changes/changes_panel.h"
#include "ui/session/pipeline_comparison.h"

#include <QAction>
#include <QMenu>
#include <QObject>

namespace fuseline::ui {

class ComparisonCommands : public QObject {
  Q_OBJECT

 public:
  /// Lives as long as the window does.
  ComparisonCommands(Session& session, PipelineComparison& comparison, ChangesPanel& panel, GraphView& view,
                     ChangeMarks& marks, QWidget& window);

  /// "Compare with pipeline...", "Compare with saved version", "Stop comparing".
  void addFileCommands(QMenu& menu);
  /// A choice that stands behind these.
  void addChoice(QAction& choice) { m_choices.append(&choice); }
  /// "Next change", "Previous change", "Revert this change".
  void addEditCommands(QMenu& menu);

 Q_SIGNALS:
  /// A comparison was asked for and could not begin: a sentence.
  void refused(const QString& sentence);
  /// One has begun.
  void started();

 private:
  QAction* add(QMenu& menu, const QString& text, const QKeySequence& shortcut, void (ComparisonCommands::*run)());
  void choose();
  void fillRecipes();
  void compareWithRecipe(const RecipeDefinition& recipe);
  void compareWithSaved();
  void end();
  void selectNext();
  void selectPrevious();
  void tell(const Result<void>& result);
  void show(const QStringList& nodes, int change);
  void refresh();

  Session& m_session;
  PipelineComparison& m_comparison;
  ChangesPanel& m_panel;
  GraphView& m_view;
  ChangeMarks& m_marks;
  QWidget& m_window;
  QMenu* m_recipes;
  QAction* m_saved = nullptr;
  QList<QAction*> m_choices;
  QList<QAction*> m_onActions;  // of use only while something is compared
};

}  // namespace fuseline::ui
