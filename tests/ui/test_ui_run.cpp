// Runs through a real worker process: results, cancelling, and workers that die.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/export/model/model_import.h"
#include "core/support/atomic_file.h"
#include "core/tensor/safetensors.h"
#include "core/worker/protocol.h"
#include "tests/support/temporary_folder.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/flame/flame_boxes.h"
#include "ui/machines/ask_pass.h"
#include "ui/machines/machine_choice.h"
#include "ui/machines/machine_dialog.h"
#include "ui/machines/ssh_hosts.h"
#include "ui/memory/memory_plot.h"
#include "ui/runs/run_bar.h"
#include "ui/runs/run_options_dialog.h"
#include "ui/session/baselines.h"
#include "ui/session/exports.h"
#include "ui/theme/format.h"

#include <QAction>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QGuiApplication>
#include <QLineEdit>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTest>

#include <algorithm>
#include <csignal>

namespace fuseline::ui::run_test {

class RunTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void showsTheTableOfBothVariants();
  void runsOnTheDeviceThatWasChosen();
  void copiesTheCommandThatRunsTheSame();
  void devicesThatCannotRunAreShownWithTheReason();
  void aMachineIsAddedOnceItWasReached();
  void aMachineThatIsNotReachedGivesTheReason();
  void promptsOfSshAreAnswered();
  void hostsOfTheSshConfigurationAreOffered();
  void runsAsTheOptionsSay();
  void runsWithAnOptimizer();
  void measuresBothPipelinesOfAComparison();
  void bothAreMeasuredOnlyWhereThereIsRoomForABaseline();
  void aRunThatCannotStartIsNotShownAsRunning();
  void aRunTellsGainsAndLeavesThePlan();
  void numericsShowErrorsOnNodesAndOtherRecipes();
  void numericsAreKeptWithTheRun();
  void whatIsTooLargeIsRefusedInWordsOfTheWindow();
  void cancelKeepsMeasuredRounds();
  void aRunWithoutRoundsIsNoResult();
  void emptyPanesSayThatResultsWillCome();
  void aStoppedRunIsNotGreen();
  void stoppedRunDoesNotReplaceACompleteOne();
  void killedWorkerIsASentenceAndTheNextRunStartsAnother();
  void editingWhileRunningMarksTheResultStale();
  void missingWorkerIsASentence();
  void speechlessWorkerIsASentence();
  void failedRunEndsItsWorkerAndTheNextRunStartsAnother();
  void runThatFailsWhileItIsCancelledEndsItsWorker();
  void refusedRunKeepsItsWorker();
  void parametersAreSavedAndTakenBack();
  void parametersAreSavedUnderOriginalNames();
  void tensorsThatDoNotFitAreASentence();
};

namespace {

constexpr int kPatienceMs = 60'000;

QStringList worker() { return {QStringLiteral(FUSELINE_PROGRAM), QStringLiteral("worker")}; }

bool waitFor(QSignalSpy& spy) {
  return QTest::qWaitFor([&] { return spy.count() > 0; }, kPatienceMs);
}

/// A worker that answers every request with this error, or those that match a pattern of the shell, and lives on.
QStringList failingWorker(const testing::TemporaryFolder& folder, ErrorKind kind, const QString& requests = "*") {
  const std::filesystem::path answers = folder / "answers";
  [[maybe_unused]] const auto written = writeFileAtomically(answers, [kind](std::ostream& file) {
    for (int id = 1; id < 9; ++id) file << encode(ErrorEvent{id, {"An op has broken the device.", kind}}) << '\n';
  });
  return {QStringLiteral("sh"), QStringLiteral("-c"),
          QStringLiteral("while read -r request; do case $request in %1) cat '%2' ;; esac; done")
              .arg(requests, toQt(answers.string()))};
}

/// A program in the place of fuseline, and the command of its worker.
QStringList workerOf(const testing::TemporaryFolder& folder, const std::string& script) {
  const std::filesystem::path program = folder / "fuseline";
  [[maybe_unused]] const auto written =
      writeFileAtomically(program, [&](std::ostream& file) { file << "#!/bin/sh\n"
                                                                  << script << '\n'; });
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  return {toQt(program.string()), QStringLiteral("worker")};
}

bool finishTest(MachineDialog& dialog, const QString& host) {
  dialog.host().setText(host);
  dialog.test().click();
  return QTest::qWaitFor([&] { return dialog.host().isEnabled(); }, kPatienceMs);
}

}  // namespace

void RunTest::initTestCase() {
  if (QStringLiteral(FUSELINE_PROGRAM).isEmpty()) QSKIP("The program fuseline is not part of this build.");
}

