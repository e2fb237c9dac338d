// Areas of the timeline: which rows they have, what they add up to, and the table of it.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ui/timeline_examples.h"
#include "tests/ui/ui_test_main.h"
#include "ui/theme/format.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QTest>

#include <algorithm>
#include <cmath>
#include <random>

namespace fuseline::ui::timeline_area_test {

class TimelineAreaTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void rowsAreThoseThatTheDragTouches();
  void stepsAddUpToTheirPartsInTheStretch();
  void kernelsStandForTheirSteps();
  void passesAndLaunchesCountAlone();
  void categoriesAndBytesAreThoseOfTheSteps();
  void nothingIsCountedTwiceInAnyArea();
  void tableKeepsSumsLastInEveryOrder();
  void dragChoosesRowsAndShowsTheTable();
  void keysTakeTheBoxToggleTheTableAndClear();
  void tableIsCopiedAndFollowsItsRow();
  void anAreaGoesWithItsRun();
  void choicesAreKept();
};

namespace {

TimelineArea allOf(const std::vector<TimelineTrack>& tracks, double startNs, double endNs) {
  TimelineArea area{.startNs = startNs, .endNs = endNs, .rows = {}};
  for (std::size_t track = 0; track < tracks.size(); ++track)
    for (int row = 0; row < static_cast<int>(tracks[track].rows.size()); ++row) area.rows.emplace_back(track, row);
  return area;
}

/// "0 b forward: 1 of 50, idle 0".
QStringList linesOf(const std::vector<TimelineSum>& sums) {
  QStringList lines;
  for (const TimelineSum& sum : sums)
    lines.append(QStringLiteral("%1 %2 %3: %4 of %5, idle %6")
                     .arg(sum.track)
                     .arg(sum.name, sum.pass)
                     .arg(sum.count)
                     .arg(sum.sumNs)
                     .arg(sum.idleNs));
  return lines;
}

/// Presses Shift and drags from one height to another, over half of the width.
void chooseArea(TimelineView& view, double fromY, double toY) {
  const QPoint from(10, qRound(fromY));
  const QPoint to(view.width() / 2, qRound(toY));
  QTest::mousePress(&view, Qt::LeftButton, Qt::ShiftModifier, from);
  QTest::mouseMove(&view, (from + to) / 2);
  QTest::mouseMove(&view, to);
  QTest::mouseRelease(&view, Qt::LeftButton, Qt::ShiftModifier, to);
}

RunRecord randomRecord(std::mt19937& random) {
  const auto upTo = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  RunRecord record;
  VariantRecord& variant = record.variants.emplace_back(VariantRecord{.name = "fused"});
  double timeNs = 0.0;
  for (int i = 0; i < 12; ++i) {
    variant.steps.push_back(measuredStep("s" + std::to_string(upTo(4)), i < 6 ? "forward" : "backward", {"a"}));
    const int numKernels = upTo(2);
    for (int kernel = 0; kernel < numKernels; ++kernel) {
      variant.steps.back().activities.push_back({"k" + std::to_string(upTo(3)), "", {1.0}});
      const double durationNs = 1 + upTo(30);
      variant.timeline.spans.push_back({.step = i, .activity = kernel, .startNs = timeNs, .durationNs = durationNs});
      timeNs += durationNs + upTo(1) * upTo(9);
    }
    if (numKernels > 0) continue;
    const double durationNs = 1 + upTo(40);
    variant.timeline.spans.push_back({.step = i, .startNs = timeNs, .durationNs = durationNs});
    timeNs += durationNs + upTo(1) * upTo(9);
  }
  return record;
}

}  // namespace

void TimelineAreaTest::rowsAreThoseThatTheDragTouches() {
  TimelineStack stack;
  stack.arrange([](ArrangedTracks& tracks) { tracks.setTracks(timelineTracks(tracedVariant(), nullptr)); });
  using Rows = std::vector<std::pair<std::size_t, int>>;
  const auto rowsAt = [&](double from, double to) { return areaBetween(stack, {80.0, 20.0}, {from, to}).rows; };
  const double step = stack.rowTop(0, 1) + 3;
  QVERIFY(rowsAt(step, step) == Rows({{0, 1}}));
  QVERIFY(rowsAt(stack.rowTop(1, 3) + 1, stack.rowTop(1, 2) + 1) == Rows({{1, 2}, {1, 3}}));
  QVERIFY(rowsAt(stack.top(0) + 2, stack.top(0) + 2) == Rows({{0, 0}, {0, 1}}));
  QVERIFY(rowsAt(2, 3) == stack.tracks().rows());
  QVERIFY(rowsAt(stack.heightPx() + 50, stack.heightPx() + 60) == stack.tracks().rows());
  const TimelineArea area = areaBetween(stack, {80.0, 20.0}, {step, step});
  QCOMPARE(area.startNs, 20.0);
  QCOMPARE(area.lengthNs(), 60.0);
}

