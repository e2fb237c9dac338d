// The table of timings: sorting, the choice of columns and what is kept of it, copying, and runs that are stale.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/timings/run_filter_bar.h"
#include "ui/timings/timings_order.h"
#include "ui/timings/timings_panel.h"

#include <QAbstractItemModelTester>
#include <QHeaderView>
#include <QMenu>
#include <QSettings>

#include <algorithm>

namespace fuseline::ui::timings_test {

class TimingsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void timesOfAColumnHaveOneUnit();
  void furtherColumnsDescribeAStep();
  void theLongestStepComesFirst();
  void rowsAreSortedWithTheirParts();
  void equalRowsKeepTheirOrder();
  void theThirdClickIsTheOrderOfThePlan();
  void columnsAreChosen();
  void columnsWithoutAWordAreNotShown();
  void theKeyboardChoosesAndSorts();
  void theFirstColumnGivesWayAndOthersScroll();
  void aNarrowPaneLeavesTheRoundsOut();
  void inANarrowPaneTheResultHasTheWholeWidth();
  void columnsAreKept();
  void picturesKeepNothing();
  void copiesTheShownTable();
  void theSelectionGoesBothWaysWhenSorted();
  void staleFiguresAreInItalics();
  void aFilterIsOfAllMeasuringPanes();
  void filtersHaveAWayBack();
};

namespace {

using Column = TimingsModel::Column;

StepRecord step(const char* name, std::vector<std::string> ops, double ns, const char* rule = "") {
  return {.name = name,
          .rule = rule,
          .phase = "forward",
          .kernel = "SomeKernel",
          .ops = ops,
          .owners = ops,
          .writes = "[16, 32] bf16",
          .arithmetic = Arithmetic::F32,
          .flops = 2'000'000'000,
          .bytes = 3 * 1024 * 1024,
          .samplesNs = {ns, 1.1 * ns, 1.2 * ns, 1.3 * ns, 1.4 * ns}};
}

/// The small pipeline: norm and then fc with act, which are one step of the fused plan; two more that both plans have.
/// From end to end 9 ms and 7 ms.
RunRecord smallRun() {
  RunRecord record = measuredRun();
  const StepRecord norm = step("norm", {"norm"}, 1e6);
  const StepRecord fc = step("fc", {"fc"}, 3e6);
  const StepRecord act = step("act", {"act"}, 2e6);
  const StepRecord zero = step("zero", {"norm"}, 1e6);
  record.variants = {
      {.name = "unfused", .steps = {norm, act, fc, zero}, .endToEndNs = {9e6, 9e6, 9e6}, .peakBytes = 2048},
      {.name = "fused",
       .steps = {norm, step("Rule(fc, act)", {"fc", "act"}, 4e6, "Rule"), zero},
       .endToEndNs = {7e6, 7e6, 7e6},
       .peakBytes = 1024}};
  return record;
}

/// In the order of the plan.
struct Table : OpenedRun {
  explicit Table(const RunRecord& record = smallRun()) : OpenedRun(record, QStringLiteral("timings")) {
    view().sortByColumn(-1, Qt::AscendingOrder);
  }

  TimingsPanel& panel() { return window.timings(); }
  QTreeView& view() { return *panel().view(); }
  QHeaderView& header() { return *view().header(); }
  bool isShown(Column column) { return !view().isColumnHidden(column); }
  QString cell(int row, Column column, const QModelIndex& parent = {}) {
    return view().model()->index(row, column, parent).data().toString();
  }
  QStringList names(const QModelIndex& parent = {}) {
    QStringList names;
    for (int row = 0; row < view().model()->rowCount(parent); ++row) names.append(cell(row, Column::OpColumn, parent));
    return names;
  }
  /// Names of the steps, which come before the sums.
  QStringList steps() { return names().first(names().indexOf(QStringLiteral("sum of steps"))); }
  void clickHead(Column column) {
    const QPoint place(header().sectionViewportPosition(column) + header().sectionSize(column) / 2, 5);
    QTest::mouseClick(header().viewport(), Qt::LeftButton, {}, place);
  }
};

QAction* actionOf(const QMenu& menu, const QString& text) {
  const QList<QAction*> actions = menu.actions();
  const auto found = std::ranges::find_if(actions, [&](QAction* action) { return action->text().contains(text); });
  return found == actions.end() ? nullptr : *found;
}

}  // namespace

