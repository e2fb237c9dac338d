// Notes on stretches of the timeline: said in the field, drawn below the ruler, kept beside the run.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_folder.h"
#include "tests/ui/timeline_examples.h"
#include "tests/ui/ui_test_main.h"
#include "ui/theme/format.h"

#include <QImage>
#include <QScrollBar>
#include <QTest>

#include <random>

namespace fuseline::ui::timeline_notes_test {

class TimelineNotesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void lanesKeepNotesApart();
  void aNoteIsOfItsPlanOrOfAll();
  void isSaidOfTheCurrentBox();
  void aClickOnOneChoosesItsStretch();
  void anEmptyTextTakesItAway();
  void escapeLeavesItAsItWas();
  void isKeptBesideTheRun();
  void lanesMakeRoomAboveTheTracks();
  void tracksScrollBelowTheLanes();
};

namespace {

const std::vector<StretchNote>& notesOf(const Session& session) {
  return session.results().lastRun()->record.stretchNotes;
}

/// On the first step, from the keyboard.
void say(OpenedTimeline& f, const QString& text) {
  QTest::keyClick(&f.view(), Qt::Key_N);
  QTest::keyClicks(f.window.timeline().sums().noteField(), text);
  QTest::keyClick(f.window.timeline().sums().noteField(), Qt::Key_Return);
}

}  // namespace

void TimelineNotesTest::lanesKeepNotesApart() {
  std::mt19937 random(5);
  std::vector<StretchNote> notes;
  for (int i = 0; i < 200; ++i) {
    const double startNs = static_cast<double>(random() % 1000);
    putStretchNote(notes,
                   {.startNs = startNs, .endNs = startNs + 1 + static_cast<double>(random() % 200), .text = "n"});
  }
  const std::vector<PlacedNote> placed = placeNotes(notes);
  QCOMPARE(placed.size(), notes.size());
  int highest = 0;
  for (const PlacedNote& a : placed) {
    highest = std::max(highest, a.lane);
    for (const PlacedNote& b : placed)
      QVERIFY(&a == &b || a.lane != b.lane || a.note.endNs <= b.note.startNs || b.note.endNs <= a.note.startNs);
  }
  QCOMPARE(numLanes(placed), highest + 1);
  QCOMPARE(numLanes(placeNotes({})), 0);
}

void TimelineNotesTest::aNoteIsOfItsPlanOrOfAll() {
  TimelineStack stack;
  stack.arrange([](ArrangedTracks& tracks) { tracks.setTracks(timelineTracks(twoVariants(), nullptr)); });
  const StretchNote ofOne =
      noteOn(stack.tracks().all(), {.startNs = 1, .endNs = 2, .rows = {{1, 0}, {1, 1}}}, QStringLiteral(" a "));
  QVERIFY(ofOne == StretchNote({.variant = "fused", .startNs = 1, .endNs = 2, .text = "a"}));
  QVERIFY(noteOn(stack.tracks().all(), {.startNs = 1, .endNs = 2, .rows = stack.tracks().rows()}, {}).variant.empty());
  using Rows = std::vector<std::pair<std::size_t, int>>;
  QVERIFY(areaOf(stack.tracks(), ofOne).rows == Rows({{1, 0}, {1, 1}}));
  QVERIFY(areaOf(stack.tracks(), {.startNs = 1, .endNs = 2, .text = "b"}).rows == stack.tracks().rows());
}

void TimelineNotesTest::isSaidOfTheCurrentBox() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  QTest::keyClick(&f.view(), Qt::Key_N);
  QVERIFY(!f.view().area());
  QTest::keyClick(&f.view(), Qt::Key_Right);
  say(f, QStringLiteral("cold caches"));
  QCOMPARE(notesOf(f.session).size(), 1u);
  const TimelineItem& box = *f.view().currentItem();
  QVERIFY(notesOf(f.session)[0] == StretchNote({"unfused", box.startNs, box.endNs, "cold caches"}));
  QVERIFY(f.view().hasFocus());
}

