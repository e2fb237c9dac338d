// Sweeps: what is offered, how points are measured one after the other, and what chart and table say of them.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/apply_edit.h"
#include "core/support/atomic_file.h"
#include "core/worker/protocol.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/runs/run_bar.h"
#include "ui/theme/format.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QSignalSpy>
#include <QTest>

#include <algorithm>
#include <fstream>

namespace fuseline::ui::sweep_test {

class SweepTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  // Choices.
  void offersSymbolsWithSizesAroundTheirOwn();
  void offersTheRecipeOfThePipelineOnce();
  void saysWhichRecipesTheDeviceCannotRun();
  void namesRecipesOnlyWhereTheyAreAnAxis();
  void namesTheProblemWithTheSizes();
  void aNumberBecomesASymbol();
  // How it is drawn.
  void axesHaveRoundNumbers();
  void plotsSpeedupsWithIntervalsAndBreakEven();
  void plotsTimesOfBothPlans();
  void plotsRecipesOverTheFirst();
  void keysWalkTheChartAndTheTableFollows();
  // How it is measured.
  void measuresOnePointAfterTheOther();
  void theLastRunAndTheListOfRunsStay();
  void aPointThatFailsIsARowAndTheNextOneIsMeasured();
  void aLostDeviceEndsIt();
  void stoppingKeepsMeasuredPoints();
  void theWorkerIsStopped();
  void aRecipeThatQuantizesNothingIsNotMeasured();
  void nothingElseRunsMeanwhile();
  void anotherPipelineEndsAndForgetsIt();
  void changesOfThePipelineMakeItStaleButThoseOfItsAxesDoNot();
  // Results that can be taken out.
  void theTableIsSortedAndCopied();
  void isSavedAndRepeatedAsTheCommandLineDoes();
  void opensTheRunOfARowAndStays();
};

namespace {

constexpr int kPatienceMs = 60'000;
constexpr std::size_t kRounds = 10;

using Samples = std::vector<double>;

/// Rounds that all took as long.
RunRecord runOf(double unfusedNs, double fusedNs) {
  RunRecord record{.pipelineName = "small"};
  record.variants = {{.name = "unfused", .endToEndNs = Samples(kRounds, unfusedNs), .peakBytes = 2048, .launches = 5},
                     {.name = "fused", .endToEndNs = Samples(kRounds, fusedNs), .peakBytes = 1024, .launches = 3}};
  record.variants.back().steps = {{.name = "a", .rule = "ForwardLinearBias"},
                                  {.name = "b", .rule = "ForwardLinearBias"}};
  return record;
}

SweepRow row(std::int64_t size, const std::string& recipe, double unfusedNs, double fusedNs) {
  return measuredRow({.symbols = {{"M", size}}, .recipe = recipe}, runOf(unfusedNs, fusedNs));
}

/// Without quantization fused is slower at 128, and faster from 256 on.
SweepResult twoRecipes() {
  SweepResult result{.pipelineName = "small",
                     .deviceName = "a CPU",
                     .sweep = {.axes = {{"M", {128, 256, 512}}}, .recipes = {"None", "MXFP8BlockScaling"}},
                     .rows = {}};
  const SweepRow tooSmall{.point = {.symbols = {{"M", 128}}, .recipe = "MXFP8BlockScaling"}, .reason = "Too small."};
  for (const SweepRow& each :
       {row(128, "None", 100, 200), row(256, "None", 400, 200), row(512, "None", 900, 300), tooSmall,
        row(256, "MXFP8BlockScaling", 400, 100), row(512, "MXFP8BlockScaling", 900, 75)})
    addRow(result, each);
  return result;
}

/// A worker that answers its runs with these events, in this order, and says nothing to what comes after the last one.
QStringList answeringWorker(const testing::TemporaryFolder& folder, const std::vector<WorkerEvent>& answers) {
  int number = 0;
  for (const WorkerEvent& answer : answers)
    std::ofstream(folder / ("answer" + std::to_string(++number))) << encode(answer) << '\n';
  return {QStringLiteral("sh"), QStringLiteral("-c"),
          QStringLiteral("n=$(cat '%1/n' 2>/dev/null || echo 0); while read -r request; do case $request in "
                         "*'\"type\":\"run\"'*) n=$((n + 1)); echo $n > '%1/n'; cat '%1/answer'$n 2>/dev/null ;; "
                         "esac; done")
              .arg(toQt((folder / ".").string()))};
}

std::vector<WorkerEvent> results(const std::vector<RunRecord>& records) {
  std::vector<WorkerEvent> events;
  for (const RunRecord& record : records) events.emplace_back(ResultEvent{static_cast<int>(events.size()) + 1, record});
  return events;
}

struct SweepFixture : Fixture {
  explicit SweepFixture(const QStringList& worker = {}) : Fixture(smallPipeline(), worker) {
    window.showPane(QStringLiteral("sweep"));
  }
  SweepPanel& panel() { return window.sweep(); }
  SweepSession& sweep() { return panel().sweep(); }
  bool wait() {
    return QTest::qWaitFor([&] { return !sweep().isRunning(); }, kPatienceMs);
  }
  bool measure(const QString& sizes) {
    named<QComboBox>(panel(), "Symbol")->setCurrentText(QStringLiteral("M"));
    named<QLineEdit>(panel(), "Sizes")->setText(sizes);
    named<QPushButton>(panel(), "Start")->click();
    return wait() && sweep().result();
  }
  const std::vector<SweepRow>& rows() { return sweep().result()->rows; }
};

QStringList realWorker() { return {QStringLiteral(FUSELINE_PROGRAM), QStringLiteral("worker")}; }

}  // namespace

