// The timings dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timings/timings_panel.h"

#include "core/profile/cold_costs.h"
#include "core/profile/doubts.h"
#include "core/profile/headline.h"
#include "ui/fusions/unplanned.h"
#include "ui/runs/run_notes.h"
#include "ui/session/baselines.h"
#include "ui/theme/format.h"
#include "ui/timings/time_unit_menu.h"
#include "ui/widgets/expression_edit.h"
#include "ui/widgets/roomy_delegate.h"
#include "ui/widgets/table_copying.h"
#include "ui/widgets/text_dialog.h"
#include "ui/widgets/tip_lines.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QMenu>
#include <QPainter>
#include <QScopedValueRollback>
#include <QSettings>
#include <QTextDocumentFragment>
#include <QVBoxLayout>

#include <algorithm>
#include <utility>

namespace fuseline::ui {

namespace {

// In these proportions.
constexpr int kTimingsTablePx = 1000;
constexpr int kSamplesPx = 160;
constexpr int kNarrowPx = 700;
constexpr int kTimingBarPx = 6;
constexpr int kTimingsThriftPx = 5;  // less room than in other tables, so that all columns fit beside each other
constexpr auto kSamplesKey = "timings/showsRounds";
constexpr auto kSizesKey = "timings/sizes";

/// Draws a faint bar behind a time and a line above the totals.
class TimingDelegate : public RoomyDelegate {
 public:
  TimingDelegate(const Theme& theme, QObject* parent) : RoomyDelegate(parent), m_theme(theme) {}

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const double share = index.data(TimingsModel::ShareRole).toDouble();
    if (share > 0) {
      QColor color = index.column() == TimingsModel::FusedColumn ? m_theme.colors().good : m_theme.colors().neutral;
      color.setAlpha(m_theme.isDark() ? 80 : 60);
      QRectF bar = QRectF(option.rect).adjusted(6, 3, -6, -3);
      bar.setWidth(bar.width() * share);
      painter->fillRect(bar, color);
    }
    QStyledItemDelegate::paint(painter, option, index);
    const bool isFirstFooter = index.data(TimingsModel::FooterRole).toBool() &&
                               !index.siblingAtRow(index.row() - 1).data(TimingsModel::FooterRole).toBool();
    if (!isFirstFooter) return;
    painter->setPen(m_theme.colors().border);
    painter->drawLine(option.rect.topLeft(), option.rect.topRight());
  }

  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    // A time's bar needs its own length, in addition to the text on it.
    const bool isTime = index.column() == TimingsModel::UnfusedColumn || index.column() == TimingsModel::FusedColumn;
    return RoomyDelegate::sizeHint(option, index) + QSize(isTime ? kTimingBarPx : -kTimingsThriftPx, 0);
  }

 private:
  const Theme& m_theme;
};

QString environmentText(const RunRecord& record) {
  QStringList parts = {TimingsPanel::tr("measured by: %1").arg(toQt(record.createdWith))};
  for (const auto& [name, value] : record.environment) {
    parts.append(QStringLiteral("%1: %2").arg(toQt(name), toQt(value)));
  }
  parts.append(TimingsPanel::tr("steps timed by: %1").arg(toQt(nameOf(record.settings.timing))));
  for (const std::string& sentence : {record.timingNote, cachesText(record), firstRunText(record)})
    if (!sentence.empty()) parts.append(toQt(sentence));
  for (const VariantRecord& variant : record.variants)
    if (!variant.launching.empty())
      parts.append(TimingsPanel::tr("launches of %1: %2").arg(toQt(variant.name), toQt(variant.launching)));
  return parts.join(u'\n');
}

/// "train · with M = 8192 · 40 rounds, interleaved · ...".
QString settingsText(const LastRun& run) {
  const VariantRecord* fused = run.record.variant("fused");
  const auto numRounds = fused ? fused->endToEndNs.size() : 0;
  QStringList parts = {toQt(nameOf(run.record.settings.pass))};
  if (run.origin && !run.origin->changes.isEmpty())
    parts.append(TimingsPanel::tr("with %1").arg(run.origin->changes.join(QStringLiteral(", "))));
  parts.append(
      TimingsPanel::tr("%1, interleaved")
          .arg(counted(static_cast<qsizetype>(numRounds), TimingsPanel::tr("round"), TimingsPanel::tr("rounds"))));
  if (run.record.settings.startsCold) parts.append(TimingsPanel::tr("cold caches"));
  parts.append(TimingsPanel::tr("median ± half the interquartile range"));
  return parts.join(QStringLiteral(" · ")).toHtmlEscaped();
}

