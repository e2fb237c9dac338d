// The runs dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/runs/runs_panel.h"

#include "ui/theme/format.h"
#include "ui/widgets/file_choice.h"
#include "ui/widgets/roomy_delegate.h"
#include "ui/widgets/table_copying.h"

#include <QFileInfo>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QMessageBox>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>

namespace fuseline::ui {

namespace {

constexpr int kNoteWidthPx = 130;

}  // namespace

RunsPanel::RunsPanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_history(new RunHistory(session, this)),
      m_model(new RunsModel(theme, this)),
      m_view(new QTreeView(this)),
      m_empty(new QLabel(tr("No runs of this pipeline yet. Press Run (Ctrl+Enter)."), this)),
      m_problem(new QLabel(this)),
      m_place(new ElidedLabel(this)),
      m_keep(new QCheckBox(tr("Keep runs next to the pipeline"), this)) {
  createActions();
  createView();
  m_empty->setAlignment(Qt::AlignCenter);
  m_empty->setWordWrap(true);
  m_problem->setContentsMargins(10, 4, 10, 6);
  m_problem->setWordWrap(true);
  m_problem->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addLayout(makeHead());
  layout->addWidget(m_view, 1);
  layout->addWidget(m_empty, 1);
  layout->addWidget(m_problem);
  layout->addLayout(makeFoot());
  connect(m_history, &RunHistory::changed, this, &RunsPanel::refresh);
  connect(m_history, &RunHistory::keepsRunsChanged, this, &RunsPanel::refreshKeep);
  connect(&session.pipeline(), &OpenPipeline::changed, this, &RunsPanel::refreshKeep);
  connect(m_model, &RunsModel::noteWanted, m_history, &RunHistory::setNote);
  connect(m_keep, &QCheckBox::toggled, m_history, &RunHistory::setKeepsRuns);
  connect(&theme, &Theme::changed, m_view->viewport(), qOverload<>(&QWidget::update));
  refresh();
  refreshKeep();
}

void RunsPanel::createActions() {
  const auto add = [this](const QString& text, const QString& tip, auto run) {
    auto* action = new QAction(text, this);
    action->setToolTip(tip);
    connect(action, &QAction::triggered, this, run);
    m_view->addAction(action);
    return action;
  };
  m_open = add(tr("Open"), tr("Show the run, with the pipeline as it was measured (Enter)"),
               [this] { Q_EMIT openWanted(toQt(current()->file.string())); });
  m_compare = add(tr("Compare"), tr("Pin the run as a baseline, and show its pipeline beside this one"), [this] {
    const QString file = toQt(current()->file.string());
    pinCurrent();
    Q_EMIT compareWanted(file);
  });
  m_pin = add(tr("Pin as baseline"), tr("Compare other runs with this one in Timings"), [this] { pinCurrent(); });
  m_star = add(tr("Star"), tr("Starred runs, and runs with a note, are never deleted automatically (S)"),
               [this] { toggleStar(m_view->currentIndex().row()); });
  m_export = add(tr("Save as..."), tr("Save a copy of the run file"), [this] { exportCurrent(); });
  m_delete = add(tr("Delete..."), tr("Delete the run file"), [this] { deleteCurrent(); });
  m_open->setShortcuts({QKeySequence(Qt::Key_Return), QKeySequence(Qt::Key_Enter)});
  m_star->setShortcut(QKeySequence(Qt::Key_S));
  for (QAction* action : {m_open, m_star}) action->setShortcutContext(Qt::WidgetShortcut);
}

void RunsPanel::createView() {
  m_view->setModel(m_model);
  makeRoomy(*m_view);
  m_view->setRootIsDecorated(false);
  m_view->setAlternatingRowColors(true);
  m_view->setUniformRowHeights(true);
  m_view->setFrameShape(QFrame::NoFrame);
  m_view->setAccessibleName(tr("Runs of this pipeline"));
  makeCopyable(*m_view);
  m_view->setEditTriggers(QAbstractItemView::DoubleClicked | QAbstractItemView::EditKeyPressed);
  m_view->header()->setSectionsMovable(false);
  m_view->header()->setStretchLastSection(true);  // of words
  m_view->header()->setMinimumSectionSize(24);
  m_view->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
  m_view->header()->setSectionResizeMode(RunsModel::NoteColumn, QHeaderView::Interactive);
  m_view->setColumnWidth(RunsModel::NoteColumn, kNoteWidthPx);
  connect(m_view->selectionModel(), &QItemSelectionModel::currentChanged, this, &RunsPanel::refreshCurrent);
  connect(m_view, &QTreeView::clicked, this, [this](const QModelIndex& index) {
    if (index.column() == RunsModel::StarColumn) toggleStar(index.row());
  });
  connect(m_view, &QTreeView::doubleClicked, this, &RunsPanel::useCell);
}

QLayout* RunsPanel::makeHead() {
  auto* row = new QHBoxLayout;
  row->setContentsMargins(6, 4, 10, 4);
  row->setSpacing(2);
  for (QAction* action : {m_open, m_compare, m_pin, m_star, m_export, m_delete}) {
    auto* button = new QToolButton(this);
    button->setDefaultAction(action);
    button->setAutoRaise(true);
    row->addWidget(button);
  }
  row->addStretch(1);
  return row;
}

/// Where runs are kept.
QLayout* RunsPanel::makeFoot() {
  auto* row = new QHBoxLayout;
  row->setContentsMargins(8, 2, 10, 4);
  row->setSpacing(10);
  row->addWidget(m_keep);
  row->addWidget(m_place, 1);
  return row;
}

const RunEntry* RunsPanel::current() const {
  const QModelIndex index = m_view->currentIndex();
  return index.isValid() ? &m_model->entry(index.row()) : nullptr;
}

/// The chosen run stays the chosen one wherever it stands now; without one it is the newest.
void RunsPanel::refresh() {
  const std::filesystem::path chosen = current() ? current()->file : std::filesystem::path();
  const int column = std::max(m_view->currentIndex().column(), 0);
  m_model->setEntries(m_history->entries(), [this](const RunEntry& entry) { return m_history->standingOf(entry); });
  m_view->setCurrentIndex(m_model->index(std::max(m_model->rowOf(chosen), 0), column));
  const bool isEmpty = m_model->rowCount() == 0;
  m_view->setVisible(!isEmpty);
  m_empty->setVisible(isEmpty);
  refreshCurrent();
}

void RunsPanel::refreshCurrent() {
  const RunEntry* const entry = current();
  const bool isRun = entry && entry->summary;
  for (QAction* action : {m_open, m_compare, m_pin, m_star, m_export}) action->setEnabled(isRun);
  m_delete->setEnabled(entry != nullptr);
  m_problem->setText(entry ? toQt(entry->problem) : QString());
  m_problem->setVisible(!m_problem->text().isEmpty());
  m_star->setText(isRun && entry->note.isStarred ? tr("Unstar") : tr("Star"));
}

void RunsPanel::refreshKeep() {
  m_keep->setChecked(m_history->keepsRuns());
  const QString folder = m_history->folder();
  const QString name = QFileInfo(folder).fileName();
  if (!m_history->keepsRuns()) m_place->setWholeText(tr("New runs are kept until Fuseline is closed"));
  if (m_history->keepsRuns())
    m_place->setWholeText(folder.isEmpty() ? tr("New runs are saved once the pipeline is saved")
                                           : tr("New runs are saved to %1").arg(name));
  if (!folder.isEmpty()) m_place->setToolTip(folder);
  m_keep->setToolTip(
      folder.isEmpty()
          ? tr("Save each run in the folder NAME.runs next to the pipeline file (once the pipeline is saved)")
          : tr("Save each run in %1").arg(folder));
}

void RunsPanel::toggleStar(int row) {
  const RunEntry entry = m_model->entry(row);
  if (!entry.summary) return;
  RunNote note = entry.note;
  note.isStarred = !note.isStarred;
  m_history->setNote(entry, note);
}

void RunsPanel::pinCurrent() { m_history->pin(*current()); }

void RunsPanel::deleteCurrent() {
  const RunEntry entry = *current();
  const QString name = toQt(entry.file.filename().string());
  const auto answer = QMessageBox::question(this, tr("Delete a run"), tr("Delete %1? This cannot be undone.").arg(name),
                                            QMessageBox::Yes | QMessageBox::Cancel, QMessageBox::Cancel);
  if (answer == QMessageBox::Yes) m_history->remove(entry);
}

void RunsPanel::exportCurrent() {
  const RunEntry entry = *current();
  const QString path = fileToSave({.purpose = QStringLiteral("run"),
                                   .title = tr("Save a copy of the run"),
                                   .patterns = tr("Measured runs (*.fuserun);;All files (*)"),
                                   .pipeline = m_session.pipeline().path(),
                                   .ending = QStringLiteral("fuserun"),
                                   .name = toQt(entry.file.stem().string())},
                                  this);
  if (!path.isEmpty()) m_history->exportTo(entry, path);
}

/// The star has had its clicks, and a note is edited.
void RunsPanel::useCell(const QModelIndex& index) {
  if (index.column() != RunsModel::StarColumn && index.column() != RunsModel::NoteColumn && m_open->isEnabled())
    m_open->trigger();
}

}  // namespace fuseline::ui
