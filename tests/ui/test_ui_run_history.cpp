// The runs panel: what is listed, what is kept beside the document, and what can be done with a run.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_file.h"
#include "tests/support/temporary_folder.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/compare/base_canvas.h"
#include "ui/session/baselines.h"
#include "ui/theme/format.h"

#include <QLineEdit>
#include <QMessageBox>
#include <QPointer>
#include <QTest>
#include <QTimer>

#include <fstream>

namespace fuseline::ui::run_history_test {

class RunHistoryTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { qputenv("TZ", "IST-5:30"); }
  void aRunIsListed();
  void aRunOfAnotherDocumentIsNot();
  void aRunOfAnotherStateOfThePipelineSaysSo();
  void nothingIsWrittenBesideTheDocumentUnlessItIsWanted();
  void runsGoBesideTheDocumentWhenItIsSaved();
  void aFolderThatCannotBeWrittenLosesNoRun();
  void notesAndStarsAreThereNextTime();
  void aNoteIsEditedOnWhileARunArrives();
  void aNoteOnAStepIsKeptWhenAnotherRunArrives();
  void aBrokenFileIsASentence();
  void aRunIsPinnedAsBaseline();
  void aRunIsComparedOnTwoCanvases();
  void notesOfStepsGoWhereTheRunGoes();
  void anOpenedRunLeavesTheListAsItIs();
  void whoComesBackFindsTheRunsOfBefore();
  void anotherDocumentTakesNoRunsAlong();
  void theOldestMakeRoom();
  void deletingAsksOnce();
  void aCopyIsTheSameRun();
};

namespace {

/// A window with the small pipeline and its runs in front.
struct Shown : Fixture {
  Shown() : Fixture(smallPipeline()) {
    window.showPane(QStringLiteral("runs"));
    history().waitForDone();
  }

  RunHistory& history() { return window.runs().history(); }
  RunsModel& model() { return window.runs().model(); }
  QString text(int row, RunsModel::Column column) { return model().index(row, column).data().toString(); }
  /// As if the worker had measured it.
  void measure(const RunRecord& record = measuredRun()) {
    Q_EMIT session.runner().started();
    Q_EMIT session.runner().worker().finished(record, nullptr);
    history().waitForDone();
  }
  void choose(int row) { window.runs().view()->setCurrentIndex(model().index(row, RunsModel::WhenColumn)); }
  bool saveIn(const testing::TemporaryFolder& folder) {
    const bool isSaved = session.pipeline().save(toQt((folder / "small.fuseline").string())).hasValue();
    history().waitForDone();
    return isSaved;
  }
};

std::size_t numRunsIn(const std::filesystem::path& folder) { return RunFolderReader().read({&folder, 1}).size(); }

RunRecord datedRun(const char* time) {
  RunRecord record = measuredRun();
  std::erase_if(record.environment, [](const auto& fact) { return fact.first == "measured at"; });
  record.environment.emplace_back("measured at", time);
  return record;
}

/// Presses a button of the next question.
void answer(QMessageBox::StandardButton button, int& numQuestions) {
  QTimer::singleShot(0, [button, &numQuestions] {
    auto* question = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
    if (!question) return;
    ++numQuestions;
    question->button(button)->click();
  });
}

}  // namespace

