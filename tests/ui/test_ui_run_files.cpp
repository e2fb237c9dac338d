// Measured runs that are opened: what the window shows of them, what it says of where they are from, what it refuses.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_file.h"
#include "core/profile/run_folder.h"
#include "core/runtime/pipeline_run.h"
#include "core/support/atomic_file.h"
#include "core/support/read_file.h"
#include "tests/support/one_backend.h"
#include "tests/support/temporary_folder.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/runs/measured_examples.h"
#include "ui/session/baseline_memory.h"
#include "ui/session/exports.h"
#include "ui/theme/format.h"

#include <QDragEnterEvent>
#include <QLineEdit>
#include <QMimeData>
#include <QTest>
#include <QTextDocument>
#include <QTextDocumentFragment>

namespace fuseline::ui::run_files_test {

class RunFilesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void examplesOfOneTitleDifferInTheirLines();
  void initTestCase() { qputenv("TZ", "IST-5:30"); }
  void openedRunIsTheLastRun();
  void runIsSavedAndOpenedAgain();
  void numericsOfTheRecordAreShown();
  void captionWarnsOfUnreliableTimes();
  void captionNamesTheDeviceOfTheRecord();
  void isStaleAfterAnEditAndFreshAfterUndo();
  void anotherDeviceInTheToolBarDoesNotMakeItStale();
  void overridesStandInTheDocument();
  void isPlannedForTheDeviceThatMeasuredIt();
  void anotherPlanThanTheOneMeasuredIsSaid();
  void damagedFilesAreSentencesAndChangeNothing();
  void runsAreKnownByTheirContent();
  void runsCanBeDropped();
  void examplesAreListedAndOpened();
  void anEmptyFolderSaysHowToRecord();
  void baselinesStandBesideAnotherRun();
  void aBaselineWithoutACommonVariantSaysSo();
  void asManyRunsArePinnedAsThereAreLetters();
  void stepsAreNotedAndFoundAgain();
  void baselinesOfAPipelineAreThereNextTime();
};

namespace {

/// A run of the small pipeline by the reference, which says that another device was meant.
RunRecord recordOf(RunSpec settings = {}) {
  settings.device = "reference";
  settings.warmup = 0;
  settings.iterations = 2;
  const auto run = PipelineRun::prepare(parseDocument(smallPipeline()), "small", {.settings = std::move(settings)},
                                        testing::OneBackend(makeReferenceBackend()));
  RunRecord record = *(*run)->measure();
  record.settings.device = "cuda:0";
  record.environment = {{"device", "a GPU <of a test>"}, {"architecture", "sm_90"}, {"driver", "supports CUDA 12.8"}};
  return record;
}

/// A folder with one run file in it.
class RunFile {
 public:
  explicit RunFile(const RunRecord& record, const char* name = "small.fuserun")
      : RunFile(toJson(record).dump(1), name) {}
  explicit RunFile(const std::string& text, const char* name = "small.fuserun") : m_path(m_folder / name) {
    [[maybe_unused]] const Result<void> written = writeFileAtomically(m_path, [&](auto& file) { file << text; });
  }
  QString path() const { return toQt(m_path.string()); }
  QString folder() const { return toQt(m_folder.path().string()); }

 private:
  testing::TemporaryFolder m_folder;
  std::filesystem::path m_path;
};

/// The caption without its marks.
QString captionOf(Fixture& f) {
  QTextDocument text;
  text.setHtml(f.window.timings().caption());
  return text.toPlainText();
}

/// A window over the record, analysed.
struct Opened : Fixture {
  explicit Opened(const RunRecord& record) : Fixture(residualPipeline(false)), file(record) {
    isOpen = window.openFile(file.path()) && waitForAnalysis(session);
  }
  RunFile file;
  bool isOpen = false;
};

QList<QAction*> examplesIn(Fixture& f, const QString& folder) {
  f.window.files().setExampleFolders({folder});
  Q_EMIT f.window.examplesMenu().aboutToShow();
  return f.window.examplesMenu().actions();
}

}  // namespace