void TimingsTest::timesOfAColumnHaveOneUnit() {
  Table table;
  QVERIFY(table.isOpen);
  const QAbstractItemModel& model = *table.view().model();
  // 7 ms and 9 ms end to end: all times are in ms, also the shorter ones.
  QCOMPARE(model.headerData(Column::FusedColumn, Qt::Horizontal).toString(), QStringLiteral("Fused (ms)"));
  QCOMPARE(table.cell(0, Column::FusedColumn), QStringLiteral("1.20"));
  QCOMPARE(table.cell(1, Column::FusedColumn), QStringLiteral("4.80"));
  // Quartiles of 1, 1.1, 1.2, 1.3, 1.4 are 1.1 and 1.3.
  QCOMPARE(table.cell(0, Column::FusedSpreadColumn), QStringLiteral("8.3"));
  QCOMPARE(model.headerData(Column::BytesColumn, Qt::Horizontal).toString(), QStringLiteral("Saved (MiB)"));
  QCOMPARE(table.cell(1, Column::BytesColumn), QStringLiteral("3.00"));
  const int memory = static_cast<int>(table.names().indexOf(QStringLiteral("Peak memory")));
  QCOMPARE(table.cell(memory, Column::UnfusedColumn), QStringLiteral("2 KiB"));  // no time: it says its unit
}

void TimingsTest::furtherColumnsDescribeAStep() {
  RunRecord record = smallRun();
  record.peaks = DevicePeaks{.copyGBps = 100, .fmaF32Gflops = 1000};
  record.variants[1].timeline.launches = {{.step = 0, .startNs = 5, .durationNs = 2000},
                                          {.step = 1, .durationNs = 1000}};
  Theme theme;
  TimingsModel model(theme);
  const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
  model.setRecord(record);
  const auto cell = [&](Column column) { return model.index(1, column).data().toString(); };
  QCOMPARE(cell(Column::FastestColumn), QStringLiteral("4.00"));
  QCOMPARE(cell(Column::QuartilesColumn), QStringLiteral("0.800"));  // 5.2 - 4.4
  QCOMPARE(cell(Column::ShareColumn), QStringLiteral("66.7"));       // 4.8 of 1.2 + 4.8 + 1.2
  QCOMPARE(cell(Column::HostColumn), QStringLiteral("0.001"));
  QCOMPARE(cell(Column::NumLaunchesColumn), QStringLiteral("1"));
  QCOMPARE(cell(Column::FlopsColumn), QStringLiteral("2.00"));
  QCOMPARE(model.headerData(Column::FlopsColumn, Qt::Horizontal).toString(), QStringLiteral("GFLOP"));
  QCOMPARE(cell(Column::TrafficColumn), QStringLiteral("3.00"));
  QCOMPARE(cell(Column::IntensityColumn), QStringLiteral("636"));       // 2e9 / 3145728
  QCOMPARE(cell(Column::RooflineShareColumn), QStringLiteral("41.7"));  // 2e9 FLOP take 2 ms at least, and took 4.8
  QCOMPARE(cell(Column::WritesColumn), QStringLiteral("[16, 32] bf16"));
  QCOMPARE(cell(Column::KernelColumn), QStringLiteral("SomeKernel"));
  const QModelIndex part = model.index(0, Column::ShareColumn, model.index(1, 0));
  QCOMPARE(part.data().toString(), QStringLiteral("28.6"));  // act: 2.4 of 8.4
  model.setTimeUnit(ColumnUnit{"us", 1e3});
  QCOMPARE(model.headerData(Column::FusedColumn, Qt::Horizontal).toString(), QStringLiteral("Fused (µs)"));
  QCOMPARE(cell(Column::FusedColumn), QStringLiteral("4800"));
}