void RunHistoryTest::aRunIsListed() {
  Shown f;
  QCOMPARE(f.model().rowCount(), 0);
  f.measure(datedRun("2026-11-25 09:30:00 UTC"));
  QCOMPARE(f.model().rowCount(), 1);
  QCOMPARE(f.text(0, RunsModel::WhenColumn), QStringLiteral("2026-11-25 15:00:00"));
  const QModelIndex when = f.model().index(0, RunsModel::WhenColumn);
  QVERIFY(when.data(Qt::ToolTipRole).toString().startsWith(QStringLiteral("2026-11-25 15:00:00 IST")));
  QCOMPARE(f.text(0, RunsModel::RecipeColumn), QStringLiteral("No quantization"));
  QCOMPARE(f.text(0, RunsModel::PassColumn), QStringLiteral("train"));
  QVERIFY(!f.text(0, RunsModel::UnfusedColumn).isEmpty() && !f.text(0, RunsModel::FusedColumn).isEmpty());
  QVERIFY(f.text(0, RunsModel::SpeedupColumn).endsWith(u'×'));
  QCOMPARE(f.text(0, RunsModel::StateColumn), QString());
  QCOMPARE(localTimeOf("2026-11-25 20:52 UTC"), QStringLiteral("2026-11-26 02:22"));
  QCOMPARE(zonedTimeOf("2026-11-25 20:52 UTC"), QStringLiteral("2026-11-26 02:22 IST"));
  QCOMPARE(localTimeOf("long ago"), QStringLiteral("long ago"));
  RunRecord larger = datedRun("2026-11-25 10:30:00 UTC");
  larger.settings.symbols = {{"M", 64}};
  larger.settings.label = "larger batch";
  larger.isPartial = true;
  f.measure(larger);
  QCOMPARE(f.text(0, RunsModel::WhenColumn), QStringLiteral("2026-11-25 16:00:00"));
  QCOMPARE(f.text(0, RunsModel::StateColumn), QStringLiteral("larger batch, with M = 64, stopped early"));
  RunRecord chosen = datedRun("2026-11-25 11:30:00 UTC");
  chosen.settings.rules = RuleBook::Te;
  chosen.settings.recipeFields = {{"margin", "2"}};
  chosen.switches = {.without = {"BackwardLinearBias@fc"}, .with = {"ForwardBackwardSwiGLULinear"}};
  f.measure(chosen);
  const QString overrides =
      QStringLiteral("with margin = 2, rules te, without BackwardLinearBias@fc, with ForwardBackwardSwiGLULinear");
  QCOMPARE(f.text(0, RunsModel::StateColumn), overrides);
  const QString tip = f.model().index(0, RunsModel::StateColumn).data(Qt::ToolTipRole).toString();
  QVERIFY2(tip.startsWith(overrides + QStringLiteral("\nRepeat with: fuseline run small.fuseline ")), qPrintable(tip));
  QVERIFY2(tip.endsWith(QStringLiteral(" --without BackwardLinearBias@fc --with ForwardBackwardSwiGLULinear")),
           qPrintable(tip));
  RunRecord empty = measuredRun();
  empty.variants.clear();
  f.measure(empty);
  QCOMPARE(f.model().rowCount(), 3);
}

void RunHistoryTest::aRunOfAnotherDocumentIsNot() {
  Shown f;
  Q_EMIT f.session.runner().started();
  f.session.openText(residualPipeline(true), QStringLiteral("other"));
  Q_EMIT f.session.runner().worker().finished(measuredRun(), nullptr);
  f.history().waitForDone();
  QCOMPARE(f.model().rowCount(), 0);
}

void RunHistoryTest::aRunOfAnotherStateOfThePipelineSaysSo() {
  Shown f;
  f.measure();
  const auto settle = [&] { return waitForAnalysis(f.session) && (f.history().waitForDone(), true); };
  QVERIFY(f.session.pipeline().apply(MoveNode{.id = "fc", .position = Position{8, 8}}));
  QVERIFY(settle());
  QCOMPARE(f.text(0, RunsModel::StateColumn), QString());
  QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "H", .value = 48}));
  QVERIFY(settle());
  QCOMPARE(f.text(0, RunsModel::StateColumn), QStringLiteral("different pipeline"));
  f.session.pipeline().undo();
  QVERIFY(settle());
  QCOMPARE(f.text(0, RunsModel::StateColumn), QString());
}

void RunHistoryTest::nothingIsWrittenBesideTheDocumentUnlessItIsWanted() {
  const testing::TemporaryFolder folder;
  Shown f;
  QVERIFY(f.saveIn(folder));
  f.measure();
  QCOMPARE(f.model().rowCount(), 1);
  QVERIFY(!std::filesystem::exists(folder / "small.runs"));
  named<QCheckBox>(f.window.runs(), "Keep runs next to the pipeline")->click();
  f.history().waitForDone();
  QCOMPARE(numRunsIn(folder / "small.runs"), std::size_t{1});
  QCOMPARE(f.model().rowCount(), 1);
  f.measure();
  QCOMPARE(numRunsIn(folder / "small.runs"), std::size_t{2});
}

void RunHistoryTest::runsGoBesideTheDocumentWhenItIsSaved() {
  const testing::TemporaryFolder folder;
  Shown f;
  f.history().setKeepsRuns(true);
  QVERIFY(named<QCheckBox>(f.window.runs(), "Keep runs next to the pipeline")->isChecked());
  f.measure();
  QVERIFY(f.saveIn(folder));
  QCOMPARE(numRunsIn(folder / "small.runs"), std::size_t{1});
  QCOMPARE(f.model().rowCount(), 1);
}