void RunTest::showsTheTableOfBothVariants() {
  Fixture f(smallPipeline(), worker());
  QSignalSpy finished(&f.session.runner(), &Runner::finished);
  const auto status = [&](const char* op) { return f.window.scene().node(op)->look().status; };
  QVERIFY(status("fc") == NodeStatus::NeverRun && !status("x"));
  f.session.runner().run();
  QVERIFY(f.session.runner().isRunning());
  QVERIFY(status("fc") == NodeStatus::Running);
  QVERIFY2(waitFor(finished), qPrintable(f.window.message()));
  QVERIFY(status("fc") == NodeStatus::Measured);
  QVERIFY(f.window.scene().node("fc")->look().tip.contains("Measured on cpu"));
  QVERIFY(f.session.results().lastRun().has_value());
  QVERIFY(!f.session.results().lastRun()->isStale);
  const TimingsModel& model = f.window.timings().model();
  QVERIFY(model.rowCount() > 4);
  QVERIFY(!model.index(0, TimingsModel::UnfusedColumn).data().toString().isEmpty());
  QVERIFY(f.window.timings().asText().contains(QStringLiteral("Peak memory")));
  QVERIFY(f.session.pipeline().apply(AddOp{.op = {.id = "late", .operation = "Identity"}}));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(status("fc") == NodeStatus::Stale && status("late") == NodeStatus::NeverRun);
}

void RunTest::runsOnTheDeviceThatWasChosen() {
  Fixture f(smallPipeline(), worker());
  f.session.setup().setOptions({.iterations = 3});
  f.session.setup().setRunTarget({.device = "reference", .timing = StepTiming::Cupti});
  QSignalSpy finished(&f.session.runner(), &Runner::finished);
  f.session.runner().run();
  QVERIFY2(waitFor(finished), qPrintable(f.window.message()));
  QCOMPARE(f.session.results().lastRun()->record.settings.device, std::string("reference"));
  QCOMPARE(f.session.results().lastRun()->record.settings.timing, StepTiming::Host);  // it is no GPU
  QVERIFY(!f.session.results().lastRun()->isStale);
  f.session.setup().setRunTarget({.device = "cpu"});
  QVERIFY(f.session.results().lastRun()->isStale);
}

void RunTest::runsAsTheOptionsSay() {
  Fixture f(smallPipeline(), worker());
  f.session.setup().setRunTarget({.device = "reference"});
  RunOptionsDialog dialog(f.session.setup().spec());
  QVERIFY(dialog.options() == (RunSpec{.device = "reference"}));
  dialog.findChild<QSpinBox*>(QStringLiteral("iterations"))->setValue(4);
  dialog.findChild<QSpinBox*>(QStringLiteral("warmup"))->setValue(1);
  auto* seed = dialog.findChild<QLineEdit*>(QStringLiteral("seed"));
  seed->clear();
  QTest::keyClicks(seed, "9x");
  QCOMPARE(dialog.options().seed, std::uint64_t{9});
  dialog.findChild<QCheckBox*>(QStringLiteral("emulates"))->setChecked(true);
  f.session.setup().setOptions(dialog.options());
  QSignalSpy finished(&f.session.runner(), &Runner::finished);
  f.session.runner().run();
  QVERIFY2(waitFor(finished), qPrintable(f.window.message()));
  const RunRecord& record = f.session.results().lastRun()->record;
  QCOMPARE(record.variants.front().endToEndNs.size(), std::size_t{4});
  QCOMPARE(record.settings.warmup, 1);
  QCOMPARE(record.settings.seed, std::uint64_t{9});
  QVERIFY(record.settings.emulates);
}

namespace {

/// The rows under the heading of interleaved measurements.
QStringList measuredRows(const ChangesModel& model) {
  QStringList rows;
  for (int group = 0; group < model.rowCount(); ++group) {
    const QModelIndex parent = model.index(group, 0);
    if (!parent.data().toString().startsWith(QStringLiteral("measured interleaved"))) continue;
    for (int row = 0; row < model.rowCount(parent); ++row) rows.append(model.index(row, 0, parent).data().toString());
  }
  return rows;
}

}  // namespace

void RunTest::runsWithAnOptimizer() {
  Fixture f(smallPipeline(), worker());
  f.session.setup().setRunTarget({.device = "reference"});
  RunOptionsDialog dialog(f.session.setup().spec());
  dialog.findChild<QComboBox*>(QStringLiteral("optimizer"))->setCurrentText(QStringLiteral("adamw"));
  dialog.findChild<QLineEdit*>(QStringLiteral("optimizerFields"))->setText(QStringLiteral("lr=0.01 weight_decay=0"));
  dialog.findChild<QSpinBox*>(QStringLiteral("iterations"))->setValue(1);
  QSignalSpy planned(&f.session.plan(), &LivePlan::analysisChanged);
  f.session.setup().setOptions(dialog.options());
  QVERIFY(waitFor(planned));
  QCOMPARE(f.session.plan().analysis()->fusedPlan->steps.back().name, std::string("AdamW"));
  const MemoryColumn column = memoryPlot(*f.session.plan().analysis(), true).columns.back();
  QVERIFY(column.phase == Phase::Optimizer && column.of(MemoryPurpose::OptimizerState) > 0);
  QSignalSpy finished(&f.session.runner(), &Runner::finished);
  f.session.runner().run();
  QVERIFY2(waitFor(finished), qPrintable(f.window.message()));
  const RunRecord& record = f.session.results().lastRun()->record;
  QCOMPARE(record.settings.optimizerFields, (NamedTextList{{"lr", "0.01"}, {"weight_decay", "0"}}));
  for (const VariantRecord& variant : record.variants) {
    QCOMPARE(variant.steps.back().range(), std::string("AdamW (adamw, optimizer) ") + variant.steps.back().writes);
    const std::vector<FlameBox> boxes = flameBoxes(record, variant, Instances::Apart, nullptr);
    QCOMPARE(std::ranges::count(boxes, QStringLiteral("Optimizer"), &FlameBox::label), 1);
  }
  f.session.setup().setPass(ExecutionMode::Inference);
  QVERIFY(f.session.setup().spec().optimizer == Optimizer::None);
}

