// Tracks of the timeline as the user arranges them: folded, pinned, moved, hidden.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ui/timeline_examples.h"
#include "tests/ui/ui_test_main.h"
#include "ui/timeline/timeline_tracks_menu.h"

#include <QScrollBar>
#include <QSettings>
#include <QTest>
#include <QToolButton>

#include <algorithm>
#include <random>

namespace fuseline::ui::timeline_tracks_test {

class TimelineTracksTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void rowsHaveKinds();
  void aFoldedTrackIsAStripOfItsSteps();
  void pinnedTracksStayAtTheTopWhileThereIsRoom();
  void hiddenRowsAndTracksAreLeftOut();
  void tracksMoveAmongTheirLikes();
  void anyArrangementIsLaidOutWithoutOverlaps();
  void settingsKeepAnyArrangement();
  void mouseFoldsPinsAndMoves();
  void keysFoldPinMoveAndHide();
  void aBannerListsHiddenTracks();
  void whatIsHiddenIsNeitherCurrentNorInTheArea();
  void pinnedTrackAndRulerStayWhileScrolling();
  void theMenuArrangesEachTrack();
  void theNextWindowIsArrangedAlike();
};

namespace {

/// A stack of tracks "t0", "t1" and so on like the traced one.
TimelineStack stackOf(int numTracks) {
  const TimelineTrack traced = timelineTracks(tracedVariant(), nullptr)[1];
  std::vector<TimelineTrack> tracks(static_cast<std::size_t>(numTracks), traced);
  for (int i = 0; i < numTracks; ++i) tracks[static_cast<std::size_t>(i)].name = QStringLiteral("t%1").arg(i);
  TimelineStack stack;
  stack.arrange([&](ArrangedTracks& arranged) { arranged.setTracks(std::move(tracks)); });
  stack.setScroll(0, 1000);
  return stack;
}

QStringList namesIn(const TimelineStack& stack) {
  QStringList names;
  for (const std::size_t track : stack.tracks().order()) names.append(stack.tracks().all()[track].name);
  return names;
}

bool move(TimelineStack& stack, std::size_t track, int by) {
  bool isMoved = false;
  stack.arrange([&](ArrangedTracks& tracks) { isMoved = tracks.move(track, by); });
  return isMoved;
}

}  // namespace

void TimelineTracksTest::rowsHaveKinds() {
  const auto tracks = timelineTracks(tracedVariant(), nullptr);
  QCOMPARE(kindOf(tracks[0], 1), TimelineRowKind::Steps);
  QCOMPARE(kindOf(tracks[1], 0), TimelineRowKind::Passes);
  QCOMPARE(kindOf(tracks[1], 2), TimelineRowKind::Kernels);
  QCOMPARE(kindOf(tracks[1], 3), TimelineRowKind::Beside);
  RunRecord record = twoVariants();
  record.variants[0].steps[1].kernel = "offload";
  record.variants[0].timeline.launches = {{.step = 0, .startNs = 0, .durationNs = 10}};
  const TimelineTrack offloading = timelineTracks(record, nullptr)[0];
  QCOMPARE(kindOf(offloading, 2), TimelineRowKind::Beside);
  QCOMPARE(kindOf(offloading, 3), TimelineRowKind::Launches);
}

void TimelineTracksTest::aFoldedTrackIsAStripOfItsSteps() {
  TimelineStack stack = stackOf(2);
  const double below = stack.top(1);
  stack.arrange([&](ArrangedTracks& tracks) { tracks.setFolded(0, true); });
  using Rows = std::vector<std::pair<std::size_t, int>>;
  QVERIFY(stack.tracks().rows() == Rows({{0, 1}, {1, 0}, {1, 1}, {1, 2}, {1, 3}}));
  QVERIFY(stack.rowHeight(0, 1) < stack.rowHeight(1, 1));
  QVERIFY(stack.top(1) < below);
  stack.arrange([&](ArrangedTracks& tracks) { tracks.setFolded(0, false); });
  QCOMPARE(stack.top(1), below);
}