void TimingsTest::theLongestStepComesFirst() {
  Table table;
  QVERIFY(table.isOpen);
  auto* const byTime = named<QToolButton>(table.panel(), "By time");
  QVERIFY(!byTime->isChecked());
  table.panel().columns().reset();
  QVERIFY(byTime->isChecked());
  QCOMPARE(table.steps(), QStringList({"Rule(fc, act)", "norm", "zero"}));
  byTime->click();
  QCOMPARE(table.steps(), QStringList({"norm", "Rule(fc, act)", "zero"}));
  byTime->click();
  QCOMPARE(table.steps(), QStringList({"Rule(fc, act)", "norm", "zero"}));
}

void TimingsTest::rowsAreSortedWithTheirParts() {
  Table table;
  QVERIFY(table.isOpen);
  const QStringList sums = table.names().mid(table.steps().size());
  QCOMPARE(table.steps(), QStringList({"norm", "Rule(fc, act)", "zero"}));
  const auto parts = [&] {
    return table.names(table.view().model()->index(static_cast<int>(table.steps().indexOf("Rule(fc, act)")), 0));
  };
  QCOMPARE(parts(), QStringList({"act", "fc"}));
  table.view().sortByColumn(Column::UnfusedColumn, Qt::DescendingOrder);
  QCOMPARE(table.steps(), QStringList({"Rule(fc, act)", "norm", "zero"}));
  QCOMPARE(parts(), QStringList({"fc", "act"}));
  QCOMPARE(table.names().mid(table.steps().size()), sums);
  table.view().sortByColumn(Column::UnfusedColumn, Qt::AscendingOrder);
  QCOMPARE(table.steps(), QStringList({"norm", "zero", "Rule(fc, act)"}));
  QCOMPARE(parts(), QStringList({"act", "fc"}));
  QCOMPARE(table.names().mid(table.steps().size()), sums);
}

/// As a second column to sort by.
void TimingsTest::equalRowsKeepTheirOrder() {
  Table table;
  QVERIFY(table.isOpen);
  table.view().sortByColumn(Column::OpColumn, Qt::DescendingOrder);
  QCOMPARE(table.steps(), QStringList({"zero", "Rule(fc, act)", "norm"}));
  table.view().sortByColumn(Column::FusedColumn, Qt::AscendingOrder);
  QCOMPARE(table.steps(), QStringList({"zero", "norm", "Rule(fc, act)"}));
}

void TimingsTest::theThirdClickIsTheOrderOfThePlan() {
  Table table;
  QVERIFY(table.isOpen);
  table.clickHead(Column::FusedColumn);  // what takes long comes first
  QCOMPARE(table.steps(), QStringList({"Rule(fc, act)", "norm", "zero"}));
  table.clickHead(Column::FusedColumn);
  QCOMPARE(table.steps(), QStringList({"norm", "zero", "Rule(fc, act)"}));
  table.clickHead(Column::FusedColumn);
  QCOMPARE(table.steps(), QStringList({"norm", "Rule(fc, act)", "zero"}));
}

void TimingsTest::columnsAreChosen() {
  Table table;
  QVERIFY(table.isOpen);
  TableColumns& columns = table.panel().columns();
  QVERIFY(table.isShown(Column::SpeedupColumn) && !table.isShown(Column::KernelColumn));
  columns.choose(Column::SpeedupColumn, false);
  columns.choose(Column::KernelColumn, true);
  QVERIFY(!table.isShown(Column::SpeedupColumn) && table.isShown(Column::KernelColumn));
  table.header().moveSection(table.header().visualIndex(Column::KernelColumn), 1);
  table.clickHead(Column::FusedColumn);
  columns.reset();
  QVERIFY(table.isShown(Column::SpeedupColumn) && !table.isShown(Column::KernelColumn));
  QCOMPARE(table.header().visualIndex(Column::KernelColumn), static_cast<int>(Column::KernelColumn));
  QCOMPARE(table.steps(), QStringList({"Rule(fc, act)", "norm", "zero"}));
}

