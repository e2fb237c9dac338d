// Several ranks in the window: the choice, what wires and the inspector say of a rank's part, runs and their timeline.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_file.h"
#include "core/support/read_file.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/fusions/plan_lanes.h"
#include "ui/runs/run_bar.h"
#include "ui/runs/run_options_dialog.h"
#include "ui/theme/format.h"
#include "ui/timeline/timeline_tracks.h"

#include <QAction>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QGuiApplication>
#include <QLabel>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTest>
#include <QTextDocumentFragment>

#include <algorithm>
#include <csignal>

namespace fuseline::ui::ranks_test {

class RanksTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void wiresShowThePartOfARank();
  void theInspectorShowsPlacementsAndCommunication();
  void thePlanNamesCollectives();
  void editsReadTheSizesOfTheWholeModel();
  void numbersThatCannotShareAreRefusedAsOnTheCommandLine();
  void theDeviceBoxChoosesTheRanks();
  void theRunOptionsChooseTheChunks();
  void aRunHasALaneForEachRankAndOpensAgain();
  void aStoppedRunKeepsItsRoundsAndItsProcess();
  void numericsOfRanksCanBeStopped();
  void aRunWhoseProcessDiesIsASentence();
};

namespace {

constexpr int kPatienceMs = 60'000;

QStringList worker() { return {QStringLiteral(FUSELINE_PROGRAM), QStringLiteral("worker")}; }

/// fc1 is column-, fc2 row-parallel, both with sequence_parallel: x [24, 48], hidden 192.
std::string parallelPipeline() {
  std::string text = *readWholeFile(FUSELINE_SOURCE_DIR "/resources/examples/tensor_parallel_mlp.fuseline", {});
  for (const auto& [from, to] : {std::pair("\"M\": 512", "\"M\": 24"), {"\"H\": 1024", "\"H\": 48"}})
    text.replace(text.find(from), std::string(from).size(), to);
  return text;
}

const LinkItem* wireInto(Fixture& f, const std::string& node) {
  const auto& links = f.window.scene().links();
  const auto found = std::ranges::find_if(links, [&](const LinkItem* item) { return item->link().to.node == node; });
  return found == links.end() ? nullptr : *found;
}

bool setRanks(Fixture& f, int ranks) {
  f.session.setup().setRanks(ranks);
  return waitForAnalysis(f.session);
}

QString inspectorText(Fixture& f) {
  QString text;
  for (const QLabel* label : f.window.inspector().page()->findChildren<QLabel*>())
    text += QTextDocumentFragment::fromHtml(label->text()).toPlainText() + u'\n';
  return text;
}

}  // namespace

void RanksTest::wiresShowThePartOfARank() {
  Fixture f(parallelPipeline());
  QCOMPARE(wireInto(f, "fc1")->labelLines(), QStringList({QStringLiteral("24×48"), QStringLiteral("bf16")}));
  QVERIFY(wireInto(f, "fc1")->communication().empty());
  QVERIFY(setRanks(f, 2));
  QCOMPARE(wireInto(f, "fc1")->labelLines().front(), QStringLiteral("24/2×48"));
  QCOMPARE(wireInto(f, "act")->labelLines().front(), QStringLiteral("24×192/2"));
  QCOMPARE(wireInto(f, "add")->labelLines().front(), QStringLiteral("24/2×48"));

  const std::vector<WireCommunication>& gather = wireInto(f, "fc1")->communication();
  QCOMPARE(gather.size(), std::size_t{1});
  QVERIFY(gather.front().isAtEnd);
  QCOMPARE(gather.front().collective, QStringLiteral("all-gather"));
  const std::vector<WireCommunication>& scatter = wireInto(f, "add")->communication();
  QCOMPARE(scatter.size(), std::size_t{1});
  QVERIFY(!scatter.front().isAtEnd);
  QCOMPARE(scatter.front().collective, QStringLiteral("reduce-scatter"));
  QVERIFY(wireInto(f, "fc2")->communication().empty());
  QVERIFY(wireInto(f, "fc2")->toolTip().contains(QStringLiteral("sharded along axis 1 of [24, 192]")));

  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "fc1", .name = "sequence_parallel", .value = false}));
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "fc2", .name = "sequence_parallel", .value = false}));
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(wireInto(f, "fc1")->labelLines().front(), QStringLiteral("24×48"));
  QVERIFY(wireInto(f, "fc1")->toolTip().contains(QStringLiteral("replicated on 2 ranks")));
  QCOMPARE(wireInto(f, "fc1")->communication().front().collective, QStringLiteral("all-reduce in backward"));
  QCOMPARE(wireInto(f, "add")->communication().front().collective, QStringLiteral("all-reduce"));
}

