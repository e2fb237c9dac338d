// The outline dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/outline/outline_panel.h"

#include "core/edit/edit_extent.h"
#include "ui/session/large_pipeline.h"
#include "ui/session/last_edits.h"
#include "ui/session/plan_steps.h"
#include "ui/widgets/roomy_delegate.h"
#include "ui/widgets/seen_refresh.h"
#include "ui/widgets/table_copying.h"
#include "ui/widgets/undo_keys.h"

#include <QHeaderView>
#include <QKeyEvent>
#include <QScopedValueRollback>
#include <QVBoxLayout>

#include <algorithm>

namespace fuseline::ui {

namespace {

constexpr int kIndentationPx = 16;
constexpr int kMaxColumnWidthPx = 250;
/// Enough for widths that fit; all of a long pipeline would have to be measured with every edit.
constexpr int kNumMeasuredRows = 60;

}  // namespace

void OutlineView::keyPressEvent(QKeyEvent* event) {
  if (event->key() != Qt::Key_F2 || !currentIndex().isValid()) return QTreeView::keyPressEvent(event);
  const QModelIndex name = currentIndex().siblingAtColumn(OutlineModel::NameColumn);
  if (model()->flags(name) & Qt::ItemIsEditable) return edit(name);
  Q_EMIT nameIsFixed();
}

OutlinePanel::OutlinePanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_model(new OutlineModel(theme, this)),
      m_filter(new OutlineFilter(*m_model, this)),
      m_view(new OutlineView(this)),
      m_filterEdit(new QLineEdit(this)),
      m_empty(new QLabel(this)) {
  createView();
  m_filterEdit->setPlaceholderText(tr("Filter by name, op, shape or fusion"));
  m_filterEdit->setAccessibleName(tr("Filter the outline"));
  m_filterEdit->setClearButtonEnabled(true);
  m_filterEdit->installEventFilter(this);
  shareUndoKeys(*m_filterEdit, [this] { return m_filterEdit->isModified(); });
  setTabOrder(m_filterEdit, m_view);
  m_empty->setAlignment(Qt::AlignCenter);
  m_empty->setWordWrap(true);
  m_empty->setMargin(12);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(6, 6, 6, 6);
  layout->addWidget(m_filterEdit);
  layout->addWidget(m_view, 1);
  layout->addWidget(m_empty, 1);
  connect(m_filterEdit, &QLineEdit::textChanged, this, &OutlinePanel::applyFilter);
  connect(m_filterEdit, &QLineEdit::returnPressed, this, &OutlinePanel::goToFirst);
  auto* seen = new SeenRefresh(
      *this, [&session] { return isLarge(session); }, [this] { refresh(); },
      [&session] { return session.plan().isAnalysing(); });
  connect(&session.pipeline(), &OpenPipeline::replaced, seen, &SeenRefresh::request);
  connect(&session.pipeline(), &OpenPipeline::changed, seen, [this, seen] {
    if (mayDiffer()) seen->request();
  });
  connect(&session.runner(), &Runner::finished, seen, &SeenRefresh::request);
  connect(&session.setup(), &RunSetup::passChanged, seen, &SeenRefresh::request);
  connect(&PlanSteps::of(session.plan()), &PlanSteps::planChanged, seen, &SeenRefresh::request);
  connect(&session.selection(), &Selection::changed, this, [this] {
    if (!m_isSyncing) showSelection();
  });
  connect(&theme, &Theme::changed, m_view->viewport(), qOverload<>(&QWidget::update));
  refresh();
}

/// Rows show no attributes, but times of the last run, which an edit takes from them.
bool OutlinePanel::mayDiffer() const {
  const auto& edits = LastEdits::of(m_session.pipeline());
  return m_session.results().lastRun() || !edits || !extentOf(*edits).isAttributesOnly();
}

void OutlinePanel::createView() {
  m_view->setModel(m_filter);
  makeRoomy(*m_view);
  m_view->setAccessibleName(tr("Outline of the pipeline"));
  m_view->setSelectionMode(QAbstractItemView::ExtendedSelection);
  m_view->setEditTriggers(QAbstractItemView::NoEditTriggers);  // F2 is the view's own
  m_view->setAlternatingRowColors(true);
  m_view->setUniformRowHeights(true);
  m_view->setAllColumnsShowFocus(true);
  m_view->setIndentation(kIndentationPx);
  m_view->setExpandsOnDoubleClick(false);
  m_view->setFrameShape(QFrame::NoFrame);
  addCopyCommands(*m_view);  // Ctrl+C is about the ops
  QHeaderView* header = m_view->header();
  header->setSectionsMovable(false);
  header->setStretchLastSection(true);  // of words
  header->setResizeContentsPrecision(kNumMeasuredRows);
  header->setMaximumSectionSize(kMaxColumnWidthPx);
  header->setSectionResizeMode(QHeaderView::ResizeToContents);
  connect(m_view->selectionModel(), &QItemSelectionModel::selectionChanged, this, &OutlinePanel::takeSelection);
  connect(m_view, &QTreeView::activated, this, &OutlinePanel::activate);
  connect(m_view, &QTreeView::expanded, this, [this](const QModelIndex& index) { noteOpen(index, true); });
  connect(m_view, &QTreeView::collapsed, this, [this](const QModelIndex& index) { noteOpen(index, false); });
  connect(m_view, &OutlineView::nameIsFixed, this, [this] {
    Q_EMIT hint(tr("This op is inside a block. Press Enter to open the block, then F2 to rename it."));
  });
  // The view may still be closing the editor whose text this is.
  connect(m_model, &OutlineModel::renameRequested, &m_session, &Session::rename, Qt::QueuedConnection);
}

void OutlinePanel::refresh() {
  const QScopedValueRollback guard(m_isSyncing, true);
  const QModelIndex before = m_view->currentIndex();
  const QString node = before.data(OutlineModel::NodeRole).toString();
  const int row = before.row();
  m_model->setRows(outlineOf(m_session));
  showRows();
  if (row < 0 || m_view->currentIndex().isValid()) return;
  // The arrow keys go on from where an op was removed.
  const QModelIndex same = indexOf(node);
  const QModelIndex next = same.isValid() ? same : m_filter->index(std::min(row, m_filter->rowCount() - 1), 0);
  m_view->selectionModel()->setCurrentIndex(next, QItemSelectionModel::NoUpdate);
}

/// After the rows or the filter have changed.
void OutlinePanel::showRows() {
  const bool isEmpty = m_model->rowCount() == 0;
  const bool hasRows = m_filter->rowCount() > 0;
  m_filterEdit->setVisible(!isEmpty);
  m_view->setVisible(hasRows);
  m_empty->setVisible(!hasRows);
  m_empty->setText(isEmpty ? tr("No ops yet. Press Ctrl+Space to find one, press Enter on one in the palette, or "
                                "choose File > New from template.")
                           : tr("No op matches all of these words."));
  m_view->setRootIsDecorated(m_model->hasParts());
  m_view->setColumnHidden(OutlineModel::TimeColumn, !m_model->hasTimes());
  open({});
  showSelection();
}

QModelIndex OutlinePanel::indexOf(const QString& node) const {
  for (int row = 0; row < m_filter->rowCount(); ++row) {
    const QModelIndex index = m_filter->index(row, 0);
    if (index.data(OutlineModel::NodeRole).toString() == node) return index;
  }
  return {};
}

void OutlinePanel::noteOpen(const QModelIndex& index, bool isOpen) {
  if (m_isSyncing) return;
  const QString place = index.data(OutlineModel::PlaceRole).toString();
  isOpen ? (void)m_openPlaces.insert(place) : (void)m_openPlaces.remove(place);
}

/// Opens what was open; while something is searched, everything that has it.
void OutlinePanel::open(const QModelIndex& parent) {
  const bool isSearching = !m_filterEdit->text().isEmpty();
  for (int row = 0; row < m_filter->rowCount(parent); ++row) {
    const QModelIndex index = m_filter->index(row, 0, parent);
    if (!m_filter->hasChildren(index)) continue;
    const bool isOpen = isSearching || m_openPlaces.contains(index.data(OutlineModel::PlaceRole).toString());
    m_view->setExpanded(index, isOpen);
    open(index);
  }
}

void OutlinePanel::applyFilter(const QString& query) {
  const QScopedValueRollback guard(m_isSyncing, true);
  m_filter->setQuery(query);
  showRows();
}

void OutlinePanel::goToFirst() {
  m_view->setFocus();
  if (!m_view->selectionModel()->hasSelection()) m_view->setCurrentIndex(m_filter->index(0, 0));
}

bool OutlinePanel::eventFilter(QObject* watched, QEvent* event) {
  const bool isDown = watched == m_filterEdit && event->type() == QEvent::KeyPress &&
                      static_cast<QKeyEvent*>(event)->key() == Qt::Key_Down;
  if (isDown) goToFirst();
  return isDown || QWidget::eventFilter(watched, event);
}

void OutlinePanel::showSelection() {
  const QScopedValueRollback guard(m_isSyncing, true);
  QItemSelection chosen;
  const auto isChosen = [&](int row) {
    return m_session.selection().ids().contains(m_filter->index(row, 0).data(OutlineModel::NodeRole).toString());
  };
  for (int row = 0; row < m_filter->rowCount(); ++row) {
    const int first = row;
    while (row < m_filter->rowCount() && isChosen(row)) ++row;
    if (row > first) chosen.select(m_filter->index(first, 0), m_filter->index(row - 1, OutlineModel::ColumnCount - 1));
  }
  m_view->selectionModel()->select(chosen, QItemSelectionModel::ClearAndSelect);
  if (chosen.isEmpty() ||
      m_session.selection().ids().contains(m_view->currentIndex().data(OutlineModel::NodeRole).toString()))
    return;
  const QModelIndex first = chosen.front().topLeft();
  m_view->selectionModel()->setCurrentIndex(first, QItemSelectionModel::NoUpdate);
  m_view->scrollTo(first);
}

void OutlinePanel::activate(const QModelIndex& index) {
  if (!index.parent().isValid()) return Q_EMIT propertiesRequested();
  Q_EMIT insideWanted(index.siblingAtColumn(0).data(OutlineModel::PlaceRole).toString());
}

/// An op inside of an instance stands for the instance: what is selected is what commands change.
void OutlinePanel::takeSelection() {
  if (m_isSyncing) return;
  QSet<QString> ids;
  bool hasParts = false;
  for (const QModelIndex& index : m_view->selectionModel()->selectedRows()) {
    ids.insert(index.data(OutlineModel::NodeRole).toString());
    hasParts = hasParts || index.parent().isValid();
  }
  {
    const QScopedValueRollback guard(m_isSyncing, true);
    m_session.selection().select(ids);
  }
  if (hasParts) showSelection();
}

}  // namespace fuseline::ui