void TimelineTracksTest::pinnedTracksStayAtTheTopWhileThereIsRoom() {
  TimelineStack stack = stackOf(3);
  stack.arrange([&](ArrangedTracks& tracks) { tracks.setPinned(2, true); });
  QCOMPARE(namesIn(stack), QStringList({"t2", "t0", "t1"}));
  const double top = stack.top(2);
  const double others = stack.top(0);
  stack.setScroll(60, 1000);
  QCOMPARE(stack.top(2), top + 60);
  QCOMPARE(stack.top(0), others);
  QCOMPARE(stack.rulerTop(), 60.0);
  QCOMPARE(stack.pinnedBottom(), 60 + others);
  QCOMPARE(stack.trackAt(60 + others - 1), std::optional<std::size_t>(2));  // t0 lies beneath it
  stack.setScroll(60, others);
  QCOMPARE(stack.top(2), top);
  QCOMPARE(stack.trackAt(others + 30), std::optional<std::size_t>(0));
}

void TimelineTracksTest::hiddenRowsAndTracksAreLeftOut() {
  TimelineStack stack = stackOf(2);
  stack.arrange([&](ArrangedTracks& tracks) { tracks.setRowsShown(TimelineRowKind::Kernels, false); });
  stack.arrange([&](ArrangedTracks& tracks) { tracks.setShown(0, false); });
  using Rows = std::vector<std::pair<std::size_t, int>>;
  QVERIFY(stack.tracks().rows() == Rows({{1, 0}, {1, 1}, {1, 3}}));
  QCOMPARE(stack.tracks().numHiddenTracks(), 1);
  QVERIFY(stack.tracks().hiddenRows() == std::set{TimelineRowKind::Kernels});
  TimelineRange range;
  range.setTotal(stack.tracks().all()[1].endNs);
  const auto areas = stack.areasOf(1, range, 500);
  for (std::size_t item = 0; item < areas.size(); ++item)
    QCOMPARE(areas[item].isNull(), stack.tracks().all()[1].items[item].row == 2);
  stack.arrange([&](ArrangedTracks& tracks) { tracks.showAll(); });
  QVERIFY(stack.tracks().rows().size() == 8 && stack.tracks().numHiddenTracks() == 0 &&
          stack.tracks().hiddenRows().empty());
}

void TimelineTracksTest::tracksMoveAmongTheirLikes() {
  TimelineStack stack = stackOf(4);
  QVERIFY(move(stack, 0, 2));
  QCOMPARE(namesIn(stack), QStringList({"t1", "t2", "t0", "t3"}));
  QVERIFY(!move(stack, 1, -1));
  stack.arrange([&](ArrangedTracks& tracks) { tracks.setPinned(3, true); });
  QVERIFY(!move(stack, 3, 1));
  QVERIFY(!move(stack, 1, -1));
  QCOMPARE(namesIn(stack), QStringList({"t3", "t1", "t2", "t0"}));
  QCOMPARE(stack.placesTo(1, stack.heightPx()), 2);
  QCOMPARE(stack.placesTo(0, 0), -2);
  QCOMPARE(stack.placesTo(0, stack.top(0)), 0);
}

void TimelineTracksTest::anyArrangementIsLaidOutWithoutOverlaps() {
  std::mt19937 random(11);
  TimelineStack stack = stackOf(5);
  for (int change = 0; change < 2000; ++change) {
    const std::size_t track = random() % 5;
    switch (random() % 6) {
      case 0: stack.arrange([&](ArrangedTracks& tracks) { tracks.setFolded(track, random() % 2 == 0); }); break;
      case 1: stack.arrange([&](ArrangedTracks& tracks) { tracks.setPinned(track, random() % 2 == 0); }); break;
      case 2: stack.arrange([&](ArrangedTracks& tracks) { tracks.setShown(track, random() % 3 != 0); }); break;
      case 3:
        stack.arrange([&](ArrangedTracks& tracks) {
          tracks.setRowsShown(random() % 2 ? TimelineRowKind::Kernels : TimelineRowKind::Beside, random() % 2);
        });
        break;
      case 4: move(stack, track, static_cast<int>(random() % 5) - 2); break;
      default: stack.setScroll(static_cast<double>(random() % 300), static_cast<double>(random() % 900));
    }
    QVERIFY(std::is_sorted(
        stack.tracks().order().begin(), stack.tracks().order().end(),
        [&](std::size_t a, std::size_t b) { return stack.tracks().isPinned(a) && !stack.tracks().isPinned(b); }));
    double heightPx = TimelineStack::kRulerHeightPx;
    for (const std::size_t each : stack.tracks().order()) {
      QVERIFY(stack.tracks().isShown(each));
      heightPx += stack.trackHeight(each);
      double bottom = stack.top(each) + TimelineStack::kHeadHeightPx;
      for (const auto& [owner, row] : stack.tracks().rows()) {
        if (owner != each) continue;
        QCOMPARE(stack.rowTop(each, row), bottom);
        bottom += stack.rowHeight(each, row);
      }
      QVERIFY(bottom <= stack.top(each) + stack.trackHeight(each));
    }
    QCOMPARE(stack.heightPx(), heightPx);
    QCOMPARE(static_cast<int>(stack.tracks().order().size()) + stack.tracks().numHiddenTracks(), 5);
  }
}

