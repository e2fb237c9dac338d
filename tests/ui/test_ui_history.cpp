// The list of what can be undone: its rows, and going to any of them.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/theme/format.h"

#include <QMenuBar>
#include <QSignalSpy>
#include <QTest>

namespace fuseline::ui::history_test {

class HistoryTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void editsAreListedTheNewestFirst();
  void aClickGoesThereInOneChange();
  void keysWalkAndEnterGoes();
  void theSavedStateIsMarked();
  void anotherPipelineHasItsOwn();
  void anEditReplacesUndoneEdits();
  void theCommandLeadsToTheList();
  void rowsSayAllToScreenReadersAndTips();
};

namespace {

QStringList rowsOf(Fixture& f) {
  QStringList rows;
  for (int row = 0; row < f.window.history().model().rowCount(); ++row)
    rows.append(f.window.history().model().index(row).data().toString());
  return rows;
}

/// A window with the pane in front and three edits of H: to 40, 48 and 56.
struct Edited : Fixture {
  Edited() : Fixture(smallPipeline()) {
    window.showPane(QStringLiteral("history"));
    for (const int value : {40, 48, 56}) session.pipeline().apply(SetSymbol{.name = "H", .value = value});
  }
  Json h() const { return session.pipeline().document().symbols()["H"]; }
  QListView& view() { return *window.history().view(); }
  void click(int row) {
    QTest::mouseClick(view().viewport(), Qt::LeftButton, {},
                      view().visualRect(window.history().model().index(row)).center());
  }
};

}  // namespace

void HistoryTest::editsAreListedTheNewestFirst() {
  Fixture f(smallPipeline());
  QCOMPARE(rowsOf(f), QStringList({"Opened · now"}));
  QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "H", .value = 48}));
  QVERIFY(f.session.pipeline().apply(SetAttribute{"fc", "bias", true}));
  QCOMPARE(rowsOf(f), QStringList({"Set fc.bias · now", "Set symbol H", "Opened"}));
  f.session.pipeline().undo();
  QCOMPARE(rowsOf(f), QStringList({"Set fc.bias · undone", "Set symbol H · now", "Opened"}));
  QCOMPARE(f.window.history().view()->currentIndex().row(), 1);
}

void HistoryTest::aClickGoesThereInOneChange() {
  Edited f;
  const std::string newest = serialize(f.session.pipeline().document());
  const QSignalSpy changes(&f.session.pipeline(), &OpenPipeline::changed);
  f.click(3);
  QCOMPARE(changes.size(), 1);
  QCOMPARE(f.h(), Json(32));
  QVERIFY(!f.session.pipeline().isModified());
  f.click(1);
  QCOMPARE(changes.size(), 2);
  QCOMPARE(f.h(), Json(48));
  f.click(1);
  QCOMPARE(changes.size(), 2);
  f.click(0);
  QCOMPARE(serialize(f.session.pipeline().document()), newest);
}

void HistoryTest::keysWalkAndEnterGoes() {
  Edited f;
  f.view().setFocus();
  QTest::keyClick(&f.view(), Qt::Key_Down);
  QTest::keyClick(&f.view(), Qt::Key_Down);
  QCOMPARE(f.h(), Json(56));
  QTest::keyClick(&f.view(), Qt::Key_Return);
  QCOMPARE(f.h(), Json(40));
  QCOMPARE(f.view().currentIndex().row(), 2);
  QTest::keyClick(&f.view(), Qt::Key_Up);
  QTest::keyClick(&f.view(), Qt::Key_Space);
  QCOMPARE(f.h(), Json(48));
}

void HistoryTest::theSavedStateIsMarked() {
  Edited f;
  f.session.pipeline().undo();
  const testing::TemporaryFolder folder;
  QVERIFY(f.session.pipeline().save(toQt((folder / "a.fuseline").string())));
  f.session.pipeline().undo();
  QCOMPARE(rowsOf(f),
           QStringList({"Set symbol H · undone", "Set symbol H · undone, saved", "Set symbol H · now", "Opened"}));
}

void HistoryTest::anotherPipelineHasItsOwn() {
  Edited f;
  f.session.openText(residualPipeline(true), QStringLiteral("other"));
  QCOMPARE(rowsOf(f), QStringList({"Opened · now"}));
}

void HistoryTest::anEditReplacesUndoneEdits() {
  Edited f;
  f.click(2);
  QVERIFY(f.session.pipeline().apply(SetAttribute{"fc", "bias", true}));
  QCOMPARE(rowsOf(f), QStringList({"Set fc.bias · now", "Set symbol H", "Opened"}));
}

void HistoryTest::theCommandLeadsToTheList() {
  Fixture f(smallPipeline());
  QVERIFY(QTest::qWaitForWindowExposed(&f.window));
  for (QAction* action : f.window.menuBar()->actions().at(1)->menu()->actions())
    if (action->text() == QStringLiteral("&History")) action->trigger();
  QVERIFY(QTest::qWaitFor([&] { return !f.window.history().view()->viewport()->visibleRegion().isEmpty(); }));
  QVERIFY(f.window.history().isAncestorOf(f.window.focusWidget()));
}

void HistoryTest::rowsSayAllToScreenReadersAndTips() {
  Edited f;
  QVERIFY(!f.view().accessibleName().isEmpty());
  const QModelIndex row = f.window.history().model().index(0);
  QCOMPARE(row.data(Qt::AccessibleTextRole).toString(), QStringLiteral("Set symbol H · now"));
  QCOMPARE(row.data(Qt::ToolTipRole).toString(), QStringLiteral("Set symbol H · now"));
}

FUSELINE_UI_TEST(HistoryTest)

}  // namespace fuseline::ui::history_test

#include "test_ui_history.moc"