void RunFilesTest::examplesOfOneTitleDifferInTheirLines() {
  const testing::TemporaryFolder folder;
  RunRecord record = recordOf();
  for (const char* recipe : {"None", "MXFP8BlockScaling"}) {
    record.settings.recipe = recipe;
    QVERIFY(saveRunRecord(record, folder.path() / (std::string(recipe) + ".fuserun")));
  }
  const std::vector<MeasuredExample> examples = measuredExamples({toQt(folder.path().string())});
  QCOMPARE(examples.size(), std::size_t{2});
  QVERIFY2(examples[0].line.contains(QStringLiteral("MXFP8BlockScaling")), qPrintable(examples[0].line));
  QVERIFY2(examples[1].line.contains(QStringLiteral("No quantization")), qPrintable(examples[1].line));
  for (const MeasuredExample& example : examples)
    QVERIFY2(!example.line.contains(toQt(record.deviceName())), qPrintable(example.line));  // all have the same
}

void RunFilesTest::openedRunIsTheLastRun() {
  Opened f(recordOf({.pass = ExecutionMode::Inference}));
  QVERIFY(f.isOpen);
  QCOMPARE(f.session.pipeline().displayName(), QStringLiteral("small"));
  QVERIFY(f.session.pipeline().path().isEmpty());
  QVERIFY(!f.session.pipeline().isModified());
  QVERIFY(!f.session.pipeline().history().canUndo());
  QCOMPARE(f.session.setup().pass(), ExecutionMode::Inference);
  QVERIFY(f.session.pipeline().document().findOp("norm"));
  QVERIFY(f.session.results().lastRun().has_value());
  QVERIFY(!f.session.results().lastRun()->isStale);
  const TimingsModel& model = f.window.timings().model();
  QVERIFY(!model.index(0, TimingsModel::UnfusedColumn).data().toString().isEmpty());
}

void RunFilesTest::runIsSavedAndOpenedAgain() {
  Opened f(recordOf());
  const testing::TemporaryFolder folder;
  const QString path = toQt((folder / "again.fuserun").string());
  QVERIFY(writeRun(f.session, path).hasValue());
  const Json saved = toJson(f.session.results().lastRun()->record);
  Fixture other(smallPipeline());
  QVERIFY(!writeRun(other.session, path).hasValue());  // nothing was measured there, and the file stays
  QVERIFY(other.session.openRun(path).hasValue());
  QVERIFY(toJson(other.session.results().lastRun()->record) == saved);
}

void RunFilesTest::numericsOfTheRecordAreShown() {
  RunRecord record = recordOf();
  Opened without(record);
  QVERIFY(!without.window.numerics().recorded().isVisibleTo(&without.window.numerics()));

  record.numerics = RunNumerics{.fusion = {.isWithin = true, .worst = "act:y", .toleranceShare = 0.125},
                                .float32 = {.isWithin = false, .worst = "grad.fc.weight", .toleranceShare = 1.5}};
  record.numerics->copies.push_back({.name = "fc.input@rowwise",
                                     .owner = "fc",
                                     .format = "e4m3 (mx_1x32)",
                                     .losses = {.amax = 3.5, .smallest = 0.875, .underflowShare = 0.25}});
  Opened f(record);
  QVERIFY(f.isOpen);
  RecordedNumerics& recorded = f.window.numerics().recorded();
  QVERIFY(recorded.isVisibleTo(&f.window.numerics()));
  const QString caption = QTextDocumentFragment::fromHtml(recorded.caption()).toPlainText();
  for (const char* part :
       {"opened from small.fuserun", "fused vs. unfused: pass, at most 0.13 of the tolerance (act:y)",
        "unfused vs. float32: FAIL, at most 1.50 of the tolerance (grad.fc.weight)"})
    QVERIFY2(caption.contains(QString::fromUtf8(part)), qPrintable(caption));
  QCOMPARE(recorded.copies().rowCount(), 1);
  const auto cell = [&](int column) { return recorded.copies().index(0, column).data().toString(); };
  QCOMPARE(cell(RecordedNumerics::CopyColumn), QStringLiteral("fc.input@rowwise"));
  QCOMPARE(cell(RecordedNumerics::RangeColumn), QStringLiteral("2^2.0"));
  QCOMPARE(cell(RecordedNumerics::UnderflowColumn), QStringLiteral("25 %"));
}

