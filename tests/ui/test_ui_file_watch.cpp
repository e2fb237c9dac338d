// Files that another program changes while they are open here: what is noticed, and that nothing is lost.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/atomic_file.h"
#include "core/support/read_file.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/session/autosave.h"
#include "ui/theme/format.h"
#include "ui/window/file_bar.h"
#include "ui/window/recovery_bar.h"

#include <QDateTime>
#include <QFile>
#include <QMessageBox>
#include <QPushButton>
#include <QTest>
#include <QTimer>

#include <algorithm>
#include <ostream>

namespace fuseline::ui::file_watch_test {

class FileWatchTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void noticesWritesInPlace();
  void noticesAReplacedFile();
  void noticesADeletedFileAndItsReturn();
  void aTouchSaysNothing();
  void ownSavesSayNothing();
  void undoneChangesAreNoSave();
  void savingAsFollowsTheNewFile();
  void savingAsksBeforeItOverwrites();
  void savingAsksBeforeItLosesUnreadParts();
  void keptProblemsAreStillShown();
  void aFileThatIsNoPipelineIsNotOpened();
  void keepingMineIsAnUnsavedChange();
  void reloadsTheFile();
  void reloadingKeepsUnsavedChangesForRecovery();
  void aFileNewerThanTheRecoveredOneIsNotOverwritten();
  void aBrokenFileIsNotReloaded();
  void comparesWithTheFile();
};

