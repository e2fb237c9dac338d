// Puts tables on the clipboard.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/table_copying.h"

#include "ui/widgets/drag_source.h"
#include "ui/widgets/table_text.h"
#include "ui/widgets/translated.h"

#include <QAction>
#include <QClipboard>
#include <QGuiApplication>
#include <QHeaderView>
#include <QKeyEvent>

#include <functional>

namespace fuseline::ui {

namespace {

/// A row, then those that are shown in it.
void forEachRow(const QTreeView& view, const std::function<void(const QModelIndex& first)>& visit,
                const QModelIndex& parent = {}) {
  for (int row = 0; row < view.model()->rowCount(parent); ++row) {
    const QModelIndex first = view.model()->index(row, 0, parent);
    visit(first);
    if (view.isExpanded(first)) forEachRow(view, visit, first);
  }
}

QString cellText(QString text) { return text.replace(u'|', QStringLiteral("\\|")).replace(u'\n', u' '); }

QString lineOf(const QStringList& cells) { return QStringLiteral("| %1 |\n").arg(cells.join(QStringLiteral(" | "))); }

bool isNumeric(const QTreeView& view, int column) {
  const QVariant alignment = view.model()->headerData(column, Qt::Horizontal, Qt::TextAlignmentRole);
  return (alignment.toInt() & Qt::AlignRight) != 0;
}

/// Leaves the clipboard alone where there is nothing.
void copy(const QTreeView& view, QString (*toText)(const QTreeView& view)) {
  if (view.model()->rowCount() > 0) QGuiApplication::clipboard()->setText(toText(view));
}

/// Takes Ctrl+C before the window does.
class CopyKey : public QObject {
 public:
  explicit CopyKey(QTreeView& view) : QObject(&view), m_view(view) { view.installEventFilter(this); }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    const bool isKey = event->type() == QEvent::ShortcutOverride || event->type() == QEvent::KeyPress;
    if (!isKey || !static_cast<QKeyEvent*>(event)->matches(QKeySequence::Copy))
      return QObject::eventFilter(watched, event);
    event->accept();
    if (event->type() == QEvent::KeyPress) copy(m_view, tableText);
    return true;
  }

 private:
  QTreeView& m_view;
};

void addCommand(QTreeView& view, const QString& text, QString (*toText)(const QTreeView& view)) {
  auto* action = new QAction(text, &view);
  QObject::connect(action, &QAction::triggered, &view, [&view, toText] { copy(view, toText); });
  view.addAction(action);
}

/// A press on a row that is not selected begins a selection of several, where the view has such.
void makeDraggable(QTreeView& view) {
  new DragSource(
      *view.viewport(),
      [&view](QPoint place) {
        const QModelIndex index = view.indexAt(place);
        if (!index.isValid() || !view.visualRect(index).contains(place)) return false;
        return view.selectionMode() == QAbstractItemView::SingleSelection || view.selectionModel()->isSelected(index);
      },
      [&view] { return selectedRows(view); });
}

}  // namespace

QString tableText(const QTreeView& view) {
  QString text = headText(view);
  forEachRow(view, [&](const QModelIndex& first) { text += rowText(view, first.row(), first.parent()); });
  return text;
}

QString tableMarkdown(const QTreeView& view) {
  const QList<int> columns = shownColumns(view);
  QStringList heads;
  QStringList rules;
  for (const int column : columns) {
    heads.append(cellText(view.model()->headerData(column, Qt::Horizontal).toString()));
    rules.append(isNumeric(view, column) ? QStringLiteral("--:") : QStringLiteral(":--"));
  }
  QString text = lineOf(heads) + lineOf(rules);
  forEachRow(view, [&](const QModelIndex& first) {
    QStringList cells;
    for (const int column : columns) cells.append(cellText(first.siblingAtColumn(column).data().toString()));
    if (first.parent().isValid() && !cells.isEmpty()) cells.front().prepend(QStringLiteral("└ "));
    text += lineOf(cells);
  });
  return text;
}

std::unique_ptr<QMimeData> selectedRows(const QTreeView& view) {
  QString rows;
  forEachRow(view, [&](const QModelIndex& first) {
    if (view.selectionModel()->isRowSelected(first.row(), first.parent()))
      rows += rowText(view, first.row(), first.parent());
  });
  if (rows.isEmpty()) return nullptr;
  auto data = std::make_unique<QMimeData>();
  const QString text = headText(view) + rows;
  data->setText(text);
  data->setData(QStringLiteral("text/tab-separated-values"), text.toUtf8());
  return data;
}

void addCopyCommands(QTreeView& view) {
  makeDraggable(view);
  view.setContextMenuPolicy(Qt::ActionsContextMenu);
  addCommand(view, translated("Copy table"), tableText);
  addCommand(view, translated("Copy table as Markdown"), tableMarkdown);
}

void makeCopyable(QTreeView& view) {
  addCopyCommands(view);
  new CopyKey(view);
}

}  // namespace fuseline::ui
