// The sweep dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/sweep/sweep_panel.h"

#include "core/edit/symbol_edits.h"
#include "ui/session/large_pipeline.h"
#include "ui/theme/format.h"
#include "ui/widgets/file_choice.h"
#include "ui/widgets/roomy_delegate.h"
#include "ui/widgets/seen_refresh.h"
#include "ui/widgets/table_copying.h"

#include <QClipboard>
#include <QFileInfo>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QSignalBlocker>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>

namespace fuseline::ui {

namespace {

constexpr int kSizesCharacters = 18;
constexpr int kProgressWidthPx = 120;
constexpr int kSharePx = 1000;  // more than there is: it becomes a share of that

/// Beside each other in a row, small, of these actions.
void addButtons(QHBoxLayout& row, std::initializer_list<QAction*> actions) {
  for (QAction* action : actions) {
    auto* button = new QToolButton;
    button->setDefaultAction(action);
    button->setAutoRaise(true);
    row.addWidget(button);
  }
}

/// Name of the pipeline's recipe in the result.
QString ownRecipeName(const SweepResult& result) {
  const auto measured = std::ranges::find_if(result.rows, &SweepRow::isMeasured);
  return measured == result.rows.end() ? QString() : sweepRecipeName(measured->record->settings.recipe);
}

/// Those of the core go on from a name.
QString capitalized(QString sentence) {
  if (!sentence.isEmpty()) sentence[0] = sentence[0].toUpper();
  return sentence;
}

/// "MXFP8BlockScaling: fused is faster from M = 512 on."
QString sentenceOf(const SweepLine& line, const SweepResult& result) {
  const QString sentence = toQt(sentenceOf(line.breakEven, result.sweep.axes.front().symbol)) + u'.';
  return result.sweep.recipes.empty() ? capitalized(sentence)
                                      : QStringLiteral("%1: %2").arg(sweepRecipeName(line.fixed.recipe), sentence);
}

}  // namespace

SweepPanel::SweepPanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_theme(theme),
      m_sweep(new SweepSession(session, this)),
      m_model(new SweepModel(theme, this)),
      m_sorted(new QSortFilterProxyModel(this)),
      m_symbol(new QComboBox(this)),
      m_sizes(new QLineEdit(this)),
      m_recipes(new RecipeChoice(this)),
      m_plan(new QLabel(this)),
      m_start(new QPushButton(tr("Start"), this)),
      m_stop(new QPushButton(tr("Stop"), this)),
      m_state(new QLabel(this)),
      m_progress(new QProgressBar(this)),
      m_quantity(new QComboBox(this)),
      m_result(new QSplitter(Qt::Horizontal, this)),
      m_chart(new SweepChart(theme, this)),
      m_view(new QTreeView(this)),
      m_summary(new QLabel(this)),
      m_empty(new QLabel(this)) {
  createActions();
  createView();
  m_empty->setAlignment(Qt::AlignCenter);
  m_empty->setWordWrap(true);
  connect(m_plan, &QLabel::linkActivated, this, &SweepPanel::makeSymbol);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addLayout(makeChoices());
  layout->addLayout(makeState());
  layout->addWidget(makeResult(), 1);
  layout->addWidget(m_empty, 1);
  orderTabs();
  follow();
  refreshChoices();
  refreshResult();
}

// ------------------------------------------------------------------------------------------------------- construction

QLayout* SweepPanel::makeChoices() {
  auto* row = new QHBoxLayout;
  row->setContentsMargins(10, 6, 10, 4);
  row->setSpacing(6);
  m_symbol->setAccessibleName(tr("Symbol"));
  m_symbol->setToolTip(tr("Symbol to sweep"));
  m_symbol->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  m_quantity->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  m_sizes->setAccessibleName(tr("Sizes"));
  m_sizes->setPlaceholderText(QStringLiteral("128:4096:x2"));
  m_sizes->setToolTip(tr("FIRST:LAST:STEP, such as 128:4096:x2 or 128:1024:+128, or a list: 512,1024,4096"));
  m_sizes->setMinimumWidth(m_sizes->fontMetrics().averageCharWidth() * kSizesCharacters);
  m_plan->setContentsMargins(6, 0, 0, 0);
  m_plan->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  for (QWidget* widget :
       {static_cast<QWidget*>(m_symbol), static_cast<QWidget*>(m_sizes), static_cast<QWidget*>(m_recipes),
        static_cast<QWidget*>(m_start), static_cast<QWidget*>(m_stop)})
    row->addWidget(widget);
  row->addWidget(m_plan, 1);
  return row;
}

QLayout* SweepPanel::makeState() {
  auto* row = new QHBoxLayout;
  row->setContentsMargins(10, 0, 6, 4);
  row->setSpacing(4);
  m_state->setWordWrap(true);
  m_state->setTextFormat(Qt::RichText);
  m_progress->setFixedWidth(kProgressWidthPx);
  m_progress->setTextVisible(false);
  m_progress->setAccessibleName(tr("Progress of the sweep"));
  for (const auto quantity : {SweepQuantity::Speedup, SweepQuantity::Time, SweepQuantity::OverFirstRecipe})
    m_quantity->addItem(nameOf(quantity), static_cast<int>(quantity));
  m_quantity->setAccessibleName(tr("Chart quantity"));
  row->addWidget(m_progress);
  row->addWidget(m_state, 1);
  row->addWidget(m_quantity);
  addButtons(*row, {m_save, m_copyCommand});
  return row;
}

QWidget* SweepPanel::makeResult() {
  auto* right = new QWidget(m_result);
  auto* layout = new QVBoxLayout(right);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  m_summary->setContentsMargins(10, 4, 10, 6);
  m_summary->setWordWrap(true);
  m_summary->setTextInteractionFlags(Qt::TextSelectableByMouse);
  layout->addWidget(m_view, 1);
  layout->addWidget(m_summary);
  m_result->addWidget(m_chart);
  m_result->addWidget(right);
  m_result->setStretchFactor(0, 2);
  m_result->setStretchFactor(1, 3);
  m_result->setSizes({2 * kSharePx, 3 * kSharePx});
  m_result->setChildrenCollapsible(false);
  return m_result;
}

/// As they are read.
void SweepPanel::orderTabs() {
  QList<QWidget*> order = {m_symbol, m_sizes, m_recipes, m_start, m_stop, m_quantity};
  for (QToolButton* button : findChildren<QToolButton*>(Qt::FindDirectChildrenOnly)) order.append(button);
  order += {m_chart, m_view};
  for (qsizetype i = 1; i < order.size(); ++i) setTabOrder(order[i - 1], order[i]);
}

void SweepPanel::createActions() {
  const auto add = [this](const QString& text, const QString& tip, auto run) {
    auto* action = new QAction(text, this);
    action->setToolTip(tip);
    connect(action, &QAction::triggered, this, run);
    m_view->addAction(action);
    return action;
  };
  m_open = add(tr("Open"), tr("Show the run, with the pipeline as it was measured (Enter)"), [this] {
    if (const auto row = currentRow()) openRow(*row);
  });
  m_save = add(tr("Save as CSV..."), tr("Save the table as CSV, as `fuseline sweep -o` does"), [this] { saveCsv(); });
  m_copyCommand = add(tr("Copy as command"), tr("Copy the command that measures the same in a terminal"),
                      [this] { copyCommand(); });
  m_open->setShortcuts({QKeySequence(Qt::Key_Return), QKeySequence(Qt::Key_Enter)});
  m_open->setShortcutContext(Qt::WidgetShortcut);
}

void SweepPanel::createView() {
  m_sorted->setSourceModel(m_model);
  m_sorted->setSortRole(SweepModel::kSortRole);
  m_view->setModel(m_sorted);
  makeRoomy(*m_view);
  m_view->setRootIsDecorated(false);
  m_view->setAlternatingRowColors(true);
  m_view->setUniformRowHeights(true);
  m_view->setFrameShape(QFrame::NoFrame);
  m_view->setAccessibleName(tr("Points of the sweep"));
  makeCopyable(*m_view);
  m_view->header()->setSectionsMovable(false);
  m_view->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
  m_view->setSortingEnabled(true);
  m_view->sortByColumn(-1, Qt::AscendingOrder);  // as measured
}

void SweepPanel::follow() {
  connect(m_symbol, &QComboBox::activated, this, &SweepPanel::showSizes);
  connect(m_sizes, &QLineEdit::textEdited, this,
          [this](const QString& text) { m_typedSizes[m_symbol->currentText()] = text; });
  connect(m_sizes, &QLineEdit::textChanged, this, &SweepPanel::refreshPlan);
  connect(m_sizes, &QLineEdit::returnPressed, this, [this] {
    if (m_start->isEnabled()) start();
  });
  connect(m_recipes, &RecipeChoice::chosenChanged, this, &SweepPanel::refreshPlan);
  connect(m_start, &QPushButton::clicked, this, &SweepPanel::start);
  connect(m_stop, &QPushButton::clicked, m_sweep, &SweepSession::stop);
  connect(m_quantity, &QComboBox::currentIndexChanged, this, &SweepPanel::refreshPlot);
  connect(m_sweep, &SweepSession::changed, this, &SweepPanel::refreshResult);
  connect(m_sweep, &SweepSession::stalenessChanged, this, &SweepPanel::refreshState);
  connect(&m_session.pipeline(), &OpenPipeline::replaced, this,
          [this] { m_typedSizes.clear(); });  // those of another pipeline
  const auto isCostly = [this] { return isLarge(m_session); };
  auto* seen = new SeenRefresh(*this, isCostly, [this] { refreshChoices(); });
  for (const auto signal : {&OpenPipeline::replaced, &OpenPipeline::changed})
    connect(&m_session.pipeline(), signal, seen, &SeenRefresh::request);
  connect(&m_session.setup(), &RunSetup::runTargetChanged, this, &SweepPanel::refreshChoices);
  connect(&m_session.runner(), &Runner::runningChanged, this, &SweepPanel::refreshPlan);
  connect(&m_session.plan(), &LivePlan::analysisChanged, this,
          [this, isCostly, seen] { isCostly() ? seen->request() : refreshPlan(); });
  connect(&m_theme, &Theme::changed, this, &SweepPanel::refreshState);
  connect(m_chart, &SweepChart::rowChosen, this, &SweepPanel::chooseRow);
  connect(m_chart, &SweepChart::rowOpened, this, &SweepPanel::openRow);
  connect(m_view, &QTreeView::doubleClicked, m_open, &QAction::trigger);
  connect(m_view->selectionModel(), &QItemSelectionModel::currentChanged, this, [this] {
    if (const auto row = currentRow()) m_chart->setCurrentRow(*row);
    refreshActions();
  });
}

// ------------------------------------------------------------------------------------------------------------- choices

void SweepPanel::refreshChoices() {
  const std::vector<SweepSymbol> symbols = sweepSymbols(m_session.pipeline().document());
  const QString chosen = m_symbol->currentText();
  m_symbol->clear();
  for (const SweepSymbol& symbol : symbols) m_symbol->addItem(symbol.name, symbol.sizes);
  m_symbol->setCurrentIndex(std::max(0, m_symbol->findText(chosen)));
  m_symbol->setEnabled(!symbols.empty());
  m_sizes->setEnabled(!symbols.empty());
  m_recipes->setOffered(sweepRecipes(m_session.pipeline().document(), m_session.setup().runTarget()));
  showSizes();
  refreshPlan();
}

/// Shows the sizes last typed for a symbol.
void SweepPanel::showSizes() {
  const QString sizes = m_typedSizes.value(m_symbol->currentText(), m_symbol->currentData().toString());
  if (sizes != m_sizes->text()) m_sizes->setText(sizes);
}

std::optional<ShapeSweep> SweepPanel::chosenSweep() const {
  const Result<std::vector<std::int64_t>> sizes = parseSizes(m_sizes->text().trimmed().toStdString());
  if (!sizes || m_symbol->count() == 0 || m_recipes->chosen().isEmpty()) return std::nullopt;
  return ShapeSweep{.axes = {{.symbol = m_symbol->currentText().toStdString(), .sizes = *sizes}},
                    .recipes = recipeAxis(m_recipes->offered(), m_recipes->chosen(), m_session.pipeline().document())};
}

QString SweepPanel::whyNot() const {
  if (m_symbol->count() == 0) {
    const std::optional<NewSymbol> symbol = leadingExtentAsSymbol(m_session.pipeline().document());
    return symbol
               ? tr("The pipeline has no symbol to sweep. <a href=\"symbol\">Make %1 a symbol</a>").arg(symbol->value)
               : tr("The pipeline has no symbol to sweep. Use one as a size, such as M in the shape of an input.");
  }
  const Result<std::vector<std::int64_t>> sizes = parseSizes(m_sizes->text().trimmed().toStdString());
  if (!sizes) return tr("Sizes: %1").arg(toQt(sizes.error().message));
  if (m_recipes->chosen().isEmpty())
    return tr("No available recipe is selected. Choose a recipe that can run on this device.");
  const Result<void> fits = chosenSweep()->checkSize();
  return fits ? QString() : tr("Sizes: %1").arg(toQt(fits.error().message));
}

void SweepPanel::refreshPlan() {
  const QString problem = whyNot();
  const std::optional<ShapeSweep> sweep = chosenSweep();
  const bool isOtherRunning = m_session.runner().isRunning() && !m_sweep->isRunning();
  QString text = problem;
  if (text.isEmpty() && isOtherRunning) text = tr("A run is in progress. Start the sweep after it has ended.");
  if (text.isEmpty())
    text = counted(static_cast<qsizetype>(sweep->points().size()), tr("point, measured alone"),
                   tr("sizes, measured one after another"));
  m_plan->setText(text);
  m_plan->setToolTip(text);
  m_start->setEnabled(problem.isEmpty() && !m_session.runner().isRunning());
  m_stop->setEnabled(m_sweep->isRunning());
  refreshActions();
}

void SweepPanel::makeSymbol() {
  if (const std::optional<NewSymbol> symbol = leadingExtentAsSymbol(m_session.pipeline().document()))
    m_session.pipeline().apply(symbol->edit);
}

void SweepPanel::start() {
  if (std::optional<ShapeSweep> sweep = chosenSweep()) m_sweep->start(std::move(*sweep));
}

// -------------------------------------------------------------------------------------------------------------- result

void SweepPanel::refreshResult() {
  const std::optional<SweepResult>& result = m_sweep->result();
  result ? m_model->setResult(*result) : m_model->clear();
  const bool hasRows = m_model->rowCount() > 0;
  m_view->setColumnHidden(SweepModel::RecipeColumn, !m_model->hasRecipes());
  m_view->setColumnHidden(SweepModel::NoteColumn, !m_model->hasReasons());
  m_result->setVisible(hasRows);
  m_empty->setVisible(!hasRows);
  m_empty->setText(
      m_sweep->isRunning()
          ? tr("Measuring the first point.")
          : tr("Measures the pipeline fused and unfused at many sizes, and finds the break-even size, above "
               "which fusing is faster. Choose a symbol and sizes, then press Start."));
  QStringList lines;
  if (hasRows)
    for (const SweepLine& line : linesOf(*result)) lines.append(sentenceOf(line, *result));
  m_summary->setText(lines.join(u'\n'));
  refreshPlot();
  refreshState();
  refreshPlan();
}

void SweepPanel::refreshState() {
  const std::optional<SweepResult>& result = m_sweep->result();
  m_progress->setVisible(m_sweep->isRunning());
  m_progress->setRange(0, static_cast<int>(m_sweep->numPoints()));
  m_progress->setValue(m_sweep->isRunning() ? static_cast<int>(result->rows.size()) : 0);
  QStringList parts;
  if (m_sweep->isRunning()) parts.append(m_sweep->progress().toHtmlEscaped());
  if (result && !m_sweep->isRunning())
    parts.append(tr("%1 on %2").arg(toQt(result->pipelineName), toQt(result->deviceName)).toHtmlEscaped());
  if (result && result->sweep.recipes.empty()) parts.append(ownRecipeName(*result).toHtmlEscaped());
  if (!m_sweep->ended().isEmpty())
    parts.append(QStringLiteral("<b>%1</b>").arg(tr("Partial: %1").arg(m_sweep->ended()).toHtmlEscaped()));
  if (m_sweep->isStale())
    parts.append(QStringLiteral("<b style='color:%1'>%2</b>")
                     .arg(m_theme.colors().warning.name(), tr("the pipeline has changed: start again")));
  parts.removeAll(QString());
  m_state->setText(parts.join(QStringLiteral(" · ")));
}

void SweepPanel::refreshPlot() {
  const auto quantity = static_cast<SweepQuantity>(m_quantity->currentData().toInt());
  const bool hasRows = m_sweep->result() && !m_sweep->result()->rows.empty();
  m_chart->setPlot(hasRows ? sweepPlot(*m_sweep->result(), quantity) : SweepPlot());
}

void SweepPanel::refreshActions() {
  const bool hasRows = m_model->rowCount() > 0;
  const std::optional<std::size_t> row = currentRow();
  m_open->setEnabled(row && m_model->isMeasured(static_cast<int>(*row)) && !m_session.runner().isRunning());
  m_save->setEnabled(hasRows);
  m_copyCommand->setEnabled(hasRows);
}

std::optional<std::size_t> SweepPanel::currentRow() const {
  const QModelIndex index = m_sorted->mapToSource(m_view->currentIndex());
  return index.isValid() ? std::optional(static_cast<std::size_t>(index.row())) : std::nullopt;
}

void SweepPanel::chooseRow(std::size_t row) {
  const int column = std::max(0, m_view->currentIndex().column());
  m_view->setCurrentIndex(m_sorted->mapFromSource(m_model->index(static_cast<int>(row), column)));
}

void SweepPanel::openRow(std::size_t row) {
  if (!m_model->isMeasured(static_cast<int>(row)) || m_session.runner().isRunning()) return;
  const Result<QString> path = m_sweep->writeRun(row);
  path ? Q_EMIT openWanted(*path) : Q_EMIT message(toQt(path.error().message));
}

// ------------------------------------------------------------------------------------------------------------- taking

void SweepPanel::saveCsv() {
  const QString path = fileToSave({.purpose = QStringLiteral("export"),
                                   .title = tr("Save the table"),
                                   .patterns = tr("Comma-separated values (*.csv);;All files (*)"),
                                   .pipeline = m_session.pipeline().path(),
                                   .ending = QStringLiteral("csv"),
                                   .name = QFileInfo(m_session.pipeline().displayName()).completeBaseName()},
                                  this);
  if (path.isEmpty()) return;
  const Result<void> saved = m_sweep->saveCsv(path);
  Q_EMIT message(saved ? tr("Table saved to %1.").arg(path) : toQt(saved.error().message));
}

void SweepPanel::copyCommand() {
  const Result<std::string> command = m_sweep->command();
  if (!command) return Q_EMIT message(toQt(command.error().message));
  QGuiApplication::clipboard()->setText(toQt(*command));
  const QString unsaved = m_session.pipeline().isModified() ? tr(" Unsaved changes are not in that file.") : QString();
  Q_EMIT message(tr("Copied: %1").arg(toQt(*command)) + unsaved);
}

}  // namespace fuseline::ui
