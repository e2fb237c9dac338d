// The numerics dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/numerics/numerics_panel.h"

#include "ui/numerics/numerics_text.h"
#include "ui/theme/format.h"
#include "ui/timings/run_filter_bar.h"
#include "ui/widgets/roomy_delegate.h"
#include "ui/widgets/table_copying.h"

#include <QAction>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QPainter>
#include <QScopedValueRollback>
#include <QSplitter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

#include <algorithm>

namespace fuseline::ui {

namespace {

// In these proportions.
constexpr int kErrorsPx = 800;
constexpr int kCopiesPx = 300;

/// A chip in the color that the op has on the canvas, left of the error.
class HeatDelegate : public RoomyDelegate {
 public:
  using RoomyDelegate::RoomyDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    RoomyDelegate::paint(painter, option, index);
    const QVariant heat = index.data(NumericsModel::HeatRole);
    if (!heat.isValid()) return;
    const QRect area = option.rect;
    painter->fillRect(QRect(area.left() + 6, area.center().y() - 5, 10, 10), heatColor(heat.toDouble()));
  }
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    return RoomyDelegate::sizeHint(option, index) + QSize(18, 0);
  }
};

/// Verdicts in the colors of good and bad, beside their words.
class VerdictDelegate : public RoomyDelegate {
 public:
  VerdictDelegate(const Theme& theme, QObject* parent) : RoomyDelegate(parent), m_theme(theme) {}

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
    RoomyDelegate::initStyleOption(option, index);
    const QVariant isWithin = index.data(NumericsModel::IsWithinRole);
    if (!isWithin.isValid()) return;
    const ThemeColors& colors = m_theme.colors();
    option->palette.setColor(QPalette::Text, isWithin.toBool() ? colors.good : colors.error);
    option->font.setBold(!isWithin.toBool());
  }

 private:
  const Theme& m_theme;
};

QString lossesText(const QString& format, const QuantizationLosses& losses) {
  return NumericsPanel::tr(
             "%1 · amax %2 · dynamic range 2^%3 · scale_inv %4 · underflow %5 · saturated %6 · mse %7 · SNR %8")
      .arg(format, QString::number(losses.amax, 'g', 3), QString::number(losses.dynamicRange(), 'f', 1),
           scaleText(losses), lossShareText(losses.underflowShare), lossShareText(losses.saturationShare),
           QString::number(losses.meanSquaredError, 'g', 2), noiseText(losses));
}

}  // namespace

NumericsPanel::NumericsPanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_theme(theme),
      m_model(new NumericsModel(this)),
      m_sorted(new QSortFilterProxyModel(this)),
      m_view(new QTreeView(this)),
      m_head(new QHBoxLayout()),
      m_caption(new QLabel(this)),
      m_measure(new QPushButton(tr("Measure numerics"), this)),
      m_copies(new QComboBox(this)),
      m_recipes(new QComboBox(this)),
      m_histogram(new HistogramView(theme, this)),
      m_losses(new QLabel(this)) {
  auto* splitter = new QSplitter(Qt::Horizontal, this);
  splitter->addWidget(createErrors());
  splitter->addWidget(createCopies());
  splitter->setStretchFactor(0, 3);
  splitter->setStretchFactor(1, 2);
  splitter->setSizes({kErrorsPx, kCopiesPx});
  m_content = splitter;
  m_start = createStart();
  m_recorded = new RecordedNumerics(session, theme, this);
  m_caption->setContentsMargins(10, 6, 10, 6);
  m_caption->setTextFormat(Qt::RichText);
  m_caption->setWordWrap(true);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  m_head->addWidget(m_caption, 1);
  layout->addLayout(m_head);
  layout->addWidget(m_content, 1);
  layout->addWidget(m_recorded, 1);
  layout->addWidget(m_start, 1);
  connect(&session.runner(), &Runner::numericsFinished, this, &NumericsPanel::refresh);
  connect(&session.pipeline(), &OpenPipeline::replaced, this, &NumericsPanel::refresh);
  connect(&session.runner(), &Runner::finished, this, &NumericsPanel::refreshRecorded);
  connect(&session.pipeline(), &OpenPipeline::changed, this, &NumericsPanel::refreshCaption);
  for (const auto signal : {&RunSetup::passChanged, &RunSetup::runTargetChanged, &RunSetup::tensorSourceChanged})
    connect(&session.setup(), signal, this, &NumericsPanel::refreshCaption);
  connect(&session.selection(), &Selection::changed, this, &NumericsPanel::showSelection);
  connect(&theme, &Theme::changed, this, &NumericsPanel::refreshCaption);
  refresh();
}

