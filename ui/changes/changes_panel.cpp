// The changes dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/changes/changes_panel.h"

#include "core/document/file_format.h"
#include "core/document/pipeline_hash.h"
#include "ui/session/baselines.h"
#include "ui/theme/format.h"
#include "ui/widgets/roomy_delegate.h"
#include "ui/widgets/table_copying.h"

#include <QAction>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QScopedValueRollback>
#include <QScrollBar>
#include <QVBoxLayout>

#include <algorithm>

namespace fuseline::ui {

namespace {

constexpr int kMostSubjectPx = 240;
constexpr int kCellPaddingPx = 16;

}  // namespace

ChangesPanel::ChangesPanel(Session& session, PipelineComparison& comparison, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_comparison(comparison),
      m_theme(theme),
      m_model(new ChangesModel(this)),
      m_view(new QTreeView(this)),
      m_takeBackAction(new QAction(tr("&Revert this change"), this)),
      m_title(new ElidedLabel(this)),
      m_summary(new QLabel(this)),
      m_off(new QWidget(this)),
      m_on(new QWidget(this)),
      m_starts(new QWidget(m_off)) {
  createView();
  createPages();
  connect(&comparison, &PipelineComparison::changed, this, &ChangesPanel::refresh);
  connect(&theme, &Theme::changed, this, &ChangesPanel::refresh);
  connect(&session.pipeline(), &OpenPipeline::changed, this, &ChangesPanel::refreshTakeBack);
  connect(&session.selection(), &Selection::changed, this, &ChangesPanel::followSelection);
  connect(&session.runner(), &Runner::finished, this, &ChangesPanel::refresh);
  connect(&session.baselines(), &Baselines::changed, this, &ChangesPanel::refresh);
  connect(&session.runner(), &Runner::runningChanged, this, &ChangesPanel::refreshMeasure);
  connect(&session.plan(), &LivePlan::analysisChanged, this, &ChangesPanel::refreshMeasure);
  refresh();
}

void ChangesPanel::createView() {
  m_view->setModel(m_model);
  makeRoomy(*m_view);
  m_view->setAlternatingRowColors(true);
  m_view->setUniformRowHeights(true);
  m_view->setFrameShape(QFrame::NoFrame);
  m_view->setAccessibleName(tr("Changes"));
  m_view->header()->setStretchLastSection(true);
  m_view->header()->setSectionsMovable(false);
  m_view->addAction(m_takeBackAction);
  makeCopyable(*m_view);
  connect(m_takeBackAction, &QAction::triggered, this, &ChangesPanel::takeBackCurrent);
  connect(m_view->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &ChangesPanel::showCurrent);
  connect(m_view, &QTreeView::clicked, this, &ChangesPanel::showCurrent);
}

void ChangesPanel::createPages() {
  QFont bold = m_title->font();
  bold.setBold(true);
  m_title->setFont(bold);
  m_summary->setWordWrap(true);
  m_summary->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* on = new QVBoxLayout(m_on);
  on->setContentsMargins(0, 0, 0, 0);
  on->setSpacing(0);
  auto* head = new QVBoxLayout;
  head->setContentsMargins(10, 6, 10, 6);
  head->setSpacing(2);
  head->addWidget(m_title);
  head->addWidget(m_summary);
  on->addLayout(head);
  on->addWidget(m_view, 1);
  on->addWidget(createButtons());
  auto* invitation =
      new QLabel(tr("No comparison. Choose a pipeline to see what differs and how the plan changes."), m_off);
  invitation->setAlignment(Qt::AlignCenter);
  invitation->setWordWrap(true);
  m_starts->setLayout(new QHBoxLayout);
  auto* off = new QVBoxLayout(m_off);
  off->addStretch(1);
  off->addWidget(invitation);
  off->addWidget(m_starts, 0, Qt::AlignCenter);
  off->addStretch(1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(m_off);
  layout->addWidget(m_on);
}

QWidget* ChangesPanel::createButtons() {
  auto* buttons = new QWidget(m_on);
  auto* row = new QHBoxLayout(buttons);
  row->setContentsMargins(8, 4, 8, 4);
  const auto add = [&](const QString& text, const QString& tip, auto run) {
    auto* button = new QPushButton(text, buttons);
    button->setToolTip(tip);
    connect(button, &QPushButton::clicked, this, run);
    row->addWidget(button);
    return button;
  };
  m_previous = add(tr("Previous"), tr("Previous change (Shift+F7)"), [this] { selectNext(-1); });
  m_next = add(tr("Next"), tr("Next change (F7)"), [this] { selectNext(1); });
  m_takeBack = add(m_takeBackAction->text().remove(u'&'), {}, [this] { takeBackCurrent(); });
  m_measure = add(tr("Measure both"), {}, [this] { measureBoth(); });
  row->addStretch(1);
  add(tr("Stop comparing"), tr("Keeps the pipeline as it is"), [this] { Q_EMIT endWanted(); });
  return buttons;
}

void ChangesPanel::addStart(QAction& action) {
  auto* button = new QPushButton(action.text().remove(u'&'), m_starts);
  m_starts->layout()->addWidget(button);
  button->setMenu(action.menu());
  connect(button, &QPushButton::clicked, &action, &QAction::trigger);
  const auto follow = [button, &action] {
    button->setEnabled(action.isEnabled());
    button->setToolTip(action.toolTip());
  };
  connect(&action, &QAction::changed, button, follow);
  follow();
}

void ChangesPanel::refresh() {
  m_off->setVisible(!m_comparison.isOn());
  m_on->setVisible(m_comparison.isOn());
  const bool isSameFile = m_comparison.baseName() == m_session.pipeline().displayName();
  m_title->setWholeText(isSameFile ? tr("%1: file → this window").arg(m_session.pipeline().displayName())
                                   : tr("%1 → %2").arg(m_comparison.baseName(), m_session.pipeline().displayName()));
  m_summary->setText(m_comparison.isComparing() && m_model->rowCount() == 0 ? tr("Comparing...")
                                                                            : comparisonText(*m_comparison.result()));
  fill();
  const bool hasRows = !m_model->changeRows().isEmpty();
  m_view->setVisible(m_model->rowCount() > 0);
  m_previous->setEnabled(hasRows);
  m_next->setEnabled(hasRows);
  refreshTakeBack();
  refreshMeasure();
}

/// Keeps the current row, or the row that takes its place, closed rows and the scroll position.
void ChangesPanel::fill() {
  const QScopedValueRollback guard(m_isFilling, true);
  const QModelIndex current = m_view->currentIndex().siblingAtColumn(0);
  const QString key = current.data(ChangesModel::KeyRole).toString();
  const qsizetype place = m_model->changeRows().indexOf(current);
  const QSet<QString> closed = closedGroups();
  const int scrolled = m_view->verticalScrollBar()->value();
  const std::optional<MeasuredChange> measured = measuredChange();
  const bool isFirst = m_model->rowCount() == 0;
  m_model->show(*m_comparison.result(), measured ? &*measured : nullptr, m_theme);
  for (int group = 0; group < m_model->rowCount(); ++group) {
    const QModelIndex index = m_model->index(group, 0);
    m_view->setFirstColumnSpanned(group, {}, true);
    m_view->setExpanded(index, !closed.contains(index.data().toString()));
  }
  if (isFirst) fitColumns();
  const QList<QModelIndex> rows = m_model->changeRows();
  const QModelIndex same = key.isEmpty() ? QModelIndex() : m_model->rowOfKey(key);
  if (place >= 0 && !rows.isEmpty())
    m_view->setCurrentIndex(same.isValid() ? same : rows[std::min(place, rows.size() - 1)]);
  m_view->verticalScrollBar()->setValue(scrolled);
}

/// The last column, which has the most text, has the rest. Names of groups span all columns.
void ChangesPanel::fitColumns() {
  int subjectPx = m_view->header()->sectionSizeHint(ChangesModel::WhatColumn);
  for (const QModelIndex& row : m_model->changeRows())
    subjectPx = std::max(subjectPx, m_view->fontMetrics().horizontalAdvance(row.data().toString()) +
                                        2 * m_view->indentation() + kCellPaddingPx);
  m_view->setColumnWidth(ChangesModel::WhatColumn, std::min(subjectPx, kMostSubjectPx));
  m_view->resizeColumnToContents(ChangesModel::KindColumn);
}

QSet<QString> ChangesPanel::closedGroups() const {
  QSet<QString> closed;
  for (int group = 0; group < m_model->rowCount(); ++group)
    if (const QModelIndex index = m_model->index(group, 0); !m_view->isExpanded(index))
      closed.insert(index.data().toString());
  return closed;
}

void ChangesPanel::selectNext(int step) {
  const QList<QModelIndex> rows = m_model->changeRows();
  if (rows.isEmpty()) return;
  const auto current = rows.indexOf(m_view->currentIndex().siblingAtColumn(0));
  const qsizetype first = step > 0 ? 0 : rows.size() - 1;
  m_view->setCurrentIndex(rows[current < 0 ? first : (current + step + rows.size()) % rows.size()]);
}

void ChangesPanel::selectChange(int change) {
  const QModelIndex row = m_model->rowOfChange(change);
  if (row.isValid()) m_view->setCurrentIndex(row);
}

/// A node that was chosen elsewhere brings its row, unless the current one is about it already.
void ChangesPanel::followSelection() {
  const std::string id = m_session.selection().single().toStdString();
  const auto mark = m_comparison.result()->map.marks.find(id);
  const QModelIndex current = m_view->currentIndex().siblingAtColumn(0);
  const bool isAboutIt = current.data(ChangesModel::NodesRole).toStringList().contains(toQt(id));
  if (m_isFilling || isAboutIt || mark == m_comparison.result()->map.marks.end()) return;
  const QScopedValueRollback guard(m_isFilling, true);
  selectChange(static_cast<int>(mark->second.change));
  refreshTakeBack();
}

void ChangesPanel::showCurrent() {
  if (m_isFilling) return;
  refreshTakeBack();
  const QModelIndex row = m_view->currentIndex().siblingAtColumn(0);
  if (row.data(ChangesModel::KeyRole).toString().isEmpty()) return;
  const QStringList nodes = row.data(ChangesModel::NodesRole).toStringList();
  m_session.selection().select(QSet<QString>(nodes.begin(), nodes.end()));
  Q_EMIT shown(nodes, row.data(ChangesModel::ChangeRole).toInt());
}

void ChangesPanel::refreshTakeBack() {
  const QString problem = takeBackProblem();
  const QString tip = problem.isEmpty() ? tr("Restores this part from the other pipeline. Can be undone.") : problem;
  m_takeBackAction->setEnabled(problem.isEmpty());
  m_takeBackAction->setToolTip(tip);
  m_takeBack->setEnabled(problem.isEmpty());
  m_takeBack->setToolTip(tip);
}

/// Why the current row cannot be taken back; empty: it can.
QString ChangesPanel::takeBackProblem() const {
  if (!m_comparison.isOn()) return tr("No comparison. Choose a pipeline first.");
  const QModelIndex row = m_view->currentIndex().siblingAtColumn(0);
  if (row.data(ChangesModel::KeyRole).toString().isEmpty()) return tr("No change is selected. Choose a change first.");
  const int change = row.data(ChangesModel::ChangeRole).toInt();
  if (change < 0) return tr("Plans are derived from the pipeline. Revert the change in the pipeline instead.");
  const Result<Edit> edit = m_comparison.editToTakeBack(change);
  return edit ? QString() : toQt(edit.error().message);
}

void ChangesPanel::takeBackCurrent() {
  const QModelIndex row = m_view->currentIndex().siblingAtColumn(0);
  if (row.isValid() && m_takeBackAction->isEnabled()) m_comparison.takeBack(row.data(ChangesModel::ChangeRole).toInt());
}

/// Change between the last run and the reference, if they were interleaved and the pipeline has not changed.
std::optional<MeasuredChange> ChangesPanel::measuredChange() const {
  const std::optional<LastRun>& run = m_session.results().lastRun();
  const Baseline* const base = m_session.baselines().reference();
  if (!m_comparison.isOn() || !run || run->isStale || !base || !tookTurns(*base->record, run->record)) return {};
  if (hashWithoutView(toJson(*m_comparison.result()->base)) != base->record->pipelineHash) return {};
  Result<RunComparison> comparison = compareRuns(*base->record, run->record);
  if (!comparison) return {};
  return MeasuredChange{std::move(*comparison), base->record.get(), &run->record};
}

void ChangesPanel::refreshMeasure() {
  const QString problem = measureProblem();
  m_measure->setEnabled(problem.isEmpty());
  m_measure->setToolTip(problem.isEmpty() ? tr("Runs both pipelines interleaved, so that background load affects both "
                                               "equally. The other pipeline's run becomes a baseline.")
                                          : problem);
}

/// Why both cannot be measured; empty: they can.
QString ChangesPanel::measureProblem() const {
  if (!m_comparison.isOn()) return tr("No comparison. Choose a pipeline first.");
  if (m_session.runner().isRunning()) return tr("Another run is in progress. Stop it, or wait for it to end.");
  if (m_comparison.isComparing()) return tr("The comparison is not complete yet.");
  const ComparisonResult& result = *m_comparison.result();
  if (!result.baseAnalysis->isRunnable()) return tr("The other pipeline has errors. Fix them to measure both.");
  if (!result.analysis->isRunnable()) return tr("This pipeline has errors. Fix them to measure both.");
  if (!m_session.baselines().hasRoomForTurns())
    return tr("%1 baselines are pinned, which is the maximum. Unpin one with the × next to its name above Timings.")
        .arg(Baselines::kMost);
  return {};
}

void ChangesPanel::measureBoth() {
  m_session.runner().runBeside(*m_comparison.result()->base, m_comparison.baseName());
}

}  // namespace fuseline::ui