// ------------------------------------------------------------------------------------------------------------- offered

void SweepTest::offersSymbolsWithSizesAroundTheirOwn() {
  PipelineDocument document = parseDocument(smallPipeline()).document;
  QVERIFY(applyEdit(document, SetSymbol{.name = "A", .value = "2*M", .index = 0}).hasValue());
  const std::vector<SweepSymbol> symbols = sweepSymbols(document);
  QCOMPARE(symbols.size(), 3u);
  QCOMPARE(symbols[0].name, QStringLiteral("M"));
  QCOMPARE(symbols[0].sizes, QStringLiteral("2:32:x2"));
  QCOMPARE(symbols[2].name, QStringLiteral("A"));
  QCOMPARE(symbols[2].sizes, QString());
}

void SweepTest::offersTheRecipeOfThePipelineOnce() {
  PipelineDocument document = parseDocument(smallPipeline()).document;
  const auto keys = [&] {
    QStringList each;
    for (const SweepRecipe& recipe : sweepRecipes(document, {})) each.append(recipe.key);
    return each;
  };
  QCOMPARE(keys().size(), static_cast<qsizetype>(builtinRecipes().size()));
  QCOMPARE(keys().front(), QString());  // None is the pipeline's
  QVERIFY(applyEdit(document, SetRecipe{.recipe = {{"name", "MXFP8BlockScaling"}}}).hasValue());
  QCOMPARE(keys().front(), QStringLiteral("None"));
  QVERIFY(!keys().contains(QStringLiteral("MXFP8BlockScaling")));
  QVERIFY(applyEdit(document, SetRecipe{.recipe = {{"name", "DelayedScaling"}, {"margin", 2}}}).hasValue());
  QCOMPARE(keys().size(), static_cast<qsizetype>(builtinRecipes().size()) + 1);
  QVERIFY(keys().contains(QStringLiteral("DelayedScaling")));
  QCOMPARE(keys()[1], QString());
  QVERIFY(applyEdit(document, SetRecipe{.recipe = {{"name", "Nonsense"}}}).hasValue());
  QVERIFY(!sweepRecipes(document, {})[1].whyNot.isEmpty());
}

void SweepTest::saysWhichRecipesTheDeviceCannotRun() {
  SweepFixture f;
  const auto action = [&](const QString& name) {
    const auto actions = f.panel().recipeChoice()->choices().actions();
    return *std::ranges::find_if(actions, [&](const QAction* each) { return each->text().startsWith(name); });
  };
  QVERIFY(action(QStringLiteral("MXFP8"))->isEnabled());  // the CPU emulates it
  action(QStringLiteral("MXFP8"))->trigger();
  QCOMPARE(f.panel().recipeChoice()->chosen(), QStringList({QString(), QStringLiteral("MXFP8BlockScaling")}));
  f.session.setup().setRunTarget({.device = "cuda:0", .architecture = "sm_90"});
  QVERIFY(!action(QStringLiteral("MXFP8"))->isEnabled());
  QVERIFY(action(QStringLiteral("MXFP8"))->toolTip().contains(QStringLiteral("10.0 (sm_100)")));
  QCOMPARE(f.panel().recipeChoice()->chosen(), QStringList({QString()}));
  f.session.setup().setRunTarget({.device = "cpu"});
  QCOMPARE(f.panel().recipeChoice()->chosen().size(), 2);  // what was ticked comes back
}

