// A table of numbers, with keys and buttons to go through it.
// SPDX-License-Identifier: Apache-2.0
#include "ui/numerics/tensor_table.h"

#include "ui/theme/format.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QScopedValueRollback>
#include <QSplitter>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr int kToolsSidePx = 8;
/// As text, more cells than this are no longer for the clipboard.
constexpr qsizetype kMostCopiedCells = 1'000'000;

}  // namespace

TensorTable::TensorTable(const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_model(new TensorModel(theme, this)),
      m_view(new QTableView(this)),
      m_histogram(new HistogramView(theme, this)),
      m_place(new QLabel(this)),
      m_shading(new QComboBox(this)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(createContent(), 1);
  layout->addWidget(createTools());
}

QWidget* TensorTable::createContent() {
  m_view->setModel(m_model);
  m_view->setFrameShape(QFrame::NoFrame);
  m_view->setAccessibleName(tr("Values of the tensor"));
  m_view->setSelectionMode(QAbstractItemView::ContiguousSelection);
  m_view->setWordWrap(false);
  m_view->setContextMenuPolicy(Qt::ActionsContextMenu);
  m_view->installEventFilter(this);
  // Sizes that depend on contents would query every cell.
  for (QHeaderView* header : {m_view->horizontalHeader(), m_view->verticalHeader()})
    header->setSectionResizeMode(QHeaderView::Fixed);
  m_view->horizontalHeader()->setDefaultSectionSize(fontMetrics().horizontalAdvance(QStringLiteral("−0.00012345e-00")));
  m_view->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 5);
  m_view->verticalHeader()->setMinimumWidth(fontMetrics().horizontalAdvance(QStringLiteral("0000000")));
  auto* splitter = new QSplitter(Qt::Horizontal, this);
  splitter->addWidget(m_view);
  splitter->addWidget(m_histogram);
  splitter->setStretchFactor(0, 4);
  splitter->setStretchFactor(1, 1);
  connect(m_view->selectionModel(), &QItemSelectionModel::currentChanged, this, &TensorTable::followCell);
  return splitter;
}

QWidget* TensorTable::createTools() {
  auto* tools = new QWidget(this);
  auto* row = new QHBoxLayout(tools);
  row->setContentsMargins(kToolsSidePx, 4, kToolsSidePx, 4);
  m_row = addPlace(*row, tr("Row"));
  m_column = addPlace(*row, tr("Column"));
  row->addWidget(m_place, 1);
  addTool(*row, tr("Next NaN or ∞"), tr("Next NaN or infinity after the current cell (N)"), QKeySequence(Qt::Key_N),
          [this] { goToNextNonFinite(); });
  addTool(*row, tr("Largest"), tr("Value with the largest magnitude (L)"), QKeySequence(Qt::Key_L),
          [this] { goToLargest(); });
  m_shading->addItems({tr("No shading"), tr("Shade by value"), tr("Shade by magnitude")});
  m_shading->setAccessibleName(tr("Shading"));
  m_shading->setToolTip(tr("Dark blue: minimum of the tensor; yellow: maximum. Magnitudes use a logarithmic scale"));
  connect(m_shading, &QComboBox::currentIndexChanged, this,
          [this](int index) { m_model->setShading(static_cast<Shading>(index)); });
  row->addWidget(m_shading);
  m_copy = addTool(*row, tr("Copy"), tr("Copy the selected cells, separated by tabs (Ctrl+C)"), {}, [this] { copy(); });
  addTool(*row, tr("Save as..."), tr("Save the tensor as .npy or .safetensors"), {}, [this] { Q_EMIT saveWanted(); });
  return tools;
}

/// A button, which is a command of the table's context menu, too.
QAction* TensorTable::addTool(QLayout& row, const QString& text, const QString& tip, const QKeySequence& key,
                              std::function<void()> run) {
  auto* action = new QAction(text, this);
  action->setToolTip(tip);
  action->setShortcut(key);
  action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  connect(action, &QAction::triggered, this, std::move(run));
  m_view->addAction(action);
  auto* button = new QToolButton(this);
  button->setDefaultAction(action);
  button->setToolTip(tip);
  row.addWidget(button);
  return action;
}

