// Runs through a real worker process: results, cancelling, and workers that die.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/safetensors.h"
#include "tests/support/temporary_folder.h"
#include "tests/ui/ui_test_support.h"
#include "ui/theme/format.h"

#include <QSignalSpy>
#include <QTest>

#include <csignal>

namespace fuseline::ui {

class RunTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void showsTheTableOfBothVariants();
  void numericsShowErrorsOnNodesAndOtherRecipes();
  void cancelKeepsWhatWasMeasured();
  void killedWorkerIsASentenceAndTheNextRunStartsAnother();
  void editingWhileRunningMarksTheResultStale();
  void missingWorkerIsASentence();
  void speechlessWorkerIsASentence();
  void parametersAreSavedAndTakenBack();
  void tensorsThatDoNotFitAreASentence();
};

namespace {

constexpr int kPatienceMs = 60'000;

QStringList worker() { return {QStringLiteral(FUSELINE_PROGRAM), QStringLiteral("worker")}; }

bool waitFor(QSignalSpy& spy) {
  return QTest::qWaitFor([&] { return spy.count() > 0; }, kPatienceMs);
}

}  // namespace

void RunTest::initTestCase() {
  if (QStringLiteral(FUSELINE_PROGRAM).isEmpty()) QSKIP("The program fuseline is not part of this build.");
}

void RunTest::showsTheTableOfBothVariants() {
  Fixture f(smallPipeline(), worker());
  QSignalSpy finished(&f.session, &Session::runFinished);
  f.session.run();
  QVERIFY(f.session.isRunning());
  QVERIFY2(waitFor(finished), qPrintable(f.window.message()));
  QVERIFY(f.session.lastRun().has_value());
  QVERIFY(!f.session.lastRun()->isStale);
  const TimingsModel& model = f.window.timings().model();
  QVERIFY(model.rowCount() > 4);
  QVERIFY(!model.index(0, TimingsModel::UnfusedColumn).data().toString().isEmpty());
  QVERIFY(f.window.timings().asText().contains(QStringLiteral("Peak memory")));
}

void RunTest::numericsShowErrorsOnNodesAndOtherRecipes() {
  Fixture f(smallPipeline(), worker());
  QVERIFY(f.session.apply(SetRecipe{.recipe = {{"name", "Float8CurrentScaling"}}}));
  QVERIFY(waitForAnalysis(f.session));
  QSignalSpy finished(&f.session, &Session::numericsFinished);
  f.session.measureNumerics();
  QVERIFY2(waitFor(finished), qPrintable(f.window.message()));
  NumericsPanel& panel = f.window.numerics();
  QVERIFY(panel.model().rowCount() > 4);
  const NodeItem& fc = *f.window.scene().node("fc");
  QVERIFY(fc.look().rmsError.has_value());
  QVERIFY(*fc.look().rmsError > 0.005);  // E4M3 has 3 bits behind the point

  f.session.select({QStringLiteral("fc")});
  QVERIFY(panel.copies()->currentText().startsWith(QStringLiteral("fc.")));
  panel.copies()->setCurrentText(QStringLiteral("fc.input@rowwise"));
  const QString asRun = panel.lossText();
  QVERIFY2(asRun.contains(QStringLiteral("e4m3")), qPrintable(asRun));
  panel.recipes()->setCurrentText(QStringLiteral("NVFP4BlockScaling"));
  QVERIFY2(panel.lossText().contains(QStringLiteral("e2m1")), qPrintable(panel.lossText()));

  f.window.scene().setErrorsVisible(false);
  QVERIFY(!f.window.scene().node("fc")->look().rmsError.has_value());
  f.window.scene().setErrorsVisible(true);
  QVERIFY(f.window.scene().node("fc")->look().rmsError.has_value());
  f.session.setPass(PassKind::Forward);  // another pipeline than the one that was measured
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.session.lastNumerics()->isStale);
  QVERIFY(!f.window.scene().node("fc")->look().rmsError.has_value());
}

