// Arranges the columns of a table, and keeps how the user has arranged them.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/table_columns.h"

#include <QHeaderView>
#include <QMenu>
#include <QScopedValueRollback>
#include <QSettings>

#include <algorithm>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr int kSavingDelayMs = 300;
constexpr int kWidestColumnPx = 420;  // of a column that is as wide as its contents
constexpr int kLeastFirstCharacters = 34;
constexpr int kMarkGapPx = 4;
constexpr int kHeadRoomPx = 14;  // margins, and what stands behind a head that is aligned to the right
constexpr auto kShownKey = "shown";
constexpr auto kWidthsKey = "widths";
constexpr auto kSortKey = "sort";
constexpr auto kDescendingKey = "isDescending";

}  // namespace

TableColumns::TableColumns(QTreeView& view, std::vector<Column> columns, QString group)
    : m_view(view),
      m_columns(std::move(columns)),
      m_group(std::move(group)),
      m_chooser(new QMenu(tr("&Columns"), &view)),
      m_sorter(new QMenu(tr("&Sort by"), &view)) {
  for (const Column& column : m_columns) m_isChosen.push_back(column.isShownFirst);
  createHeader();
  m_saving.setSingleShot(true);
  m_saving.setInterval(kSavingDelayMs);
  createMenus();
  load();
  followHeader();
  m_view.viewport()->installEventFilter(this);
  refresh();
}

TableColumns::~TableColumns() {
  if (m_saving.isActive()) save();
}

void TableColumns::createHeader() {
  QHeaderView& header = *m_view.header();
  header.setStretchLastSection(false);
  header.setSectionResizeMode(QHeaderView::Interactive);
  header.setSectionsMovable(true);
  header.setFirstSectionMovable(false);  // the tree's branches are in it
  header.setSortIndicatorClearable(true);
  m_view.setSortingEnabled(true);
  sortAtFirst();
}

void TableColumns::sortAtFirst() {
  const auto first = std::ranges::find(m_columns, true, &Column::isSortedFirst);
  const int column = first == m_columns.end() ? -1 : static_cast<int>(first - m_columns.begin());
  m_view.sortByColumn(column, column < 0 ? Qt::AscendingOrder : Qt::DescendingOrder);
}

void TableColumns::createMenus() {
  connect(m_chooser, &QMenu::aboutToShow, this, &TableColumns::fillChooser);
  connect(m_sorter, &QMenu::aboutToShow, this, &TableColumns::fillSorter);
  m_view.header()->setContextMenuPolicy(Qt::CustomContextMenu);
  connect(m_view.header(), &QWidget::customContextMenuRequested, this,
          [this](QPoint place) { m_chooser->popup(m_view.header()->mapToGlobal(place)); });
}

void TableColumns::followHeader() {
  const auto keep = [this] {
    if (!m_isArranging) m_saving.start();
  };
  connect(&m_saving, &QTimer::timeout, this, &TableColumns::save);
  connect(m_view.header(), &QHeaderView::sortIndicatorChanged, this, keep);
  connect(m_view.header(), &QHeaderView::sortIndicatorChanged, this, &TableColumns::fit);
  connect(m_view.header(), &QHeaderView::sectionMoved, this, keep);
  connect(m_view.header(), &QHeaderView::sectionResized, this, [this, keep] {
    m_hasOwnWidths = m_hasOwnWidths || !m_isArranging;
    keep();
  });
}

// ------------------------------------------------------------------------------------------------------------- choice

void TableColumns::choose(int column, bool isShown) {
  if (column == 0) return;
  m_isChosen[static_cast<std::size_t>(column)] = isShown;
  m_saving.start();
  refresh();
  if (!isShown || !m_hasOwnWidths) return;
  const QScopedValueRollback guard(m_isArranging, true);
  m_view.resizeColumnToContents(column);
}

void TableColumns::reset() {
  {
    const QScopedValueRollback guard(m_isArranging, true);
    for (int column = 0; column < numColumns(); ++column) {
      m_isChosen[static_cast<std::size_t>(column)] = m_columns[static_cast<std::size_t>(column)].isShownFirst;
      m_view.header()->moveSection(m_view.header()->visualIndex(column), column);
    }
    sortAtFirst();
  }
  m_hasOwnWidths = false;
  m_saving.start();
  refresh();
}

bool TableColumns::hasWords(int column, const QModelIndex& parent) const {
  const QAbstractItemModel& model = *m_view.model();
  for (int row = 0; row < model.rowCount(parent); ++row) {
    const QModelIndex cell = model.index(row, column, parent);
    if (!cell.data().toString().isEmpty() || hasWords(column, cell.siblingAtColumn(0))) return true;
  }
  return false;
}

void TableColumns::refresh() {
  const QScopedValueRollback guard(m_isArranging, true);
  for (int column = 1; column < numColumns(); ++column)
    m_view.setColumnHidden(column, !isChosen(column) || !hasWords(column));
  fit();
}

/// Qt would leave room for a sort indicator in every head.
int TableColumns::contentWidth(int column) const {
  const QAbstractItemView& cells = m_view;
  const QHeaderView& header = *m_view.header();
  const QString head = m_view.model()->headerData(column, Qt::Horizontal).toString();
  const int arrow = header.sortIndicatorSection() == column
                        ? header.style()->pixelMetric(QStyle::PM_HeaderMarkSize) + kHeadRoomPx
                        : 0;
  const bool hasMark = m_view.model()->headerData(column, Qt::Horizontal, Qt::DecorationRole).isValid();
  const int mark = hasMark ? header.style()->pixelMetric(QStyle::PM_SmallIconSize) + kMarkGapPx : 0;
  const int headPx = header.fontMetrics().horizontalAdvance(head) + kHeadRoomPx + mark + arrow;
  return std::max({cells.sizeHintForColumn(column), headPx, header.minimumSectionSize()});
}