/// The headline of the run, and a line below it where ratio and medians disagree; empty where only one plan was
/// measured.
QString endToEndText(const TimingsRow* row) {
  const QString result =
      row ? toQt(headline(row->times)).replace(QStringLiteral(" us"), QStringLiteral(" µs")) : QString();
  if (result.isEmpty()) return {};
  const QString caveat = toQt(headlineCaveat(row->times));
  return QStringLiteral("<b>%1</b>").arg(result.toHtmlEscaped()) +
         (caveat.isEmpty() ? QString() : QStringLiteral("<br>") + caveat.toHtmlEscaped());
}

/// The file of an opened run, and the differences between the measured and the current plan. Two lines at most.
QString originTip(const RunOrigin& origin) {
  if (origin.differingSteps.isEmpty()) return origin.file;
  return origin.file + u'\n' +
         TimingsPanel::tr("Steps that are only in the measured plan or only in the current one: %1")
             .arg(origin.differingSteps.join(QStringLiteral(", ")));
}

/// Properties of the device that explain a time.
QStringList mainFacts(const RunRecord& record) {
  QStringList lines;
  for (const char* name : {"driver", "clocks", "throttled by", "slowed down by"})  // the last: of older programs
    if (const std::string value = record.fact(name); !value.empty())
      lines.append(QStringLiteral("%1: %2").arg(toQt(name), toQt(value)));
  return lines << TimingsPanel::tr("steps timed by: %1").arg(toQt(nameOf(record.settings.timing)));
}

/// Properties of the run: device, libraries, clocks, caches.
QString measurementText(const LastRun& run) {
  QStringList lines;
  for (const std::string& doubt : doubtsOf(run.record)) lines.append(toQt(doubt));
  if (run.origin) lines.append(originTip(*run.origin));
  return (lines << environmentText(run.record)).join(u'\n');
}

std::vector<TableColumns::Column> columnsOfTable() {
  std::vector<TableColumns::Column> columns;
  for (const TimingsColumn& column : timingsColumns())
    columns.push_back({QString::fromLatin1(column.id), column.isShownFirst});
  columns[TimingsModel::FusedColumn].isSortedFirst = true;
  return columns;
}

/// The table over the model that sorts it.
QTreeView* makeView(TimingsOrder& order, TimingsModel& model, QWidget* parent) {
  order.setSourceModel(&model);
  auto* view = new QTreeView(parent);
  makeRoomy(*view);
  view->setModel(&order);
  return view;
}

/// One above the other.
QWidget* makeSide(std::initializer_list<QWidget*> widgets) {
  auto* side = new QWidget;
  auto* column = new QVBoxLayout(side);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(1);
  for (QWidget* widget : widgets) column->addWidget(widget, 1);
  return side;
}

QString shownOf(const std::string& value) { return value.empty() ? QStringLiteral("–") : toQt(value); }

}  // namespace