void RunTest::parametersAreSavedAndTakenBack() {
  const testing::TemporaryFolder folder;
  const QString file = toQt((folder / "parameters.safetensors").string());
  Fixture f(smallPipeline(), worker());
  const Result<void> saved = f.session.saveParameters(file);
  QVERIFY2(saved.hasValue(), saved ? "" : saved.error().message.c_str());
  f.session.setTensorsFile(file);
  QSignalSpy finished(&f.session, &Session::runFinished);
  f.session.run();
  QVERIFY2(waitFor(finished), qPrintable(f.window.message()));
  QVERIFY(f.session.lastRun().has_value());
}

void RunTest::tensorsThatDoNotFitAreASentence() {
  const testing::TemporaryFolder folder;
  QVERIFY(writeSafetensors(folder / "other.safetensors", {{"nobody", Tensor::zeros({DType::F32, {1}})}}).hasValue());
  Fixture f(smallPipeline(), worker());
  f.session.setTensorsFile(toQt((folder / "other.safetensors").string()));
  QSignalSpy failed(&f.session, &Session::runFailed);
  f.session.run();
  QVERIFY(waitFor(failed));
  QVERIFY2(f.window.message().contains(QStringLiteral("nobody")), qPrintable(f.window.message()));
}

void RunTest::cancelKeepsWhatWasMeasured() {
  Fixture f(smallPipeline(), worker());
  QSignalSpy progress(&f.session, &Session::runProgress);
  QSignalSpy finished(&f.session, &Session::runFinished);
  QSignalSpy failed(&f.session, &Session::runFailed);
  f.session.run();
  QVERIFY(waitFor(progress));
  f.session.cancelRun();
  QVERIFY(QTest::qWaitFor([&] { return finished.count() + failed.count() > 0; }, kPatienceMs));
  QVERIFY(!f.session.isRunning());
}

void RunTest::killedWorkerIsASentenceAndTheNextRunStartsAnother() {
  Fixture f(smallPipeline(), worker());
  const std::string before = serialize(f.session.document());
  QSignalSpy failed(&f.session, &Session::runFailed);
  f.session.run();
  QVERIFY(QTest::qWaitFor([&] { return f.session.worker().processId() != 0; }, kPatienceMs));
  ::kill(static_cast<pid_t>(f.session.worker().processId()), SIGKILL);
  QVERIFY(waitFor(failed));
  QVERIFY(f.window.message().contains(QStringLiteral("document is untouched")));
  QCOMPARE(serialize(f.session.document()), before);
  QSignalSpy finished(&f.session, &Session::runFinished);
  f.session.run();
  QVERIFY(waitFor(finished));
}

void RunTest::editingWhileRunningMarksTheResultStale() {
  Fixture f(smallPipeline(), worker());
  QSignalSpy finished(&f.session, &Session::runFinished);
  f.session.run();
  QVERIFY(f.session.apply(SetSymbol{.name = "H", .value = 48}));
  QVERIFY(waitFor(finished));
  QVERIFY(f.session.lastRun()->isStale);
  f.session.undo();
  QVERIFY(!f.session.lastRun()->isStale);
  QVERIFY(f.session.apply(MoveNode{.id = "fc", .position = Position{8, 8}}));
  QVERIFY(!f.session.lastRun()->isStale);
}

void RunTest::missingWorkerIsASentence() {
  Fixture f(smallPipeline(), {QStringLiteral("no-such-program")});
  QSignalSpy failed(&f.session, &Session::runFailed);
  f.session.run();
  QVERIFY(waitFor(failed));
  QVERIFY(f.window.message().contains(QStringLiteral("no-such-program")));
}

void RunTest::speechlessWorkerIsASentence() {
  Fixture f(smallPipeline(), {QStringLiteral("cat")});  // answers requests with requests
  QSignalSpy failed(&f.session, &Session::runFailed);
  f.session.run();
  QVERIFY(waitFor(failed));
  QVERIFY(!f.session.isRunning());
}

}  // namespace fuseline::ui

QTEST_MAIN(fuseline::ui::RunTest)
#include "test_ui_run.moc"
