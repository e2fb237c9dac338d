// Puts a table into lines.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/table_text.h"

#include <QHeaderView>

namespace fuseline::ui {

QList<int> shownColumns(const QTreeView& view) {
  QList<int> columns;
  for (int place = 0; place < view.header()->count(); ++place)
    if (const int column = view.header()->logicalIndex(place); !view.isColumnHidden(column)) columns.append(column);
  return columns;
}

QString headText(const QTreeView& view) {
  QStringList heads;
  for (const int column : shownColumns(view)) heads.append(view.model()->headerData(column, Qt::Horizontal).toString());
  return heads.join(u'\t') + u'\n';
}

QString rowText(const QTreeView& view, int row, const QModelIndex& parent) {
  QStringList cells;
  for (const int column : shownColumns(view)) cells.append(view.model()->index(row, column, parent).data().toString());
  return (parent.isValid() ? QStringLiteral("  ") : QString()) + cells.join(u'\t') + u'\n';
}

}  // namespace fuseline::ui
