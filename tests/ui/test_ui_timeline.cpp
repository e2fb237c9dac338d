// The timeline: what is in view, which boxes there are, and what keys and the mouse do with them.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/read_file.h"
#include "tests/ui/timeline_examples.h"
#include "tests/ui/ui_test_main.h"
#include "ui/theme/format.h"
#include "ui/timeline/timeline_links.h"

#include <QTest>

#include <cmath>

namespace fuseline::ui::timeline_test {

class TimelineTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void rangeStaysWithinTheTimeline();
  void rangeZoomsAroundTheMomentUnderThePointer();
  void ticksAreRoundAndFew();
  void tracksHaveARowForEachLevel();
  void theLastRowIsOfTheHostsLaunches();
  void shortBoxesAreDrawnTogetherAndNoneIsLost();
  void aShortStepIsSeenBesideLongOnes();
  void aFilterLeavesGaps();
  void measuresTheTimeBetweenTwoMoments();
  void sameOpsAreLinkedWithinAPass();
  void paneShowsARunAndFollowsTheSelection();
  void arrowKeysWalkBoxesAndRows();
  void keysZoomPanAndGoBack();
  void mouseSelectsPansAndMeasures();
  void aRunLeavesItInFront();
  void saysWhyThereIsNothing();
  void isStaleAfterAnEdit();
  void exportsTheRun();
};

namespace {

std::size_t firstStep(const TimelineTrack& track) {
  const auto found = std::ranges::find(track.items, TimelineLevel::Step, &TimelineItem::level);
  return static_cast<std::size_t>(found - track.items.begin());
}

}  // namespace

void TimelineTest::rangeStaysWithinTheTimeline() {
  TimelineRange range;
  range.setTotal(1000.0);
  QVERIFY(range.isWhole());
  range.pan(500.0);
  QCOMPARE(range.startNs(), 0.0);
  range.zoom(4.0, 900.0);
  range.pan(1e9);
  QCOMPARE(range.endNs(), 1000.0);
  QCOMPARE(range.lengthNs(), 250.0);
  range.zoom(1e-9, 0.0);
  QVERIFY(range.isWhole());
  range.zoom(1e9, 300.0);
  QCOMPARE(range.lengthNs(), 10.0);
  range.show(-50.0, 20.0);
  QCOMPARE(range.startNs(), 0.0);
  range.show(400.0, 500.0);
  range.reveal(520.0, 560.0);
  QCOMPARE(range.endNs(), 560.0);
  range.reveal(100.0, 130.0);
  QCOMPARE(range.startNs(), 100.0);
}

void TimelineTest::rangeZoomsAroundTheMomentUnderThePointer() {
  TimelineRange range;
  range.setTotal(1000.0);
  const double x = 312.0;
  for (const double factor : {1.5, 3.0, 1.1, 0.7}) {
    const double before = range.timeAt(x, 800.0);
    range.zoom(factor, before);
    QVERIFY(std::abs(range.timeAt(x, 800.0) - before) < 1e-9);
    QVERIFY(std::abs(range.xAt(before, 800.0) - x) < 1e-9);
  }
}

void TimelineTest::ticksAreRoundAndFew() {
  TimelineRange range;
  range.setTotal(1000.0);
  QCOMPARE(range.ticks(5), (std::vector<double>{0.0, 200.0, 400.0, 600.0, 800.0, 1000.0}));
  range.show(333.0, 347.0);
  QCOMPARE(range.ticks(4), (std::vector<double>{335.0, 340.0, 345.0}));
  for (const double total : {11.0, 12345.0, 3.3e9})
    for (const int most : {0, 1, 3, 10}) {
      range.setTotal(total);
      QVERIFY(static_cast<int>(range.ticks(most).size()) <= std::max(most, 1) + 1);
    }
}

void TimelineTest::tracksHaveARowForEachLevel() {
  const std::vector<TimelineTrack> tracks = timelineTracks(tracedVariant(), nullptr);
  QCOMPARE(tracks.size(), 2u);
  using Rows = std::vector<TimelineLevel>;
  QVERIFY(tracks[0].rows == Rows({TimelineLevel::Pass, TimelineLevel::Step}));
  QVERIFY(tracks[1].rows ==
          Rows({TimelineLevel::Pass, TimelineLevel::Step, TimelineLevel::Activity, TimelineLevel::Activity}));
  QCOMPARE(tracks[0].summary, QStringLiteral("200 ns, 95.0 % of it in steps"));
  QStringList labels;
  for (const TimelineItem& item : tracks[1].items) labels.append(QString::number(item.row) + item.label);
  QCOMPARE(labels, QStringList({"0Forward →", "1R(a, b)", "2gemm<c::d>", "2copy, host to device", "3fill"}));
  QVERIFY(tracks[1].items[1].isFused);
  QCOMPARE(tracks[1].items[2].owners, QStringList({"a", "b"}));
  QVERIFY(tracks[1].items[4].tip.contains("outside of all steps"));
  QVERIFY(tracks[1].items[4].owners.isEmpty());
}