void RanksTest::theInspectorShowsPlacementsAndCommunication() {
  Fixture f(parallelPipeline());
  QVERIFY(setRanks(f, 2));
  f.session.selection().select({QStringLiteral("fc1")});
  QCoreApplication::processEvents();
  const QString text = inspectorText(f);
  QVERIFY2(text.contains(QStringLiteral("sharded along axis 0 of [192, 48]")), qPrintable(text));  // the weight
  QVERIFY2(text.contains(QStringLiteral("sharded along axis 1 of [24, 192]")), qPrintable(text));  // y
  // Half of 24 x 48 bf16 values.
  QVERIFY2(text.contains(QStringLiteral("all-gather forward, 1.1")), qPrintable(text));
  QVERIFY2(text.contains(QStringLiteral("reduce-scatter backward")), qPrintable(text));
}

void RanksTest::thePlanNamesCollectives() {
  Fixture f(parallelPipeline());
  QVERIFY(setRanks(f, 2));
  const PlanLanes lanes = planLanes(*f.session.plan().analysis(), FusionStage::FusedOperands);
  const auto hasLabel = [](const std::vector<LaneBox>& boxes, const char* label) {
    return std::ranges::any_of(boxes, [&](const LaneBox& box) { return box.label == QLatin1String(label); });
  };
  QVERIFY(hasLabel(lanes.forward, "all-gather") && hasLabel(lanes.backward, "reduce-scatter"));
  QVERIFY(!hasLabel(lanes.forward, "ShardedInput") && !hasLabel(lanes.backward, "ShardedInput"));
}

void RanksTest::editsReadTheSizesOfTheWholeModel() {
  Fixture f(parallelPipeline());
  QVERIFY(setRanks(f, 2));
  const Analysis& analysis = *f.session.plan().analysis();
  QVERIFY(analysis.graph().inputSpecs(analysis.graph().findNode("norm")).front().shape == Shape({12, 48}));
  const Graph& whole = analysis.documentGraph();
  QVERIFY(whole.inputSpecs(whole.findNode("norm")).front().shape == Shape({24, 48}));
}

void RanksTest::numbersThatCannotShareAreRefusedAsOnTheCommandLine() {
  Fixture f(parallelPipeline());
  QVERIFY(setRanks(f, 5));
  const std::vector<Diagnostic>& problems = f.session.plan().analysis()->lowered.diagnostics;
  const auto problem = std::ranges::find(problems, std::string(kPlacementCode), &Diagnostic::code);
  QVERIFY(problem != problems.end());
  QVERIFY(problem->message.find("which 5 ranks cannot share equally; it must be a multiple of 5.") !=
          std::string::npos);
  QVERIFY(!f.session.plan().analysis()->isRunnable());
  QVERIFY(setRanks(f, 3));
  QVERIFY(f.session.plan().analysis()->isRunnable());
  f.session.setup().setRanks(0);
  f.session.setup().setRanks(RunSetup::mostRanks() + 1);
  QCOMPARE(f.session.setup().ranks(), 3);
}

