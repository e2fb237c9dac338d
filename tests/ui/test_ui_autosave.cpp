// Journals of unsaved pipelines: what is kept, what a killed program leaves, and how it is offered.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/read_file.h"
#include "tests/support/temporary_folder.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/session/autosave.h"
#include "ui/theme/format.h"
#include "ui/widgets/expression_edit.h"
#include "ui/window/recovery_bar.h"

#include <QDir>
#include <QMessageBox>
#include <QProcess>
#include <QPushButton>
#include <QTest>
#include <QTimer>

#include <fstream>
#include <string_view>

namespace fuseline::ui::autosave_test {

class AutosaveTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void keepsUnsavedChangesUntilTheyAreSaved();
  void undoneChangesLeaveNoJournal();
  void unsavedChangesSurviveTheEndOfTheDesktop();
  void recoversUnsavedChangesOfAKilledProgram();
  void discardsUnsavedChangesOfAKilledProgram();
  void whatWasNotReadIsNotReadAfterARecoveryEither();
  void leavesTheJournalOfALivingProgramAlone();
  void leavesOtherFilesAlone();
  void saysOnceThatNothingCanBeKept();
  void closingDuringARunAsksOnce();
  void whatIsTypedCountsWhenTheWindowCloses();
};

namespace {

constexpr AutosaveTiming kAtOnce{.afterEdit = std::chrono::milliseconds(0), .whileEditing = std::chrono::seconds(30)};

QString folderOf(const testing::TemporaryFolder& folder) { return toQt(folder.path().string()); }

QStringList journalsIn(const testing::TemporaryFolder& folder) {
  return QDir(folderOf(folder)).entryList({QStringLiteral("*.journal")});
}

std::string bytesOf(const std::filesystem::path& path) { return *readWholeFile(path, {.what = "file"}); }

/// The file that the victim opens and changes.
std::filesystem::path pipelineIn(const testing::TemporaryFolder& folder) { return folder / "p.fuseline"; }

/// Another process of this program opens the file, changes M to 77, and is killed.
bool killAfterAnEdit(const testing::TemporaryFolder& folder) {
  Session session({});
  session.openText(smallPipeline(), {});
  if (!session.pipeline().save(toQt(pipelineIn(folder).string()))) return false;
  QProcess victim;
  victim.start(QCoreApplication::applicationFilePath(),
               {QStringLiteral("test_ui_autosave"), QStringLiteral("--victim"), folderOf(folder)});
  const bool isJournalled = QTest::qWaitFor([&] { return !journalsIn(folder).isEmpty(); }, 30'000);
  victim.kill();  // SIGKILL
  return victim.waitForFinished() && victim.exitStatus() == QProcess::CrashExit && isJournalled;
}

}  // namespace

void AutosaveTest::keepsUnsavedChangesUntilTheyAreSaved() {
  const testing::TemporaryFolder folder;
  Session session({});
  Autosave autosave(session, folderOf(folder), kAtOnce);
  session.openText(smallPipeline(), QStringLiteral("small"));
  QVERIFY(journalsIn(folder).isEmpty());
  QVERIFY(session.pipeline().apply(SetSymbol{"M", 77}));
  QVERIFY(QTest::qWaitFor([&] { return journalsIn(folder).size() == 1; }));
  const Json journal = Json::parse(bytesOf(autosave.journal().toStdString()));
  QCOMPARE(journal.at("pipeline").get<std::string>(), serialize(session.pipeline().document()));
  QVERIFY(session.pipeline().save(toQt(pipelineIn(folder).string())));
  QVERIFY(journalsIn(folder).isEmpty());
}

void AutosaveTest::undoneChangesLeaveNoJournal() {
  const testing::TemporaryFolder folder;
  Session session({});
  Autosave autosave(session, folderOf(folder), kAtOnce);
  QVERIFY(session.pipeline().apply(SetSymbol{"M", 77}));
  autosave.write();
  QCOMPARE(journalsIn(folder).size(), 1);
  session.pipeline().undo();
  QVERIFY(journalsIn(folder).isEmpty());
}

void AutosaveTest::unsavedChangesSurviveTheEndOfTheDesktop() {
  const testing::TemporaryFolder folder;
  Fixture f(smallPipeline());
  {
    Autosave autosave(f.session, folderOf(folder), kAtOnce);
    autosave.leaveBehind();  // nothing is unsaved
  }
  QVERIFY(journalsIn(folder).isEmpty());
  {
    Autosave autosave(f.session, folderOf(folder), kAtOnce);
    QVERIFY(f.session.pipeline().apply(SetSymbol{"M", 77}));
    autosave.leaveBehind();
  }
  QCOMPARE(journalsIn(folder).size(), 1);
  QCOMPARE(Autosave(f.session, folderOf(folder), kAtOnce).leftovers().size(), std::size_t{1});
}

void AutosaveTest::recoversUnsavedChangesOfAKilledProgram() {
  const testing::TemporaryFolder folder;
  QVERIFY(killAfterAnEdit(folder));
  const std::string onDisk = bytesOf(pipelineIn(folder));
  Fixture f(residualPipeline(true));
  Autosave autosave(f.session, folderOf(folder), kAtOnce);
  f.window.offerRecovery(autosave);
  auto* bar = f.window.findChild<RecoveryBar*>();
  QVERIFY(bar && bar->isVisible());
  QVERIFY(bar->findChild<QLabel*>()->text().contains(QStringLiteral("p.fuseline, 3 ops, from ")));
  bar->findChildren<QPushButton*>().front()->click();
  QVERIFY(f.session.pipeline().document().symbols()["M"] == Json(77));
  QCOMPARE(f.session.pipeline().path(), toQt(pipelineIn(folder).string()));
  QVERIFY(f.session.pipeline().isModified());
  QVERIFY(!bar->isVisible());
  QCOMPARE(bytesOf(pipelineIn(folder)), onDisk);
  QCOMPARE(journalsIn(folder).size(), 1);  // the new one, for it is still not saved
  QVERIFY(QFileInfo::exists(autosave.journal()));
}

void AutosaveTest::discardsUnsavedChangesOfAKilledProgram() {
  const testing::TemporaryFolder folder;
  QVERIFY(killAfterAnEdit(folder));
  Fixture f(smallPipeline());
  Autosave autosave(f.session, folderOf(folder), kAtOnce);
  f.window.offerRecovery(autosave);
  auto* bar = f.window.findChild<RecoveryBar*>();
  bar->findChildren<QPushButton*>().back()->click();
  QVERIFY(!bar->isVisible());
  QVERIFY(!f.session.pipeline().isModified());
  QCOMPARE(QDir(folderOf(folder)).entryList(QDir::Files), QStringList{QStringLiteral("p.fuseline")});
}

/// Saving would lose it: that is asked about, as in a session that nothing interrupted.
void AutosaveTest::whatWasNotReadIsNotReadAfterARecoveryEither() {
  const testing::TemporaryFolder folder;
  std::string partly = smallPipeline();
  partly.insert(partly.find("\"pipeline\""), "\"symbols\": {\"M\": 8}, ");
  std::ofstream(pipelineIn(folder)) << partly;
  Session session({});
  QVERIFY(session.open(toQt(pipelineIn(folder).string())).hasValue());
  QVERIFY(session.pipeline().isPartlyRead());
  Autosave autosave(session, folderOf(folder), kAtOnce);
  QVERIFY(session.pipeline().apply(SetSymbol{"M", 77}));
  QVERIFY(autosave.setAside());
  session.openText(smallPipeline(), {});
  QVERIFY(!session.pipeline().isPartlyRead());
  autosave.recoverFirst();
  QVERIFY(session.pipeline().isPartlyRead());
  QVERIFY(session.pipeline().save(session.pipeline().path()).hasValue() && !session.pipeline().isPartlyRead());
}

void AutosaveTest::leavesTheJournalOfALivingProgramAlone() {
  const testing::TemporaryFolder folder;
  Session first({});
  Autosave living(first, folderOf(folder), kAtOnce);
  QVERIFY(first.pipeline().apply(SetSymbol{"M", 77}));
  living.write();
  Session second({});
  const Autosave other(second, folderOf(folder), kAtOnce);
  QVERIFY(other.leftovers().empty());
  QCOMPARE(journalsIn(folder).size(), 1);
}

void AutosaveTest::leavesOtherFilesAlone() {
  const testing::TemporaryFolder folder;
  QFile file(folderOf(folder) + QStringLiteral("/half.journal"));
  QVERIFY(file.open(QFile::WriteOnly) && file.write("{\"format\": \"fuseline-autos") > 0);
  file.close();
  Session session({});
  const Autosave autosave(session, folderOf(folder), kAtOnce);
  QVERIFY(autosave.leftovers().empty());
  QVERIFY(file.exists());
}

void AutosaveTest::saysOnceThatNothingCanBeKept() {
  const testing::TemporaryFolder folder;
  QFile file(folderOf(folder) + QStringLiteral("/file"));
  QVERIFY(file.open(QFile::WriteOnly));
  Session session({});
  Autosave autosave(session, file.fileName() + QStringLiteral("/autosave"), kAtOnce);
  QStringList said;
  connect(&autosave, &Autosave::failed, this, [&](const QString& sentence) { said.append(sentence); });
  QVERIFY(session.pipeline().apply(SetSymbol{"M", 77}));
  autosave.write();
  autosave.write();
  QCOMPARE(said.size(), 1);
  QVERIFY(said.front().startsWith(QStringLiteral("Unsaved changes cannot be kept for recovery: ")));
}

void AutosaveTest::whatIsTypedCountsWhenTheWindowCloses() {
  Fixture f(smallPipeline());
  f.window.activateWindow();
  QVERIFY(QTest::qWaitForWindowActive(&f.window));
  auto* field = f.window.inspector().findChild<ExpressionEdit*>();
  QVERIFY(field);
  field->setFocus();
  field->selectAll();
  QTest::keyClicks(field, QStringLiteral("77"));
  QVERIFY(!f.session.pipeline().isModified());
  QString asked;
  QTimer::singleShot(0, this, [&asked] {
    auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
    if (!box) return;
    asked = box->text();
    box->button(QMessageBox::Cancel)->click();
  });
  QVERIFY(!f.window.close());
  QVERIFY2(asked.startsWith(QStringLiteral("Save changes to ")), qPrintable(asked));
  QVERIFY(f.session.pipeline().isModified());
}

void AutosaveTest::closingDuringARunAsksOnce() {
  // A worker that never answers.
  Fixture f(smallPipeline(), {QStringLiteral("sleep"), QStringLiteral("60")});
  f.session.runner().run();
  QVERIFY(f.session.runner().isRunning());
  QStringList asked;
  const auto answer = [&](QMessageBox::StandardButton button) {
    QTimer::singleShot(0, this, [&asked, button] {
      auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
      if (!box) return;
      asked.append(box->text());
      box->button(button)->click();
    });
  };
  answer(QMessageBox::Cancel);
  f.window.files().newDocument();
  QCOMPARE(asked, QStringList{QStringLiteral("Stop the run and discard its measurements?")});
  QVERIFY(f.session.runner().isRunning());
  asked.clear();
  answer(QMessageBox::Cancel);
  QVERIFY(!f.window.close());
  QCOMPARE(asked, QStringList{QStringLiteral("Stop the run and close the window?")});
  QVERIFY(f.session.pipeline().apply(SetSymbol{"M", 77}));
  answer(QMessageBox::Discard);
  QVERIFY(f.window.close());
  QCOMPARE(asked.size(), 2);
  QVERIFY(asked.back().endsWith(QStringLiteral("The run in progress will be stopped.")));
}

namespace {

int beKilled(QApplication& app, const QString& folder) {
  Session session({});
  Autosave autosave(session, folder, kAtOnce);
  if (!session.open(folder + QStringLiteral("/p.fuseline"))) return EXIT_FAILURE;
  if (!session.pipeline().apply(SetSymbol{"M", 77})) return EXIT_FAILURE;
  return app.exec();
}

int runAutosaveTest(int argc, char** argv) {
  if (argc != 3 || std::string_view(argv[1]) != "--victim") return runUiTest<AutosaveTest>(argc, argv);
  QApplication app(argc, argv);
  return beKilled(app, QString::fromLocal8Bit(argv[2]));
}

[[maybe_unused]] const bool isRegistered = registerUiTest(__FILE__, runAutosaveTest);

}  // namespace

}  // namespace fuseline::ui::autosave_test

#include "test_ui_autosave.moc"