void SweepTest::namesRecipesOnlyWhereTheyAreAnAxis() {
  PipelineDocument document = parseDocument(smallPipeline()).document;
  const auto axis = [&](const QStringList& chosen) { return recipeAxis(sweepRecipes(document, {}), chosen, document); };
  QVERIFY(axis({QString()}).empty());
  QCOMPARE(axis({QStringLiteral("MXFP8BlockScaling"), QString()}),
           (std::vector<std::string>{"None", "MXFP8BlockScaling"}));
  QVERIFY(applyEdit(document, SetRecipe{.recipe = {{"name", "DelayedScaling"}, {"margin", 2}}}).hasValue());
  QCOMPARE(axis({QString(), QStringLiteral("None")}), (std::vector<std::string>{"None", ""}));
}

void SweepTest::aNumberBecomesASymbol() {
  std::string text = smallPipeline();
  text.replace(text.find("[\"M\", \"H\"]"), 10, "[512, 32]");
  Fixture f(text);
  QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "M", .value = nullptr}));
  QVERIFY(
      f.session.pipeline().apply(SetAttribute{.id = "norm", .name = "normalized_shape", .value = Json::array({32})}));
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "fc", .name = "in_features", .value = 32}));
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "fc", .name = "out_features", .value = 64}));
  QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "H", .value = nullptr}));
  QVERIFY(waitForAnalysis(f.session) && f.session.plan().analysis()->isRunnable());
  const QString plan = f.window.sweep().planText();
  QVERIFY2(plan.contains(QStringLiteral("Make 512 a symbol")), qPrintable(plan));
  const auto labels = f.window.sweep().findChildren<QLabel*>();
  const auto label = std::ranges::find(labels, plan, &QLabel::text);
  QVERIFY(label != labels.end());
  Q_EMIT(*label)->linkActivated(QStringLiteral("symbol"));
  QVERIFY(waitForAnalysis(f.session) && f.session.plan().analysis()->isRunnable());
  QCOMPARE(f.session.pipeline().document().symbols()["M"], Json(512));
  QVERIFY(!f.window.sweep().planText().contains(QStringLiteral("symbol")));
}

void SweepTest::namesTheProblemWithTheSizes() {
  SweepFixture f;
  QCOMPARE(named<QComboBox>(f.panel(), "Symbol")->currentText(), QStringLiteral("M"));
  QCOMPARE(named<QLineEdit>(f.panel(), "Sizes")->text(), QStringLiteral("2:32:x2"));
  QCOMPARE(f.panel().planText(), QStringLiteral("5 sizes, measured one after another"));
  QVERIFY(named<QPushButton>(f.panel(), "Start")->isEnabled());
  named<QLineEdit>(f.panel(), "Sizes")->setText(QStringLiteral("2:32"));
  QCOMPARE(f.panel().planText(), QStringLiteral("Sizes: expected FIRST:LAST:STEP."));
  QVERIFY(!named<QPushButton>(f.panel(), "Start")->isEnabled());
  named<QLineEdit>(f.panel(), "Sizes")->setText(QStringLiteral("1:5000:+1"));
  QCOMPARE(f.panel().planText(), QStringLiteral("Sizes: expected at most 1000 points, found more. Take larger steps."));
  f.session.openText("{}", {});
  QVERIFY(f.panel().planText().startsWith(QStringLiteral("The pipeline has no symbol")));
}

// --------------------------------------------------------------------------------------------------------------- drawn

void SweepTest::axesHaveRoundNumbers() {
  QCOMPARE((LinearRange{0.0, 1.0}).ticks(5), (Samples{0.0, 0.2, 0.4, 2.0 / 10 * 3, 0.8, 1.0}));
  QCOMPARE((LinearRange{0.9, 3.1}).ticks(4), (Samples{1.0, 2.0, 3.0}));
  QCOMPARE((LogRange{8.0, 120.0}).ticks(9), (Samples{10, 20, 50, 100}));
  QCOMPARE((LogRange{8.0, 120.0}).ticks(2), (Samples{10, 100}));
  QVERIFY(isGeometric({128, 256, 512}));
  QVERIFY(!isGeometric({100, 200, 300}));
  QVERIFY(!isGeometric({1, 2}));
}

