// Tables as text for the clipboard: what is shown, with tabs between the cells.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QList>
#include <QModelIndex>
#include <QString>
#include <QTreeView>

namespace fuseline::ui {

/// The columns that are not hidden, from left to right.
QList<int> shownColumns(const QTreeView& view);
/// The heads of the columns that are not hidden, in the order in which they stand, and the end of the line.
QString headText(const QTreeView& view);
/// The cells of a row, likewise.
QString rowText(const QTreeView& view, int row, const QModelIndex& parent = {});

}  // namespace fuseline::ui