void TimelineNotesTest::aClickOnOneChoosesItsStretch() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  const double endNs = f.view().tracks().all()[0].endNs;
  f.session.results().setStretchNote(
      {.variant = "", .startNs = 0.2 * endNs, .endNs = 0.6 * endNs, .text = "all of it"});
  const double middle = f.view().zoom().range().xAt(0.4 * endNs, f.view().width());
  QTest::mouseClick(&f.view(), Qt::LeftButton, {}, QPoint(qRound(middle), qRound(f.view().stack().noteTop(0)) + 5));
  QVERIFY(f.view().area());
  QCOMPARE(f.view().area()->startNs, 0.2 * endNs);
  QVERIFY(f.view().area()->rows == f.view().tracks().rows());
  QCOMPARE(f.window.timeline().sums().noteField()->text(), QStringLiteral("all of it"));
}

void TimelineNotesTest::anEmptyTextTakesItAway() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  QTest::keyClick(&f.view(), Qt::Key_Right);
  say(f, QStringLiteral("first"));
  const double high = f.view().stack().top(0);
  QTest::keyClick(&f.view(), Qt::Key_N);
  f.window.timeline().sums().noteField()->clear();
  QTest::keyClick(f.window.timeline().sums().noteField(), Qt::Key_Return);
  QVERIFY(notesOf(f.session).empty());
  QVERIFY(f.view().stack().top(0) < high);
}

void TimelineNotesTest::escapeLeavesItAsItWas() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  QTest::keyClick(&f.view(), Qt::Key_Right);
  say(f, QStringLiteral("first"));
  QTest::keyClick(&f.view(), Qt::Key_N);
  QTest::keyClicks(f.window.timeline().sums().noteField(), QStringLiteral(" and more"));
  QTest::keyClick(f.window.timeline().sums().noteField(), Qt::Key_Escape);
  QCOMPARE(f.window.timeline().sums().noteField()->text(), QStringLiteral("first"));
  QCOMPARE(notesOf(f.session)[0].text, std::string("first"));
  QVERIFY(f.view().hasFocus() && f.view().area());
}

void TimelineNotesTest::isKeptBesideTheRun() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  QTest::keyClick(&f.view(), Qt::Key_Right);
  say(f, QStringLiteral("cold caches"));
  f.window.runs().history().waitForDone();
  const RunRecord again = *loadNotedRun(f.folder / "small.fuserun");
  QVERIFY(again.stretchNotes == notesOf(f.session));
  QVERIFY(f.window.openFile(toQt((f.folder / "small.fuserun").string())));
  QCOMPARE(notesOf(f.session).size(), 1u);
  QVERIFY(f.view().stack().top(0) > TimelineStack::kRulerHeightPx);
}

void TimelineNotesTest::lanesMakeRoomAboveTheTracks() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  const double top = f.view().stack().top(0);
  f.session.results().setStretchNote({.variant = "fused", .startNs = 0, .endNs = 100, .text = "a"});
  QCOMPARE(f.view().stack().top(0), top + TimelineStack::kNoteHeightPx);
  f.session.results().setStretchNote({.variant = "unfused", .startNs = 50, .endNs = 100, .text = "b"});
  QCOMPARE(f.view().stack().top(0), top + 2 * TimelineStack::kNoteHeightPx);
}

/// Also those that are pinned where there is no room for them to stay.
void TimelineNotesTest::tracksScrollBelowTheLanes() {
  OpenedTimeline f(tracedRun());
  QVERIFY(f.isOpen);
  resizePane(f.window.timeline(), {1400, 170});
  f.session.results().setStretchNote({.variant = "fused", .startNs = 0, .endNs = 1, .text = "a"});
  f.view().arrange([](ArrangedTracks& tracks) {
    for (const std::size_t track : {0, 1}) tracks.setPinned(track, true);
  });
  QTest::qWait(0);
  QScrollBar& scrollBar = *f.window.timeline().findChild<QScrollArea*>()->verticalScrollBar();
  scrollBar.setValue(qRound(f.view().stack().rowTop(0, 1) - f.view().stack().tracksTop()));
  QVERIFY(scrollBar.value() > 0 && !f.view().stack().sticks(0));
  const QImage image = f.view().grab().toImage();
  const int y = qRound(f.view().stack().noteTop(0)) + 9;
  int numEmpty = 0;
  for (int x = 0; x < image.width(); ++x) numEmpty += image.pixelColor(x, y) == f.theme.colors().base;
  QVERIFY(numEmpty > image.width() / 2);
}

FUSELINE_UI_TEST(TimelineNotesTest)

}  // namespace fuseline::ui::timeline_notes_test

#include "test_ui_timeline_notes.moc"