TimingsPanel::TimingsPanel(Session& session, const Theme& theme, bool isKept, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_theme(theme),
      m_model(new TimingsModel(theme, this)),
      m_order(new TimingsOrder(this)),
      m_view(makeView(*m_order, *m_model, this)),
      m_columns(*m_view, columnsOfTable(), isKept ? QStringLiteral("timings/columns") : QString()),
      m_samples(new SampleView(theme)),
      m_rounds(new RoundComparisonView(theme)),
      m_body(new QSplitter(Qt::Horizontal, this)),
      m_caption(new QLabel(this)),
      m_head(new PaneHead(*m_caption, this)),
      m_baselineBar(new BaselineBar(session.baselines(), theme, isKept, this)),
      m_editNote(new QAction(tr("Edit the &note"), this)),
      m_runAgain(new QPushButton(tr("Run again"), m_head)),
      m_byTime(new QToolButton(m_head)),
      m_showSamples(new QToolButton(m_head)),
      m_empty(new QLabel(this)),
      m_isKept(isKept) {
  createHead();
  createView();
  createBody();
  m_empty->setAlignment(Qt::AlignCenter);
  m_empty->setWordWrap(true);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(m_head);
  layout->addWidget(m_baselineBar);
  layout->addWidget(m_body, 1);
  layout->addWidget(m_empty, 1);
  connect(&session.results(), &LastResults::leaving, this, [this] {
    if (isAncestorOf(QApplication::focusWidget())) commitTypedField();  // a note on one of its steps
  });
  connect(&session.runner(), &Runner::finished, this, &TimingsPanel::refresh);
  connect(&session.baselines(), &Baselines::changed, this, &TimingsPanel::refreshComparison);
  connect(&session.baselines(), &Baselines::pinned, this, &TimingsPanel::showColumn);
  connect(&session.results(), &LastResults::rowNotesChanged, this, &TimingsPanel::refreshNotes);
  connect(m_baselineBar, &BaselineBar::unitChosen, this, [this] {
    m_model->setChangeUnit(m_baselineBar->unit());
    m_columns.refresh();
  });
  connect(&session.pipeline(), &OpenPipeline::replaced, this, &TimingsPanel::refresh);
  connect(&session.pipeline(), &OpenPipeline::changed, this, &TimingsPanel::refreshCaption);
  connect(&session.setup(), &RunSetup::passChanged, this, &TimingsPanel::refreshCaption);
  connect(&session.plan(), &LivePlan::analysisChanged, this, &TimingsPanel::refreshCaption);
  connect(&session.selection(), &Selection::changed, this, &TimingsPanel::showSelection);
  connect(&theme, &Theme::changed, this, &TimingsPanel::refreshCaption);
  connect(&session.runner(), &Runner::runningChanged, this, &TimingsPanel::refreshRunAgain);
  connect(&session.runner(), &Runner::runningChanged, this, &TimingsPanel::refreshEmpty);
  connect(&session.plan(), &LivePlan::analysisChanged, this, &TimingsPanel::refreshRunAgain);
  connect(&session.plan(), &LivePlan::analysisChanged, this, &TimingsPanel::refreshEmpty);
  connect(m_empty, &QLabel::linkActivated, &session, &Session::problemsWanted);
  refresh();
}

void TimingsPanel::setFilter(RunFilter& filter) {
  m_filter = &filter;
  auto* bar = new RunFilterBar(m_session, filter, this);
  m_head->add(*bar->button());
  static_cast<QBoxLayout*>(layout())->insertWidget(1, bar);
  connect(&filter, &RunFilter::changed, this, &TimingsPanel::refreshFilter);
  refreshFilter();
}

void TimingsPanel::refreshFilter() {
  const auto& run = m_session.results().lastRun();
  const bool isFiltered = m_filter && m_filter->isActive() && run;
  m_order->keepOnly(isFiltered ? std::optional(m_filter->keptSteps(*run, graphOfRun(m_session))) : std::nullopt);
  m_view->expandAll();
  m_columns.refresh();
}

/// The caption, and what helps where it warns.
void TimingsPanel::createHead() {
  m_caption->setTextFormat(Qt::RichText);
  m_caption->setWordWrap(true);
  m_caption->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::LinksAccessibleByMouse |
                                     Qt::LinksAccessibleByKeyboard);
  connect(m_caption, &QLabel::linkActivated, this, &TimingsPanel::showMeasurement);
  m_runAgain->setToolTip(tr("Measure the current pipeline (Ctrl+Enter)"));
  connect(m_runAgain, &QPushButton::clicked, &m_session.runner(), &Runner::run);
  m_head->add(*m_runAgain);
  m_head->add(*m_byTime);
  m_head->add(*m_showSamples);
  createOrder();
}

/// The table is sorted by time or, with the button off, in the order of the plan.
void TimingsPanel::createOrder() {
  m_byTime->setText(tr("By time"));
  m_byTime->setToolTip(tr("Longest fused steps first; off: the order of the plan"));
  m_byTime->setCheckable(true);
  const auto refresh = [this] {
    m_byTime->setChecked(m_view->header()->sortIndicatorSection() == TimingsModel::FusedColumn);
  };
  connect(m_view->header(), &QHeaderView::sortIndicatorChanged, m_byTime, refresh);
  connect(m_byTime, &QToolButton::clicked, this, [this](bool isByTime) {
    if (isByTime) return m_view->sortByColumn(TimingsModel::FusedColumn, Qt::DescendingOrder);
    m_view->sortByColumn(-1, Qt::AscendingOrder);
  });
  refresh();
}