void RunFilesTest::captionWarnsOfUnreliableTimes() {
  RunRecord record = recordOf();
  Opened quiet(record);
  QVERIFY(!captionOf(quiet).contains(QStringLiteral("Unreliable")));
  record.environment.emplace_back("other programs", "48 % of the CPUs");
  Opened f(record);
  QVERIFY(captionOf(f).contains(QStringLiteral("Unreliable")));
  const auto labels = f.window.timings().findChildren<QLabel*>();
  QVERIFY(std::ranges::any_of(labels, [](const QLabel* label) {
    return label->toolTip().startsWith(QStringLiteral("Other programs used 48 % of the CPUs"));
  }));
}

void RunFilesTest::captionNamesTheDeviceOfTheRecord() {
  Opened f(recordOf());
  const QString caption = captionOf(f);
  QVERIFY2(caption.contains(QStringLiteral("Measured on a GPU <of a test> (cuda:0, sm_90, driver supports CUDA 12.8), "
                                           "opened from small.fuserun")),
           qPrintable(caption));
  QVERIFY2(caption.contains(QStringLiteral("2 rounds")), qPrintable(caption));
  RunRecord dated = recordOf();
  dated.environment.emplace_back("measured at", "2026-11-20 09:30 UTC");
  Opened later(dated);
  const QString datedCaption = captionOf(later);
  QVERIFY2(datedCaption.contains(QStringLiteral("Measured 2026-11-20 on a GPU")), qPrintable(datedCaption));
  f.session.openText(smallPipeline(), QStringLiteral("other"));
  QVERIFY(!f.session.results().lastRun().has_value());
}

void RunFilesTest::isStaleAfterAnEditAndFreshAfterUndo() {
  Opened f(recordOf());
  QVERIFY(f.session.pipeline().apply(MoveNode{.id = "fc", .position = Position{8, 8}}));
  QVERIFY(!f.session.results().lastRun()->isStale);
  QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "H", .value = 48}));
  QVERIFY(f.session.results().lastRun()->isStale);
  QVERIFY(captionOf(f).contains(QStringLiteral("the pipeline has changed")));
  f.session.pipeline().undo();
  QVERIFY(!f.session.results().lastRun()->isStale);
  QVERIFY(!captionOf(f).contains(QStringLiteral("the pipeline has changed")));
}

void RunFilesTest::anotherDeviceInTheToolBarDoesNotMakeItStale() {
  Opened f(recordOf());
  f.session.setup().setRunTarget({.device = "reference"});
  QVERIFY(!f.session.results().lastRun()->isStale);
  f.session.setup().setPass(ExecutionMode::Inference);
  QVERIFY(f.session.results().lastRun()->isStale);
}

void RunFilesTest::overridesStandInTheDocument() {
  Opened f(recordOf({.rules = RuleBook::Te, .recipe = "MXFP8BlockScaling", .symbols = {{"M", 64}}}));
  QVERIFY(f.isOpen);
  QCOMPARE(f.session.pipeline().document().symbols()["M"].dump(), std::string("64"));
  QCOMPARE(f.session.pipeline().document().recipe()["name"].dump(), std::string("\"MXFP8BlockScaling\""));
  QCOMPARE(f.session.pipeline().document().fusion()["rules"].dump(), std::string("\"te\""));
  QVERIFY(!f.session.pipeline().isModified());
  QVERIFY(!f.session.results().lastRun()->isStale);
  QVERIFY2(captionOf(f).contains(QStringLiteral("with M = 64, recipe MXFP8BlockScaling, rules te")),
           qPrintable(captionOf(f)));
  QVERIFY(f.session.results().lastRun()->origin->differingSteps.isEmpty());
}

void RunFilesTest::isPlannedForTheDeviceThatMeasuredIt() {
  std::vector<std::string> asked;
  Session session({.workerCommand = {}, .capabilitiesOf = [&](const std::string& device) {
                     asked.push_back(device);
                     return Capabilities();
                   }});
  const RunFile file(recordOf());
  QVERIFY(session.openRun(file.path()));
  QCOMPARE(asked, (std::vector<std::string>{"cpu", "cuda:0"}));
  session.openText(smallPipeline(), {});
  QCOMPARE(asked.back(), std::string("cpu"));
  QVERIFY(waitForAnalysis(session));
}

