// Puts a table into lines.
// SPDX-License-Identifier: Apache-2.0
#include "ui/panels/table_text.h"

namespace fuseline::ui {

QString headText(const QTreeView& view) {
  QStringList heads;
  for (int column = 0; column < view.model()->columnCount(); ++column)
    if (!view.isColumnHidden(column)) heads.append(view.model()->headerData(column, Qt::Horizontal).toString());
  return heads.join(u'\t') + u'\n';
}

QString rowText(const QTreeView& view, int row, const QModelIndex& parent) {
  QStringList cells;
  for (int column = 0; column < view.model()->columnCount(); ++column) {
    if (!view.isColumnHidden(column)) cells.append(view.model()->index(row, column, parent).data().toString());
  }
  return (parent.isValid() ? QStringLiteral("  ") : QString()) + cells.join(u'\t') + u'\n';
}

}  // namespace fuseline::ui