void TimelineAreaTest::stepsAddUpToTheirPartsInTheStretch() {
  const auto tracks = timelineTracks(twoVariants(), nullptr);
  QCOMPARE(linesOf(sumsOf(tracks, allOf(tracks, 90, 170), SumsBy::Step)),
           QStringList({"0 b forward: 1 of 50, idle 0", "0 a backward: 1 of 10, idle 10",
                        "0 a forward: 1 of 10, idle 0", "1 a backward: 1 of 40, idle 0",
                        "1 R(a, b) forward: 1 of 30, idle 0", "0  : 3 of 70, idle 10", "1  : 2 of 70, idle 10"}));
  const auto between = sumsOf(tracks, {.startNs = 152, .endNs = 158, .rows = {{0, 1}}}, SumsBy::Step);
  QCOMPARE(linesOf(between), QStringList({"0  : 0 of 0, idle 6"}));
}

/// R(a, b) counts either as a step, or as gemm and the copy; the fill ran outside of steps.
void TimelineAreaTest::kernelsStandForTheirSteps() {
  const auto tracks = timelineTracks(tracedVariant(), nullptr);
  TimelineArea area = allOf(tracks, 0, 120);
  std::erase_if(area.rows, [](const auto& row) { return row.first == 0; });
  QCOMPARE(linesOf(sumsOf(tracks, area, SumsBy::Step)),
           QStringList({"1 R(a, b) forward: 1 of 120, idle 0", "1 fill : 1 of 5, idle 0", "1  : 2 of 125, idle 0"}));
  QCOMPARE(linesOf(sumsOf(tracks, area, SumsBy::Kernel)),
           QStringList({"1 gemm<c::d> : 1 of 100, idle 0", "1 copy, host to device : 1 of 20, idle 0",
                        "1 fill : 1 of 5, idle 0", "1  : 3 of 125, idle 0"}));
  area.rows = {{1, 2}};  // kernels alone are their step's
  QCOMPARE(linesOf(sumsOf(tracks, area, SumsBy::Step)),
           QStringList({"1 R(a, b) forward: 2 of 120, idle 0", "1  : 2 of 120, idle 0"}));
}

void TimelineAreaTest::passesAndLaunchesCountAlone() {
  RunRecord record = twoVariants();
  record.variants[0].timeline.launches = {{.step = 0, .startNs = 0, .durationNs = 10},
                                          {.step = 1, .startNs = 90, .durationNs = 40}};
  const auto tracks = timelineTracks(record, nullptr);
  QCOMPARE(
      sumsOf({tracks[0]}, {.startNs = 0, .endNs = 200, .rows = {{0, 0}, {0, 1}, {0, 2}}}, SumsBy::Step).back().sumNs,
      190.0);
  QCOMPARE(
      linesOf(sumsOf(tracks, {.startNs = 0, .endNs = 200, .rows = {{0, 0}}}, SumsBy::Step)),
      QStringList({"0 Forward → : 1 of 150, idle 0", "0 ← Backward : 1 of 40, idle 10", "0  : 2 of 190, idle 10"}));
  QCOMPARE(linesOf(sumsOf(tracks, {.startNs = 0, .endNs = 200, .rows = {{0, 2}}}, SumsBy::Kernel)),
           QStringList({"0 launch b : 1 of 40, idle 80", "0 launch a : 1 of 10, idle 0", "0  : 2 of 50, idle 150"}));
}