void RunFilesTest::anotherPlanThanTheOneMeasuredIsSaid() {
  RunRecord record = recordOf();
  for (VariantRecord& variant : record.variants) {
    std::erase_if(variant.steps, [](const StepRecord& step) { return step.name.starts_with("ForwardLinear"); });
    variant.timeline = {};  // it refers to the steps by index
  }
  Opened f(record);
  QVERIFY2(captionOf(f).contains(QStringLiteral("the measured plan differs from this one: 1 step differs")),
           qPrintable(captionOf(f)));
}

void RunFilesTest::damagedFilesAreSentencesAndChangeNothing() {
  Opened f(recordOf());
  const std::string before = serialize(f.session.pipeline().document());
  Json newer = toJson(recordOf());
  newer["formatVersion"]["major"] = 9;
  Json withoutPipeline = toJson(recordOf());
  withoutPipeline["pipeline"] = 3;
  for (const auto& [text, expected] : {std::pair<std::string, const char*>{"{\"format\"", "Invalid JSON"},
                                       {R"({"format": "fuseline-pipeline"})", "expected \"fuseline-run\""},
                                       {newer.dump(), "newer Fuseline"},
                                       {withoutPipeline.dump(), "the pipeline in this run cannot be used"}}) {
    const RunFile damaged(text, "damaged.fuserun");
    QVERIFY(!f.window.openFile(damaged.path()));
    QVERIFY2(f.window.message().contains(damaged.path()), qPrintable(f.window.message()));
    QVERIFY2(f.window.message().contains(QLatin1String(expected)), qPrintable(f.window.message()));
  }
  QVERIFY(!f.window.openFile(QStringLiteral("/nonexistent/a.fuserun")));
  QCOMPARE(serialize(f.session.pipeline().document()), before);
  QVERIFY(f.session.results().openedRun());
}

void RunFilesTest::runsAreKnownByTheirContent() {
  Fixture f(residualPipeline(false));
  const RunFile file(toJson(recordOf()).dump(1), "small.json");
  QVERIFY(f.window.openFile(file.path()));
  QVERIFY(f.session.results().openedRun());
}

void RunFilesTest::runsCanBeDropped() {
  Fixture f(residualPipeline(false));
  const RunFile file(recordOf());
  QMimeData data;
  data.setUrls({QUrl::fromLocalFile(file.path())});
  QDragEnterEvent enter(QPoint(5, 5), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&f.window, &enter);
  QVERIFY(enter.isAccepted());
  QDropEvent drop(QPointF(5, 5), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&f.window, &drop);
  QVERIFY(f.session.results().openedRun());
}

void RunFilesTest::examplesAreListedAndOpened() {
  Fixture f(residualPipeline(false));
  const RunFile file(recordOf({.recipe = "MXFP8BlockScaling", .symbols = {{"M", 64}}}));
  const std::string damaged = QDir(file.folder()).filePath(QStringLiteral("zzz.fuserun")).toStdString();
  QVERIFY(writeFileAtomically(damaged, [](auto& text) { text << "{"; }));
  const QList<QAction*> examples = examplesIn(f, file.folder());
  QCOMPARE(examples.size(), 2);
  const QString start = QStringLiteral("small · a GPU <of a test> · train · MXFP8BlockScaling · M = 64 · ");
  QVERIFY2(examples[0]->text().startsWith(start) && examples[0]->text().endsWith(u'×'),
           qPrintable(examples[0]->text()));
  QCOMPARE(examples[1]->text(), QStringLiteral("zzz.fuserun"));
  QVERIFY(!examples[1]->isEnabled());
  QVERIFY2(examples[1]->toolTip().contains(QStringLiteral("Invalid JSON")), qPrintable(examples[1]->toolTip()));
  examples[0]->trigger();
  QVERIFY(f.session.results().openedRun());
  QCOMPARE(f.session.results().openedRun()->origin->file, QFileInfo(file.path()).absoluteFilePath());
}