void SweepTest::plotsSpeedupsWithIntervalsAndBreakEven() {
  const SweepPlot plot = sweepPlot(twoRecipes(), SweepQuantity::Speedup);
  QCOMPARE(plot.series.size(), 2u);
  QCOMPARE(plot.series[0].name, QStringLiteral("No quantization"));
  QCOMPARE(plot.series[0].dots.size(), 3u);
  QCOMPARE(plot.series[0].dots[1].value, 2.0);  // 400 over 200
  QCOMPARE(plot.series[1].dots.size(), 2u);     // one was not measured
  QCOMPARE(plot.series[1].dots[0].row, 4u);
  QCOMPARE(plot.series[0].dots[1].words,
           QStringLiteral("M = 256, No quantization: fused is 2.00 times as fast, 95 % interval 2.00 to 2.00"));
  QVERIFY(plot.series[0].look != plot.series[1].look);
  QCOMPARE(plot.borders.size(), 1u);
  QCOMPARE(plot.borders[0].size, 256.0);
  QCOMPARE(plot.borders[0].text, QStringLiteral("from 256 on"));
  QVERIFY(plot.x.isLogarithmic && !plot.y.isLogarithmic);
  for (const SweepSeries& series : plot.series)
    for (const SweepDot& dot : series.dots)
      for (const double share : {plot.x.shareOf(dot.size), plot.y.shareOf(dot.low), plot.y.shareOf(dot.high)})
        QVERIFY(share > 0.0 && share < 1.0);
  QVERIFY(plot.y.shareOf(1.0) > 0.0 && plot.y.shareOf(1.0) < 1.0);
}

void SweepTest::plotsTimesOfBothPlans() {
  const SweepPlot plot = sweepPlot(twoRecipes(), SweepQuantity::Time);
  QStringList names;
  for (const SweepSeries& series : plot.series) names.append(series.name);
  QCOMPARE(names, QStringList({"No quantization, unfused", "No quantization, fused", "MXFP8BlockScaling, unfused",
                               "MXFP8BlockScaling, fused"}));
  QVERIFY(plot.series[0].isDashed && !plot.series[1].isDashed);
  QCOMPARE(plot.series[0].look, plot.series[1].look);
  QCOMPARE(plot.series[1].dots[0].value, 200.0);
  QVERIFY(plot.borders.empty());
}

void SweepTest::plotsRecipesOverTheFirst() {
  const SweepPlot plot = sweepPlot(twoRecipes(), SweepQuantity::OverFirstRecipe);
  QCOMPARE(plot.series.size(), 1u);
  QCOMPARE(plot.series[0].name, QStringLiteral("MXFP8BlockScaling"));
  QCOMPARE(plot.series[0].look, 1);             // as in the other charts
  QCOMPARE(plot.series[0].dots[1].value, 4.0);  // 300 over 75
  QVERIFY(plot.series[0].dots[1].words.endsWith(QStringLiteral("not interleaved")));
  SweepResult one = twoRecipes();
  one.sweep.recipes = {};
  one.rows.resize(3);
  for (SweepRow& each : one.rows) each.point.recipe.clear();
  QVERIFY(sweepPlot(one, SweepQuantity::OverFirstRecipe).isEmpty());
}

void SweepTest::keysWalkTheChartAndTheTableFollows() {
  const testing::TemporaryFolder folder;
  SweepFixture f(answeringWorker(folder, results({runOf(100, 200), runOf(400, 200), runOf(900, 300)})));
  QVERIFY(f.measure(QStringLiteral("128:512:x2")));
  SweepChart& chart = *f.panel().chart();
  chart.setFocus();
  for (const auto key : {Qt::Key_Right, Qt::Key_Right}) QTest::keyClick(&chart, key);
  QVERIFY(chart.currentDot());
  QCOMPARE(chart.currentDot()->size, 256.0);
  QCOMPARE(f.panel().view()->currentIndex().row(), 1);
  QCOMPARE(chart.accessibleDescription(),
           QStringLiteral("M = 256: fused is 2.00 times as fast, 95 % interval 2.00 to 2.00"));
  QTest::keyClick(&chart, Qt::Key_End);
  QCOMPARE(chart.currentDot()->size, 512.0);
  QTest::keyClick(f.panel().view(), Qt::Key_Up);
  QCOMPARE(chart.currentDot()->size, 256.0);
  const SweepDot& first = chart.plot().series[0].dots[0];
  QTest::mouseClick(&chart, Qt::LeftButton, {}, chart.placeOf(first).toPoint());
  QCOMPARE(f.panel().view()->currentIndex().row(), 0);
  QCOMPARE(chart.wordsAt(chart.placeOf(first)), first.words);
}