/// The table, and the rounds of its row beside it.
void TimingsPanel::createBody() {
  m_body->addWidget(m_view);
  m_body->addWidget(makeSide({m_samples, m_rounds}));
  m_body->setStretchFactor(0, 1);
  m_body->setSizes({kTimingsTablePx, kSamplesPx});
  m_body->setChildrenCollapsible(false);
  m_showSamples->setText(tr("Rounds"));
  m_showSamples->setToolTip(tr("Show the distribution of the row's rounds"));
  m_showSamples->setCheckable(true);
  m_showSamples->setChecked(!m_isKept || QSettings().value(kSamplesKey, true).toBool());
  m_samples->setVisible(m_showSamples->isChecked());
  connect(m_showSamples, &QToolButton::toggled, this, [this](bool isShown) {
    m_samples->setVisible(isShown);
    refreshSamples();
    if (m_isKept) QSettings().setValue(kSamplesKey, isShown);
  });
  if (!m_isKept) return;
  m_body->restoreState(QSettings().value(kSizesKey).toByteArray());
  connect(m_body, &QSplitter::splitterMoved, this, [this] { QSettings().setValue(kSizesKey, m_body->saveState()); });
}

void TimingsPanel::createView() {
  m_view->setItemDelegate(new TimingDelegate(m_theme, m_view));
  m_view->setAlternatingRowColors(true);
  m_view->setUniformRowHeights(true);
  m_view->setSelectionMode(QAbstractItemView::ExtendedSelection);
  m_view->setFrameShape(QFrame::NoFrame);
  m_view->setAccessibleName(tr("Timings"));
  connect(m_view->selectionModel(), &QItemSelectionModel::selectionChanged, this, &TimingsPanel::takeSelection);
  connect(m_view->selectionModel(), &QItemSelectionModel::selectionChanged, this, &TimingsPanel::refreshSamples);
  connect(m_view->selectionModel(), &QItemSelectionModel::currentChanged, this, &TimingsPanel::refreshSamples);
  m_view->setEditTriggers(QAbstractItemView::DoubleClicked);
  m_editNote->setShortcut(QKeySequence(Qt::Key_F2));
  m_editNote->setShortcutContext(Qt::WidgetShortcut);
  m_editNote->setToolTip(tr("Add a note to the step; saved next to the run file"));
  connect(m_editNote, &QAction::triggered, this, &TimingsPanel::editNote);
  connect(m_model, &TimingsModel::noteWanted, &m_session.results(), &LastResults::setRowNote);
  m_model->setChangeUnit(m_baselineBar->unit());
  makeCopyable(*m_view);
  m_view->addAction(m_editNote);
  auto* const units = new TimeUnitMenu(m_isKept, this);
  connect(units, &TimeUnitMenu::unitChanged, this, [this, units] { m_model->setTimeUnit(units->unit()); });
  m_model->setTimeUnit(units->unit());
  m_view->addActions({m_columns.sorter()->menuAction(), m_columns.chooser()->menuAction(), units->menuAction()});
}

void TimingsPanel::refresh() {
  const auto& run = m_session.results().lastRun();
  m_known.clear();
  run ? m_model->setRecord(run->record) : m_model->clear();
  m_body->setVisible(run.has_value());
  m_head->setVisible(run.has_value());
  m_empty->setVisible(!run);
  refreshEmpty();
  refreshFilter();
  refreshComparison();
  showSelection();
  refreshSamples();
}

/// Run is usually the first command; if the pipeline cannot run, link to its errors.
void TimingsPanel::refreshEmpty() {
  const QString whyNot = unmeasurableText(m_session);
  const QString invitation =
      tr("No measurements yet. Press Run (Ctrl+Enter) to measure the unfused and the fused plan.");
  const bool canRun = whyNot.isEmpty() || m_session.plan().isAnalysing();
  m_empty->setText(whileUnmeasured(m_session, canRun ? invitation : whyNot));
}

/// Once for each pair of runs: with many steps it takes a while.
const Result<RunComparison>& TimingsPanel::comparisonWith(const Baseline& baseline) {
  const auto known = m_known.find(baseline.record);
  if (known != m_known.end()) return known->second;
  return m_known.emplace(baseline.record, compareRuns(*baseline.record, m_session.results().lastRun()->record))
      .first->second;
}