void RunFilesTest::anEmptyFolderSaysHowToRecord() {
  Fixture f(smallPipeline());
  const testing::TemporaryFolder folder;
  for (const QString& path : {toQt(folder.path().string()), QStringLiteral("/nonexistent")}) {
    const QList<QAction*> examples = examplesIn(f, path);
    QCOMPARE(examples.size(), 1);
    QVERIFY(!examples[0]->isEnabled());
    QVERIFY(examples[0]->text().contains(QStringLiteral("--records FOLDER")));
    QVERIFY(examples[0]->toolTip().contains(path));
  }
}

void RunFilesTest::baselinesStandBesideAnotherRun() {
  Opened f(recordOf());
  QVERIFY(f.isOpen);
  TimingsPanel& timings = f.window.timings();
  BaselineBar& bar = *timings.findChild<BaselineBar*>();
  const auto isShown = [&](int slot) { return !timings.view()->isColumnHidden(TimingsModel::BaselineColumn + slot); };
  QVERIFY(!isShown(0));
  QVERIFY(bar.isHidden());
  QVERIFY(!timings.asText().contains(QStringLiteral("Against")));
  RunRecord smaller = recordOf({.symbols = {{"M", 32}}});
  smaller.environment.emplace_back("measured at", "2026-01-02 03:04:05 UTC");
  smaller.note = "before <the> change";
  QVERIFY(f.session.baselines().pin(smaller));
  timings.columns().choose(TimingsModel::BaselineColumn + 1, false);
  QVERIFY(f.session.baselines().pin(recordOf()));
  QVERIFY(isShown(0) && isShown(1) && !isShown(2));  // who pins a run wants to see it
  QVERIFY(timings.asText().contains(QStringLiteral("vs. A\tvs. B")));
  QVERIFY2(timings.caption().contains(QStringLiteral("Baseline B: <b>small</b>")), qPrintable(timings.caption()));
  QCOMPARE(bar.chips().size(), std::size_t{2});
  bar.chips()[0].run->click();
  const QString caption = timings.caption();
  QVERIFY2(
      caption.contains(QStringLiteral("Baseline A: <b>before &lt;the&gt; change</b>, measured 2026-01-02 08:34:05")),
      qPrintable(caption));
  QVERIFY2(caption.contains(QStringLiteral("symbol M 32 → ")), qPrintable(caption));
  const testing::TemporaryFolder folder;
  const QString page = toQt((folder / "run.html").string());
  QVERIFY(exportedRunWork(f.session, *findExporter("html"), page)());
  const std::string text = *readWholeFile(page.toStdString(), {.what = "page", .maxMiB = 1});
  QVERIFY(text.find("<h3>A: before &lt;the&gt; change</h3>") != std::string::npos);
  QVERIFY(text.find("<h3>B: small</h3>") != std::string::npos);
  named<QComboBox>(bar, "Unit of the differences")->setCurrentText(QStringLiteral("ratio"));
  QCOMPARE(timings.model().changeUnit(), ChangeUnit::Ratio);
  bar.chips()[0].unpin->click();
  QVERIFY(!isShown(0) && isShown(1));
  QVERIFY(timings.caption().contains(QStringLiteral("Baseline B")));
  f.session.baselines().unpinAll();
  QVERIFY(!isShown(1) && bar.isHidden());
  QVERIFY(!timings.caption().contains(QStringLiteral("Baseline")));
}

void RunFilesTest::aBaselineWithoutACommonVariantSaysSo() {
  Opened f(recordOf());
  QVERIFY(f.isOpen);
  RunRecord baseline = recordOf();
  baseline.variants.clear();
  QVERIFY(f.session.baselines().pin(baseline));
  QVERIFY(f.window.timings().view()->isColumnHidden(TimingsModel::BaselineColumn));
  const QString caption = f.window.timings().caption();
  QVERIFY2(caption.contains(QStringLiteral("variant")), qPrintable(caption));
}