/// b could begin at 100 ns; its launch ended at 130.
void TimelineTest::theLastRowIsOfTheHostsLaunches() {
  RunRecord record = twoVariants();
  record.variants[0].timeline.launches = {{.step = 0, .startNs = 0, .durationNs = 10},
                                          {.step = 1, .startNs = 90, .durationNs = 40},
                                          {.step = 2, .startNs = 130, .durationNs = 10}};
  record.variants[1].timeline.launches = {{.step = -1, .startNs = 0, .durationNs = 7}};
  const std::vector<TimelineTrack> tracks = timelineTracks(record, nullptr);
  using Rows = std::vector<TimelineLevel>;
  QVERIFY(tracks[0].rows == Rows({TimelineLevel::Pass, TimelineLevel::Step, TimelineLevel::Launch}));
  QCOMPARE(tracks[0].summary, QStringLiteral("200 ns, 95.0 % of it in steps, 40 ns waiting for host launches"));
  const TimelineItem& launch = tracks[0].items.at(tracks[0].items.size() - 2);
  QCOMPARE(launch.label, QStringLiteral("launch b"));
  QCOMPARE(launch.row, 2);
  QCOMPARE(launch.owners, QStringList({"b"}));
  QVERIFY2(launch.tip.contains("the device waited 30 ns for this launch"), qPrintable(launch.tip));
  QCOMPARE(tracks[1].items.back().label, QStringLiteral("all launches"));
  QVERIFY(tracks[1].items.back().tip.contains("all steps at once"));
}

void TimelineTest::shortBoxesAreDrawnTogetherAndNoneIsLost() {
  RunRecord record;
  VariantRecord variant{.name = "fused"};
  for (int i = 0; i < 1000; ++i) {
    variant.steps.push_back(measuredStep("s" + std::to_string(i), "forward", {"a"}));
    variant.timeline.spans.push_back({.step = i, .startNs = 10.0 * i, .durationNs = i == 500 ? 9.0 : 1.0});
  }
  record.variants = {variant};
  const TimelineTrack track = timelineTracks(record, nullptr).front();
  TimelineRange range;
  range.setTotal(track.endNs);
  for (const double factor : {1.0, 3.0, 40.0}) {
    range.fit();
    range.zoom(factor, 5000.0);
    std::vector<int> drawn(track.items.size(), 0);
    double before = -1.0;
    for (const TimelineCell& cell : cellsInView(track, range, 640.0)) {
      for (std::size_t item = cell.first; item <= cell.last; ++item) ++drawn[item];
      QVERIFY(cell.left >= 0.0 && cell.right <= 640.0 && cell.right > cell.left);
      if (track.items[cell.first].level == TimelineLevel::Step) {
        QVERIFY(cell.left >= before);
        before = cell.left;
      }
      QVERIFY(!cell.isSeveral() || cell.right - cell.left <= 3.0);
    }
    for (std::size_t item = 0; item < track.items.size(); ++item) {
      const bool isInView = track.items[item].endNs >= range.startNs() && track.items[item].startNs <= range.endNs();
      QVERIFY2(drawn[item] == 1 || !isInView, qPrintable(track.items[item].label));
    }
  }
}

void TimelineTest::measuresTheTimeBetweenTwoMoments() {
  const TimelineTrack track = timelineTracks(twoVariants(), nullptr).front();
  QCOMPARE(spanSummary(track, 90.0, 170.0), QStringLiteral("unfused: 3 steps, 70 ns of it in steps"));
  QCOMPARE(spanSummary(track, 150.0, 160.0), QStringLiteral("unfused: 0 steps, 0 ns of it in steps"));
}

void TimelineTest::sameOpsAreLinkedWithinAPass() {
  const auto tracks = timelineTracks(twoVariants(), nullptr);
  QStringList links;
  for (const auto& [upper, lower] : sameWork(tracks[0], tracks[1]))
    links.append(tracks[0].items[upper].label + QStringLiteral(">") + tracks[1].items[lower].label);
  QCOMPARE(links, QStringList({"a>R(a, b)", "b>R(a, b)", "a>a"}));
}

