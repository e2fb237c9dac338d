// Tables that can be copied or dragged out: with tabs for spreadsheets, or as Markdown for pull requests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QMimeData>
#include <QString>
#include <QTreeView>

#include <memory>

namespace fuseline::ui {

/// All rows; those inside others after them and indented, where they are open. As in headText() and rowText().
QString tableText(const QTreeView& view);
/// The same as a table of Markdown, its columns aligned as they are shown.
QString tableMarkdown(const QTreeView& view);

/// The heads and the selected rows, as in headText() and rowText(), for other windows; nullptr: none is selected.
std::unique_ptr<QMimeData> selectedRows(const QTreeView& view);

/// Two commands in the view's context menu, and selected rows can be dragged out.
void addCopyCommands(QTreeView& view);
/// And Ctrl+C in the view is about the table, not about the canvas.
void makeCopyable(QTreeView& view);

}  // namespace fuseline::ui