void TimelineAreaTest::categoriesAndBytesAreThoseOfTheSteps() {
  RunRecord record = twoVariants();
  for (StepRecord& step : record.variants[0].steps) step.bytes = 1000;
  record.variants[0].steps[1].kernel = "RMSNorm";
  const auto tracks = timelineTracks(record, nullptr);
  const auto sums = sumsOf({tracks[0]}, {.startNs = 50, .endNs = 200, .rows = {{0, 1}}}, SumsBy::Category);
  QCOMPARE(linesOf(sums),
           QStringList({"0 BasicLinear : 2 of 90, idle 10", "0 RMSNorm : 1 of 50, idle 0", "0  : 3 of 140, idle 10"}));
  QCOMPARE(*sums[0].bytes, 1500.0);  // half of a forward, and all of a backward
  QCOMPARE(*sums[1].bandwidthGBps(), 20.0);
  QCOMPARE(sums[0].medianNs, 45.0);
  record.variants[0].steps[0].bytes = 0;
  const auto unknown =
      sumsOf(timelineTracks(record, nullptr), {.startNs = 0, .endNs = 200, .rows = {{0, 1}}}, SumsBy::Category);
  QVERIFY(!unknown[0].bytes && !unknown[0].bandwidthGBps() && unknown[1].bytes && !unknown.back().bytes);
}

/// The device does one thing at a time here: what is busy and what is idle are the stretch, in whatever rows.
void TimelineAreaTest::nothingIsCountedTwiceInAnyArea() {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const auto tracks = timelineTracks(randomRecord(random), nullptr);
    std::uniform_real_distribution<double> moment(0.0, tracks[0].endNs);
    const auto [startNs, endNs] = std::minmax({moment(random), moment(random)});
    TimelineArea area = allOf(tracks, startNs, endNs);
    const auto kept = area.rows[random() % area.rows.size()];
    std::erase_if(area.rows, [&](const auto& row) { return row != kept && random() % 3 == 0; });
    for (const SumsBy by : {SumsBy::Step, SumsBy::Category, SumsBy::Kernel}) {
      const auto sums = sumsOf(tracks, area, by);
      const TimelineSum& total = sums.back();
      QVERIFY(total.isTotal());
      QVERIFY(std::abs(total.sumNs + total.idleNs - (endNs - startNs)) < 1e-6);
      double sumNs = 0.0;
      double idleNs = 0.0;
      int count = 0;
      for (const TimelineSum& sum : sums) {
        if (sum.isTotal()) continue;
        sumNs += sum.sumNs;
        idleNs += sum.idleNs;
        count += sum.count;
        QVERIFY(sum.medianNs * sum.count <= 2 * sum.sumNs + 1e-6 && sum.medianNs > 0.0);
      }
      QVERIFY(std::abs(sumNs - total.sumNs) < 1e-6);
      QVERIFY(idleNs <= total.idleNs + 1e-6);
      QCOMPARE(count, total.count);
    }
  }
}

void TimelineAreaTest::tableKeepsSumsLastInEveryOrder() {
  const auto tracks = timelineTracks(twoVariants(), nullptr);
  TimelineSumsModel model;
  model.setSums(sumsOf(tracks, allOf(tracks, 90, 170), SumsBy::Step), 80, {"unfused", "fused"});
  const auto names = [&] {
    QStringList all;
    for (int row = 0; row < model.rowCount(); ++row) all.append(model.index(row, 0).data().toString());
    return all;
  };
  const QStringList asTheyCome = names();
  QCOMPARE(asTheyCome, QStringList({"b", "a", "a", "a", "R(a, b)", "unfused in total", "fused in total"}));
  model.sort(TimelineSumsModel::SumColumn, Qt::AscendingOrder);
  QCOMPARE(names(), QStringList({"a", "a", "R(a, b)", "a", "b", "unfused in total", "fused in total"}));
  const QPersistentModelIndex kept = model.index(2, 0);
  model.sort(TimelineSumsModel::NameColumn, Qt::DescendingOrder);
  QCOMPARE(names(), QStringList({"R(a, b)", "b", "a", "a", "a", "unfused in total", "fused in total"}));
  QCOMPARE(kept.data().toString(), QStringLiteral("R(a, b)"));
  model.sort(-1, Qt::AscendingOrder);
  QCOMPARE(names(), asTheyCome);
  QCOMPARE(model.index(0, TimelineSumsModel::SumColumn).data().toString(), QStringLiteral("0.050"));
  QCOMPARE(model.headerData(TimelineSumsModel::SumColumn, Qt::Horizontal, Qt::DisplayRole).toString(),
           QStringLiteral("Sum (µs)"));
  QCOMPARE(model.index(0, TimelineSumsModel::ShareColumn).data().toString(), QStringLiteral("62.5"));
}