void TimelineTest::paneShowsARunAndFollowsTheSelection() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  QCOMPARE(f.view().tracks().all().size(), 2u);
  QVERIFY(f.window.timeline().emptyText().isEmpty());
  const std::size_t first = firstStep(f.view().tracks().all()[0]);
  QCOMPARE(f.view().tracks().all()[0].items[first].category, std::string("Normalization"));
  QTest::mouseClick(&f.view(), Qt::LeftButton, {}, f.middleOf(0, first));
  QCOMPARE(f.session.selection().ids(), QSet<QString>({"norm"}));
  QCOMPARE(f.view().currentItem(), &f.view().tracks().all()[0].items[first]);
  QTest::mouseClick(&f.view(), Qt::LeftButton, {}, QPoint(f.view().width() / 2, 30));
  QVERIFY(f.session.selection().ids().isEmpty());
}

void TimelineTest::arrowKeysWalkBoxesAndRows() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  QTest::keyClick(&f.view(), Qt::Key_Right);
  QCOMPARE(f.view().currentItem()->label, QStringLiteral("norm"));
  QTest::keyClick(&f.view(), Qt::Key_Right);
  QCOMPARE(f.session.selection().ids(), QSet<QString>({"fc"}));
  QTest::keyClick(&f.view(), Qt::Key_Period);
  QCOMPARE(f.session.selection().ids(), QSet<QString>({"act"}));
  QTest::keyClick(&f.view(), Qt::Key_Comma);
  QTest::keyClick(&f.view(), Qt::Key_Up);
  QCOMPARE(f.view().currentItem()->level, TimelineLevel::Pass);
  QTest::keyClick(&f.view(), Qt::Key_Down);
  QTest::keyClick(&f.view(), Qt::Key_Down);
  const TimelineItem* below = f.view().currentItem();
  QVERIFY(below >= f.view().tracks().all()[1].items.data());
  QVERIFY(below < f.view().tracks().all()[1].items.data() + f.view().tracks().all()[1].items.size());
}

void TimelineTest::keysZoomPanAndGoBack() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  QTest::keyClick(&f.view(), Qt::Key_Right);
  QTest::keyClick(&f.view(), Qt::Key_Return);
  const TimelineRange zoomed = f.view().zoom().range();
  const TimelineItem& item = *f.view().currentItem();
  QVERIFY(zoomed.startNs() <= item.startNs && item.endNs <= zoomed.endNs());
  QVERIFY(zoomed.lengthNs() <= std::max(10.0, 1.2 * (item.endNs - item.startNs)));
  QTest::keyClick(&f.view(), Qt::Key_Home);
  QVERIFY(f.view().zoom().range().isWhole());
  QTest::keyClick(&f.view(), Qt::Key_Backspace);
  QVERIFY(f.view().zoom().range() == zoomed);
  QTest::keyClick(&f.view(), Qt::Key_Backspace);
  QVERIFY(f.view().zoom().range().isWhole());
  QTest::keyClick(&f.view(), Qt::Key_W);
  QVERIFY(!f.view().zoom().range().isWhole());
  const double startNs = f.view().zoom().range().startNs();
  QTest::keyClick(&f.view(), Qt::Key_D);
  QVERIFY(f.view().zoom().range().startNs() > startNs);
  f.session.selection().select({QStringLiteral("act")});
  QTest::keyClick(&f.view(), Qt::Key_F);
  for (const TimelineItem& box : f.view().tracks().all()[0].items)
    if (box.owners == QStringList({"act"}))
      QVERIFY(box.startNs >= f.view().zoom().range().startNs() && box.endNs <= f.view().zoom().range().endNs());
}

void TimelineTest::mouseSelectsPansAndMeasures() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  const std::size_t first = firstStep(f.view().tracks().all()[0]);
  QTest::mouseDClick(&f.view(), Qt::LeftButton, {}, f.middleOf(0, first));
  QVERIFY(!f.view().zoom().range().isWhole());
  const double startNs = f.view().zoom().range().startNs();
  const int y = f.view().height() - 3;
  QTest::mousePress(&f.view(), Qt::LeftButton, {}, QPoint(400, y));
  QTest::mouseMove(&f.view(), QPoint(300, y));
  QTest::mouseRelease(&f.view(), Qt::LeftButton, {}, QPoint(300, y));
  QVERIFY(f.view().zoom().range().startNs() > startNs);
  QVERIFY(f.view().measuredText().isEmpty());
  QTest::keyClick(&f.view(), Qt::Key_Home);
  QTest::mousePress(&f.view(), Qt::LeftButton, Qt::ShiftModifier, QPoint(1, y));
  QTest::mouseMove(&f.view(), QPoint(f.view().width() - 1, y));
  QTest::mouseRelease(&f.view(), Qt::LeftButton, Qt::ShiftModifier, QPoint(f.view().width() - 1, y));
  const QString measured = f.view().measuredText();
  QVERIFY2(measured.startsWith(QStringLiteral("Δ ")) && measured.contains(QStringLiteral("unfused: ")) &&
               measured.contains(QStringLiteral("fused: ")),
           qPrintable(measured));
}