// ------------------------------------------------------------------------------------------------------------ measured

void SweepTest::measuresOnePointAfterTheOther() {
  const testing::TemporaryFolder folder;
  SweepFixture f(answeringWorker(folder, results({runOf(100, 200), runOf(400, 200)})));
  QVERIFY(f.measure(QStringLiteral("128,256")));
  QCOMPARE(f.rows().size(), 2u);
  QCOMPARE(f.rows()[1].point.symbols.front().second, 256);
  QVERIFY(!f.sweep().isPartial());
  QCOMPARE(f.sweep().ended(), QString());
  QCOMPARE(f.panel().summary(), QStringLiteral("Fused is faster from M = 256 on; slower at 128."));
}

/// Points are no runs of the pipeline as it stands.
void SweepTest::theLastRunAndTheListOfRunsStay() {
  const testing::TemporaryFolder folder;
  SweepFixture f(answeringWorker(folder, results({measuredRun(), runOf(400, 200)})));
  RunHistory& history = f.window.runs().history();
  f.session.runner().run();
  QVERIFY(QTest::qWaitFor([&] { return f.session.results().lastRun().has_value(); }, kPatienceMs));
  history.waitForDone();
  QCOMPARE(history.entries().size(), 1u);
  QVERIFY(f.measure(QStringLiteral("256")));
  QCOMPARE(f.rows().size(), 1u);
  history.waitForDone();
  QCOMPARE(history.entries().size(), 1u);
  QCOMPARE(f.session.results().lastRun()->record.variant("fused")->endToEndNs.size(), 2u);  // that of the run
}

void SweepTest::aPointThatFailsIsARowAndTheNextOneIsMeasured() {
  const testing::TemporaryFolder folder;
  std::vector<WorkerEvent> answers = results({runOf(1, 1), runOf(400, 200)});
  answers[0] = ErrorEvent{1, {"The plans need more memory.", ErrorKind::RunFailed}};
  SweepFixture f(answeringWorker(folder, answers));
  QVERIFY(f.measure(QStringLiteral("128,256")));
  QCOMPARE(f.rows().size(), 2u);
  QCOMPARE(f.rows()[0].reason, std::string("The plans need more memory."));
  QVERIFY(f.rows()[1].isMeasured());
  QVERIFY(!f.panel().view()->isColumnHidden(SweepModel::NoteColumn));
  const QModelIndex cell = f.panel().model().index(0, SweepModel::UnfusedColumn);
  QCOMPARE(cell.data().toString(), QStringLiteral("not measured"));
  QCOMPARE(cell.data(Qt::ToolTipRole).toString(), QStringLiteral("The plans need more memory."));
  QCOMPARE(f.window.message(), QString());  // the row says it
}

void SweepTest::aLostDeviceEndsIt() {
  const testing::TemporaryFolder folder;
  SweepFixture f(answeringWorker(folder, {ErrorEvent{1, {"An op broke the device.", ErrorKind::RunFailed}, true}}));
  QVERIFY(f.measure(QStringLiteral("128,256")));
  QCOMPARE(f.rows().size(), 1u);
  QVERIFY(f.sweep().isPartial());
  QCOMPARE(f.sweep().ended(),
           QStringLiteral("The device was lost at M=128. Start the sweep again to measure the missing points."));
  QVERIFY(f.panel().stateText().contains(QStringLiteral("Partial")));
  QVERIFY(!f.session.runner().isRunning());
}

void SweepTest::stoppingKeepsMeasuredPoints() {
  const testing::TemporaryFolder folder;
  RunRecord partial = runOf(1, 1);
  partial.isPartial = true;
  SweepFixture f(answeringWorker(folder, results({runOf(100, 200), partial, runOf(1, 1)})));
  QVERIFY(f.measure(QStringLiteral("128,256,512")));
  QCOMPARE(f.rows().size(), 1u);
  QCOMPARE(f.sweep().ended(), QStringLiteral("Stopped after 1 of 3 points. The measured points are kept."));
  QVERIFY(f.panel().stateText().contains(QStringLiteral("Partial")));
}