void RunTest::measuresBothPipelinesOfAComparison() {
  Fixture f(smallPipeline(), worker());
  f.session.setup().setOptions({.iterations = 3});
  QPushButton& measure = *named<QPushButton>(f.window.changes(), "Measure both");
  QVERIFY(!measure.isEnabled());
  f.window.comparison().start(f.session.pipeline().document(), QStringLiteral("before"));
  QVERIFY(f.session.pipeline().apply(SetBypassed{"act", true}));
  QVERIFY(waitForAnalysis(f.session) && QTest::qWaitFor([&] { return !f.window.comparison().isComparing(); }));
  for (int times = 0; times < 2; ++times) {
    QSignalSpy finished(&f.session.runner(), &Runner::finished);
    QVERIFY2(measure.isEnabled(), qPrintable(measure.toolTip()));
    measure.click();
    QVERIFY(!measure.isEnabled());
    QVERIFY2(waitFor(finished), qPrintable(f.window.message()));
    QCOMPARE(f.session.baselines().all().size(), std::size_t{1});
  }
  QCOMPARE(f.session.baselines().reference()->name, QStringLiteral("before"));
  const QStringList rows = measuredRows(f.window.changes().model());
  QVERIFY2(rows.contains(QStringLiteral("end-to-end time")), qPrintable(rows.join(u'\n')));
  QVERIFY2(rows.filter(QStringLiteral("act")).size() > 0, qPrintable(rows.join(u'\n')));  // its steps are gone
  f.session.pipeline().undo();
  QVERIFY(waitForAnalysis(f.session));
  QTRY_VERIFY(measuredRows(f.window.changes().model()).isEmpty());
}

void RunTest::bothAreMeasuredOnlyWhereThereIsRoomForABaseline() {
  Fixture f(smallPipeline(), worker());
  f.session.setup().setOptions({.iterations = 3});
  QPushButton& measure = *named<QPushButton>(f.window.changes(), "Measure both");
  f.window.comparison().start(f.session.pipeline().document(), QStringLiteral("before"));
  QVERIFY(f.session.pipeline().apply(SetBypassed{"act", true}));
  QVERIFY(waitForAnalysis(f.session) && QTest::qWaitFor([&] { return !f.window.comparison().isComparing(); }));
  for (int number = 1; number < Baselines::kMost; ++number) QVERIFY(f.session.baselines().pin(RunRecord()));
  QVERIFY2(measure.isEnabled(), qPrintable(measure.toolTip()));
  QSignalSpy finished(&f.session.runner(), &Runner::finished);
  QSignalSpy failed(&f.session.runner(), &Runner::failed);
  measure.click();
  QVERIFY(f.session.baselines().pin(RunRecord()));  // while it runs
  QVERIFY(waitFor(finished) && QTest::qWaitFor([&] { return failed.count() > 0; }));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.window.scene().node("fc")->look().status == NodeStatus::Measured);
  QVERIFY(QTest::qWaitFor([&] { return !f.window.comparison().isComparing(); }));
  QVERIFY(!measure.isEnabled());
  QVERIFY2(measure.toolTip().contains(QStringLiteral("Unpin one")), qPrintable(measure.toolTip()));
}

void RunTest::aRunThatCannotStartIsNotShownAsRunning() {
  Fixture f(smallPipeline());
  Q_EMIT f.session.runner().failed(QStringLiteral("The worker could not be started."));
  Q_EMIT f.session.runner().started();  // which comes last where it fails at once
  QVERIFY(f.window.scene().node("fc")->look().status == NodeStatus::NeverRun);
}

void RunTest::aRunTellsGainsAndLeavesThePlan() {
  Fixture f(smallPipeline(), worker());
  const auto plan = [&] {
    return toText(f.session.plan().analysis()->graph(), f.session.plan().analysis()->report.forward);
  };
  const auto numMeasured = [&] {
    return std::ranges::count_if(f.session.plan().analysis()->report.attempts,
                                 [](const Attempt& attempt) { return attempt.measured != nullptr; });
  };
  const std::string before = plan();
  QVERIFY(!f.session.plan().analysis()->report.device.isKnown());
  QSignalSpy finished(&f.session.runner(), &Runner::finished);
  f.session.runner().run();
  QVERIFY2(waitFor(finished), qPrintable(f.window.message()));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.session.plan().analysis()->report.device.isKnown());
  QVERIFY(numMeasured() > 0);
  QCOMPARE(plan(), before);
  const auto measured = numMeasured();
  f.session.selection().select({QStringLiteral("fc")});
  f.window.scene().commands().toggleFusions();  // what a fusion gained is still known when it is off
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(plan() != before);
  QCOMPARE(numMeasured(), measured);
  QVERIFY(f.session.pipeline().apply(SetSymbol{"M", 32}));  // other work
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(numMeasured(), 0);
  QVERIFY(!f.session.plan().analysis()->report.device.isKnown());
}

