// The designer with a GPU: a worker on one of host memory, its runs, and its faults.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/theme/format.h"

#include <QSignalSpy>
#include <QTest>

#include <cmath>

namespace fuseline::ui::gpu_test {

class GpuTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void runsAreReplayedAndShown();
  void recipesAreMeasuredOnIt();
  void tensorsAreCapturedFromIt();
  void faultInARunLeavesTheWindowAndTheNextRunWorks();
  void stoppedRunLeavesTheWorkerUsable();
};

namespace {

constexpr int kPatienceMs = 60'000;
constexpr auto kFault = "FUSELINE_HOST_GPU_FAULT";

/// A window whose runs go to the GPU.
struct OnGpu : Fixture {
  OnGpu() : Fixture(residualPipeline(true), {QStringLiteral(FUSELINE_GPU_PROGRAM), QStringLiteral("worker")}) {
    session.setup().setRunTarget({.device = "cuda:0", .architecture = "sm_90"});
    isReady = waitForAnalysis(session);
  }
  bool isReady = false;
};

/// Whichever of the two comes first; the sentence of a failure.
QString outcomeOf(Session& session) {
  QSignalSpy finished(&session.runner(), &Runner::finished);
  QSignalSpy failed(&session.runner(), &Runner::failed);
  session.runner().run();
  const bool isOver = QTest::qWaitFor([&] { return finished.count() + failed.count() > 0; }, kPatienceMs);
  if (!isOver) return QStringLiteral("nothing happened");
  return failed.isEmpty() ? QString() : failed.first().first().toString();
}

}  // namespace

void GpuTest::initTestCase() {
  if (QStringLiteral(FUSELINE_GPU_PROGRAM).isEmpty()) QSKIP("This build has no CUDA module.");
}

void GpuTest::runsAreReplayedAndShown() {
  OnGpu f;
  QVERIFY(f.isReady);
  QCOMPARE(outcomeOf(f.session), QString());
  const RunRecord& record = f.session.results().lastRun()->record;
  QCOMPARE(record.deviceName(), std::string("GPU of host memory"));
  QCOMPARE(record.variants.size(), 2u);
  QCOMPARE(record.variants.front().launching, std::string("captured and replayed"));
  QVERIFY(!record.peaks);
  QVERIFY2(record.peaksNote.find("memory") != std::string::npos, record.peaksNote.c_str());
  QVERIFY(f.window.timings().model().rowCount() > 4);
}

void GpuTest::recipesAreMeasuredOnIt() {
  OnGpu f;
  QVERIFY(f.session.pipeline().apply(SetRecipe{{{"name", "Float8CurrentScaling"}}}));
  QVERIFY(waitForAnalysis(f.session));
  QSignalSpy finished(&f.session.runner(), &Runner::numericsFinished);
  f.session.runner().measureNumerics();
  QVERIFY2(QTest::qWaitFor([&] { return finished.count() > 0; }, kPatienceMs), qPrintable(f.window.message()));
  QCOMPARE(f.session.results().lastNumerics()->device, std::string("cuda:0"));
}

/// Random inputs have the same values on a GPU.
void GpuTest::tensorsAreCapturedFromIt() {
  OnGpu f;
  const auto captured = [&](const char* device) {
    f.session.setup().setRunTarget({.device = device, .architecture = ""});
    QSignalSpy finished(&f.session.runner(), &Runner::tensorsCaptured);
    f.session.runner().captureTensors({"x", "y"}, PlanChoice::Fused);
    return QTest::qWaitFor([&] { return finished.count() > 0; }, kPatienceMs);
  };
  QVERIFY2(captured("cuda:0"), qPrintable(f.window.message()));
  const LastCapture onGpu = *f.session.results().lastCapture();
  QVERIFY2(captured("cpu"), qPrintable(f.window.message()));
  QCOMPARE(f.session.results().lastCapture()->file->tensor("x")->data, onGpu.file->tensor("x")->data);
  QVERIFY(std::abs(f.session.results().lastCapture()->find("y")->statistics.l2 / onGpu.find("y")->statistics.l2 - 1.0) <
          0.01);
}

void GpuTest::faultInARunLeavesTheWindowAndTheNextRunWorks() {
  OnGpu f;
  qputenv(kFault, "60");
  const QString sentence = outcomeOf(f.session);
  qunsetenv(kFault);
  QVERIFY2(sentence.contains(QStringLiteral("reported a fault")), qPrintable(sentence));
  QCOMPARE(f.window.message(), sentence);
  QVERIFY(f.session.pipeline().apply(SetSymbol{"M", 8}));  // the window goes on
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(outcomeOf(f.session), QString());
}

void GpuTest::stoppedRunLeavesTheWorkerUsable() {
  OnGpu f;
  QSignalSpy progress(&f.session.runner(), &Runner::progress);
  QSignalSpy finished(&f.session.runner(), &Runner::finished);
  QSignalSpy failed(&f.session.runner(), &Runner::failed);
  f.session.runner().run();
  QVERIFY(QTest::qWaitFor([&] { return progress.count() > 1; }, kPatienceMs));
  f.session.runner().cancel();
  QVERIFY(QTest::qWaitFor([&] { return !f.session.runner().isRunning(); }, kPatienceMs));
  QVERIFY2(failed.isEmpty() || !f.window.message().contains(QStringLiteral("did not answer")),
           qPrintable(f.window.message()));
  QCOMPARE(outcomeOf(f.session), QString());
}

FUSELINE_UI_TEST(GpuTest)

}  // namespace fuseline::ui::gpu_test

#include "test_ui_gpu.moc"