void TimingsTest::columnsWithoutAWordAreNotShown() {
  Table table;
  QVERIFY(table.isOpen);
  TableColumns& columns = table.panel().columns();
  columns.choose(Column::HostColumn, true);
  QVERIFY(!table.isShown(Column::HostColumn));
  Q_EMIT columns.chooser()->aboutToShow();
  const QAction* host = actionOf(*columns.chooser(), QStringLiteral("Host"));
  QVERIFY(host && host->isChecked() && host->text().contains(QStringLiteral("not known")));
}

void TimingsTest::theKeyboardChoosesAndSorts() {
  Table table;
  QVERIFY(table.isOpen);
  TableColumns& columns = table.panel().columns();
  QVERIFY(table.view().actions().contains(columns.chooser()->menuAction()));
  QVERIFY(table.view().actions().contains(columns.sorter()->menuAction()));
  Q_EMIT columns.chooser()->aboutToShow();
  actionOf(*columns.chooser(), QStringLiteral("Kernel"))->trigger();
  QVERIFY(table.isShown(Column::KernelColumn));
  const auto sortBy = [&](const char* column) {
    Q_EMIT columns.sorter()->aboutToShow();
    actionOf(*columns.sorter(), QString::fromLatin1(column))->trigger();
  };
  sortBy("Fused (ms)");
  QCOMPARE(table.steps().front(), QStringLiteral("Rule(fc, act)"));
  sortBy("Fused (ms)");
  QCOMPARE(table.steps().back(), QStringLiteral("Rule(fc, act)"));
  sortBy("None (original order)");
  QCOMPARE(table.steps(), QStringList({"norm", "Rule(fc, act)", "zero"}));
}

void TimingsTest::theFirstColumnGivesWayAndOthersScroll() {
  Table table;
  QVERIFY(table.isOpen);
  resizePane(table.panel(), {2000, 300});
  QCOMPARE(table.header().length(), table.view().viewport()->width());
  resizePane(table.panel(), {500, 300});
  QVERIFY(table.header().length() > table.view().viewport()->width());
  QVERIFY(table.isShown(Column::BandwidthColumn));
  table.header().resizeSection(Column::OpColumn, 77);  // as a hand does
  resizePane(table.panel(), {2000, 300});
  QCOMPARE(table.header().sectionSize(Column::OpColumn), 77);
}

void TimingsTest::aNarrowPaneLeavesTheRoundsOut() {
  Table table;
  QVERIFY(table.isOpen);
  auto* const rounds = named<QToolButton>(table.panel(), "Rounds");
  for (const int width : {1200, 600, 1200}) {
    resizePane(table.panel(), {width, 300});
    QCOMPARE(rounds->isChecked(), width == 1200);
  }
}

void TimingsTest::inANarrowPaneTheResultHasTheWholeWidth() {
  Table table;
  QVERIFY(table.isOpen);
  const auto labels = table.panel().findChildren<QLabel*>();
  const auto caption =
      std::ranges::find_if(labels, [&](const QLabel* label) { return label->text() == table.panel().caption(); });
  QVERIFY(caption != labels.end());
  auto* const rounds = named<QToolButton>(table.panel(), "Rounds");
  resizePane(table.panel(), {460, 300});
  QVERIFY((*caption)->width() > 420);
  QVERIFY(rounds->y() >= (*caption)->geometry().bottom());
  resizePane(table.panel(), {1200, 300});
  QVERIFY(rounds->x() > (*caption)->geometry().right());
}