void TimelineTracksTest::settingsKeepAnyArrangement() {
  const OwnSettings settings;
  QVERIFY(loadTimelineArrangement() == TimelineArrangement());
  const TimelineArrangement arrangement{.order = {"fused", "un, fused"},
                                        .folded = {"fused"},
                                        .pinned = {"un, fused"},
                                        .hidden = {"a", "b"},
                                        .hiddenRows = {TimelineRowKind::Kernels, TimelineRowKind::Launches}};
  saveTimelineArrangement(arrangement);
  QVERIFY(loadTimelineArrangement() == arrangement);
}

void TimelineTracksTest::mouseFoldsPinsAndMoves() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  TimelineView& view = f.view();
  const auto click = [&](QPointF place) { QTest::mouseClick(&view, Qt::LeftButton, {}, place.toPoint()); };
  click(view.stack().foldArea(0).center());
  QVERIFY(view.tracks().isFolded(0) && !view.tracks().isFolded(1));
  click(view.stack().foldArea(0).center());
  QVERIFY(!view.tracks().isFolded(0));
  QTest::mouseDClick(&view, Qt::LeftButton, {}, view.stack().foldArea(1).center().toPoint() + QPoint(60, 0));
  QVERIFY(view.tracks().isFolded(1));
  click(view.stack().pinArea(1, view.width()).center());
  QVERIFY(view.tracks().isPinned(1));
  QCOMPARE(view.tracks().order().front(), 1u);
  click(view.stack().pinArea(1, view.width()).center());
  const QPoint head(200, qRound(view.stack().top(1)) + 8);
  dragMouse(&view, head, QPoint(200, qRound(view.stack().heightPx()) + 20));
  QCOMPARE(view.tracks().order().front(), 0u);
  dragMouse(&view, QPoint(200, qRound(view.stack().top(1)) + 8), QPoint(200, 25));
  QCOMPARE(view.tracks().order().front(), 1u);
  QVERIFY(view.zoom().range().isWhole());
}

void TimelineTracksTest::keysFoldPinMoveAndHide() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  TimelineView& view = f.view();
  QTest::keyClick(&view, Qt::Key_Space);
  QVERIFY(view.tracks().isFolded(0));
  QVERIFY(view.accessibleDescription().contains(QStringLiteral("folded")));
  QTest::keyClick(&view, Qt::Key_Space);
  QTest::keyClick(&view, Qt::Key_Down, Qt::AltModifier);
  QCOMPARE(view.tracks().order().front(), 1u);
  QTest::keyClick(&view, Qt::Key_Right);
  QVERIFY(view.currentItem() >= view.tracks().all()[1].items.data());
  QTest::keyClick(&view, Qt::Key_P);
  QVERIFY(view.tracks().isPinned(1));
  QTest::keyClick(&view, Qt::Key_H);
  QVERIFY(!view.tracks().isShown(1) && view.tracks().isShown(0));
  QVERIFY(!view.currentItem());
}

void TimelineTracksTest::aBannerListsHiddenTracks() {
  OpenedTimeline f(tracedRun());
  QVERIFY(f.isOpen);
  HiddenTracksBar& bar = *f.window.findChild<HiddenTracksBar*>();
  QVERIFY(!bar.isVisible());
  f.view().arrange([](ArrangedTracks& tracks) { tracks.setRowsShown(TimelineRowKind::Kernels, false); });
  QVERIFY(bar.isVisible());
  QCOMPARE(bar.text(), QStringLiteral("kernels hidden"));
  f.view().arrange([](ArrangedTracks& tracks) {
    tracks.setShown(0, false);
    tracks.setShown(1, false);
  });
  QCOMPARE(bar.text(), QStringLiteral("2 tracks hidden"));
  bar.findChild<QToolButton*>()->click();
  QVERIFY(!bar.isVisible());
  QCOMPARE(f.view().tracks().rows().size(), 6u);
}