void RunHistoryTest::aFolderThatCannotBeWrittenLosesNoRun() {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "small.runs") << "a file";
  Shown f;
  QVERIFY(f.saveIn(folder));
  f.history().setKeepsRuns(true);
  f.history().waitForDone();
  f.measure();
  QVERIFY2(f.window.message().contains(QStringLiteral("small.runs")), qPrintable(f.window.message()));
  QCOMPARE(f.model().rowCount(), 1);
}

void RunHistoryTest::notesAndStarsAreThereNextTime() {
  const testing::TemporaryFolder folder;
  {
    Shown f;
    QVERIFY(f.saveIn(folder));
    f.history().setKeepsRuns(true);
    f.measure();
    QVERIFY(f.model().setData(f.model().index(0, RunsModel::NoteColumn), QStringLiteral(" with bias "), Qt::EditRole));
    f.history().waitForDone();
    f.window.activateWindow();
    f.window.runs().view()->setFocus();
    QTest::keyClick(f.window.runs().view(), Qt::Key_S);
    f.history().waitForDone();
    QCOMPARE(f.text(0, RunsModel::StarColumn), QStringLiteral("★"));
  }
  Shown next;
  QVERIFY(next.window.openFile(toQt((folder / "small.fuseline").string())));
  next.history().waitForDone();
  QCOMPARE(next.model().rowCount(), 1);
  QCOMPARE(next.text(0, RunsModel::NoteColumn), QStringLiteral("with bias"));
  QCOMPARE(next.text(0, RunsModel::StarColumn), QStringLiteral("★"));
}

void RunHistoryTest::aNoteIsEditedOnWhileARunArrives() {
  Shown f;
  f.measure(datedRun("2026-11-25 09:30:00 UTC"));
  f.window.runs().view()->setCurrentIndex(f.model().index(0, RunsModel::NoteColumn));
  f.window.runs().view()->edit(f.model().index(0, RunsModel::NoteColumn));
  const QPointer<QLineEdit> editor = f.window.runs().view()->findChild<QLineEdit*>();
  QVERIFY(editor);
  QTest::keyClicks(editor, QStringLiteral("S for slow"));
  f.measure(datedRun("2026-11-25 10:30:00 UTC"));
  QVERIFY(editor && editor->text() == QStringLiteral("S for slow"));
  QTest::keyClick(editor, Qt::Key_Return);
  QTRY_COMPARE(f.text(1, RunsModel::NoteColumn), QStringLiteral("S for slow"));
  QCOMPARE(f.text(1, RunsModel::WhenColumn), QStringLiteral("2026-11-25 15:00:00"));
  QCOMPARE(f.text(0, RunsModel::NoteColumn), QString());
  QVERIFY(!f.session.results().openedRun());
}

/// A note being typed belongs to the run that was shown.
void RunHistoryTest::aNoteOnAStepIsKeptWhenAnotherRunArrives() {
  Shown f;
  f.measure(datedRun("2026-11-25 09:30:00 UTC"));
  f.window.showPane(QStringLiteral("timings"));
  f.window.activateWindow();
  QTreeView* const view = f.window.timings().view();
  const QModelIndex cell = view->model()->index(0, TimingsModel::NoteColumn);
  view->setColumnHidden(TimingsModel::NoteColumn, false);
  view->setCurrentIndex(cell);
  view->edit(cell);
  auto* const editor = view->findChild<QLineEdit*>();
  QVERIFY(editor);
  QTRY_VERIFY(editor->hasFocus());
  QTest::keyClicks(editor, QStringLiteral("why so slow?"));
  std::vector<RowNote> kept;
  connect(&f.session.results(), &LastResults::leaving, this,
          [&] { kept = f.session.results().lastRun()->record.rowNotes; });
  f.measure(datedRun("2026-11-25 10:30:00 UTC"));
  QCOMPARE(kept.size(), std::size_t{1});
  QCOMPARE(kept.front().text, std::string("why so slow?"));
  QVERIFY(f.session.results().lastRun()->record.rowNotes.empty());
}