void TimingsTest::columnsAreKept() {
  const OwnSettings settings;
  Theme theme;
  Session session({});
  const auto shownBy = [](const TimingsPanel& panel) { return panel.view()->header(); };
  {
    TimingsPanel panel(session, theme, true);
    panel.columns().choose(Column::KernelColumn, true);
    panel.columns().choose(Column::RooflineColumn, false);
    QHeaderView& header = *shownBy(panel);
    header.moveSection(header.visualIndex(Column::KernelColumn), 1);
    header.resizeSection(Column::OpColumn, 123);
    panel.view()->sortByColumn(Column::UnfusedColumn, Qt::AscendingOrder);
  }
  {
    TimingsPanel panel(session, theme, true);
    const QHeaderView& header = *shownBy(panel);
    QVERIFY(panel.columns().isChosen(Column::KernelColumn) && !panel.columns().isChosen(Column::RooflineColumn));
    QCOMPARE(header.logicalIndex(1), static_cast<int>(Column::KernelColumn));
    QCOMPARE(header.sectionSize(Column::OpColumn), 123);
    QCOMPARE(header.sortIndicatorSection(), static_cast<int>(Column::UnfusedColumn));
    QCOMPARE(header.sortIndicatorOrder(), Qt::AscendingOrder);
    panel.columns().reset();
  }
  const TimingsPanel panel(session, theme, true);
  QCOMPARE(shownBy(panel)->logicalIndex(1), static_cast<int>(Column::PassColumn));
  QCOMPARE(shownBy(panel)->sortIndicatorSection(), static_cast<int>(Column::FusedColumn));
}

void TimingsTest::picturesKeepNothing() {
  const OwnSettings settings;
  Theme theme;
  Session session({});
  {
    TimingsPanel panel(session, theme);
    panel.columns().choose(Column::KernelColumn, true);
  }
  QVERIFY(QSettings().allKeys().isEmpty());
}

void TimingsTest::copiesTheShownTable() {
  Table table;
  QVERIFY(table.isOpen);
  const auto line = [&](qsizetype number) { return table.panel().asText().split(u'\n')[number].split(u'\t'); };
  QCOMPARE(line(0).first(4), QStringList({"Op", "Pass", "Unfused (ms)", "± %"}));
  QCOMPARE(line(3).first(2), QStringList({"  act", "forward"}));
  table.header().moveSection(table.header().visualIndex(Column::FusedColumn), 1);
  table.panel().columns().choose(Column::PassColumn, false);
  table.clickHead(Column::FusedColumn);
  table.view().collapse(table.view().model()->index(0, 0));
  QCOMPARE(line(0).first(3), QStringList({"Op", "Fused (ms)", "Unfused (ms)"}));
  QCOMPARE(line(1).first(3), QStringList({"Rule(fc, act)", "4.80", "6.00"}));
  QCOMPARE(line(2).first(2), QStringList({"norm", "1.20"}));
}