void TimelineTracksTest::whatIsHiddenIsNeitherCurrentNorInTheArea() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  f.view().takeView();
  QTest::keyClick(&f.view(), Qt::Key_H);
  QVERIFY(f.view().area());
  QVERIFY(f.view().area()->tracks() == std::vector<std::size_t>{1});
  QTest::keyClick(&f.view(), Qt::Key_Right);
  QVERIFY(f.view().currentItem() >= f.view().tracks().all()[1].items.data());
  QTest::keyClick(&f.view(), Qt::Key_H);
  QVERIFY(!f.view().area() && !f.view().currentItem());
  QTest::keyClick(&f.view(), Qt::Key_Right);
  QVERIFY(!f.view().currentItem());
}

void TimelineTracksTest::pinnedTrackAndRulerStayWhileScrolling() {
  OpenedTimeline f(tracedRun());
  QVERIFY(f.isOpen);
  resizePane(f.window.timeline(), {1400, 170});
  f.view().arrange([](ArrangedTracks& tracks) { tracks.setPinned(0, true); });
  auto* area = f.window.timeline().findChild<QScrollArea*>();
  QTest::qWait(0);
  const double inView = f.view().areaOf(0, 0).top() + f.view().y();
  const double scrolling = f.view().areaOf(1, 0).top() + f.view().y();
  QVERIFY2(area->verticalScrollBar()->maximum() > 0, "it must be too high for the test");
  area->verticalScrollBar()->setValue(area->verticalScrollBar()->maximum());
  QVERIFY(f.view().y() < 0);
  const bool hasRoom = f.view().stack().pinnedBottom() - f.view().stack().rulerTop() > TimelineStack::kRulerHeightPx;
  QCOMPARE(f.view().areaOf(0, 0).top() + f.view().y(), hasRoom ? inView : inView + f.view().y());
  QVERIFY(f.view().areaOf(1, 0).top() + f.view().y() < scrolling);
  QCOMPARE(f.view().stack().rulerTop(), -f.view().y());
}

void TimelineTracksTest::theMenuArrangesEachTrack() {
  OpenedTimeline f(tracedRun());
  QVERIFY(f.isOpen);
  QMenu menu;
  fillTracksMenu(menu, f.view(), std::nullopt);
  QStringList texts;
  for (const QAction* action : menu.actions())
    if (!action->isSeparator()) texts.append(action->text());
  QCOMPARE(texts, QStringList({"unfused", "fused", "Show kernels", "Show work outside of steps", "Show &all"}));
  QVERIFY(!menu.actions().back()->isEnabled());
  const auto trigger = [](const QMenu& from, const QString& text) {
    for (QAction* action : from.actions())
      if (action->text().startsWith(text)) return action->trigger();
    QFAIL(qPrintable(text));
  };
  trigger(*menu.actions().front()->menu(), QStringLiteral("&Pinned"));
  QVERIFY(f.view().tracks().isPinned(0));
  trigger(menu, QStringLiteral("Show kernels"));
  QVERIFY(f.view().tracks().hiddenRows() == std::set{TimelineRowKind::Kernels});
  fillTracksMenu(menu, f.view(), 1);
  trigger(menu, QStringLiteral("&Folded"));
  QVERIFY(f.view().tracks().isFolded(1) && !f.view().tracks().isFolded(0));
}

void TimelineTracksTest::theNextWindowIsArrangedAlike() {
  const OwnSettings settings;
  Theme theme;
  Session session(SessionSettings{});
  TimelineArrangement arranged;
  {
    TimelinePanel panel(session, theme, true);
    panel.view()->setTracks(timelineTracks(tracedVariant(), nullptr));
    panel.view()->arrange([](ArrangedTracks& tracks) {
      tracks.setFolded(0, true);
      tracks.move(0, 1);
    });
    arranged = panel.view()->tracks().arrangement();
  }
  TimelinePanel next(session, theme, true);
  next.view()->setTracks(timelineTracks(tracedVariant(), nullptr));
  QVERIFY(next.view()->tracks().arrangement() == arranged);
  QVERIFY(next.view()->tracks().isFolded(0));
  QCOMPARE(next.view()->tracks().order().front(), 1u);
  TimelinePanel other(session, theme, false);
  QVERIFY(other.view()->tracks().arrangement() == TimelineArrangement());
}

FUSELINE_UI_TEST(TimelineTracksTest)

}  // namespace fuseline::ui::timeline_tracks_test

#include "test_ui_timeline_tracks.moc"