void RunHistoryTest::aBrokenFileIsASentence() {
  const testing::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "small.runs");
  std::ofstream(folder / "small.runs" / "broken.fuserun") << "{\"format\"";
  Shown f;
  QVERIFY(f.saveIn(folder));
  f.measure();
  QCOMPARE(f.model().rowCount(), 2);
  const int row = f.model().rowOf(folder / "small.runs" / "broken.fuserun");
  QVERIFY2(f.text(row, RunsModel::StateColumn).contains(QStringLiteral("Invalid JSON")),
           qPrintable(f.text(row, RunsModel::StateColumn)));
  f.choose(row);
  QCOMPARE(f.window.runs().problem(), f.text(row, RunsModel::StateColumn));
  QVERIFY(!named<QAction>(f.window.runs(), "Open")->isEnabled() &&
          !named<QAction>(f.window.runs(), "Pin as baseline")->isEnabled());
  QVERIFY(named<QAction>(f.window.runs(), "Delete...")->isEnabled());
  QVERIFY(!(f.model().flags(f.model().index(row, RunsModel::NoteColumn)) & Qt::ItemIsEditable));
}

void RunHistoryTest::aRunIsPinnedAsBaseline() {
  Shown f;
  f.measure(datedRun("2026-11-25 09:30:00 UTC"));
  QCOMPARE(f.window.runs().view()->currentIndex().row(), 0);  // of itself
  named<QAction>(f.window.runs(), "Pin as baseline")->trigger();
  f.history().waitForDone();
  const Baseline* pinned = f.session.baselines().reference();
  QVERIFY(pinned);
  QCOMPARE(pinned->record->fact("measured at"), std::string("2026-11-25 09:30:00 UTC"));
  QCOMPARE(f.text(0, RunsModel::StateColumn), QStringLiteral("baseline A"));
  f.model().setData(f.model().index(0, RunsModel::NoteColumn), QStringLiteral("as before"));
  f.history().waitForDone();
  QCOMPARE(f.session.baselines().reference()->name, QStringLiteral("as before"));
  f.measure(datedRun("2026-11-25 10:30:00 UTC"));
  QVERIFY(f.session.baselines().pin(f.session.results().lastRun()->record,
                                    f.session.results().runFile()));  // as Ctrl+B does
  QCOMPARE(f.text(0, RunsModel::StateColumn), QStringLiteral("baseline B"));
  f.session.baselines().unpinAll();
  QCOMPARE(f.text(0, RunsModel::StateColumn), QString());
}

void RunHistoryTest::aRunIsComparedOnTwoCanvases() {
  Shown f;
  f.measure();
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "norm", .name = "eps", .value = 0.5}));
  named<QAction>(f.window.runs(), "Compare")->trigger();
  f.history().waitForDone();
  QVERIFY(f.session.baselines().reference());
  QCOMPARE(f.window.workspaces().current(), QStringLiteral("compare"));
  QVERIFY(waitForAnalysis(f.session) && QTest::qWaitFor([&] { return !f.window.comparison().isComparing(); }));
  QCOMPARE(f.window.comparison().changes().size(), std::size_t{1});
  QVERIFY(f.window.findChild<BaseCanvas*>()->isVisible());
}

void RunHistoryTest::notesOfStepsGoWhereTheRunGoes() {
  Shown f;
  const testing::TemporaryFolder folder;
  f.measure();
  const StepRecord& step = f.session.results().lastRun()->record.variants.front().steps.front();
  f.session.results().setRowNote({.step = step.name, .phase = step.phase, .text = "first"});
  f.model().setData(f.model().index(0, RunsModel::NoteColumn), QStringLiteral("of the run"));
  f.history().waitForDone();
  QVERIFY(f.saveIn(folder));
  f.history().setKeepsRuns(true);
  f.history().waitForDone();
  f.history().waitForDone();  // told of the new place
  f.session.results().setRowNote({.step = step.name, .phase = "backward", .text = "second"});
  f.history().waitForDone();
  QCOMPARE(std::filesystem::path(f.session.results().runFile().toStdString()).parent_path(), folder / "small.runs");
  const RunRecord again = *loadNotedRun(f.session.results().runFile().toStdString());
  QCOMPARE(again.note, std::string("of the run"));
  QCOMPARE(again.rowNotes.size(), std::size_t{2});
  QCOMPARE(again.noteOf(step.name, step.phase), std::string("first"));
}