QSpinBox* TensorTable::addPlace(QLayout& row, const QString& text) {
  auto* label = new QLabel(text, this);
  auto* place = new QSpinBox(this);
  place->setAccessibleName(tr("Go to: %1").arg(text));
  place->setKeyboardTracking(false);
  label->setBuddy(place);
  row.addWidget(label);
  row.addWidget(place);
  connect(place, &QSpinBox::valueChanged, this, &TensorTable::goToTyped);
  return place;
}

void TensorTable::setTensor(const TensorSummary& summary, const std::shared_ptr<const CapturedFile>& file) {
  if (m_model->shows(summary, file)) return;
  m_largestAt = summary.statistics.largestAt;
  const QModelIndex before = m_model->name() == summary.name ? m_view->currentIndex() : QModelIndex();
  const auto [row, column] = std::pair(std::max(0, before.row()), std::max(0, before.column()));
  m_model->show(summary, file);
  m_histogram->show(summary.statistics.magnitudes, std::nullopt);
  {
    const QScopedValueRollback guard(m_isSyncing, true);
    m_row->setRange(0, std::max(0, m_model->rowCount() - 1));
    m_column->setRange(0, std::max(0, m_model->columnCount() - 1));
  }
  const QModelIndex place = m_model->index(row, column);
  m_view->setCurrentIndex(place.isValid() ? place : m_model->index(0, 0));
}

void TensorTable::clear() {
  m_model->clear();
  m_largestAt = -1;
}

void TensorTable::goTo(std::int64_t element) {
  const QModelIndex index = m_model->indexOf(element);
  if (!index.isValid()) return Q_EMIT message(tr("%1 is outside of the table.").arg(m_model->placeOf(element)));
  m_view->setCurrentIndex(index);
  m_view->scrollTo(index, QAbstractItemView::PositionAtCenter);
}

void TensorTable::goToTyped() {
  if (m_isSyncing) return;
  const std::int64_t element = m_model->elementAt(m_model->index(m_row->value(), m_column->value()));
  if (element >= 0) goTo(element);
}

void TensorTable::followCell() {
  const QScopedValueRollback guard(m_isSyncing, true);
  const QModelIndex index = m_view->currentIndex();
  const std::int64_t element = m_model->elementAt(index);
  m_place->setText(index.data(Qt::ToolTipRole).toString());
  if (element < 0) return;
  m_row->setValue(index.row());
  m_column->setValue(index.column());
}

void TensorTable::goToNextNonFinite() {
  const auto next = m_model->nextNonFinite(m_model->elementAt(m_view->currentIndex()));
  next ? goTo(*next) : Q_EMIT message(tr("This tensor has no NaN and no infinity."));
}

void TensorTable::goToLargest() {
  if (m_largestAt >= 0) goTo(m_largestAt);
}

QString TensorTable::asText() const {
  QString text;
  for (const QItemSelectionRange& range : m_view->selectionModel()->selection())
    for (int row = range.top(); row <= range.bottom(); ++row) {
      QStringList cells;
      for (int column = range.left(); column <= range.right(); ++column)
        cells.append(m_model->index(row, column).data().toString());
      text += cells.join(u'\t') + u'\n';
    }
  return text;
}

void TensorTable::copy() {
  qsizetype cells = 0;
  for (const QItemSelectionRange& range : m_view->selectionModel()->selection())
    cells += qsizetype{range.width()} * range.height();
  if (cells > kMostCopiedCells)
    return Q_EMIT message(
        tr("%1 cells are selected, but at most a million can be copied. Save the tensor instead.").arg(cells));
  QGuiApplication::clipboard()->setText(asText());
}

/// Before the window's own Ctrl+C, which is about the canvas.
bool TensorTable::eventFilter(QObject* watched, QEvent* event) {
  const bool isKey = event->type() == QEvent::ShortcutOverride || event->type() == QEvent::KeyPress;
  if (!isKey || !static_cast<QKeyEvent*>(event)->matches(QKeySequence::Copy))
    return QWidget::eventFilter(watched, event);
  event->type() == QEvent::KeyPress ? m_copy->trigger() : event->accept();
  return true;
}

}  // namespace fuseline::ui