void SweepTest::theWorkerIsStopped() {
  if (QStringLiteral(FUSELINE_PROGRAM).isEmpty()) QSKIP("The program fuseline is not part of this build.");
  SweepFixture f(realWorker());
  QSignalSpy progress(&f.session.runner(), &Runner::progress);
  QSignalSpy finished(&f.session.runner(), &Runner::finished);
  QSignalSpy failed(&f.session.runner(), &Runner::failed);
  named<QPushButton>(f.panel(), "Start")->click();
  QVERIFY(QTest::qWaitFor([&] { return progress.count() > 0; }, kPatienceMs));
  named<QPushButton>(f.panel(), "Stop")->click();
  QVERIFY(f.wait());
  QVERIFY(f.sweep().isPartial());
  QVERIFY(f.sweep().ended().startsWith(QStringLiteral("Stopped after ")));
  QVERIFY(named<QPushButton>(f.panel(), "Start")->isEnabled());
  QCOMPARE(finished.count() + failed.count(), 0);  // it was no run
}

void SweepTest::aRecipeThatQuantizesNothingIsNotMeasured() {
  const testing::TemporaryFolder folder;
  SweepFixture f(answeringWorker(folder, results({runOf(400, 200)})));
  f.sweep().start({.axes = {{"M", {16}}}, .recipes = {"None", "MXFP8BlockScaling"}});  // blocks have 32 values
  QVERIFY(f.wait());
  QCOMPARE(f.rows().size(), 2u);
  QVERIFY(f.rows()[0].isMeasured());
  QVERIFY2(f.rows()[1].reason.find("32") != std::string::npos, f.rows()[1].reason.c_str());
  named<QComboBox>(f.panel(), "Chart quantity")->setCurrentIndex(2);
  QVERIFY(f.panel().chart()->accessibleDescription().startsWith(QStringLiteral("No comparison")));
}

void SweepTest::nothingElseRunsMeanwhile() {
  const testing::TemporaryFolder folder;
  SweepFixture f(answeringWorker(folder, {}));  // it never answers
  named<QPushButton>(f.panel(), "Start")->click();
  QVERIFY(f.sweep().isRunning());
  QVERIFY(f.session.runner().isRunning());
  QCOMPARE(f.sweep().progress(), QStringLiteral("1 of 5: M=2"));
  QVERIFY(f.panel().stateText().contains(QStringLiteral("1 of 5: M=2")));
  RunBar& bar = *f.window.findChild<RunBar*>();
  QVERIFY(!bar.runAction()->isEnabled() && bar.stopAction()->isEnabled());
  f.session.runner().run();
  QVERIFY(!f.session.results().lastRun());
  QVERIFY(!named<QPushButton>(f.panel(), "Start")->isEnabled() && named<QPushButton>(f.panel(), "Stop")->isEnabled());
  f.session.runner().worker().setCommand({QStringLiteral("no-such-program")});  // ends it without a word
}

void SweepTest::anotherPipelineEndsAndForgetsIt() {
  const testing::TemporaryFolder folder;
  SweepFixture f(answeringWorker(folder, results({runOf(100, 200)})));
  QVERIFY(f.measure(QStringLiteral("128")));
  QVERIFY(f.sweep().result());
  f.session.openText(residualPipeline(false), QStringLiteral("another"));
  QVERIFY(!f.sweep().result());
  QCOMPARE(f.panel().model().rowCount(), 0);
}

void SweepTest::changesOfThePipelineMakeItStaleButThoseOfItsAxesDoNot() {
  const testing::TemporaryFolder folder;
  SweepFixture f(answeringWorker(folder, results({runOf(100, 200)})));
  QVERIFY(f.measure(QStringLiteral("128")));
  const QString words = QStringLiteral("the pipeline has changed");
  QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "M", .value = 64}));
  QVERIFY(!f.sweep().isStale());
  QVERIFY(!f.panel().stateText().contains(words));
  QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "H", .value = 64}));
  QVERIFY(f.sweep().isStale());
  QVERIFY(f.panel().stateText().contains(words));
  f.session.pipeline().undo();
  QVERIFY(!f.sweep().isStale());
  QVERIFY(f.session.pipeline().apply(SetRecipe{.recipe = {{"name", "MXFP8BlockScaling"}}}));
  QVERIFY(f.sweep().isStale());  // recipes were no axis
  f.session.pipeline().undo();
  f.session.setup().setPass(ExecutionMode::Inference);
  QVERIFY(f.sweep().isStale());
}