namespace {

std::string withM(int m) {
  std::string text = smallPipeline();
  const std::string before = "\"M\": 16";
  return text.replace(text.find(before), before.size(), "\"M\": " + std::to_string(m));
}

/// A window with the small pipeline, M = 16, opened from a file.
struct Opened : Fixture {
  Opened() : Fixture(smallPipeline()) {
    write(withM(16));
    isOpen = window.openFile(path);
    window.show();
  }
  void write(const std::string& text) const {
    QFile file(path);
    if (file.open(QFile::WriteOnly)) file.write(QByteArray::fromStdString(text));
  }
  void replace(const std::string& text) const {
    (void)writeFileAtomically(path.toStdString(), [&](std::ostream& out) { out << text; });
  }
  std::string bytes() const { return *readWholeFile(path.toStdString(), {.what = "file"}); }
  FileWatch& watch() { return window.files().watch(); }
  FileBar& bar() { return *window.findChild<FileBar*>(); }
  bool becomes(FileState state) {
    return QTest::qWaitFor([&] { return watch().state() == state; }, 10'000);
  }
  bool staysAsKnown() {
    QTest::qWait(400);
    return watch().state() == FileState::AsKnown;
  }
  void press(const QString& text) {
    for (auto* button : bar().findChildren<QPushButton*>())
      if (button->text() == text && button->isVisible()) return button->click();
    QFAIL(qPrintable(QStringLiteral("there is no button ") + text));
  }
  int m() const { return session.pipeline().document().symbols()["M"].get<int>(); }

  testing::TemporaryFolder folder;
  QString path = toQt((folder / "p.fuseline").string());
  bool isOpen = false;
};

/// Answers the next question with this button.
void answer(const QString& text) {
  QTimer::singleShot(0, [text] {
    auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
    QVERIFY(box);
    for (QAbstractButton* button : box->buttons())
      if (button->text().remove(u'&') == text) return button->click();
    box->reject();
    QFAIL(qPrintable(QStringLiteral("there is no button ") + text));
  });
}

}  // namespace

void FileWatchTest::noticesWritesInPlace() {
  Opened f;
  QVERIFY(f.isOpen && f.staysAsKnown());
  QVERIFY(!f.bar().isVisible());
  f.write(withM(32));
  QVERIFY(f.becomes(FileState::Changed));
  QVERIFY(f.bar().isVisible());
  QCOMPARE(f.m(), 16);  // nothing is read unasked
  f.write(withM(16));
  QVERIFY(f.becomes(FileState::AsKnown));
  QVERIFY(!f.bar().isVisible());
}

void FileWatchTest::noticesAReplacedFile() {
  Opened f;
  for (const int m : {32, 64}) {  // the second file, too, which has the place of the first
    f.replace(withM(m));
    QVERIFY(f.becomes(FileState::Changed));
    f.press(QStringLiteral("Reload"));
    QCOMPARE(f.m(), m);
    QVERIFY(f.staysAsKnown());
  }
}

void FileWatchTest::noticesADeletedFileAndItsReturn() {
  Opened f;
  QVERIFY(QFile::remove(f.path));
  QVERIFY(f.becomes(FileState::Deleted));
  QVERIFY(f.bar().isVisible());
  f.write(withM(32));
  QVERIFY(f.becomes(FileState::Changed));
  QVERIFY(QFile::remove(f.path));
  QVERIFY(f.becomes(FileState::Deleted));
  QVERIFY(f.window.files().save());
  QCOMPARE(f.watch().state(), FileState::AsKnown);
  QVERIFY(QFile::exists(f.path));
}

void FileWatchTest::aTouchSaysNothing() {
  Opened f;
  f.write(withM(16));
  QVERIFY(f.staysAsKnown());
  f.replace(withM(16));
  QVERIFY(f.staysAsKnown());
}

void FileWatchTest::ownSavesSayNothing() {
  Opened f;
  for (const int m : {32, 64}) {
    QVERIFY(f.session.pipeline().apply(SetSymbol{"M", m}));
    QVERIFY(f.window.files().save());
    QVERIFY(f.staysAsKnown());
  }
  f.replace(withM(16));  // and they do not end the watch
  QVERIFY(f.becomes(FileState::Changed));
}

/// The saved state can differ from the current contents of the file.
void FileWatchTest::undoneChangesAreNoSave() {
  Opened f;
  f.write(withM(32));
  QVERIFY(f.becomes(FileState::Changed));
  QVERIFY(f.session.pipeline().apply(SetSymbol{"M", 64}));
  f.session.pipeline().undo();
  QVERIFY(!f.session.pipeline().isModified());
  QCOMPARE(f.watch().check(), FileState::Changed);
}

void FileWatchTest::savingAsFollowsTheNewFile() {
  Opened f;
  const QString other = toQt((f.folder / "other.fuseline").string());
  QVERIFY(f.session.pipeline().save(other));
  QVERIFY(f.staysAsKnown());
  f.write(withM(32));  // no longer ours
  QVERIFY(f.staysAsKnown());
  QVERIFY(QFile::remove(other));
  QVERIFY(f.becomes(FileState::Deleted));
}

void FileWatchTest::savingAsksBeforeItOverwrites() {
  Opened f;
  QVERIFY(f.session.pipeline().apply(SetSymbol{"M", 64}));
  f.write(withM(32));  // noticed when saving, whatever the system has told
  answer(QStringLiteral("Cancel"));
  QVERIFY(!f.window.files().save());
  QCOMPARE(f.bytes(), withM(32));
  QVERIFY(f.session.pipeline().isModified());
  answer(QStringLiteral("Overwrite"));
  QVERIFY(f.window.files().save());
  QVERIFY(f.bytes() != withM(32) && !f.session.pipeline().isModified());
  QVERIFY(f.staysAsKnown());
}

// The second of two values under one key is ignored; it must not be lost without a warning.
void FileWatchTest::savingAsksBeforeItLosesUnreadParts() {
  Opened f;
  std::string partly = withM(32);
  partly.insert(partly.find("\"pipeline\""), "\"symbols\": {\"M\": 8}, ");
  f.write(partly);
  QVERIFY(f.session.open(f.session.pipeline().path()).hasValue());
  QVERIFY(f.session.pipeline().isPartlyRead());
  answer(QStringLiteral("Cancel"));
  QVERIFY(!f.window.files().save());
  QCOMPARE(f.bytes(), partly);
  answer(QStringLiteral("Overwrite"));
  QVERIFY(f.window.files().save());
  QVERIFY(f.bytes() != partly && !f.session.pipeline().isPartlyRead());
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(f.window.problems().model().count(Severity::Error), 0);
}

// Parts that saving keeps remain: the pane still shows the problem, and no dialog opens.
void FileWatchTest::keptProblemsAreStillShown() {
  Opened f;
  std::string misspelt = withM(32);
  misspelt.insert(misspelt.find('[', misspelt.find("\"ops\"")) + 1, "7, ");
  misspelt.insert(misspelt.find("\"pipeline\""), "\"recipie\": {}, ");
  f.write(misspelt);
  QVERIFY(f.session.open(f.session.pipeline().path()).hasValue());
  QVERIFY(!f.session.pipeline().isPartlyRead());
  QVERIFY(f.session.pipeline().apply(SetSymbol{"M", 64}));
  QVERIFY(f.window.files().save());
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(f.session.pipeline().problems().size(), std::size_t{2});
  QVERIFY(f.bytes().find("recipie") != std::string::npos);
  QCOMPARE(f.window.problems().model().count(Severity::Warning), 1);
}

void FileWatchTest::aFileThatIsNoPipelineIsNotOpened() {
  Opened f;
  const std::string before = withM(32);
  const std::size_t numOps = f.session.pipeline().document().ops().size();
  for (const std::string& text : {before.substr(0, before.size() / 2), std::string("[1]"), std::string("{\"a\": 1}")}) {
    f.write(text);
    const Result<void> opened = f.session.open(f.session.pipeline().path());
    QVERIFY(!opened && toQt(opened.error().message).contains(QFileInfo(f.session.pipeline().path()).fileName()));
    QCOMPARE(f.session.pipeline().document().ops().size(), numOps);
    QCOMPARE(f.bytes(), text);
  }
}

void FileWatchTest::keepingMineIsAnUnsavedChange() {
  Opened f;
  f.write(withM(32));
  QVERIFY(f.becomes(FileState::Changed));
  f.press(QStringLiteral("Keep mine"));
  QVERIFY(!f.bar().isVisible());
  QVERIFY(f.session.pipeline().isModified());
  QCOMPARE(f.bytes(), withM(32));
  QVERIFY(f.window.files().save());  // unasked: the user has said it
  QVERIFY(f.bytes() != withM(32));
}

void FileWatchTest::reloadsTheFile() {
  Opened f;
  f.write(withM(32));
  QVERIFY(f.becomes(FileState::Changed));
  f.press(QStringLiteral("Reload"));
  QCOMPARE(f.m(), 32);
  QVERIFY(!f.session.pipeline().isModified() && !f.bar().isVisible());
}

void FileWatchTest::reloadingKeepsUnsavedChangesForRecovery() {
  Opened f;
  const testing::TemporaryFolder journals;
  Autosave autosave(f.session, toQt(journals.path().string()));
  f.window.offerRecovery(autosave);
  QVERIFY(f.session.pipeline().apply(SetSymbol{"M", 64}));
  f.write(withM(32));
  QVERIFY(f.becomes(FileState::Changed));
  f.press(QStringLiteral("Reload"));
  QCOMPARE(f.m(), 32);
  QCOMPARE(autosave.leftovers().size(), std::size_t{1});
  QVERIFY(f.window.findChild<RecoveryBar*>()->isVisible());
  autosave.recoverFirst();
  QCOMPARE(f.m(), 64);
  QVERIFY(f.session.pipeline().isModified());
  QCOMPARE(f.bytes(), withM(32));
}

void FileWatchTest::aFileNewerThanTheRecoveredOneIsNotOverwritten() {
  const testing::TemporaryFolder journals;
  const QString folder = toQt(journals.path().string());
  for (const bool isNewer : {false, true}) {
    Opened f;
    {
      Autosave before(f.session, folder);
      QVERIFY(f.session.pipeline().apply(SetSymbol{"M", 64}));
      before.leaveBehind();
    }
    f.session.pipeline().undo();
    QFile file(f.path);
    QVERIFY(file.open(QFile::ReadWrite));
    const QDateTime now = QDateTime::currentDateTime();
    QVERIFY(file.setFileTime(now.addSecs(isNewer ? 60 : -60), QFileDevice::FileModificationTime));
    file.close();
    Autosave after(f.session, folder);
    QCOMPARE(after.leftovers().size(), std::size_t{1});
    f.window.offerRecovery(after);
    Q_EMIT f.window.findChild<RecoveryBar*>()->recoveryWanted();
    QCOMPARE(f.m(), 64);
    QCOMPARE(f.watch().check(), isNewer ? FileState::Changed : FileState::AsKnown);
  }
}

void FileWatchTest::aBrokenFileIsNotReloaded() {
  Opened f;
  f.write("<<<<<<< HEAD\n" + withM(32));
  QVERIFY(f.becomes(FileState::Changed));
  f.press(QStringLiteral("Reload"));
  QCOMPARE(f.m(), 16);
  QVERIFY(!f.window.message().isEmpty());
  QVERIFY(f.bar().isVisible());
}

void FileWatchTest::comparesWithTheFile() {
  Opened f;
  f.write(withM(32));
  QVERIFY(f.becomes(FileState::Changed));
  f.press(QStringLiteral("Compare"));
  QVERIFY(f.window.changes().isVisible());
  QVERIFY(QTest::qWaitFor([&] { return f.window.changes().view()->model()->rowCount() > 0; }, 10'000));
}

FUSELINE_UI_TEST(FileWatchTest)

}  // namespace fuseline::ui::file_watch_test

#include "test_ui_file_watch.moc"