void RunFilesTest::asManyRunsArePinnedAsThereAreLetters() {
  Baselines baselines;
  for (const char* file : {"/a.fuserun", "/b.fuserun", "/c.fuserun", "/d.fuserun", "/b.fuserun"})
    QVERIFY(baselines.pin(recordOf(), QString::fromLatin1(file)));
  QCOMPARE(baselines.all().size(), std::size_t{4});
  QCOMPARE(baselines.reference()->letter(), QStringLiteral("B"));  // pinned again
  QCOMPARE(baselines.reference()->name, QStringLiteral("b"));
  const Result<void> fifth = baselines.pin(recordOf());
  QVERIFY(!fifth && fifth.error().message.starts_with("4 runs are pinned"));
  baselines.unpin(1);
  QCOMPARE(baselines.reference()->letter(), QStringLiteral("A"));
  QVERIFY(baselines.pin(recordOf()));
  QCOMPARE(baselines.reference()->letter(), QStringLiteral("B"));  // the letter that is free
  QCOMPARE(baselines.all()[2].letter(), QStringLiteral("C"));
}

void RunFilesTest::baselinesOfAPipelineAreThereNextTime() {
  const OwnSettings settings;
  const testing::TemporaryFolder folder;
  const QString pipeline = toQt((folder / "small.fuseline").string());
  const QString other = toQt((folder / "other.fuseline").string());
  QStringList runs;
  for (const char* name : {"a.fuserun", "b.fuserun", "c.fuserun"}) {
    runs.append(toQt((folder / name).string()));
    QVERIFY(saveRunRecord(recordOf(), folder / name));
  }
  {
    Session session({});
    const BaselineMemory memory(session, nullptr);
    session.openText(smallPipeline(), QStringLiteral("small"));
    QVERIFY(session.pipeline().save(other) && session.pipeline().save(pipeline));
    QCoreApplication::sendPostedEvents();
    for (const QString& run : runs) QVERIFY(session.baselines().pin(recordOf(), run));
    session.baselines().setReference(1);
  }
  QVERIFY(std::filesystem::remove(folder / "c.fuserun"));
  Session session({});
  const BaselineMemory memory(session, nullptr);
  QVERIFY(session.open(pipeline));
  QCOMPARE(session.baselines().all().size(), std::size_t{2});
  QCOMPARE(session.baselines().all()[0].file, runs[0]);
  QCOMPARE(session.baselines().reference()->file, runs[1]);
  QVERIFY(session.open(other));
  QCOMPARE(session.baselines().all().size(), std::size_t{2});  // of none of its own: they stay
  QVERIFY(session.open(pipeline));
  session.baselines().unpinAll();
  QVERIFY(session.open(pipeline));
  QVERIFY(session.baselines().isEmpty());
}

void RunFilesTest::stepsAreNotedAndFoundAgain() {
  const RunRecord record = recordOf();
  Opened f(record);
  QVERIFY(f.isOpen);
  TimingsPanel& timings = f.window.timings();
  QVERIFY(timings.view()->isColumnHidden(TimingsModel::NoteColumn));
  timings.view()->sortByColumn(-1, Qt::AscendingOrder);
  timings.view()->setCurrentIndex(timings.view()->model()->index(0, 0));
  named<QAction>(timings, "Edit the note")->trigger();
  auto* editor = timings.view()->findChild<QLineEdit*>();
  QVERIFY(editor);
  QTest::keyClicks(editor, QStringLiteral("why so slow?"));
  QTest::keyClick(editor, Qt::Key_Return);
  QTRY_COMPARE(timings.model().index(0, TimingsModel::NoteColumn).data().toString(), QStringLiteral("why so slow?"));
  f.window.runs().history().waitForDone();
  QVERIFY(timings.asText().contains(QStringLiteral("why so slow?")));
  const auto again = loadNotedRun(f.file.path().toStdString());
  const StepRecord& first = record.variant("fused")->steps.front();
  QCOMPARE(again->noteOf(first.name, first.phase), std::string("why so slow?"));
  QVERIFY(loadRunRecord(f.file.path().toStdString())->rowNotes.empty());  // the measurement stays as it was
  f.session.results().setRowNote({.step = first.name, .phase = first.phase, .text = ""});
  f.window.runs().history().waitForDone();
  QVERIFY(loadNotedRun(f.file.path().toStdString())->rowNotes.empty());
}

FUSELINE_UI_TEST(RunFilesTest)

}  // namespace fuseline::ui::run_files_test

#include "test_ui_run_files.moc"