// --------------------------------------------------------------------------------------------------------------- taken

void SweepTest::theTableIsSortedAndCopied() {
  const testing::TemporaryFolder folder;
  SweepFixture f(answeringWorker(folder, results({runOf(100, 200), runOf(400, 200)})));
  QVERIFY(f.measure(QStringLiteral("128,1024")));
  QTreeView& view = *f.panel().view();
  view.sortByColumn(SweepModel::SizeColumn, Qt::DescendingOrder);
  QCOMPARE(view.model()->index(0, SweepModel::SizeColumn).data().toString(), QStringLiteral("1024"));
  QCOMPARE(view.model()->index(0, SweepModel::FusionsColumn).data().toString(), QStringLiteral("2"));
  QCOMPARE(view.model()->index(0, SweepModel::FusionsColumn).data(Qt::ToolTipRole).toString(),
           QStringLiteral("ForwardLinearBias, 2×"));
  view.setFocus();
  QGuiApplication::clipboard()->clear();
  QTest::keyClick(&view, Qt::Key_C, Qt::ControlModifier);
  QCOMPARE(QGuiApplication::clipboard()->text(),
           QStringLiteral("M\tUnfused\tFused\tSpeed-up\tPeak memory\tFusions\tLaunches\n"
                          "1024\t400 ns ± 0.0 %\t200 ns ± 0.0 %\t2.00×  (2.00 – 2.00)\t2 KiB → 1 KiB\t2\t5 → 3\n"
                          "128\t100 ns ± 0.0 %\t200 ns ± 0.0 %\t0.50×  (0.50 – 0.50)\t2 KiB → 1 KiB\t2\t5 → 3\n"));
}

void SweepTest::isSavedAndRepeatedAsTheCommandLineDoes() {
  const testing::TemporaryFolder folder;
  SweepFixture f(answeringWorker(folder, results({runOf(100, 200), runOf(400, 200), runOf(1, 1)})));
  QVERIFY(!f.sweep().command());
  QVERIFY(f.measure(QStringLiteral("128:512:x2")));
  QVERIFY(f.sweep().command().error().message.find("has not been saved yet") != std::string::npos);
  const QString path = toQt((folder / "small.fuseline").string());
  QVERIFY(f.session.pipeline().save(path));
  QCOMPARE(toQt(*f.sweep().command()), QStringLiteral("fuseline sweep %1 --over M=128:512:x2").arg(path));
  const QString table = toQt((folder / "sweep.csv").string());
  QVERIFY(f.sweep().saveCsv(table).hasValue());
  std::ifstream file(table.toStdString());
  std::string line;
  std::getline(file, line);
  QVERIFY(line.starts_with("M,rounds,unfused_median_ns,"));
  std::getline(file, line);
  QCOMPARE(toQt(line), QStringLiteral("128,10,100,100,100,200,200,200,0.5,0.5,0.5,2048,1024,5,3,\r"));
}

void SweepTest::opensTheRunOfARowAndStays() {
  const testing::TemporaryFolder folder;
  SweepFixture f(answeringWorker(folder, results({measuredRun()})));
  QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "M", .value = 64}));
  f.session.setup().setRunTarget({.device = "reference"});
  QVERIFY(f.session.pipeline().save(toQt((folder / "small.fuseline").string())));
  QVERIFY(f.measure(QStringLiteral("16")));
  f.panel().view()->setCurrentIndex(f.panel().view()->model()->index(0, 0));
  named<QAction>(f.panel(), "Open")->trigger();
  QVERIFY(f.session.results().openedRun());
  QCOMPARE(f.session.pipeline().document().symbols()["M"].get<int>(), 16);  // as it was measured
  QVERIFY(f.sweep().result());
  QVERIFY(!f.sweep().isStale());
  QCOMPARE(f.panel().model().rowCount(), 1);
  QVERIFY(f.window.openFile(toQt((folder / "small.fuseline").string())));  // and back
  QVERIFY(f.sweep().result());
}

FUSELINE_UI_TEST(SweepTest)

}  // namespace fuseline::ui::sweep_test

#include "test_ui_sweep.moc"