/// Compares steps and totals of the fused plan, as `fuseline compare` does.
void TimingsPanel::refreshComparison() {
  const auto& run = m_session.results().lastRun();
  const Baselines& baselines = m_session.baselines();
  std::vector<ComparedBaseline> compared;
  m_comparison.reset();
  for (const Baseline& baseline : baselines.all()) {
    if (!run) break;
    const Result<RunComparison>& comparison = comparisonWith(baseline);
    if (comparison) compared.push_back({baseline, *comparison});
    if (baseline.slot == baselines.reference()->slot) m_comparison = comparison;
  }
  m_model->setComparisons(std::move(compared));
  if (run) m_model->setNotes(run->record);
  m_columns.refresh();
  refreshCaption();
  refreshSamples();
}

/// Shows the column of a newly pinned run, whatever columns were chosen.
void TimingsPanel::showColumn(int slot) { m_columns.choose(TimingsModel::BaselineColumn + slot, true); }

void TimingsPanel::refreshNotes() {
  if (const auto& run = m_session.results().lastRun()) m_model->setNotes(run->record);
  m_columns.refresh();
}

/// The first note has no column yet.
void TimingsPanel::editNote() {
  const QModelIndex note = m_view->currentIndex().siblingAtColumn(TimingsModel::NoteColumn);
  if (!(m_order->flags(note) & Qt::ItemIsEditable)) return;
  m_columns.choose(TimingsModel::NoteColumn, true);
  m_view->setColumnHidden(TimingsModel::NoteColumn, false);
  m_view->setCurrentIndex(note);
  m_view->edit(note);
}

/// A line under the caption: which run is the reference, and what else is not the same.
QString TimingsPanel::baselineText() const {
  const Baseline& baseline = *m_session.baselines().reference();
  const QString name = tr("Baseline %1: <b>%2</b>, measured %3")
                           .arg(baseline.letter(), baseline.name.toHtmlEscaped(),
                                localTimeOf(baseline.record->fact("measured at")).toHtmlEscaped());
  if (!*m_comparison) return name + QStringLiteral(" · ") + toQt(m_comparison->error().message).toHtmlEscaped();
  QStringList others;
  for (const RunComparison::Difference& each : (*m_comparison)->differences)
    if (each.what != "pipeline")
      others.append(QStringLiteral("%1 %2 → %3").arg(toQt(each.what), shownOf(each.base), shownOf(each.next)));
    else
      others.append(tr("another pipeline"));
  if (others.isEmpty()) return name;
  constexpr qsizetype kMostListed = 2;
  const QString text =
      others.size() > kMostListed ? tr("%1 differences").arg(others.size()) : others.join(QStringLiteral(", "));
  return name + QStringLiteral(" · ") + text.toHtmlEscaped();
}

void TimingsPanel::refreshCaption() {
  const auto& run = m_session.results().lastRun();
  if (!run) return;
  const QString details = run->origin ? originText(*run) + QStringLiteral("<br>") + settingsText(*run)
                                      : toQt(run->device).toHtmlEscaped() + QStringLiteral(" · ") + settingsText(*run);
  QStringList parts;
  if (!m_isNarrow) parts.append(details);
  if (run->record.isPartial) parts.append(QStringLiteral("<b>%1</b>").arg(tr("stopped early: partial result")));
  const QString warn = QStringLiteral("<b style='color:%1'>%2</b>").arg(m_theme.colors().warning.name());
  const std::vector<std::string> doubts = doubtsOf(run->record);
  if (!doubts.empty()) parts.append(warn.arg(tr("Unreliable: %1").arg(toQt(doubts.front()).toHtmlEscaped())));
  parts.append(QStringLiteral("<a href='measurement'>%1</a>").arg(tr("How it was measured")));
  const QString warning = staleText(*run);
  m_model->setStale(!warning.isEmpty());
  m_runAgain->setVisible(!warning.isEmpty());
  if (!warning.isEmpty()) parts.append(warn.arg(warning));
  const QString against = m_comparison ? QStringLiteral("<br>") + baselineText() : QString();
  const QString result = endToEndText(m_model->endToEnd());
  m_caption->setText((result.isEmpty() ? result : result + QStringLiteral("<br>")) + parts.join(QStringLiteral(" · ")) +
                     against);
  QStringList tips;
  if (m_isNarrow) tips.append(QTextDocumentFragment::fromHtml(details).toPlainText());
  for (const std::string& doubt : doubts) tips.append(toQt(doubt));
  if (run->origin) tips.append(originTip(*run->origin));
  m_caption->setToolTip(cappedTip((tips << mainFacts(run->record)).join(u'\n')));
}