void TimelineAreaTest::dragChoosesRowsAndShowsTheTable() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  TimelineSums& sums = f.window.timeline().sums();
  QVERIFY(!sums.isVisible());
  const double y = f.view().areaOf(0, 1).center().y();
  chooseArea(f.view(), y, y);
  QVERIFY(f.view().area() && f.view().area()->rows.size() == 1);
  QVERIFY(sums.isVisible());
  QVERIFY(sums.model().rowCount() >= 2);
  QVERIFY2(f.view().measuredText().contains("unfused: ") && !f.view().measuredText().contains(" fused: "),
           qPrintable(f.view().measuredText()));
  QTest::mouseClick(&f.view(), Qt::LeftButton, {}, QPoint(5, qRound(y)));
  QVERIFY(!f.view().area() && !sums.isVisible());
}

void TimelineAreaTest::keysTakeTheBoxToggleTheTableAndClear() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  TimelineSums& sums = f.window.timeline().sums();
  QTest::keyClick(&f.view(), Qt::Key_R);
  QVERIFY(!f.view().area());
  QTest::keyClick(&f.view(), Qt::Key_Right);
  QTest::keyClick(&f.view(), Qt::Key_R);
  QVERIFY(f.view().area());
  QCOMPARE(f.view().area()->startNs, f.view().currentItem()->startNs);
  QCOMPARE(f.view().area()->endNs, f.view().currentItem()->endNs);
  QVERIFY(f.view().area()->tracks() == std::vector<std::size_t>{0});
  QCOMPARE(sums.view()->model()->index(0, 0).data().toString(), f.view().currentItem()->stepName);
  QTest::keyClick(&f.view(), Qt::Key_Q);
  QVERIFY(!sums.isVisible() && f.view().area());
  QTest::keyClick(&f.view(), Qt::Key_Q);
  QVERIFY(sums.isVisible());
  QTest::keyClick(&f.view(), Qt::Key_Escape);
  QVERIFY(!sums.isVisible() && !f.view().area());
  QVERIFY(f.session.selection().ids() == QSet<QString>({"norm"}));  // the key was not the window's
  QTest::keyClick(&f.view(), Qt::Key_Q);
  QVERIFY2(sums.isVisible() && f.view().area()->rows.size() == 4, "of all that is in view");
}

void TimelineAreaTest::tableIsCopiedAndFollowsItsRow() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  QTest::keyClick(&f.view(), Qt::Key_Q);
  TimelineSums& sums = f.window.timeline().sums();
  sums.view()->setFocus();
  sums.view()->setCurrentIndex(sums.view()->model()->index(0, 0));
  QCOMPARE(f.session.selection().ids().size(), 1);
  QTest::keyClick(sums.view(), Qt::Key_C, Qt::ControlModifier);
  const QString copied = QGuiApplication::clipboard()->text();
  QVERIFY2(copied.startsWith(QStringLiteral("In the time range\tPlan\tPass\tCount\tSum (")), qPrintable(copied));
  QVERIFY(copied.contains(QStringLiteral("\nfused in total\tfused\t")));
  const int numSteps = sums.model().rowCount();
  named<QComboBox>(sums, "Group the time range by")->setCurrentText(QStringLiteral("By category of ops"));
  QVERIFY(sums.model().rowCount() <= numSteps);
  QVERIFY(QStringList({"Linear", "Activation", "Normalization"}).contains(sums.model().index(0, 0).data().toString()));
}

void TimelineAreaTest::anAreaGoesWithItsRun() {
  OpenedTimeline f(measuredRun());
  QVERIFY(f.isOpen);
  f.view().takeView();
  f.view().setTracks(f.view().tracks().all());
  QVERIFY(f.view().area());
  f.view().setTracks(timelineTracks(twoVariants(), nullptr));
  QVERIFY(!f.view().area());
}

void TimelineAreaTest::choicesAreKept() {
  const OwnSettings settings;
  Theme theme;
  Session session(SessionSettings{});
  {
    TimelineSums sums(session, theme, true);
    named<QComboBox>(sums, "Group the time range by")->setCurrentText(QStringLiteral("By kernel"));
  }
  QCOMPARE(TimelineSums(session, theme, true).by(), SumsBy::Kernel);
  QCOMPARE(TimelineSums(session, theme, false).by(), SumsBy::Step);
}

FUSELINE_UI_TEST(TimelineAreaTest)

}  // namespace fuseline::ui::timeline_area_test

#include "test_ui_timeline_area.moc"