void NumericsPanel::setFilter(RunFilter& filter) {
  m_filter = &filter;
  m_recorded->setFilter(filter);
  auto* bar = new RunFilterBar(m_session, filter, this);
  m_head->addStretch();
  m_head->addWidget(bar->button(), 0, Qt::AlignTop);
  static_cast<QBoxLayout*>(layout())->insertWidget(1, bar);
  connect(&filter, &RunFilter::changed, this, &NumericsPanel::refresh);
}

QWidget* NumericsPanel::createErrors() {
  m_sorted->setSourceModel(m_model);
  m_sorted->setSortRole(NumericsModel::SortRole);
  m_view->setModel(m_sorted);
  makeRoomy(*m_view);
  m_view->header()->setSectionsMovable(false);
  m_view->setItemDelegateForColumn(NumericsModel::RmsColumn, new HeatDelegate(m_view));
  for (const int column : {NumericsModel::VerdictColumn, NumericsModel::FusedColumn})
    m_view->setItemDelegateForColumn(column, new VerdictDelegate(m_theme, m_view));
  m_view->setRootIsDecorated(false);
  m_view->setAlternatingRowColors(true);
  m_view->setUniformRowHeights(true);
  m_view->setSelectionMode(QAbstractItemView::ExtendedSelection);
  m_view->setFrameShape(QFrame::NoFrame);
  m_view->setAccessibleName(tr("Errors vs. float32"));
  m_view->header()->setStretchLastSection(false);
  m_view->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
  m_view->setSortingEnabled(true);
  m_view->header()->setSortIndicatorClearable(true);
  m_view->sortByColumn(-1, Qt::AscendingOrder);
  connect(m_view->selectionModel(), &QItemSelectionModel::selectionChanged, this, &NumericsPanel::takeSelection);
  addLookCommand();
  return m_view;
}

void NumericsPanel::addLookCommand() {
  auto* look = new QAction(tr("Inspect tensor"), this);
  look->setToolTip(tr("Show the values of the tensor in the Tensor pane"));
  m_view->addAction(look);
  makeCopyable(*m_view);
  connect(look, &QAction::triggered, this, [this] {
    const QModelIndex current = m_view->currentIndex();
    if (current.isValid()) Q_EMIT tensorWanted(current.siblingAtColumn(NumericsModel::TensorColumn).data().toString());
  });
  connect(m_view, &QTreeView::activated, look, &QAction::trigger);
}

QWidget* NumericsPanel::createCopies() {
  auto* side = new QWidget(this);
  m_copies->setAccessibleName(tr("Quantized tensor"));
  m_copies->setToolTip(tr("A tensor that the recipe quantizes"));
  m_recipes->setAccessibleName(tr("Preview recipe"));
  m_recipes->setToolTip(tr("Shows the same tensor quantized by another recipe, without another run"));
  for (QComboBox* box : {m_copies, m_recipes})
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  m_losses->setWordWrap(true);
  m_losses->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* row = new QHBoxLayout;
  row->addWidget(m_copies, 1);
  row->addWidget(m_recipes, 1);
  auto* layout = new QVBoxLayout(side);
  layout->setContentsMargins(8, 4, 8, 6);
  layout->addLayout(row);
  layout->addWidget(m_histogram, 1);
  layout->addWidget(m_losses, 0);
  connect(m_copies, &QComboBox::currentIndexChanged, this, &NumericsPanel::fillRecipes);
  connect(m_recipes, &QComboBox::currentIndexChanged, this, &NumericsPanel::showCopy);
  return side;
}