void RanksTest::theDeviceBoxChoosesTheRanks() {
  Fixture f(parallelPipeline());
  QComboBox& box = *named<QComboBox>(f.window, "Ranks");
  QCOMPARE(box.count(), 4);
  box.setCurrentIndex(box.findData(4));
  Q_EMIT box.activated(box.currentIndex());
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(f.session.setup().spec().ranks, 4);
  QVERIFY(f.window.plan().findChild<QLabel*>()->text().endsWith(QStringLiteral("planned for one of 4 ranks")));
  const testing::TemporaryFolder folder;
  QVERIFY(f.session.pipeline().save(toQt((folder / "p.fuseline").string())));
  for (QAction* action : f.window.findChildren<QAction*>())
    if (action->text().remove(u'&') == QStringLiteral("For the shell")) action->trigger();
  QVERIFY(QGuiApplication::clipboard()->text().contains(QStringLiteral(" --ranks 4")));
  f.session.setup().setRanks(3);
  QCOMPARE(box.currentText(), QStringLiteral("3 ranks"));
  QCOMPARE(box.count(), 5);
}

void RanksTest::theRunOptionsChooseTheChunks() {
  Fixture f(parallelPipeline());
  QVERIFY(setRanks(f, 2));
  RunOptionsDialog dialog(f.session.setup().spec());
  const auto hasChunks = [&f] {
    return std::ranges::count(f.session.plan().analysis()->fusedPlan->steps, "fc1.linear.gather [2/2]", &Step::name) >
           0;
  };
  const auto choose = [&](int chunks, bool overlaps) {
    dialog.findChild<QSpinBox*>(QStringLiteral("chunks"))->setValue(chunks);
    dialog.findChild<QCheckBox*>(QStringLiteral("overlaps"))->setChecked(overlaps);
    f.session.setup().setOptions(dialog.options());
    return waitForAnalysis(f.session);
  };
  QVERIFY(!hasChunks());
  QVERIFY(choose(2, true));
  QVERIFY(hasChunks());
  QVERIFY(choose(2, false));
  QVERIFY(!hasChunks());
  QVERIFY(choose(0, true));
  QVERIFY(!hasChunks());  // auto, on the CPU
}

void RanksTest::aRunHasALaneForEachRankAndOpensAgain() {
  if (QStringLiteral(FUSELINE_PROGRAM).isEmpty()) QSKIP("The program fuseline is not part of this build.");
  const testing::TemporaryFolder folder;
  Fixture f(parallelPipeline(), worker());
  f.session.setup().setOptions({.iterations = 3, .ranks = 2, .chunks = 2});
  QVERIFY(waitForAnalysis(f.session));
  QSignalSpy finished(&f.session.runner(), &Runner::finished);
  f.session.runner().run();
  QVERIFY2(QTest::qWaitFor([&] { return finished.count() > 0; }, kPatienceMs), qPrintable(f.window.message()));
  const RunRecord record = f.session.results().lastRun()->record;
  QCOMPARE(record.settings.ranks, 2);
  const std::vector<TimelineTrack> tracks = timelineTracks(record, nullptr);
  QCOMPARE(std::ranges::count(tracks.front().rows, TimelineLevel::RankStep), std::ptrdiff_t{2});
  const auto isGatherOfRank = [](const TimelineItem& item) {
    return item.level == TimelineLevel::RankStep && item.category == "Communication" &&
           item.tip.contains(QStringLiteral("rank 1: "));
  };
  QVERIFY(std::ranges::any_of(tracks.front().items, isGatherOfRank));
  QVERIFY(f.window.timings().asText().contains(QStringLiteral("fc1.linear.gather [2/2]")));
  const TimingsModel& model = f.window.timings().model();
  const auto slowest = [&](int row) { return model.index(row, TimingsModel::SlowestRankColumn).data().toString(); };
  QVERIFY2(slowest(0).contains(QStringLiteral(" %)")) || slowest(1).contains(QStringLiteral(" %)")),
           qPrintable(slowest(0)));
  f.session.setup().setRanks(1);
  QVERIFY(f.session.results().lastRun()->isStale);

  QVERIFY(saveRunRecord(record, folder / "two.fuserun"));
  QVERIFY(f.window.openFile(toQt((folder / "two.fuserun").string())));
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(f.session.setup().ranks(), 2);
  QCOMPARE(f.session.setup().spec().chunks, 2);
  QVERIFY(!f.session.results().lastRun()->isStale);
  RunSpec whole = f.session.setup().spec();
  whole.chunks = 1;
  f.session.setup().setOptions(whole);
  QVERIFY(f.session.results().lastRun()->isStale);
}