void TimingsTest::theSelectionGoesBothWaysWhenSorted() {
  Table table;
  QVERIFY(table.isOpen);
  table.view().sortByColumn(Column::FusedColumn, Qt::DescendingOrder);
  const auto selected = [&] {
    QStringList names;
    for (const QModelIndex& index : table.view().selectionModel()->selectedRows())
      names.append(index.data().toString());
    return names;
  };
  table.session.selection().select({QStringLiteral("act")});
  QCOMPARE(selected(), QStringList({"Rule(fc, act)"}));
  table.view().selectionModel()->select(table.view().model()->index(1, 0),
                                        QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
  QCOMPARE(table.session.selection().ids(), QSet<QString>({QStringLiteral("norm")}));
}

void TimingsTest::staleFiguresAreInItalics() {
  Table table(measuredRun());
  QVERIFY(table.isOpen);
  const auto isItalic = [&](Column column) {
    return table.view().model()->index(0, column).data(Qt::FontRole).value<QFont>().italic();
  };
  QVERIFY(!isItalic(Column::FusedColumn));
  QVERIFY(!named<QPushButton>(table.panel(), "Run again")->isVisible());
  table.session.setup().setPass(ExecutionMode::Inference);
  QVERIFY(waitForAnalysis(table.session));
  QVERIFY(isItalic(Column::FusedColumn) && !isItalic(Column::OpColumn));
  QVERIFY(named<QPushButton>(table.panel(), "Run again")->isVisible() &&
          named<QPushButton>(table.panel(), "Run again")->isEnabled());
  QSignalSpy started(&table.session.runner(), &Runner::started);
  QSignalSpy failed(&table.session.runner(), &Runner::failed);  // no worker here
  named<QPushButton>(table.panel(), "Run again")->click();
  QVERIFY(started.size() + failed.size() > 0);
}

/// The sums stay those of the whole run.
void TimingsTest::aFilterIsOfAllMeasuringPanes() {
  RunRecord record = smallRun();
  record.peaks = DevicePeaks{.copyGBps = 4, .fmaF32Gflops = 50};
  Table table(record);
  QVERIFY(table.isOpen);
  QCOMPARE(table.steps(), QStringList({"norm", "Rule(fc, act)", "zero"}));
  auto* filter = table.window.findChild<RunFilter*>();
  QVERIFY(filter);
  filter->add({FilterTerm::Kind::Op, QStringLiteral("act")});
  QCOMPARE(table.steps(), QStringList({"Rule(fc, act)"}));
  QVERIFY(table.names().contains(QStringLiteral("sum of steps")));
  table.window.showPane(QStringLiteral("roofline"));
  QStringList dots;
  for (const RooflineDot& dot : table.window.roofline().view()->plot().dots) dots.append(dot.label);
  QCOMPARE(dots, QStringList({"act", "Rule(fc, act)"}));
  table.window.showPane(QStringLiteral("flame"));
  QStringList boxes;
  for (const FlameBox& box : table.window.flame().view()->boxes()) boxes.append(box.label);
  QVERIFY2(boxes.join(u'|').contains(QStringLiteral("Rule")) && !boxes.contains(QStringLiteral("norm")),
           qPrintable(boxes.join(u'|')));
  const auto bars = table.window.findChildren<RunFilterBar*>();
  QCOMPARE(bars.size(), 6);
  for (const RunFilterBar* bar : bars) QCOMPARE(bar->chips().size(), std::size_t{1});
  bars.front()->chips().front()->click();
  QCOMPARE(table.steps().size(), 3);
}

void TimingsTest::filtersHaveAWayBack() {
  Table table;
  QVERIFY(table.isOpen);
  auto* filter = table.window.findChild<RunFilter*>();
  filter->add({FilterTerm::Kind::Text, QStringLiteral("ZER")});
  QCOMPARE(table.steps(), QStringList({"zero"}));
  filter->add({FilterTerm::Kind::Text, QStringLiteral("norm")});  // one of a kind is enough
  QCOMPARE(table.steps(), QStringList({"norm", "zero"}));
  filter->add({FilterTerm::Kind::Pass, QStringLiteral("backward")});  // of each kind one
  QVERIFY(table.steps().isEmpty());
  filter->goBack();
  QCOMPARE(table.steps(), QStringList({"norm", "zero"}));
  filter->goBack();
  filter->goForward();
  QCOMPARE(table.steps(), QStringList({"norm", "zero"}));
  filter->clear();
  QCOMPARE(table.steps().size(), 3);
  QVERIFY(filter->canGoBack() && !filter->canGoForward());
  table.session.openText(smallPipeline(), QStringLiteral("other"));
  QVERIFY(!filter->canGoBack());
}

FUSELINE_UI_TEST(TimingsTest)

}  // namespace fuseline::ui::timings_test

#include "test_ui_timings.moc"
