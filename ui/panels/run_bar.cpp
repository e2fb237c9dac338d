// The run tool bar.
// SPDX-License-Identifier: Apache-2.0
#include "ui/panels/run_bar.h"

#include "ui/panels/recipe_section.h"
#include "ui/theme/format.h"

namespace fuseline::ui {

RunBar::RunBar(Session& session, const Theme& theme, QWidget* parent)
    : QToolBar(tr("Run"), parent),
      m_session(session),
      m_theme(theme),
      m_run(new QAction(tr("Run"), this)),
      m_stop(new QAction(tr("Stop"), this)),
      m_pass(new QComboBox(this)),
      m_recipe(new QComboBox(this)),
      m_progress(new QProgressBar(this)),
      m_device(new QLabel(this)) {
  setObjectName(QStringLiteral("runBar"));
  setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  setIconSize({18, 18});
  m_run->setShortcuts({QKeySequence(Qt::CTRL | Qt::Key_Return), QKeySequence(Qt::CTRL | Qt::Key_Enter)});
  m_stop->setShortcut(QKeySequence(Qt::CTRL | Qt::Key_Period));
  m_stop->setToolTip(tr("Stop the run (Ctrl+. or Esc)"));
  createChoices();
  // Wide enough for the longest text, which the style would break otherwise.
  m_progress->setFixedWidth(m_progress->fontMetrics().horizontalAdvance(tr("warming up 10000/10000")) + 24);
  m_progress->setAccessibleName(tr("Progress of the run"));
  m_device->setContentsMargins(10, 0, 10, 0);
  addAction(m_run);
  addAction(m_stop);
  addWidget(m_pass);
  addWidget(m_recipe);
  m_progressAction = addWidget(m_progress);
  addWidget(m_device);
  follow();
  connect(&theme, &Theme::changed, this, &RunBar::refreshIcons);
  refreshIcons();
  refresh();
}

void RunBar::createChoices() {
  m_pass->addItem(tr("Forward + backward"), static_cast<int>(PassKind::Training));
  m_pass->addItem(tr("Forward only"), static_cast<int>(PassKind::Forward));
  m_pass->setAccessibleName(tr("Pass"));
  m_pass->setToolTip(tr("What is planned and run"));
  for (const RecipeDefinition& recipe : builtinRecipes())
    m_recipe->addItem(recipe.quantizer ? toQt(recipe.name) : tr("No quantization"), toQt(recipe.name));
  m_recipe->setAccessibleName(tr("Quantization recipe"));
  m_recipe->setToolTip(tr("What the products of linear layers read; the inspector shows the recipe's fields"));
  connect(m_pass, &QComboBox::activated, this,
          [this] { m_session.setPass(static_cast<PassKind>(m_pass->currentData().toInt())); });
  connect(m_recipe, &QComboBox::activated, this, [this] {
    const std::string name = m_recipe->currentData().toString().toStdString();
    m_session.apply(SetRecipe{.recipe = recipeJson(*findRecipe(name))});
  });
}

void RunBar::follow() {
  connect(m_stop, &QAction::triggered, &m_session, &Session::cancelRun);
  connect(&m_session, &Session::analysisChanged, this, &RunBar::refresh);
  connect(&m_session, &Session::passChanged, this, &RunBar::refresh);
  connect(&m_session, &Session::runStarted, this, [this] {
    showProgress(tr("starting"), 0, 0);
    refresh();
  });
  connect(&m_session, &Session::runProgress, this, &RunBar::showProgress);
  connect(&m_session, &Session::runFinished, this, &RunBar::refresh);
  connect(&m_session, &Session::numericsFinished, this, &RunBar::refresh);
  connect(&m_session, &Session::runFailed, this, &RunBar::refresh);
}

void RunBar::refreshIcons() {
  m_run->setIcon(m_theme.icon(QStringLiteral("run"), m_theme.colors().good));
  m_stop->setIcon(m_theme.icon(QStringLiteral("stop")));
}

void RunBar::refresh() {
  const bool isRunnable = m_session.analysis()->isRunnable();
  m_run->setEnabled(isRunnable && !m_session.isRunning());
  m_run->setToolTip(isRunnable ? tr("Time the unfused and the fused plan (Ctrl+Enter)")
                               : tr("The pipeline cannot run yet: see the Problems panel."));
  m_stop->setEnabled(m_session.isRunning());
  m_pass->setCurrentIndex(m_pass->findData(static_cast<int>(m_session.pass())));
  m_recipe->setCurrentIndex(m_recipe->findData(toQt(recipeOf(m_session.document()).name)));
  m_recipe->setEnabled(!m_session.document().isReadOnly());
  m_progressAction->setVisible(m_session.isRunning());
}

void RunBar::showProgress(const QString& stage, int done, int total) {
  m_progress->setRange(0, total);
  m_progress->setValue(done);
  m_progress->setFormat(total > 0 ? QStringLiteral("%1 %2/%3").arg(stage).arg(done).arg(total) : stage);
}

void RunBar::setDeviceText(const QString& text, const QString& tip) {
  m_device->setText(text);
  m_device->setToolTip(tip);
}

}  // namespace fuseline::ui
