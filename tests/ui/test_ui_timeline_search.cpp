// Single boxes of the timeline: matches of a search, their work in the other pass, pinned tips.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ui/timeline_examples.h"
#include "tests/ui/ui_test_main.h"
#include "ui/timeline/timeline_links.h"
#include "ui/timeline/timeline_search.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QImage>
#include <QTest>
#include <QToolButton>

#include <algorithm>

namespace fuseline::ui::timeline_search_test {

class TimelineSearchTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void boxesAreFoundByWordsOrElseByLetters();
  void onlyShownRowsAreSearched();
  void theFieldGoesFromMatchToMatch();
  void theFieldHasItsOwnKeys();
  void matchesAreMarked();
  void workOfTheSameOpsIsJoinedAcrossPasses();
  void curvesAreDrawnForTheSelectionOnly();
  void aTipStaysWhereItIsPinned();
  void aCardMovesIsCopiedAndClosed();
  void cardsGoWithTheirRun();
  void everyControlHasAName();
};

namespace {

QStringList labelsOf(const TimelineStack& stack, const QString& query) {
  QStringList labels;
  for (const TimelinePlace& place : findBoxes(stack.tracks(), query))
    labels.append(
        QStringLiteral("%1%2").arg(place.track).arg(stack.tracks().all()[place.track].items[place.item].label));
  return labels;
}

TimelineStack tracedStack() {
  TimelineStack stack;
  stack.arrange([](ArrangedTracks& tracks) { tracks.setTracks(timelineTracks(tracedVariant(), nullptr)); });
  return stack;
}

/// The number of pixels at this height with another color.
int numChanged(const QImage& before, const QImage& after, int y) {
  int count = 0;
  for (int x = 0; x < before.width(); ++x) count += before.pixel(x, y) != after.pixel(x, y);
  return count;
}

}  // namespace

void TimelineSearchTest::boxesAreFoundByWordsOrElseByLetters() {
  const TimelineStack stack = tracedStack();
  QCOMPARE(labelsOf(stack, "GEMM"), QStringList({"1gemm<c::d>"}));
  QCOMPARE(labelsOf(stack, "copy device"), QStringList({"1copy, host to device"}));
  QCOMPARE(labelsOf(stack, "r(a"), QStringList({"1R(a, b)", "1gemm<c::d>", "1copy, host to device"}));
  QCOMPARE(labelsOf(stack, "gmm"), QStringList({"1gemm<c::d>"}));
  QCOMPARE(labelsOf(stack, "  "), QStringList());
  QCOMPARE(labelsOf(stack, "xyz"), QStringList());
}

void TimelineSearchTest::onlyShownRowsAreSearched() {
  TimelineStack stack = tracedStack();
  stack.arrange([&](ArrangedTracks& tracks) { tracks.setRowsShown(TimelineRowKind::Kernels, false); });
  QCOMPARE(labelsOf(stack, "r(a"), QStringList({"1R(a, b)"}));
  stack.arrange([&](ArrangedTracks& tracks) { tracks.setShown(1, false); });
  QCOMPARE(labelsOf(stack, "r(a"), QStringList());
}

void TimelineSearchTest::theFieldGoesFromMatchToMatch() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  TimelineFind& find = f.window.timeline().find();
  QVERIFY(!find.isVisible());
  QTest::keyClick(&f.view(), Qt::Key_F, Qt::ControlModifier);
  QVERIFY(find.isVisible());
  QTest::keyClicks(find.field(), QStringLiteral("act"));
  const auto numMatches = findBoxes(f.view().tracks(), QStringLiteral("act")).size();
  QVERIFY(numMatches >= 3);
  QCOMPARE(find.countText(), QStringLiteral("1 of %1").arg(numMatches));
  QCOMPARE(f.session.selection().ids(), QSet<QString>({"act"}));
  const TimelineItem* first = f.view().currentItem();
  QTest::keyClick(find.field(), Qt::Key_Return);
  QCOMPARE(find.countText(), QStringLiteral("2 of %1").arg(numMatches));
  QVERIFY(f.view().currentItem() != first);
  QTest::keyClick(find.field(), Qt::Key_Return, Qt::ShiftModifier);
  QVERIFY(f.view().currentItem() == first);
  QTest::keyClick(find.field(), Qt::Key_F3, Qt::ShiftModifier);
  QCOMPARE(find.countText(), QStringLiteral("%1 of %1").arg(numMatches));
  QTest::keyClicks(find.field(), QStringLiteral("qqq"));
  QCOMPARE(find.countText(), QStringLiteral("none"));
}

void TimelineSearchTest::theFieldHasItsOwnKeys() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  TimelineFind& find = f.window.timeline().find();
  QTest::keyClick(&f.view(), Qt::Key_Slash);
  QTest::keyClicks(find.field(), QStringLiteral("fc"));
  QTest::keyClick(find.field(), Qt::Key_F, Qt::ControlModifier);
  QCOMPARE(find.field()->selectedText(), QStringLiteral("fc"));
  QTest::keyClick(find.field(), Qt::Key_Escape);
  QVERIFY(!find.isVisible() && f.view().hasFocus());
  QCOMPARE(f.session.selection().ids(), QSet<QString>({"fc"}));
}

void TimelineSearchTest::matchesAreMarked() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  const QImage before = f.view().grab().toImage();
  f.view().setMatches(findBoxes(f.view().tracks(), QStringLiteral("fc")));
  QVERIFY(f.view().grab().toImage() != before);
  f.view().setMatches({});
  QCOMPARE(f.view().grab().toImage(), before);
}