QWidget* NumericsPanel::createStart() {
  auto* start = new QWidget(this);
  auto* text = new QLabel(tr("No numerics yet. Measure the error of every tensor against float32, the quantization "
                             "error, and the origin of the first NaN."),
                          start);
  text->setAlignment(Qt::AlignCenter);
  text->setWordWrap(true);
  m_measure->setToolTip(tr("Measure numerics (Ctrl+Shift+Enter)"));
  connect(m_measure, &QPushButton::clicked, &m_session.runner(), &Runner::measureNumerics);
  connect(&m_session.runner(), &Runner::runningChanged, m_measure,
          [this] { m_measure->setDisabled(m_session.runner().isRunning()); });
  auto* layout = new QVBoxLayout(start);
  layout->addStretch();
  layout->addWidget(text);
  layout->addWidget(m_measure, 0, Qt::AlignHCenter);
  layout->addStretch();
  return start;
}

void NumericsPanel::refresh() {
  const auto& last = m_session.results().lastNumerics();
  takeReport();
  m_model->setReport(m_shown);
  m_content->setVisible(last.has_value());
  m_caption->setVisible(last.has_value());
  refreshRecorded();
  fillCopies();
  refreshCaption();
  showSelection();
}

/// Gradients are of backward, all other tensors of forward.
void NumericsPanel::takeReport() {
  const auto& last = m_session.results().lastNumerics();
  m_shown = last ? last->report : NumericsReport{};
  if (!m_filter || !m_filter->isActive()) return;
  const auto isLeftOut = [this](const auto& row) {
    return !m_filter->keepsRow(row.name, row.owner, passesOf(row.name));
  };
  std::erase_if(m_shown.errors, isLeftOut);
  std::erase_if(m_shown.fusionErrors, isLeftOut);
  std::erase_if(m_shown.copies, isLeftOut);
}

/// Shows the numerics of a run file until numerics are measured here.
void NumericsPanel::refreshRecorded() {
  const bool isMeasured = m_session.results().lastNumerics().has_value();
  const bool isRecorded = !isMeasured && m_recorded->refresh();
  m_recorded->setVisible(isRecorded);
  m_start->setVisible(!isMeasured && !isRecorded);
}

void NumericsPanel::refreshCaption() {
  const auto& last = m_session.results().lastNumerics();
  if (!last) return refreshRecorded();
  const NumericsReport& report = last->report;
  const ErrorNumerics* worst = report.worst();
  QStringList parts = {report.recipe == "None" ? tr("No quantization") : toQt(report.recipe).toHtmlEscaped()};
  if (worst)
    parts.append(tr("worst RMS error %1 (%2)").arg(formatError(worst->rmsRelative), toQt(worst->name).toHtmlEscaped()));
  const auto strong = [this](const QString& text) {
    return QStringLiteral("<b style='color:%1'>%2</b>").arg(m_theme.colors().warning.name(), text.toHtmlEscaped());
  };
  for (const auto& [what, errors] :
       {std::pair(tr("vs. float32"), &report.errors), std::pair(tr("fused vs. unfused"), &report.fusionErrors)}) {
    const NumericsVerdict verdict = verdictOf(*errors);
    const QString sentence = verdictSentence(what, verdict);
    if (!sentence.isEmpty()) parts.append(verdict.isWithin ? sentence.toHtmlEscaped() : strong(sentence));
  }
  if (const auto& origin = report.firstNonFinite)
    parts.append(strong(tr("first NaN or ∞: %1, produced by %2").arg(toQt(origin->tensor), toQt(origin->step))));
  for (const FrozenScale& frozen : report.frozenScales)
    parts.append(strong(tr("the scale of %1 is frozen for %2 steps").arg(toQt(frozen.name)).arg(frozen.steps)));
  if (last->isStale) parts.append(strong(tr("the pipeline has changed since: measure again")));
  m_caption->setText(parts.join(QStringLiteral(" · ")));
}

void NumericsPanel::fillCopies() {
  const QString before = m_copies->currentText();
  const QSignalBlocker blocker(m_copies);
  m_copies->clear();
  for (const CopyNumerics& copy : m_shown.copies) m_copies->addItem(toQt(copy.name));
  m_copies->setCurrentIndex(std::max(0, m_copies->findText(before)));
  fillRecipes();
}