void RanksTest::aStoppedRunKeepsItsRoundsAndItsProcess() {
  if (QStringLiteral(FUSELINE_PROGRAM).isEmpty()) QSKIP("The program fuseline is not part of this build.");
  Fixture f(parallelPipeline(), worker());
  f.session.setup().setOptions({.iterations = 100'000, .ranks = 2});
  QVERIFY(waitForAnalysis(f.session));
  Runner& runner = f.session.runner();
  QSignalSpy finished(&runner, &Runner::finished);
  connect(&runner, &Runner::progress, this, [&](const QString&, int done, int total) {
    if (done >= 5 && total > 1000) runner.cancel();
  });
  runner.run();
  QVERIFY2(QTest::qWaitFor([&] { return finished.count() > 0; }, kPatienceMs), qPrintable(f.window.message()));
  QVERIFY(!runner.isRunning());
  const RunRecord& record = f.session.results().lastRun()->record;
  QVERIFY(record.isPartial);
  QCOMPARE(record.settings.ranks, 2);
  QVERIFY(!record.variants.front().endToEndNs.empty());
  QVERIFY(f.window.scene().node("fc1")->look().status == NodeStatus::Stopped);
  const qint64 process = runner.worker().processId();
  QVERIFY(process != 0);

  runner.disconnect(this);
  f.session.setup().setOptions({.iterations = 3, .ranks = 2});
  runner.run();
  QVERIFY2(QTest::qWaitFor([&] { return finished.count() > 1; }, kPatienceMs), qPrintable(f.window.message()));
  QVERIFY(!f.session.results().lastRun()->record.isPartial);
  QCOMPARE(runner.worker().processId(), process);
  QVERIFY(f.window.scene().node("fc1")->look().status == NodeStatus::Measured);
}

void RanksTest::numericsOfRanksCanBeStopped() {
  if (QStringLiteral(FUSELINE_PROGRAM).isEmpty()) QSKIP("The program fuseline is not part of this build.");
  Fixture f(parallelPipeline(), worker());
  QVERIFY(setRanks(f, 2));
  Runner& runner = f.session.runner();
  runner.measureNumerics();
  runner.cancel();
  QVERIFY(QTest::qWaitFor([&] { return !runner.isRunning(); }, kPatienceMs));
  QVERIFY2(!f.window.message().contains(QStringLiteral("did not respond")), qPrintable(f.window.message()));
}

void RanksTest::aRunWhoseProcessDiesIsASentence() {
  if (QStringLiteral(FUSELINE_PROGRAM).isEmpty()) QSKIP("The program fuseline is not part of this build.");
  Fixture f(parallelPipeline(), worker());
  const std::string before = serialize(f.session.pipeline().document());
  QVERIFY(setRanks(f, 2));
  QSignalSpy failed(&f.session.runner(), &Runner::failed);
  f.session.runner().run();
  QVERIFY(QTest::qWaitFor([&] { return f.session.runner().worker().processId() != 0; }, kPatienceMs));
  ::kill(static_cast<pid_t>(f.session.runner().worker().processId()), SIGKILL);
  QVERIFY(QTest::qWaitFor([&] { return failed.count() > 0; }, kPatienceMs));
  QVERIFY(f.window.message().contains(QStringLiteral("pipeline is unchanged")));
  QCOMPARE(serialize(f.session.pipeline().document()), before);
  QCOMPARE(f.session.setup().ranks(), 2);
}

FUSELINE_UI_TEST(RanksTest)

}  // namespace fuseline::ui::ranks_test

#include "test_ui_ranks.moc"
