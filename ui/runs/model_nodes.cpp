// A table with a filter; its rows can be copied.
// SPDX-License-Identifier: Apache-2.0
#include "ui/runs/model_nodes.h"

#include "ui/theme/format.h"
#include "ui/widgets/table_copying.h"

#include <QHeaderView>
#include <QLineEdit>
#include <QSortFilterProxyModel>
#include <QStandardItemModel>
#include <QVBoxLayout>

namespace fuseline::ui {

namespace {

constexpr QSize kFirstSize(720, 420);
constexpr int kOpWidthPx = 220;

QStandardItemModel* modelOf(const std::vector<ImportedNodes>& rows, QObject* parent) {
  auto* model = new QStandardItemModel(0, 2, parent);
  model->setHorizontalHeaderLabels({ModelNodes::tr("Op"), ModelNodes::tr("Nodes of the model")});
  for (const ImportedNodes& row : rows) {
    const QString nodes = toQt(row.nodes).join(QStringLiteral(", "));
    const QList<QStandardItem*> cells = {new QStandardItem(toQt(row.op)), new QStandardItem(nodes)};
    for (QStandardItem* cell : cells) {
      cell->setEditable(false);
      cell->setToolTip(toQt(row.nodes).join(u'\n'));
    }
    model->appendRow(cells);
  }
  return model;
}

}  // namespace

ModelNodes::ModelNodes(Session& session, const std::vector<ImportedNodes>& rows, const QString& model, QWidget& window)
    : QDialog(&window), m_view(new QTreeView(this)) {
  setWindowTitle(tr("Nodes of %1").arg(model));
  auto* shown = new QSortFilterProxyModel(this);
  shown->setSourceModel(modelOf(rows, this));
  shown->setFilterKeyColumn(-1);  // all
  shown->setFilterCaseSensitivity(Qt::CaseInsensitive);
  m_view->setModel(shown);
  m_view->setRootIsDecorated(false);
  m_view->setAlternatingRowColors(true);
  m_view->setUniformRowHeights(true);
  m_view->setAccessibleName(tr("Ops and nodes"));
  m_view->setColumnWidth(0, kOpWidthPx);
  makeCopyable(*m_view);
  auto* filter = new QLineEdit(this);
  filter->setPlaceholderText(tr("Filter by op or node"));
  filter->setAccessibleName(filter->placeholderText());
  filter->setClearButtonEnabled(true);
  connect(filter, &QLineEdit::textChanged, shown, &QSortFilterProxyModel::setFilterFixedString);
  connect(m_view->selectionModel(), &QItemSelectionModel::currentRowChanged, &session,
          [&session](const QModelIndex& row) {
            const QString op = row.siblingAtColumn(0).data().toString().section(u'.', 0, 0);
            if (session.pipeline().document().findOp(op.toStdString())) session.selection().select({op});
          });
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(filter);
  layout->addWidget(m_view, 1);
  resize(kFirstSize);
}

}  // namespace fuseline::ui