void NumericsPanel::fillRecipes() {
  const QSignalBlocker blocker(m_recipes);
  m_recipes->clear();
  m_recipes->addItem(tr("Recipe of the run"));
  if (const CopyNumerics* copy = chosenCopy())
    for (const Requantized& other : copy->requantized) m_recipes->addItem(toQt(other.recipe));
  m_recipes->setEnabled(m_recipes->count() > 1);
  showCopy();
}

const CopyNumerics* NumericsPanel::chosenCopy() const {
  const auto index = static_cast<std::size_t>(m_copies->currentIndex());
  return index < m_shown.copies.size() ? &m_shown.copies[index] : nullptr;
}

const Requantized* NumericsPanel::chosenRecipe() const {
  const CopyNumerics* copy = chosenCopy();
  const auto index = static_cast<std::size_t>(m_recipes->currentIndex());
  return copy && index >= 1 && index <= copy->requantized.size() ? &copy->requantized[index - 1] : nullptr;
}

void NumericsPanel::showCopy() {
  const CopyNumerics* copy = chosenCopy();
  for (QWidget* widget :
       {static_cast<QWidget*>(m_copies), static_cast<QWidget*>(m_recipes), static_cast<QWidget*>(m_histogram)})
    widget->setVisible(copy);
  m_losses->setAlignment(copy ? Qt::AlignLeft | Qt::AlignVCenter : Qt::AlignCenter);
  if (!copy) {
    m_histogram->show({}, std::nullopt);
    m_losses->setText(m_filter && m_filter->isActive()
                          ? tr("No quantized tensor matches the filter. Remove a filter term.")
                          : tr("The recipe does not quantize any tensor. Choose a recipe in the toolbar."));
    return;
  }
  const Requantized* other = chosenRecipe();
  const QuantizationLosses& losses = other ? other->losses : copy->losses;
  const auto element = other ? std::optional(other->element) : parseElementFormat(copy->format.substr(0, 4));
  m_histogram->show(copy->magnitudes, element ? std::optional(holdableRange(*element, losses)) : std::nullopt);
  QString text = lossesText(toQt(other ? other->format : copy->format), losses);
  if (other) text += tr(" (first %1 elements)").arg(other->elements);
  m_losses->setText(text);
}

void NumericsPanel::showSelection() {
  const QScopedValueRollback guard(m_isSyncing, true);
  QItemSelection chosen;
  for (int row = 0; row < m_sorted->rowCount(); ++row) {
    const QModelIndex index = m_sorted->index(row, 0);
    const QString owner = index.data(NumericsModel::OwnerRole).toString();
    if (m_session.selection().ids().contains(owner))
      chosen.select(index, index.siblingAtColumn(NumericsModel::ColumnCount - 1));
  }
  m_view->selectionModel()->select(chosen, QItemSelectionModel::ClearAndSelect);
  if (!chosen.isEmpty()) m_view->scrollTo(chosen.indexes().front());
  chooseCopyOf(m_session.selection().single().toStdString());
}

/// The first tensor that the op reads quantized, unless one of its own is shown already.
void NumericsPanel::chooseCopyOf(const std::string& op) {
  const CopyNumerics* shown = chosenCopy();
  if (!shown || shown->owner == op) return;
  const auto found = std::ranges::find(m_shown.copies, op, &CopyNumerics::owner);
  if (found != m_shown.copies.end()) m_copies->setCurrentIndex(static_cast<int>(found - m_shown.copies.begin()));
}

void NumericsPanel::takeSelection() {
  if (m_isSyncing) return;
  const QScopedValueRollback guard(m_isSyncing, true);
  QSet<QString> ids;
  for (const QModelIndex& index : m_view->selectionModel()->selectedRows()) {
    const QString owner = index.data(NumericsModel::OwnerRole).toString();
    if (!owner.isEmpty()) ids.insert(owner);
  }
  if (!ids.isEmpty()) m_session.selection().select(ids);
}

}  // namespace fuseline::ui