/// In a narrow pane the table has the room of the rounds and of the details, which the tip tells.
void TimingsPanel::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  const bool isNarrow = width() < kNarrowPx;
  if (isNarrow == std::exchange(m_isNarrow, isNarrow)) return;
  if (isNarrow) m_wantsSamples = m_showSamples->isChecked();
  {
    const QScopedValueRollback guard(m_isKept, false);  // the user's choice stays
    m_showSamples->setChecked(isNarrow ? false : m_wantsSamples);
  }
  refreshCaption();
}

/// All that the tooltip of the caption leaves out.
void TimingsPanel::showMeasurement() {
  const auto& run = m_session.results().lastRun();
  if (!run) return;
  auto* dialog = new TextDialog(tr("How it was measured"), {}, measurementText(*run), this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->open();
}

/// As the button Run is.
void TimingsPanel::refreshRunAgain() {
  m_runAgain->setEnabled(m_session.plan().analysis()->isRunnable() && !m_session.runner().isRunning());
}

/// The current row, if it is selected or a part of what is; else the first one that is and was launched, or the whole.
const TimingsRow* TimingsPanel::shownRow() const {
  const QItemSelectionModel& selection = *m_view->selectionModel();
  const QModelIndexList selected = selection.selectedRows();
  if (selected.isEmpty()) return m_model->endToEnd();
  const QModelIndex current = selection.currentIndex().siblingAtColumn(0);
  const bool isCurrent = selected.contains(current) || selected.contains(current.parent());
  const auto rowOf = [&](const QModelIndex& index) { return &m_model->rowAt(m_order->mapToSource(index)); };
  if (isCurrent) return rowOf(current);
  const auto launched = std::ranges::find_if(selected, [&](const auto& index) { return !rowOf(index)->times.isView; });
  return rowOf(launched == selected.end() ? selected.front() : *launched);
}

void TimingsPanel::refreshSamples() {
  const auto& run = m_session.results().lastRun();
  const TimingsRow* row = run ? shownRow() : nullptr;
  m_samples->setPlot(row ? samplePlot(run->record, *row) : SamplePlot());
  refreshRounds(row);
}

void TimingsPanel::refreshRounds(const TimingsRow* row) {
  const Baseline* reference = m_session.baselines().reference();
  const bool isShown = row && reference && m_showSamples->isChecked();
  m_rounds->setVisible(isShown);
  m_samples->parentWidget()->setVisible(m_showSamples->isChecked());
  if (isShown) m_rounds->setComparison(compareRoundsOf(m_session.results().lastRun()->record, *reference, *row));
}

void TimingsPanel::showSelection() {
  const QScopedValueRollback guard(m_isSyncing, true);
  QItemSelection chosen;
  const auto choose = [&](const QModelIndex& index) {
    const QStringList owners = index.data(TimingsModel::OwnersRole).toStringList();
    const bool isChosen =
        std::ranges::any_of(owners, [&](const QString& id) { return m_session.selection().ids().contains(id); });
    if (isChosen) chosen.select(index, index.siblingAtColumn(TimingsModel::ColumnCount - 1));
  };
  for (int row = 0; row < m_order->rowCount(); ++row) choose(m_order->index(row, 0));
  m_view->selectionModel()->select(chosen, QItemSelectionModel::ClearAndSelect);
  if (!chosen.isEmpty()) m_view->scrollTo(chosen.indexes().front());
}

void TimingsPanel::takeSelection() {
  if (m_isSyncing) return;
  const QScopedValueRollback guard(m_isSyncing, true);
  QSet<QString> ids;
  for (const QModelIndex& index : m_view->selectionModel()->selectedRows()) {
    for (const QString& owner : index.data(TimingsModel::OwnersRole).toStringList()) ids.insert(owner);
  }
  if (!ids.isEmpty()) m_session.selection().select(ids);
}

QString TimingsPanel::asText() const { return tableText(*m_view); }

}  // namespace fuseline::ui