void RunHistoryTest::anOpenedRunLeavesTheListAsItIs() {
  Shown f;
  f.measure(datedRun("2026-11-25 09:30:00 UTC"));
  f.measure(datedRun("2026-11-25 10:30:00 UTC"));
  f.choose(1);
  named<QAction>(f.window.runs(), "Open")->trigger();
  f.history().waitForDone();
  QVERIFY(f.session.results().openedRun());
  QCOMPARE(f.session.results().openedRun()->record.fact("measured at"), std::string("2026-11-25 09:30:00 UTC"));
  QCOMPARE(f.model().rowCount(), 2);
  f.session.openText(smallPipeline(), QStringLiteral("another"));
  f.history().waitForDone();
  QCOMPARE(f.model().rowCount(), 0);
}

void RunHistoryTest::whoComesBackFindsTheRunsOfBefore() {
  const testing::TemporaryFolder folder;
  Shown f;
  QVERIFY(f.saveIn(folder));
  f.measure();
  const QString path = f.session.pipeline().path();
  f.session.openText(residualPipeline(true), QStringLiteral("other"));
  f.history().waitForDone();
  QCOMPARE(f.model().rowCount(), 0);
  QVERIFY(f.window.openFile(path));
  f.history().waitForDone();
  QCOMPARE(f.model().rowCount(), 1);
}

void RunHistoryTest::anotherDocumentTakesNoRunsAlong() {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "other.fuseline") << residualPipeline(true);
  Shown f;
  f.history().setKeepsRuns(true);
  f.measure();
  QVERIFY(f.window.openFile(toQt((folder / "other.fuseline").string())));
  f.history().waitForDone();
  QCOMPARE(f.model().rowCount(), 0);
  QVERIFY(!std::filesystem::exists(folder / "other.runs"));
}

void RunHistoryTest::theOldestMakeRoom() {
  const testing::TemporaryFolder folder;
  const std::filesystem::path runs = folder / "small.runs";
  std::filesystem::create_directories(runs);
  const auto nameAt = [](int minute) {
    return QString::asprintf("2026-01-01_00-%02d-00.fuserun", minute).toStdString();
  };
  for (int minute = 0; minute < 50; ++minute)
    QVERIFY(saveRunRecord(datedRun(qPrintable(QString::asprintf("2026-01-01 00:%02d UTC", minute))),
                          runs / nameAt(minute)));
  QVERIFY(saveRunNote(runs, nameAt(0), {.isStarred = true}));
  Shown f;
  QVERIFY(f.saveIn(folder));
  f.history().setKeepsRuns(true);
  f.measure();
  QCOMPARE(f.model().rowCount(), 51);  // 50 and the starred one
  f.measure();
  QCOMPARE(f.model().rowCount(), 51);
  QVERIFY(std::filesystem::exists(runs / nameAt(0)));
  QVERIFY(!std::filesystem::exists(runs / nameAt(1)));
  QVERIFY(std::filesystem::exists(runs / nameAt(2)));
}

void RunHistoryTest::deletingAsksOnce() {
  Shown f;
  f.measure();
  f.choose(0);
  int numQuestions = 0;
  answer(QMessageBox::Cancel, numQuestions);
  named<QAction>(f.window.runs(), "Delete...")->trigger();
  f.history().waitForDone();
  QCOMPARE(f.model().rowCount(), 1);
  answer(QMessageBox::Yes, numQuestions);
  named<QAction>(f.window.runs(), "Delete...")->trigger();
  f.history().waitForDone();
  QCOMPARE(f.model().rowCount(), 0);
  QCOMPARE(numQuestions, 2);
  QVERIFY(!named<QAction>(f.window.runs(), "Delete...")->isEnabled());
}

void RunHistoryTest::aCopyIsTheSameRun() {
  const testing::TemporaryFolder folder;
  const RunRecord record = measuredRun();
  Shown f;
  f.measure(record);
  f.history().exportTo(f.history().entries().front(), toQt((folder / "copy.fuserun").string()));
  f.history().waitForDone();
  const Result<RunRecord> copy = loadRunRecord(folder / "copy.fuserun");
  QVERIFY(copy.hasValue());
  QVERIFY(toJson(*copy) == toJson(record));
}

FUSELINE_UI_TEST(RunHistoryTest)

}  // namespace fuseline::ui::run_history_test

#include "test_ui_run_history.moc"
