// Numbered places on the canvas: set and found by keys, kept for each document.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/session/view_bookmarks.h"
#include "ui/theme/format.h"

#include <QSettings>
#include <QStatusBar>

namespace fuseline::ui::bookmarks_test {

class BookmarksTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void digitsComeBackToAPlace();
  void aBookmarkThatIsNotSetSaysHow();
  void anotherDocumentHasOthers();
  void areKeptForEachFile();
  void goWithTheDocumentIntoAFile();
  void areNotInTheContextMenu();
  void settingsThatMakeNoSenseAreLeftOut();
};

namespace {

void press(Fixture& f, const QKeySequence& keys) {
  f.window.activateWindow();
  if (!QTest::qWaitForWindowActive(&f.window)) return;
  f.window.canvas().setFocus();
  QTest::keySequence(&f.window.canvas(), keys);
}

double distance(QPointF a, QPointF b) { return QLineF(a, b).length(); }

constexpr ViewPlace kPlace = {{40, -8}, 0.5};

}  // namespace

void BookmarksTest::digitsComeBackToAPlace() {
  Fixture f(smallPipeline());
  GraphView& view = f.window.canvas();
  view.camera().showPlace({300, 40}, 1.5);
  const QPointF middle = view.camera().middle();
  press(f, QKeySequence(QStringLiteral("Ctrl+Shift+3")));
  view.fit();
  QVERIFY(distance(view.camera().middle(), middle) > 20);
  press(f, QKeySequence(QStringLiteral("3")));
  QVERIFY(distance(view.camera().middle(), middle) < 2);
  QCOMPARE(view.zoom(), 1.5);
  QVERIFY(!f.session.pipeline().isModified());
}

void BookmarksTest::aBookmarkThatIsNotSetSaysHow() {
  Fixture f(smallPipeline());
  const double zoom = f.window.canvas().zoom();
  press(f, QKeySequence(QStringLiteral("7")));
  QCOMPARE(f.window.statusBar()->currentMessage(),
           QStringLiteral("Bookmark 7 is not set. Press Ctrl+Shift+7 to set it."));
  QCOMPARE(f.window.canvas().zoom(), zoom);
}

void BookmarksTest::anotherDocumentHasOthers() {
  Fixture f(smallPipeline());
  press(f, QKeySequence(QStringLiteral("Ctrl+Shift+3")));
  f.session.openText(residualPipeline(true), QStringLiteral("other"));
  QVERIFY(waitForAnalysis(f.session));
  press(f, QKeySequence(QStringLiteral("3")));
  QVERIFY(f.window.statusBar()->currentMessage().startsWith(QStringLiteral("Bookmark 3 is not set")));
}

void BookmarksTest::areKeptForEachFile() {
  const OwnSettings settings;
  ViewBookmarks bookmarks(true);
  bookmarks.open(QStringLiteral("/a/b.fuseline"));
  bookmarks.set(9, kPlace);
  bookmarks.open(QStringLiteral("/a/c.fuseline"));
  QVERIFY(!bookmarks.at(9));
  ViewBookmarks later(true);
  later.open(QStringLiteral("/a/b.fuseline"));
  QVERIFY(later.at(9));
  QCOMPARE(later.at(9)->middle, kPlace.middle);
  QCOMPARE(later.at(9)->zoom, kPlace.zoom);
  ViewBookmarks forgetful(false);
  forgetful.open(QStringLiteral("/a/b.fuseline"));
  QVERIFY(!forgetful.at(9));
}

void BookmarksTest::goWithTheDocumentIntoAFile() {
  const OwnSettings settings;
  ViewBookmarks bookmarks(true);
  bookmarks.open({});
  bookmarks.set(1, kPlace);
  QVERIFY(QSettings().allKeys().isEmpty());
  bookmarks.follow(QStringLiteral("/a/d.fuseline"));
  ViewBookmarks later(true);
  later.open(QStringLiteral("/a/d.fuseline"));
  QVERIFY(later.at(1));
}

void BookmarksTest::areNotInTheContextMenu() {
  Fixture f(smallPipeline());
  for (const QAction* action : f.window.canvas().actions())
    QVERIFY(!action->text().contains(QStringLiteral("bookmark"), Qt::CaseInsensitive));
}

void BookmarksTest::settingsThatMakeNoSenseAreLeftOut() {
  const OwnSettings settings;
  const QVariantList places = {QVariant(QVariantList{0, 1, 1, 1}), QVariant(QVariantList{2, 1, 1, 0}),
                               QVariant(QStringLiteral("?")), QVariant(QVariantList{4, 8, 8, 2})};
  QSettings().setValue(
      QStringLiteral("viewBookmarks"),
      QVariantList{QVariantMap{{QStringLiteral("path"), QStringLiteral("/a")}, {QStringLiteral("places"), places}}});
  ViewBookmarks bookmarks(true);
  bookmarks.open(QStringLiteral("/a"));
  for (const int number : {0, 2}) QVERIFY(!bookmarks.at(number));
  QVERIFY(bookmarks.at(4));
}

FUSELINE_UI_TEST(BookmarksTest)

}  // namespace fuseline::ui::bookmarks_test

#include "test_ui_bookmarks.moc"