void RunTest::copiesTheCommandThatRunsTheSame() {
  const testing::TemporaryFolder folder;
  Fixture f(smallPipeline());
  const auto copy = [&](const QString& name) {
    for (QAction* action : f.window.findChildren<QAction*>())
      if (action->text().remove(u'&') == name) action->trigger();
    return QGuiApplication::clipboard()->text();
  };
  QGuiApplication::clipboard()->clear();
  QCOMPARE(copy(QStringLiteral("For the shell")), QString());
  QVERIFY(f.window.message().contains(QStringLiteral("has not been saved yet")));
  const QString path = toQt((folder / "mlp.fuseline").string());
  QVERIFY(f.session.pipeline().save(path));
  f.session.setup().setPass(ExecutionMode::Inference);
  f.session.setup().setRunTarget({.device = "cuda", .architecture = "sm_90", .timing = StepTiming::Cupti});
  QCOMPARE(copy(QStringLiteral("For the shell")),
           QStringLiteral("fuseline run %1 --pass forward --device cuda --timing cupti").arg(path));
  f.session.setup().setRunTarget(
      {.device = "reference", .timing = StepTiming::Cupti});  // a GPU's: Run leaves it out, too
  QCOMPARE(copy(QStringLiteral("For the shell")),
           QStringLiteral("fuseline run %1 --pass forward --device reference").arg(path));
  f.session.setup().setOptions({.replays = false, .startsCold = true, .warmup = 0, .iterations = 20, .seed = 7});
  QCOMPARE(copy(QStringLiteral("For the shell")),
           QStringLiteral("fuseline run %1 --pass forward --device reference --no-replay --cold --warmup 0 "
                          "--iterations 20 --seed 7")
               .arg(path));
  QVERIFY(copy(QStringLiteral("For Nsight Systems")).startsWith(QStringLiteral("nsys profile --trace=cuda,nvtx")));
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "fc", .name = "bias", .value = true}));
  copy(QStringLiteral("For the shell"));
  QVERIFY(f.window.message().endsWith(QStringLiteral("Unsaved changes are not in that file.")));
}

void RunTest::devicesThatCannotRunAreShownWithTheReason() {
  std::vector<std::string> asked;
  Session session({.workerCommand = {}, .capabilitiesOf = [&](const std::string& device) {
                     asked.push_back(device);
                     return Capabilities();
                   }});
  const Theme theme;
  RunBar bar(session, theme);
  bar.setDevices(Json::parse(R"([
    {"id": "cpu", "name": "a CPU", "architecture": "avx2", "canRun": true, "reason": ""},
    {"id": "cuda:0", "name": "a GPU", "architecture": "sm_90", "canRun": true, "reason": ""},
    {"id": "cuda:1", "name": "an old GPU", "architecture": "sm_70", "canRun": false, "reason": "It is too old."},
    {"id": "reference", "name": "double", "architecture": "", "canRun": true, "reason": ""}])"));
  QComboBox& choice = *named<QComboBox>(bar, "Device");
  QCOMPARE(choice.count(), 3);
  QCOMPARE(choice.currentText(), QStringLiteral("cpu: a CPU"));
  QVERIFY(!(choice.model()->index(2, 0).flags() & Qt::ItemIsEnabled));
  QCOMPARE(choice.itemData(2, Qt::ToolTipRole).toString(), QStringLiteral("It is too old."));
  bar.chooseDevice(QStringLiteral("cuda:1"));
  bar.chooseDevice(QStringLiteral("cuda:9"));
  QCOMPARE(session.setup().runTarget(), RunTarget());
  choice.setCurrentIndex(1);
  Q_EMIT choice.activated(1);
  QCOMPARE(session.setup().runTarget(), (RunTarget{.device = "cuda:0", .architecture = "sm_90"}));
  QCOMPARE(asked, (std::vector<std::string>{"cpu", "cuda:0"}));
  bar.chooseDevice(QStringLiteral("cpu"));
  QCOMPARE(session.setup().runTarget().device, std::string("cpu"));
}

void RunTest::aMachineIsAddedOnceItWasReached() {
  const testing::TemporaryFolder folder;
  Session session({.workerCommand = workerOf(folder, R"(case "$*" in
    "devices --json --on=gpu-box") echo '{"devices": [
      {"id": "cuda:0", "name": "NVIDIA H100", "architecture": "sm_90", "memoryBytes": 85899345920, "reason": "",
       "nativeRecipes": ["Float8CurrentScaling"]},
      {"id": "reference", "name": "double", "architecture": "", "reason": ""}]}' ;; *) cat ;; esac)")});
  const Theme theme;
  RunBar bar(session, theme);
  bar.setDevices(Json::parse(R"([{"id": "cpu", "name": "a CPU", "architecture": "avx2", "reason": ""}])"));
  MachineChoice choice(session, bar, false, nullptr);
  QComboBox& box = *named<QComboBox>(bar, "Device");
  QCOMPARE(box.itemText(box.count() - 1), QStringLiteral("Add a machine…"));
  MachineDialog dialog(choice.machines());
  QVERIFY(!dialog.addButton().isEnabled() && !dialog.test().isEnabled());
  QVERIFY(finishTest(dialog, QStringLiteral("gpu-box")));
  QCOMPARE(dialog.devices().count(), 1);
  QVERIFY(dialog.devices().item(0)->text().contains(QStringLiteral("Float8CurrentScaling")));
  dialog.addButton().click();
  const int row = box.findData(QStringLiteral("cuda:0@gpu-box"));
  QCOMPARE(box.itemText(row), QStringLiteral("gpu-box cuda:0: NVIDIA H100"));
  bar.chooseDevice(QStringLiteral("cuda:0@gpu-box"));
  QCOMPARE(session.setup().runTarget(), (RunTarget{.device = "cuda:0", .host = "gpu-box", .architecture = "sm_90"}));
  QCOMPARE(session.runner().worker().command().mid(1), (QStringList{"worker", "--on=gpu-box"}));
  QCOMPARE(box.currentIndex(), row);
  bar.chooseDevice(QStringLiteral("cpu"));
  QCOMPARE(session.runner().worker().command().mid(1), QStringList{"worker"});
  bar.chooseDevice(QStringLiteral("cuda:0@gpu-box"));
  Q_EMIT box.activated(box.findText(QStringLiteral("Remove gpu-box")));
  QVERIFY(choice.machines().all().empty());
  QCOMPARE(box.findData(QStringLiteral("cuda:0@gpu-box")), -1);
  QCOMPARE(box.findText(QStringLiteral("Remove gpu-box")), -1);
  QCOMPARE(session.setup().runTarget().place(), std::string("cpu"));
  QCOMPARE(session.runner().worker().command().mid(1), QStringList{"worker"});
}