void TimelineTest::aRunLeavesItInFront() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  f.window.showTimings();
  QTest::qWait(0);
  QVERIFY(!f.view().visibleRegion().isEmpty());
  QVERIFY(f.window.showPane(QStringLiteral("numerics")));
  f.window.showTimings();
  QTest::qWait(0);
  QVERIFY(f.view().visibleRegion().isEmpty());
}

void TimelineTest::saysWhyThereIsNothing() {
  Fixture empty(smallPipeline());
  QVERIFY(empty.window.timeline().emptyText().startsWith(QStringLiteral("No measurements yet.")));
  OpenedTimeline f(measuredRun(StepTiming::None));
  QVERIFY(f.isOpen);
  QVERIFY2(f.window.timeline().emptyText().contains(QStringLiteral("it was measured with --timing none")),
           qPrintable(f.window.timeline().emptyText()));
  QTest::keyClick(&f.view(), Qt::Key_Home);
  QTest::keyClick(&f.view(), Qt::Key_F);
  QTest::mouseClick(&f.view(), Qt::LeftButton, {}, QPoint(5, 5));
}

void TimelineTest::isStaleAfterAnEdit() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  QVERIFY(!f.window.timeline().caption().contains(QStringLiteral("run again")));
  const TimelineRange before = f.view().zoom().range();
  QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "H", .value = 48}));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.window.timeline().caption().contains(QStringLiteral("run again")));
  QVERIFY(f.view().zoom().range() == before);
}

void TimelineTest::exportsTheRun() {
  RunRecord run = measuredRun();
  run.numerics.emplace();
  OpenedTimeline f(run);
  QVERIFY(f.isOpen);
  for (const Exporter& exporter : exporters()) {
    const auto path = f.folder / ("run" + std::string(exporter.ending));
    const Result<std::string> expected = exporter.write(f.session.results().lastRun()->record);
    QCOMPARE(exportedRunWork(f.session, exporter, toQt(path.string()))().hasValue(), expected.hasValue());
    QCOMPARE(expected.hasValue(), exporter.name != "svg");  // this window has nobody who lays out graphs
    if (expected) QCOMPARE(*readWholeFile(path, {.what = "export", .maxMiB = 1}), *expected);
  }
  Fixture empty(smallPipeline());
  QVERIFY(!exportedRunWork(empty.session, exporters()[0], QStringLiteral("never.json"))().hasValue());
}

/// 35 us between two long steps: a column of pixels has another color than they.
void TimelineTest::aShortStepIsSeenBesideLongOnes() {
  RunRecord record = twoVariants();
  record.variants[0].timeline.spans = {{.step = 0, .startNs = 0, .durationNs = 200e6},
                                       {.step = 1, .startNs = 200e6, .durationNs = 35e3},
                                       {.step = 2, .startNs = 200.04e6, .durationNs = 278.9e6}};
  OpenedTimeline f(measuredRun());
  f.view().setTracks(timelineTracks(record, nullptr));
  const auto stepOf = [&](int step) {
    const auto& items = f.view().tracks().all()[0].items;
    const auto found = std::ranges::find_if(
        items, [&](const TimelineItem& item) { return item.level == TimelineLevel::Step && item.step == step; });
    return static_cast<std::size_t>(found - items.begin());
  };
  const QRectF area = f.view().areaOf(0, stepOf(1));
  QVERIFY2(area.width() >= 1.9, qPrintable(QString::number(area.width())));
  const QImage picture = f.view().grab().toImage();
  const auto colorAt = [&](QPointF place) {
    return picture.pixelColor((place * picture.devicePixelRatio()).toPoint());
  };
  const QColor short_ = colorAt(area.center());
  for (const int step : {0, 2}) {
    const QColor other = colorAt(f.view().areaOf(0, stepOf(step)).center());
    QVERIFY(std::abs(short_.lightness() - other.lightness()) > 25 || short_.hue() != other.hue());
  }
}

void TimelineTest::aFilterLeavesGaps() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  const double lengthNs = f.view().zoom().range().lengthNs();
  f.window.findChild<RunFilter*>()->add({FilterTerm::Kind::Pass, QStringLiteral("backward")});
  for (const TimelineTrack& track : f.view().tracks().all())
    for (const TimelineItem& item : track.items)
      QVERIFY(item.level != TimelineLevel::Step || item.phase == Phase::Backward);
  QCOMPARE(f.view().zoom().range().lengthNs(), lengthNs);
}

FUSELINE_UI_TEST(TimelineTest)

}  // namespace fuseline::ui::timeline_test

#include "test_ui_timeline.moc"
