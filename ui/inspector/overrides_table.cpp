// A table of four columns, its tools below it, then the problems.
// SPDX-License-Identifier: Apache-2.0
#include "ui/inspector/overrides_table.h"

#include "ui/inspector/recipe_section.h"

#include <QAction>
#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

#include <algorithm>

namespace fuseline::ui {

namespace {

/// More rows scroll.
constexpr int kMostRowsShown = 8;

/// Cells are edited as boxes of the valid values.
class ChoiceDelegate : public QStyledItemDelegate {
 public:
  ChoiceDelegate(const OverridesModel& model, QObject* parent) : QStyledItemDelegate(parent), m_model(model) {}

  QWidget* createEditor(QWidget* parent, const QStyleOptionViewItem&, const QModelIndex& index) const override {
    auto* box = new QComboBox(parent);
    box->setEditable(OverridesModel::isFree(index.column()));
    box->addItems(m_model.choices(index.column()));
    box->setAccessibleName(m_model.headerData(index.column(), Qt::Horizontal, Qt::DisplayRole).toString());
    box->view()->setMinimumWidth(box->view()->sizeHintForColumn(0));
    auto* self = const_cast<ChoiceDelegate*>(this);  // the signals of a delegate are not const, but this function is
    connect(box, &QComboBox::activated, self, [self, box] {
      Q_EMIT self->commitData(box);
      Q_EMIT self->closeEditor(box);
    });
    return box;
  }
  void setEditorData(QWidget* editor, const QModelIndex& index) const override {
    static_cast<QComboBox*>(editor)->setCurrentText(index.data(Qt::EditRole).toString());
  }
  void setModelData(QWidget* editor, QAbstractItemModel* model, const QModelIndex& index) const override {
    model->setData(index, static_cast<QComboBox*>(editor)->currentText(), Qt::EditRole);
  }

 private:
  const OverridesModel& m_model;
};

}  // namespace

OverridesTable::OverridesTable(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_model(new OverridesModel(session, this)),
      m_view(new QTableView(this)),
      m_problem(new FieldProblem(theme, this)) {
  createView();
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(2);
  layout->addWidget(m_view);
  layout->addWidget(createTools());
  layout->addWidget(m_problem);
  connect(m_model, &QAbstractItemModel::modelReset, this, &OverridesTable::followRows);
  connect(m_view->selectionModel(), &QItemSelectionModel::currentChanged, this, &OverridesTable::enableTools);
  followRows();
}

void OverridesTable::createView() {
  m_view->setModel(m_model);
  m_view->setItemDelegate(new ChoiceDelegate(*m_model, m_view));
  m_view->setAccessibleName(tr("Overrides of the recipe"));
  m_view->setSelectionMode(QAbstractItemView::SingleSelection);
  m_view->setEditTriggers(QAbstractItemView::DoubleClicked | QAbstractItemView::SelectedClicked |
                          QAbstractItemView::EditKeyPressed | QAbstractItemView::AnyKeyPressed);
  m_view->setTabKeyNavigation(false);  // Tab goes to the next field
  m_view->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  m_view->verticalHeader()->hide();
  m_view->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  m_view->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  auto* remove = new QAction(tr("Remove"), m_view);
  remove->setShortcut(QKeySequence::Delete);
  remove->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  connect(remove, &QAction::triggered, this, &OverridesTable::removeCurrent);
  m_view->addAction(remove);
}

QToolButton* OverridesTable::addTool(QBoxLayout& row, const QString& tip, std::function<void()> run) {
  auto* tool = new QToolButton(this);
  tool->setAutoRaise(true);
  tool->setToolTip(tip);
  tool->setAccessibleName(tip);
  connect(tool, &QToolButton::clicked, this, std::move(run));
  row.addWidget(tool);
  return tool;
}

QWidget* OverridesTable::createTools() {
  auto* tools = new QWidget(this);
  auto* row = new QHBoxLayout(tools);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(2);
  addTool(*row, tr("Add an override"), [this] { addOverride(); })->setText(tr("Add an override"));
  m_remove = addTool(*row, tr("Remove the selected override (Del)"), [this] { removeCurrent(); });
  m_remove->setText(tr("Remove"));
  m_up = addTool(*row, tr("Move up (lower rows take precedence)"), [this] { moveCurrent(-1); });
  m_up->setArrowType(Qt::UpArrow);
  m_down = addTool(*row, tr("Move down (lower rows take precedence)"), [this] { moveCurrent(1); });
  m_down->setArrowType(Qt::DownArrow);
  row->addStretch(1);
  return tools;
}

void OverridesTable::refresh() {
  const bool isUsed = recipeOf(m_session.pipeline().document()).quantizer != nullptr;
  setVisible(isUsed);
  m_model->refresh();
  m_problem->tell(isUsed ? problemsAt(m_session, QStringLiteral("/recipe")) : QString(), nullptr);
  enableTools();
}

void OverridesTable::addOverride() {
  m_model->add();
  m_model->refresh();
  select(m_model->rowCount() - 1);
}

void OverridesTable::removeCurrent() {
  const int row = m_view->currentIndex().row();
  if (row < 0) return;
  m_model->remove(row);
  m_model->refresh();
  select(std::min(row, m_model->rowCount() - 1));
}

void OverridesTable::moveCurrent(int by) {
  const QModelIndex current = m_view->currentIndex();
  if (!m_model->move(current.row(), by)) return;
  m_model->refresh();
  m_view->setCurrentIndex(m_model->index(current.row() + by, current.column()));
}

void OverridesTable::select(int row) { m_view->setCurrentIndex(m_model->index(row, OverridesModel::OpColumn)); }

/// As high as its rows; an empty table is hidden.
void OverridesTable::followRows() {
  const int numShown = std::min(m_model->rowCount(), kMostRowsShown);
  const int rowPx = m_view->verticalHeader()->defaultSectionSize();
  m_view->setFixedHeight(m_view->horizontalHeader()->sizeHint().height() + numShown * rowPx + 2 * m_view->frameWidth());
  m_view->setVisible(numShown > 0);
  enableTools();
}

void OverridesTable::enableTools() {
  const int row = m_view->currentIndex().row();
  m_remove->setEnabled(row >= 0);
  m_up->setEnabled(row > 0);
  m_down->setEnabled(row >= 0 && row + 1 < m_model->rowCount());
}

}  // namespace fuseline::ui