void RunTest::promptsOfSshAreAnswered() {
  AskPassDialog secret(QStringLiteral("alice@gpu-box's password: "));
  QVERIFY(secret.secret() && secret.secret()->echoMode() == QLineEdit::Password);
  QTest::keyClicks(secret.secret(), QStringLiteral("open sesame"));
  secret.acceptButton().click();
  QCOMPARE(secret.result(), int{QDialog::Accepted});
  QCOMPARE(secret.answer(), QStringLiteral("open sesame"));
  AskPassDialog question(
      QStringLiteral("ED25519 key fingerprint is SHA256:abc.\nAre you sure you want to continue "
                     "connecting (yes/no/[fingerprint])? "));
  QVERIFY(!question.secret() && !question.acceptButton().isDefault());
  question.acceptButton().click();
  QCOMPARE(question.answer(), QStringLiteral("yes"));
}

/// The syntax is that of ssh_config(5).
void RunTest::hostsOfTheSshConfigurationAreOffered() {
  QCOMPARE(
      hostsIn(QStringLiteral("Host gpu-box  box2\n  HostName 10.0.0.1\nhost=a100\nHost *.lab !bad *\n# Host no\n")),
      QStringList({"gpu-box", "box2", "a100"}));
}

void RunTest::aMachineThatIsNotReachedGivesTheReason() {
  const testing::TemporaryFolder folder;
  Machines machines(workerOf(folder, "echo 'fuseline: box: no host of this name was found.' >&2; exit 4"), false);
  MachineDialog dialog(machines);
  QVERIFY(dialog.test().isDefault());  // Enter tests, until there is something to add
  QVERIFY(finishTest(dialog, QStringLiteral("box")));
  QVERIFY(dialog.test().isDefault());
  QVERIFY(hasLabel(dialog, "box: no host of this name was found."));
  QVERIFY(!dialog.addButton().isEnabled());
}

void RunTest::numericsShowErrorsOnNodesAndOtherRecipes() {
  Fixture f(smallPipeline(), worker());
  QVERIFY(f.session.pipeline().apply(SetRecipe{.recipe = {{"name", "Float8CurrentScaling"}}}));
  QVERIFY(waitForAnalysis(f.session));
  QSignalSpy finished(&f.session.runner(), &Runner::numericsFinished);
  f.session.runner().measureNumerics();
  QVERIFY2(waitFor(finished), qPrintable(f.window.message()));
  NumericsPanel& panel = f.window.numerics();
  QVERIFY(panel.minimumSizeHint().width() < 550);  // it must fit beside the inspector in a small window
  QVERIFY(panel.model().rowCount() > 4);
  const NodeItem& fc = *f.window.scene().node("fc");
  QVERIFY(fc.look().rmsError.has_value());
  QVERIFY(*fc.look().rmsError > 0.005);  // E4M3 has 3 bits behind the point
  QVERIFY(f.window.scene().canvasItems().shown().hasErrors);
  const CopyNumerics* copy = nullptr;
  for (const CopyNumerics& each : f.session.results().lastNumerics()->report.copies)
    if (each.name == "fc.input@rowwise") copy = &each;
  QVERIFY(copy);
  const QString tip = f.window.scene().node("norm")->look().outputs.front().tip;
  QVERIFY2(tip.contains(QStringLiteral("amax %1 · ").arg(formatThreeDigits(copy->losses.amax))), qPrintable(tip));
  QVERIFY2(tip.contains("underflow as e4m3"), qPrintable(tip));
  QCOMPARE(fc.look().inputs.front().tip.section("<br>", -1), tip.section("<br>", -1));

  f.session.selection().select({QStringLiteral("fc")});
  QVERIFY(panel.copies()->currentText().startsWith(QStringLiteral("fc.")));
  panel.copies()->setCurrentText(QStringLiteral("fc.input@rowwise"));
  const QString asRun = panel.lossText();
  QVERIFY2(asRun.contains(QStringLiteral("e4m3")), qPrintable(asRun));
  panel.recipes()->setCurrentText(QStringLiteral("NVFP4BlockScaling"));
  QVERIFY2(panel.lossText().contains(QStringLiteral("e2m1")), qPrintable(panel.lossText()));

  f.window.scene().measured().overlay().choose(HeatMode::Off);
  QVERIFY(!f.window.scene().canvasItems().shown().hasErrors);
  QVERIFY(!f.window.scene().node("fc")->look().rmsError.has_value());
  f.window.scene().measured().overlay().choose(HeatMode::Error);
  QVERIFY(f.window.scene().node("fc")->look().rmsError.has_value());
  f.session.setup().setPass(ExecutionMode::Inference);  // another pipeline than the one that was measured
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.session.results().lastNumerics()->isStale);
  QVERIFY(!f.window.scene().node("fc")->look().rmsError.has_value());
}

