// The problems dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/problems/problems_panel.h"

#include "core/edit/fix_all.h"
#include "core/lowering/folded_diagnostics.h"
#include "ui/session/large_pipeline.h"
#include "ui/session/plan_steps.h"
#include "ui/theme/format.h"
#include "ui/widgets/table_copying.h"

#include <QHeaderView>
#include <QPushButton>
#include <QScopedValueRollback>
#include <QVBoxLayout>

namespace fuseline::ui {

namespace {

constexpr int kMinButtonWidthPx = 60;

}  // namespace

ProblemsPanel::ProblemsPanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_model(new ProblemsModel(theme, this)),
      m_view(new QTreeView(this)),
      m_empty(new QLabel(tr("No problems."), this)),
      m_details(new QWidget(this)),
      m_sentence(new QLabel(m_details)),
      m_buttons(new QHBoxLayout) {
  m_view->setModel(m_model);
  m_view->setRootIsDecorated(false);
  m_view->setAlternatingRowColors(true);
  m_view->setFrameShape(QFrame::NoFrame);
  m_view->setAccessibleName(tr("Problems"));
  m_view->header()->setStretchLastSection(true);
  m_view->setColumnWidth(ProblemsModel::PlaceColumn, 170);
  makeCopyable(*m_view);
  m_empty->setAlignment(Qt::AlignCenter);
  m_sentence->setWordWrap(true);
  m_sentence->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* details = new QVBoxLayout(m_details);
  details->setContentsMargins(8, 4, 8, 6);
  details->addWidget(m_sentence);
  details->addLayout(m_buttons);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(m_empty, 1);
  layout->addWidget(m_details);  // above the table: in a low pane the fixes are what must be seen
  layout->addWidget(m_view, 1);
  connect(&PlanSteps::of(session.plan()), &PlanSteps::planChanged, this, &ProblemsPanel::refresh);
  connect(&session.pipeline(), &OpenPipeline::replaced, this, &ProblemsPanel::refresh);
  connect(&theme, &Theme::changed, m_view->viewport(), qOverload<>(&QWidget::update));
  connect(m_view->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this] {
    if (m_isRefreshing) return;
    showCurrent();
    goToCurrent();
  });
  connect(m_view, &QTreeView::clicked, this, &ProblemsPanel::goToCurrent);
  refresh();
}

void ProblemsPanel::refresh() {
  const Analysis& analysis = *m_session.plan().analysis();
  m_model->setProblems(m_session.pipeline().problems(), foldInstances(analysis.graph(), analysis.lowered.diagnostics));
  const bool isEmpty = m_model->rowCount() == 0;
  m_empty->setVisible(isEmpty);
  m_view->setVisible(!isEmpty);
  showFirstRepairs();
  Q_EMIT countsChanged(m_model->count(Severity::Error), m_model->count(Severity::Warning));
}

void ProblemsPanel::selectNext(int step) {
  const int numRows = m_model->rowCount();
  if (numRows == 0) return;
  const int row = m_isOffered ? 0 : m_view->currentIndex().row() + step;
  m_view->setCurrentIndex(m_model->index((row + numRows) % numRows, 0));
  goToCurrent();
}

/// Errors stand first.
void ProblemsPanel::selectFirst() {
  m_view->setCurrentIndex(m_model->index(0, 0));
  goToCurrent();
  m_view->setFocus();
}

/// Shows the repairs of the first problem without a click. Nothing is selected on the canvas.
void ProblemsPanel::showFirstRepairs() {
  const QScopedValueRollback guard(m_isRefreshing, true);
  m_view->setCurrentIndex(m_model->index(0, 0));
  showCurrent();
  m_isOffered = true;
}

void ProblemsPanel::goToCurrent() {
  m_isOffered = false;
  const QModelIndex current = m_view->currentIndex();
  if (!current.isValid()) return;
  const Diagnostic problem = m_model->problems()[static_cast<std::size_t>(current.row())];
  if (!m_session.pipeline().document().idExists(problem.node)) return;
  m_session.selection().select({toQt(problem.node)});
  problem.pointer.starts_with("/blocks/") ? Q_EMIT insideWanted(toQt(problem.node), toQt(problem.pointer))
                                          : Q_EMIT nodeWanted(toQt(problem.node));
}

void ProblemsPanel::clearDetails() {
  m_details->hide();
  while (QLayoutItem* item = m_buttons->takeAt(0)) {
    if (item->widget()) item->widget()->deleteLater();
    delete item;
  }
}

void ProblemsPanel::showCurrent() {
  clearDetails();
  const QModelIndex current = m_view->currentIndex();
  if (!current.isValid()) return;
  const Diagnostic problem = m_model->problems()[static_cast<std::size_t>(current.row())];
  m_sentence->setText(toQt(problem.message));
  showRepairs(problem);
  m_details->show();
}

void ProblemsPanel::showRepairs(const Diagnostic& problem) {
  for (const Repair& repair : problem.repairs) {
    auto* button = new QPushButton(toQt(repair.label), m_details);
    button->setToolTip(button->text());
    button->setMinimumWidth(kMinButtonWidthPx);  // rather cut off than wider than the window has room for
    connect(button, &QPushButton::clicked, this, [this, edit = repair.edit] { m_session.pipeline().apply(edit); });
    m_buttons->addWidget(button);
  }
  showFixAll();
  m_buttons->addStretch(1);
  auto* explain = new QPushButton(tr("What does this mean?"), m_details);
  explain->setFlat(true);
  explain->setToolTip(tr("Open the guide at %1").arg(toQt(problem.code)));
  connect(explain, &QPushButton::clicked, this, [this, code = toQt(problem.code)] { Q_EMIT explanationWanted(code); });
  m_buttons->addWidget(explain);
}

/// Those with one fix each; of a small pipeline also those that get one by it.
std::size_t ProblemsPanel::numFixable() const {
  const std::vector<Diagnostic>& problems = m_model->problems();
  const std::size_t numNow = numOnlyRepairs(problems);
  if (numNow == 0 || m_model->count(Severity::Error) < 2 || isLarge(m_session)) return numNow;
  return std::max(numNow, numErrorsFixed(m_session.pipeline().document(), problems));
}

/// For several errors at once; only where nothing is to be chosen.
void ProblemsPanel::showFixAll() {
  const std::size_t numFixes = numFixable();
  if (numFixes < 2) return;
  auto* button = new QPushButton(tr("Fix all %1").arg(numFixes), m_details);
  button->setObjectName(QStringLiteral("fixAll"));
  button->setToolTip(tr("Fix all errors that have exactly one fix, including errors that appear afterwards"));
  connect(button, &QPushButton::clicked, this,
          [this] { m_session.pipeline().apply(fixAll(m_session.pipeline().document(), m_model->problems())); });
  m_buttons->addWidget(button);
}

}  // namespace fuseline::ui
