// The commands of a comparison.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/comparison_commands.h"

#include "core/edit/apply_edit.h"
#include "ui/inspector/recipe_section.h"
#include "ui/theme/format.h"
#include "ui/widgets/file_choice.h"

namespace fuseline::ui {

ComparisonCommands::ComparisonCommands(Session& session, PipelineComparison& comparison, ChangesPanel& panel,
                                       GraphView& view, ChangeMarks& marks, QWidget& window)
    : QObject(&window),
      m_session(session),
      m_comparison(comparison),
      m_panel(panel),
      m_view(view),
      m_marks(marks),
      m_window(window),
      m_recipes(new QMenu(tr("Compare with r&ecipe"), &window)) {
  fillRecipes();
  connect(&panel, &ChangesPanel::shown, this, &ComparisonCommands::show);
  connect(&panel, &ChangesPanel::endWanted, this, &ComparisonCommands::end);
  connect(&marks, &ChangeMarks::ghostClicked, &panel, &ChangesPanel::selectChange);
  connect(&session.pipeline(), &OpenPipeline::changed, this, &ComparisonCommands::refresh);
  connect(&comparison, &PipelineComparison::changed, this, &ComparisonCommands::refresh);
}

QAction* ComparisonCommands::add(QMenu& menu, const QString& text, const QKeySequence& shortcut,
                                 void (ComparisonCommands::*run)()) {
  QAction* action = menu.addAction(text);
  if (!shortcut.isEmpty()) action->setShortcut(shortcut);
  connect(action, &QAction::triggered, this, run);
  return action;
}

void ComparisonCommands::addFileCommands(QMenu& menu) {
  QAction* choice = add(menu, tr("Co&mpare with pipeline..."), {}, &ComparisonCommands::choose);
  m_saved = add(menu, tr("Compare with sa&ved version"), {}, &ComparisonCommands::compareWithSaved);
  QAction* recipe = menu.addMenu(m_recipes);
  m_onActions.append(add(menu, tr("Stop comparin&g"), {}, &ComparisonCommands::end));
  menu.addActions(m_choices);
  m_panel.addStart(*choice);
  m_panel.addStart(*m_saved);
  m_panel.addStart(*recipe);
  refresh();
}

void ComparisonCommands::addEditCommands(QMenu& menu) {
  m_onActions.append(add(menu, tr("Next chan&ge"), QKeySequence(Qt::Key_F7), &ComparisonCommands::selectNext));
  m_onActions.append(
      add(menu, tr("Previous c&hange"), QKeySequence(Qt::SHIFT | Qt::Key_F7), &ComparisonCommands::selectPrevious));
  menu.addAction(&m_panel.takeBackAction());
  refresh();
}

void ComparisonCommands::refresh() {
  if (m_saved) m_saved->setEnabled(m_comparison.canStartWithSaved());
  if (m_saved)
    m_saved->setToolTip(m_saved->isEnabled()                    ? tr("Show the unsaved changes")
                        : m_session.pipeline().path().isEmpty() ? tr("This pipeline has not been saved yet")
                                                                : tr("There are no unsaved changes"));
  for (QAction* action : std::as_const(m_onActions)) action->setEnabled(m_comparison.isOn());
  if (!m_comparison.isOn()) m_marks.setCurrent(-1);
  // In the context menu of the canvas only while it can be of use.
  m_comparison.isOn() ? m_view.addAction(&m_panel.takeBackAction()) : m_view.removeAction(&m_panel.takeBackAction());
}

void ComparisonCommands::choose() {
  const QString path = fileToOpen({.purpose = QStringLiteral("pipeline"),
                                   .title = tr("Compare with"),
                                   .patterns = tr("Pipelines, measured runs, drawings, reports, modules and "
                                                  "models (*.fuseline *.fuserun *.svg *.png *.html *.py *.onnx)") +
                                               QStringLiteral(";;") + tr("All files (*)"),
                                   .pipeline = m_session.pipeline().path()},
                                  &m_window);
  if (!path.isEmpty()) tell(m_comparison.startWithFile(path));
}

void ComparisonCommands::fillRecipes() {
  m_recipes->menuAction()->setToolTip(tr("Show this pipeline under another recipe beside this one"));
  for (const RecipeDefinition& recipe : builtinRecipes())
    m_recipes->addAction(recipe.quantizer ? toQt(recipe.name) : tr("No quantization"), this,
                         [this, &recipe] { compareWithRecipe(recipe); });
}

/// With the fields that a recipe has when it is chosen.
void ComparisonCommands::compareWithRecipe(const RecipeDefinition& recipe) {
  PipelineDocument document = m_session.pipeline().document();
  const Result<Edit> set = applyEdit(document, SetRecipe{.recipe = recipeJson(recipe)});
  if (!set) return tell(set.error());
  const QString name = recipe.quantizer ? toQt(recipe.name) : tr("No quantization");
  m_comparison.start(std::move(document), tr("%1, %2").arg(m_session.pipeline().displayName(), name));
  tell({});
}

void ComparisonCommands::compareWithSaved() { tell(m_comparison.startWithSaved()); }

void ComparisonCommands::tell(const Result<void>& result) {
  if (result)
    Q_EMIT started();
  else
    Q_EMIT refused(toQt(result.error().message));
}

void ComparisonCommands::end() { m_comparison.end(); }

void ComparisonCommands::selectNext() { m_panel.selectNext(1); }

void ComparisonCommands::selectPrevious() { m_panel.selectNext(-1); }

void ComparisonCommands::show(const QStringList& nodes, int change) {
  m_marks.setCurrent(change);
  m_view.camera().showArea(m_marks.areaOf(nodes, change));
}

}  // namespace fuseline::ui