/// In either order, and of the same pipeline only.
void RunTest::numericsAreKeptWithTheRun() {
  Fixture f(smallPipeline(), worker());
  f.session.setup().setOptions({.iterations = 3});
  f.session.setup().setRunTarget({.device = "reference"});
  QVERIFY(f.session.pipeline().apply(SetRecipe{.recipe = {{"name", "MXFP8BlockScaling"}}}));
  QVERIFY(waitForAnalysis(f.session));
  QSignalSpy measured(&f.session.runner(), &Runner::numericsFinished);
  QSignalSpy finished(&f.session.runner(), &Runner::finished);
  f.session.runner().measureNumerics();
  QVERIFY2(waitFor(measured), qPrintable(f.window.message()));
  f.session.runner().run();
  QVERIFY2(waitFor(finished), qPrintable(f.window.message()));
  QVERIFY(f.session.results().lastRun()->record.numerics.has_value());
  QCOMPARE(f.session.results().lastRun()->record.numerics->copies.size(),
           f.session.results().lastNumerics()->report.copies.size());
  QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "H", .value = 64}));
  QVERIFY(waitForAnalysis(f.session));
  finished.clear();
  f.session.runner().run();
  QVERIFY2(waitFor(finished), qPrintable(f.window.message()));
  QVERIFY(!f.session.results().lastRun()->record.numerics.has_value());
  measured.clear();
  f.session.runner().measureNumerics();
  QVERIFY2(waitFor(measured), qPrintable(f.window.message()));
  QVERIFY(f.session.results().lastRun()->record.numerics.has_value());
  QVERIFY(!f.session.results().lastNumerics()->isStale);
  f.session.setup().setOptions({.iterations = 3, .seed = 7});
  QVERIFY(f.session.results().lastNumerics()->isStale &&
          !f.session.results().lastRun()->isStale);  // other numbers, the same times
}

void RunTest::parametersAreSavedAndTakenBack() {
  const testing::TemporaryFolder folder;
  const QString file = toQt((folder / "parameters.safetensors").string());
  Fixture f(smallPipeline(), worker());
  const Result<void> saved = parametersWork(f.session, file)();
  QVERIFY2(saved.hasValue(), saved ? "" : saved.error().message.c_str());
  const Result<NamedTensors> ofSeed0 = readSafetensors(folder / "parameters.safetensors");
  f.session.setup().setOptions({.iterations = 3, .seed = 7});
  QVERIFY(parametersWork(f.session, file)().hasValue());
  const Result<NamedTensors> ofSeed7 = readSafetensors(folder / "parameters.safetensors");
  QVERIFY(ofSeed0.hasValue() && ofSeed7.hasValue());
  QVERIFY(!std::ranges::equal(*ofSeed0, *ofSeed7, [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.data == b.second.data;
  }));
  f.session.setup().setTensorsFile(file);
  QSignalSpy finished(&f.session.runner(), &Runner::finished);
  f.session.runner().run();
  QVERIFY2(waitFor(finished), qPrintable(f.window.message()));
  QVERIFY(f.session.results().lastRun().has_value());
}

void RunTest::parametersAreSavedUnderOriginalNames() {
  const testing::TemporaryFolder folder;
  const QString file = toQt((folder / "model.safetensors").string());
  const auto action = [](Fixture& f) {
    for (const QAction* each : f.window.findChildren<QAction*>())
      if (each->text().remove(QLatin1Char('&')).contains(QStringLiteral("original names"))) return each;
    return static_cast<const QAction*>(nullptr);
  };
  Fixture plain(smallPipeline());
  QVERIFY(action(plain) && !action(plain)->isEnabled());
  QVERIFY(!parametersWork(plain.session, file, ParameterNames::Model)().hasValue());
  const Json config = {
      {"model_type", "llama"},  {"vocab_size", 5},          {"hidden_size", 8},         {"intermediate_size", 12},
      {"num_hidden_layers", 2}, {"num_attention_heads", 2}, {"num_key_value_heads", 1}, {"max_position_embeddings", 4}};
  Fixture f(serialize(importModelConfig(config.dump(), "config.json")->document));
  QVERIFY(action(f)->isEnabled());
  const Result<void> saved = parametersWork(f.session, file, ParameterNames::Model)();
  QVERIFY2(saved.hasValue(), saved ? "" : saved.error().message.c_str());
  const Result<NamedTensors> tensors = readSafetensors(folder / "model.safetensors");
  QVERIFY(tensors.hasValue());
  const auto isQuery = [](const auto& each) { return each.first == "model.layers.1.self_attn.q_proj.weight"; };
  QVERIFY(std::ranges::any_of(*tensors, isQuery));
  QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "layers", .value = 1}));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.session.plan().analysis()->isRunnable());
}