void TableColumns::fit() {
  if (m_hasOwnWidths) return;
  const QScopedValueRollback guard(m_isArranging, true);
  QHeaderView& header = *m_view.header();
  for (int column = 0; column < numColumns(); ++column) {
    if (header.isSectionHidden(column)) continue;
    header.resizeSection(column, std::min(contentWidth(column), kWidestColumnPx));
  }
  m_leastFirstPx = std::min(header.sectionSize(0), m_view.fontMetrics().averageCharWidth() * kLeastFirstCharacters);
  stretch();
}

void TableColumns::stretch() {
  if (m_hasOwnWidths) return;
  const QScopedValueRollback guard(m_isArranging, true);
  QHeaderView& header = *m_view.header();
  const int left = m_view.viewport()->width() - (header.length() - header.sectionSize(0));
  header.resizeSection(0, std::max(left, m_leastFirstPx));
}

bool TableColumns::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize) stretch();
  return QObject::eventFilter(watched, event);
}

// -------------------------------------------------------------------------------------------------------------- menus

QString TableColumns::nameOf(int column) const {
  const QAbstractItemModel& model = *m_view.model();
  const QString name = model.headerData(column, Qt::Horizontal, Qt::AccessibleTextRole).toString();
  return name.isEmpty() ? model.headerData(column, Qt::Horizontal).toString() : name;
}

void TableColumns::fillChooser() {
  m_chooser->clear();
  for (int column = 1; column < numColumns(); ++column) {
    QAction* action = m_chooser->addAction(hasWords(column) ? nameOf(column) : tr("%1: not known").arg(nameOf(column)));
    action->setCheckable(true);
    action->setChecked(isChosen(column));
    connect(action, &QAction::toggled, this, [this, column](bool isShown) { choose(column, isShown); });
  }
  m_chooser->addSeparator();
  connect(m_chooser->addAction(tr("&Default columns")), &QAction::triggered, this, &TableColumns::reset);
}

/// The column that rows are sorted by turns them round, as a click on its head does.
void TableColumns::fillSorter() {
  m_sorter->clear();
  QHeaderView* header = m_view.header();
  const int sorted = header->sortIndicatorSection();
  const auto add = [&](const QString& text, int column, Qt::SortOrder order) {
    QAction* action = m_sorter->addAction(text);
    action->setCheckable(true);
    action->setChecked(column == sorted);
    connect(action, &QAction::triggered, header, [header, column, order] { header->setSortIndicator(column, order); });
  };
  add(tr("None (original order)"), -1, Qt::AscendingOrder);
  for (int place = 0; place < header->count(); ++place) {
    const int column = header->logicalIndex(place);
    if (header->isSectionHidden(column)) continue;
    const auto first = static_cast<Qt::SortOrder>(
        m_view.model()->headerData(column, Qt::Horizontal, Qt::InitialSortOrderRole).toInt());
    const bool isTurned = column == sorted && header->sortIndicatorOrder() == first;
    const Qt::SortOrder other = first == Qt::AscendingOrder ? Qt::DescendingOrder : Qt::AscendingOrder;
    add(nameOf(column), column, isTurned ? other : first);
  }
}

// ----------------------------------------------------------------------------------------------------------- settings

/// Ids, so that columns that later versions add leave the others as they are.
void TableColumns::load() {
  if (m_group.isEmpty()) return;
  QSettings settings;
  settings.beginGroup(m_group);
  if (!settings.contains(kShownKey)) return;
  const QStringList shown = settings.value(kShownKey).toStringList();
  const QVariantMap widths = settings.value(kWidthsKey).toMap();
  const QString sort = settings.value(kSortKey).toString();
  m_hasOwnWidths = !widths.isEmpty();
  const auto columnOf = [this](const QString& id) {
    const auto found = std::ranges::find(m_columns, id, &Column::id);
    return found == m_columns.end() ? -1 : static_cast<int>(found - m_columns.begin());
  };
  QHeaderView& header = *m_view.header();
  int place = 1;
  for (const QString& id : shown)
    if (const int column = columnOf(id); column > 0) header.moveSection(header.visualIndex(column), place++);
  for (int column = 1; column < numColumns(); ++column)
    m_isChosen[static_cast<std::size_t>(column)] = shown.contains(m_columns[static_cast<std::size_t>(column)].id);
  for (const auto& [id, width] : widths.asKeyValueRange())
    if (const int column = columnOf(id); column >= 0) header.resizeSection(column, width.toInt());
  m_view.sortByColumn(columnOf(sort),
                      settings.value(kDescendingKey).toBool() ? Qt::DescendingOrder : Qt::AscendingOrder);
}

void TableColumns::save() {
  m_saving.stop();
  if (m_group.isEmpty()) return;
  QSettings settings;
  settings.beginGroup(m_group);
  const QHeaderView& header = *m_view.header();
  QStringList shown;
  QVariantMap widths;
  for (int place = 0; place < numColumns(); ++place) {
    const int column = header.logicalIndex(place);
    const QString& id = m_columns[static_cast<std::size_t>(column)].id;
    if (isChosen(column) || column == 0) shown.append(id);
    if (m_hasOwnWidths && !header.isSectionHidden(column)) widths[id] = header.sectionSize(column);
  }
  const int sorted = header.sortIndicatorSection();
  settings.setValue(kShownKey, shown);
  settings.setValue(kWidthsKey, widths);
  settings.setValue(kSortKey, sorted < 0 ? QString() : m_columns[static_cast<std::size_t>(sorted)].id);
  settings.setValue(kDescendingKey, header.sortIndicatorOrder() == Qt::DescendingOrder);
}

}  // namespace fuseline::ui