void TimelineSearchTest::workOfTheSameOpsIsJoinedAcrossPasses() {
  const auto tracks = timelineTracks(twoVariants(), nullptr);
  QStringList links;
  for (const TimelineTrack& track : tracks)
    for (const auto& [forward, backward] : acrossPasses(track)) {
      QVERIFY(track.items[forward].phase == Phase::Forward && track.items[backward].phase == Phase::Backward);
      links.append(track.items[forward].label + QStringLiteral(">") + track.items[backward].label);
    }
  QCOMPARE(links, QStringList({"a>a", "R(a, b)>a"}));
}

void TimelineSearchTest::curvesAreDrawnForTheSelectionOnly() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  const int y = qRound(f.view().stack().rowTop(0, 1)) - 8;
  for (const bool isDark : {false, true}) {
    f.theme.apply(isDark ? ThemeChoice::Dark : ThemeChoice::Light);
    f.session.selection().select({});
    const QImage none = f.view().grab().toImage();
    f.session.selection().select({QStringLiteral("norm")});
    QVERIFY(numChanged(none, f.view().grab().toImage(), y) > 0);
    f.session.selection().select({QStringLiteral("x")});
    QCOMPARE(numChanged(none, f.view().grab().toImage(), y), 0);
  }
}

void TimelineSearchTest::aTipStaysWhereItIsPinned() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  QTest::keyClick(&f.view(), Qt::Key_F2);
  QVERIFY(f.window.timeline().cards().isEmpty());
  QTest::keyClick(&f.view(), Qt::Key_Right);
  QTest::keyClick(&f.view(), Qt::Key_F2);
  QCOMPARE(f.window.timeline().cards().size(), 1);
  TipCard& card = *f.window.timeline().cards().front();
  QVERIFY(card.isVisible());
  QVERIFY2(card.text().startsWith(QStringLiteral("norm (")) && !card.text().contains('<'), qPrintable(card.text()));
  QTest::keyClick(&f.view(), Qt::Key_Right);
  QTest::keyClick(&f.view(), Qt::Key_F2);
  QCOMPARE(f.window.timeline().cards().size(), 2);
  QVERIFY(f.window.timeline().cards().back()->text().startsWith(QStringLiteral("fc (")));
}

void TimelineSearchTest::aCardMovesIsCopiedAndClosed() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  QTest::keyClick(&f.view(), Qt::Key_Right);
  QTest::keyClick(&f.view(), Qt::Key_F2);
  TipCard& card = *f.window.timeline().cards().front();
  card.moveTo(QPoint(20, 20));
  QTest::mousePress(&card, Qt::LeftButton, {}, QPoint(3, 3));
  QTest::mouseMove(&card, QPoint(33, 3));
  QTest::mouseRelease(&card, Qt::LeftButton, {}, QPoint(33, 3));
  QCOMPARE(card.pos().x(), 50);
  card.setFocus();
  QTest::keyClick(&card, Qt::Key_Right);
  QCOMPARE(card.pos().x(), 60);
  card.moveTo(QPoint(100000, -50));
  QCOMPARE(card.geometry().right() + 1, f.window.timeline().width());
  QCOMPARE(card.pos().y(), 0);
  QTest::keyClick(&card, Qt::Key_C, Qt::ControlModifier);
  QCOMPARE(QGuiApplication::clipboard()->text(), card.text());
  QTest::keyClick(&card, Qt::Key_Escape);
  QVERIFY(QTest::qWaitFor([&] { return f.window.timeline().cards().isEmpty(); }));
}

void TimelineSearchTest::cardsGoWithTheirRun() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  QTest::keyClick(&f.view(), Qt::Key_Right);
  QTest::keyClick(&f.view(), Qt::Key_F2);
  f.session.openText(smallPipeline(), QStringLiteral("other"));
  QVERIFY(QTest::qWaitFor([&] { return f.window.timeline().cards().isEmpty(); }));
}

/// Checks the pane with all of its parts open.
void TimelineSearchTest::everyControlHasAName() {
  OpenedTimeline f(tracedRun());
  QVERIFY(f.isOpen);
  QTest::keyClick(&f.view(), Qt::Key_F, Qt::ControlModifier);
  f.view().arrange([](ArrangedTracks& tracks) { tracks.setRowsShown(TimelineRowKind::Kernels, false); });
  QTest::keyClick(&f.view(), Qt::Key_Q);
  QTest::keyClick(&f.view(), Qt::Key_Right);
  QTest::keyClick(&f.view(), Qt::Key_F2);
  int numControls = 0;
  for (const QWidget* control : f.window.timeline().findChildren<QWidget*>()) {
    const bool isControl = control->focusPolicy() != Qt::NoFocus || qobject_cast<const QToolButton*>(control);
    const bool isText = qobject_cast<const QLabel*>(control);  // which is read as it is
    if (!isControl || isText || !control->isVisible() || control->objectName().startsWith("qt_")) continue;
    ++numControls;
    QVERIFY2(!control->accessibleName().isEmpty(), control->metaObject()->className());
  }
  QVERIFY(numControls >= 10);
}

FUSELINE_UI_TEST(TimelineSearchTest)

}  // namespace fuseline::ui::timeline_search_test

#include "test_ui_timeline_search.moc"