void RunTest::tensorsThatDoNotFitAreASentence() {
  const testing::TemporaryFolder folder;
  QVERIFY(writeSafetensors(folder / "other.safetensors", {{"nobody", Tensor::zeros({DType::F32, {1}})}}).hasValue());
  Fixture f(smallPipeline(), worker());
  f.session.setup().setTensorsFile(toQt((folder / "other.safetensors").string()));
  QSignalSpy failed(&f.session.runner(), &Runner::failed);
  f.session.runner().run();
  QVERIFY(waitFor(failed));
  QVERIFY2(f.window.message().contains(QStringLiteral("nobody")), qPrintable(f.window.message()));
}

void RunTest::whatIsTooLargeIsRefusedInWordsOfTheWindow() {
  Fixture f(smallPipeline(), worker());
  QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "M", .value = 100'000'000'000}));
  QVERIFY(waitForAnalysis(f.session));
  QSignalSpy failed(&f.session.runner(), &Runner::failed);
  f.session.runner().run();
  QVERIFY(waitFor(failed));
  const QString message = f.window.message();
  QVERIFY2(message.contains(QStringLiteral("Give its symbols smaller values")), qPrintable(message));
  QVERIFY2(!message.contains(QStringLiteral("--")), qPrintable(message));
  QVERIFY(f.window.scene().node("fc")->look().status == NodeStatus::NeverRun);  // no op is to blame
}

void RunTest::cancelKeepsMeasuredRounds() {
  Fixture f(smallPipeline(), worker());
  QSignalSpy progress(&f.session.runner(), &Runner::progress);
  QSignalSpy finished(&f.session.runner(), &Runner::finished);
  QSignalSpy failed(&f.session.runner(), &Runner::failed);
  f.session.runner().run();
  QVERIFY(waitFor(progress));
  f.session.runner().cancel();
  QVERIFY(QTest::qWaitFor([&] { return finished.count() + failed.count() > 0; }, kPatienceMs));
  QVERIFY(!f.session.runner().isRunning());
}

void RunTest::emptyPanesSayThatResultsWillCome() {
  Fixture f(smallPipeline(), worker());
  f.session.setup().setOptions({.iterations = 3});
  f.session.setup().setRunTarget({.device = "reference"});
  const auto allSay = [&](const char* words) {
    const QString expected = QString::fromLatin1(words);
    return hasLabel(f.window.timings(), words) && f.window.roofline().emptyText().contains(expected) &&
           f.window.timeline().emptyText().contains(expected) && f.window.flame().emptyText().contains(expected);
  };
  QVERIFY(allSay("No measurements yet"));
  QSignalSpy finished(&f.session.runner(), &Runner::finished);
  f.session.runner().run();
  QVERIFY(allSay("Results appear here"));
  QVERIFY(hasLabel(f.window.roofline(), "Results appear here"));
  QVERIFY(waitFor(finished));
}

void RunTest::aRunWithoutRoundsIsNoResult() {
  Fixture f(smallPipeline());
  RunRecord empty = measuredRun();
  empty.isPartial = true;
  for (VariantRecord& variant : empty.variants) variant.endToEndNs.clear();
  QSignalSpy failed(&f.session.runner(), &Runner::failed);
  Q_EMIT f.session.runner().worker().finished(empty, nullptr);
  QVERIFY(!f.session.results().lastRun());
  QVERIFY(failed.count() == 1 && failed.front().front().toString().contains(QStringLiteral("Nothing was measured")));
  QVERIFY(f.window.scene().node("fc")->look().status == NodeStatus::NeverRun);
}

void RunTest::aStoppedRunIsNotGreen() {
  Fixture f(smallPipeline(), worker());
  f.session.setup().setRunTarget({.device = "reference"});
  f.session.setup().setOptions({.iterations = 500});
  QSignalSpy finished(&f.session.runner(), &Runner::finished);
  connect(&f.session.runner(), &Runner::progress, this, [&f](const QString&, int done, int) {
    if (done == 2) f.session.runner().cancel();
  });
  f.session.runner().run();
  QVERIFY(waitFor(finished));
  QVERIFY(f.session.results().lastRun() && f.session.results().lastRun()->record.isPartial);
  QVERIFY(f.window.scene().node("fc")->look().status == NodeStatus::Stopped);
}

void RunTest::stoppedRunDoesNotReplaceACompleteOne() {
  Fixture f(smallPipeline(), worker());
  f.session.setup().setOptions({.iterations = 50});
  f.session.setup().setRunTarget({.device = "reference"});
  QSignalSpy finished(&f.session.runner(), &Runner::finished);
  f.session.runner().run();
  QVERIFY(waitFor(finished));
  const std::vector<double> complete = f.session.results().lastRun()->record.variant("fused")->endToEndNs;
  QVERIFY(complete.size() > 2);
  const auto connection = connect(&f.session.runner(), &Runner::progress, this, [&f](const QString&, int done, int) {
    if (done == 2) f.session.runner().cancel();
  });
  QSignalSpy stopped(&f.session.runner(), &Runner::failed);
  f.session.runner().run();
  QVERIFY(QTest::qWaitFor([&] { return finished.count() > 1 || stopped.count() > 0; }, kPatienceMs));
  disconnect(connection);
  const RunRecord& shown = f.session.results().lastRun()->record;
  QVERIFY(!shown.isPartial);
  if (stopped.count() > 0)
    QCOMPARE(shown.variant("fused")->endToEndNs, complete);  // else it was too fast to be stopped
}

void RunTest::killedWorkerIsASentenceAndTheNextRunStartsAnother() {
  Fixture f(smallPipeline(), worker());
  const std::string before = serialize(f.session.pipeline().document());
  QSignalSpy failed(&f.session.runner(), &Runner::failed);
  f.session.runner().run();
  QVERIFY(QTest::qWaitFor([&] { return f.session.runner().worker().processId() != 0; }, kPatienceMs));
  ::kill(static_cast<pid_t>(f.session.runner().worker().processId()), SIGKILL);
  QVERIFY(waitFor(failed));
  QVERIFY(f.window.message().contains(QStringLiteral("pipeline is unchanged")));
  QVERIFY(f.window.scene().node("fc")->look().status == NodeStatus::Failed);
  QCOMPARE(serialize(f.session.pipeline().document()), before);
  f.session.setup().setOptions({.iterations = 3});
  f.session.setup().setRunTarget({.device = "reference"});
  QSignalSpy finished(&f.session.runner(), &Runner::finished);
  f.session.runner().run();
  QVERIFY(waitFor(finished));
}

void RunTest::editingWhileRunningMarksTheResultStale() {
  Fixture f(smallPipeline(), worker());
  f.session.setup().setOptions({.iterations = 3});
  f.session.setup().setRunTarget({.device = "reference"});
  QSignalSpy finished(&f.session.runner(), &Runner::finished);
  f.session.runner().run();
  QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "H", .value = 48}));
  QVERIFY(waitFor(finished));
  QVERIFY(f.session.results().lastRun()->isStale);
  f.session.pipeline().undo();
  QVERIFY(!f.session.results().lastRun()->isStale);
  QVERIFY(f.session.pipeline().apply(MoveNode{.id = "fc", .position = Position{8, 8}}));
  QVERIFY(!f.session.results().lastRun()->isStale);
}

void RunTest::missingWorkerIsASentence() {
  Fixture f(smallPipeline(), {QStringLiteral("no-such-program")});
  QSignalSpy failed(&f.session.runner(), &Runner::failed);
  f.session.runner().run();
  QVERIFY(waitFor(failed));
  QVERIFY(f.window.message().contains(QStringLiteral("no-such-program")));
}

void RunTest::speechlessWorkerIsASentence() {
  Fixture f(smallPipeline(), {QStringLiteral("cat")});  // answers requests with requests
  QSignalSpy failed(&f.session.runner(), &Runner::failed);
  f.session.runner().run();
  QVERIFY(waitFor(failed));
  QVERIFY(!f.session.runner().isRunning());
}

void RunTest::failedRunEndsItsWorkerAndTheNextRunStartsAnother() {
  const testing::TemporaryFolder folder;
  Fixture f(smallPipeline(), failingWorker(folder, ErrorKind::RunFailed));
  for (int run = 1; run <= 2; ++run) {
    QSignalSpy failed(&f.session.runner(), &Runner::failed);
    f.session.runner().run();
    const qint64 worker = f.session.runner().worker().processId();
    QVERIFY(worker != 0);
    QVERIFY(waitFor(failed));
    QCOMPARE(failed.count(), 1);
    QCOMPARE(failed.front().front().toString(), QStringLiteral("An op has broken the device."));
    QCOMPARE(f.session.runner().worker().processId(), qint64{0});
    QVERIFY(QTest::qWaitFor([&] { return ::kill(static_cast<pid_t>(worker), 0) != 0; }, kPatienceMs));
  }
}

/// The fault of a device comes up when it is waited for, which a cancelled run does as well.
void RunTest::runThatFailsWhileItIsCancelledEndsItsWorker() {
  const testing::TemporaryFolder folder;
  Fixture f(smallPipeline(), failingWorker(folder, ErrorKind::RunFailed, QStringLiteral("*cancel*")));
  QSignalSpy failed(&f.session.runner(), &Runner::failed);
  f.session.runner().run();
  f.session.runner().cancel();
  QVERIFY(waitFor(failed));
  QCOMPARE(failed.front().front().toString(), QStringLiteral("An op has broken the device."));
  QCOMPARE(f.session.runner().worker().processId(), qint64{0});
}

void RunTest::refusedRunKeepsItsWorker() {
  const testing::TemporaryFolder folder;
  Fixture f(smallPipeline(), failingWorker(folder, ErrorKind::NoDevice));
  QSignalSpy failed(&f.session.runner(), &Runner::failed);
  f.session.runner().run();
  QVERIFY(waitFor(failed));
  QVERIFY(f.session.runner().worker().processId() != 0);
}

FUSELINE_UI_TEST(RunTest)

}  // namespace fuseline::ui::run_test

#include "test_ui_run.moc"
