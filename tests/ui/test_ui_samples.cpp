// How the rounds of a row of the table of timings are spread: which ones they are, their axis, keys and pointer.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/timings/timings_panel.h"

#include <QSettings>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fuseline::ui::samples_test {

class SamplesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void partsOfAFusedStepAreSummedRoundByRound();
  void aPartIsOfTheUnfusedPlanAlone();
  void wholePlansHaveRoundsToo();
  void memoryHasNoRounds();
  void samplesFarAwayStandAtTheEndOfTheAxis();
  void equalSamplesHaveAnAxis();
  void theRowThatIsSelectedIsShown();
  void dotsStandWhereTheirTimeIs();
  void theNearestDotIsTold();
  void keysWalkTheRounds();
  void isHiddenAndStaysSo();
  void roundsAreSharesOfEachRun();
  void rowsWithoutRoundsInBothSaySo();
  void theReferenceIsNextToTheRounds();
};

namespace {

StepRecord step(const char* name, std::vector<std::string> ops, std::vector<double> samplesNs, const char* rule = "") {
  return {.name = name, .rule = rule, .phase = "forward", .ops = ops, .owners = ops, .samplesNs = std::move(samplesNs)};
}

/// The small pipeline: fc and act, which are one step of the fused plan.
RunRecord smallRun() {
  RunRecord record = measuredRun();
  record.variants = {{.name = "unfused",
                      .steps = {step("fc", {"fc"}, {3000, 3100, 3200}), step("act", {"act"}, {1000, 1500, 1300})},
                      .endToEndNs = {4400, 4300, 4200},
                      .instrumentedNs = {4700, 4800, 4900}},
                     {.name = "fused",
                      .steps = {step("Rule(fc, act)", {"fc", "act"}, {3500, 3300, 3700}, "Rule")},
                      .endToEndNs = {3600, 3500, 3400, 3300},
                      .instrumentedNs = {3900, 3800, 3700}}};
  record.variants[0].peakBytes = 1024;
  return record;
}

struct Model {
  explicit Model(const RunRecord& run = smallRun()) : record(run), model(theme) { model.setRecord(record); }
  SamplePlot plotOf(const char* label) const {
    for (int row = 0; row < model.rowCount(); ++row)
      if (model.index(row, 0).data().toString() == QString::fromLatin1(label))
        return samplePlot(record, model.rowAt(model.index(row, 0)));
    return {.title = QStringLiteral("no such row")};
  }
  RunRecord record;
  Theme theme;
  TimingsModel model;
};

using Samples = std::vector<double>;

SamplePlot plotOf(const Samples& fusedNs) {
  RunRecord record = smallRun();
  record.variants[1].steps[0].samplesNs = fusedNs;
  record.variants.erase(record.variants.begin());
  return Model(record).plotOf("Rule(fc, act)");
}

Baseline baselineOf(const RunRecord& record) {
  return {.record = std::make_shared<const RunRecord>(record), .name = QStringLiteral("before")};
}

struct Panel : OpenedRun {
  Panel() : OpenedRun(smallRun(), QStringLiteral("timings")) { window.timings().resize(1000, 400); }
  SampleView& view() { return window.timings().samples(); }
};

}  // namespace

void SamplesTest::partsOfAFusedStepAreSummedRoundByRound() {
  const SamplePlot plot = Model().plotOf("Rule(fc, act)");
  QCOMPARE(plot.title, QStringLiteral("Rule(fc, act) · forward"));
  QCOMPARE(plot.strips.size(), std::size_t{2});
  QCOMPARE(plot.strips[0].ns, Samples({4000, 4600, 4500}));
  QCOMPARE(plot.strips[1].ns, Samples({3500, 3300, 3700}));
  QCOMPARE(plot.strips[1].meanNs, 3500.0);
  QVERIFY(plot.axis.low < 3.3 && plot.axis.high > 4.6);  // us
  QCOMPARE(roundText(plot, plot.strips[1], 2), QStringLiteral("Fused: round 3 of 3, 3.70 µs"));
}

void SamplesTest::aPartIsOfTheUnfusedPlanAlone() {
  const Model f;
  const SamplePlot plot = samplePlot(f.record, f.model.rowAt(f.model.index(1, 0, f.model.index(0, 0))));
  QCOMPARE(plot.strips.size(), std::size_t{1});
  QVERIFY(!plot.strips[0].isFused);
  QCOMPARE(plot.strips[0].ns, Samples({1000, 1500, 1300}));
}

void SamplesTest::wholePlansHaveRoundsToo() {
  const Model f;
  QCOMPARE(f.plotOf("end to end").strips[1].ns, Samples({3600, 3500, 3400, 3300}));
  QCOMPARE(f.plotOf("sum of steps").strips[0].ns, Samples({4000, 4600, 4500}));
  QCOMPARE(f.plotOf("End to end, with step timing").strips[0].ns, Samples({4700, 4800, 4900}));
}

void SamplesTest::memoryHasNoRounds() {
  const SamplePlot plot = Model().plotOf("Peak memory");
  QCOMPARE(plot.title, QStringLiteral("Peak memory"));
  QVERIFY(plot.strips.empty());
}

void SamplesTest::samplesFarAwayStandAtTheEndOfTheAxis() {
  Samples samples(99, 1000.0);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] += static_cast<double>(i);
  samples[40] = 1e6;
  Theme theme;
  SampleView view(theme);
  view.resize(400, 200);
  view.setPlot(plotOf(samples));
  QVERIFY(view.plot().axis.high < 2.0);  // us
  const double outermost = view.placeOf({0, 98}).x();
  QVERIFY(view.placeOf({0, 40}).x() > outermost && view.placeOf({0, 40}).x() <= 400.0);
  QVERIFY(view.tipAt(view.placeOf({0, 40})).contains(QStringLiteral("1000 µs")));
}

void SamplesTest::equalSamplesHaveAnAxis() {
  const SamplePlot plot = plotOf({2000, 2000, 2000});
  QVERIFY(plot.axis.low < 2.0 && plot.axis.high > 2.0);
  QVERIFY(std::isfinite(plot.axis.shareOf(2.0)));
}

void SamplesTest::theRowThatIsSelectedIsShown() {
  Panel f;
  QVERIFY(f.isOpen);
  QCOMPARE(f.view().plot().title, QStringLiteral("end to end"));
  f.session.selection().select({QStringLiteral("act")});
  QCOMPARE(f.view().plot().title, QStringLiteral("Rule(fc, act) · forward"));
  QTreeView& table = *f.window.timings().view();
  table.setCurrentIndex(table.model()->index(0, 0, table.model()->index(0, 0)));
  QCOMPARE(f.view().plot().title, QStringLiteral("fc · forward"));
  f.session.selection().select({});
  QCOMPARE(f.view().plot().title, QStringLiteral("end to end"));
}

/// From left to right by time, and downwards by round.
void SamplesTest::dotsStandWhereTheirTimeIs() {
  Panel f;
  QVERIFY(f.isOpen);
  f.session.selection().select({QStringLiteral("act")});
  const QPointF first = f.view().placeOf({1, 0});
  const QPointF second = f.view().placeOf({1, 1});
  const QPointF third = f.view().placeOf({1, 2});
  QVERIFY(second.x() < first.x() && first.x() < third.x());
  QVERIFY(first.y() < second.y() && second.y() < third.y());
  QVERIFY(std::abs((third.x() - first.x()) - (first.x() - second.x())) < 1e-6);  // 3300, 3500, 3700
  QVERIFY(f.view().placeOf({0, 2}).y() < first.y());                             // unfused above fused
}

void SamplesTest::theNearestDotIsTold() {
  Panel f;
  QVERIFY(f.isOpen);
  f.session.selection().select({QStringLiteral("act")});
  const QPointF place = f.view().placeOf({0, 1});
  QCOMPARE(f.view().dotAt(place + QPointF(2, 1)), std::optional(SampleView::Dot{0, 1}));
  QCOMPARE(f.view().tipAt(place), QStringLiteral("Unfused: round 2 of 3, 4.60 µs"));
  QCOMPARE(f.view().dotAt({0, 0}), std::nullopt);
  QVERIFY(f.view().tipAt({0, 0}).isEmpty());
}

void SamplesTest::keysWalkTheRounds() {
  Panel f;
  QVERIFY(f.isOpen);
  f.session.selection().select({QStringLiteral("act")});
  SampleView& view = f.view();
  QVERIFY(view.focusPolicy() & Qt::TabFocus);
  QVERIFY(view.accessibleDescription().contains(QStringLiteral("Fused: median 3.50 µs, mean 3.50 µs")));
  const auto press = [&](Qt::Key key) {
    QTest::keyClick(&view, key);
    return view.cursor().value_or(SampleView::Dot{9, 9});
  };
  QCOMPARE(press(Qt::Key_Right), (SampleView::Dot{0, 0}));
  QCOMPARE(press(Qt::Key_Right), (SampleView::Dot{0, 1}));
  QCOMPARE(press(Qt::Key_Down), (SampleView::Dot{1, 1}));
  QVERIFY(view.accessibleDescription().contains(QStringLiteral("Fused: round 2 of 3, 3.30 µs")));
  QCOMPARE(press(Qt::Key_Down), (SampleView::Dot{1, 1}));
  QCOMPARE(press(Qt::Key_End), (SampleView::Dot{1, 2}));
  QCOMPARE(press(Qt::Key_Right), (SampleView::Dot{1, 2}));
  QCOMPARE(press(Qt::Key_Home), (SampleView::Dot{1, 0}));
  QCOMPARE(press(Qt::Key_Up), (SampleView::Dot{0, 0}));
}

void SamplesTest::isHiddenAndStaysSo() {
  const OwnSettings settings;
  Theme theme;
  Session session({});
  {
    TimingsPanel panel(session, theme, true);
    QVERIFY(!panel.samples().isHidden());
    named<QToolButton>(panel, "Rounds")->click();
    QVERIFY(panel.samples().isHidden());
  }
  TimingsPanel again(session, theme, true);
  QVERIFY(again.samples().isHidden());
  named<QToolButton>(again, "Rounds")->click();
  QVERIFY(!again.samples().isHidden());
}

/// 60 of one run and 20 of the other: each as a whole.
void SamplesTest::roundsAreSharesOfEachRun() {
  RunRecord run = smallRun();
  RunRecord base = smallRun();
  run.variants[1].steps[0].samplesNs.assign(60, 2000.0);
  base.variants[1].steps[0].samplesNs.assign(20, 4000.0);
  const Model f(run);
  const RoundComparison comparison = compareRoundsOf(run, baselineOf(base), f.model.rowAt(f.model.index(0, 0)));
  QCOMPARE(comparison.title, QStringLiteral("Rule(fc, act) · forward · Fused"));
  const auto sum = [](const Samples& shares) { return std::accumulate(shares.begin(), shares.end(), 0.0); };
  QVERIFY(std::abs(sum(comparison.next.shares) - 1.0) < 1e-9 && std::abs(sum(comparison.base.shares) - 1.0) < 1e-9);
  QCOMPARE(comparison.next.shares.size(), comparison.base.shares.size());
  const auto highest = [](const Samples& shares) { return std::ranges::max_element(shares) - shares.begin(); };
  QVERIFY(highest(comparison.next.shares) < highest(comparison.base.shares));
  QCOMPARE(wordsOf(comparison), QStringLiteral("A: 4.000 µs, now 2.000 µs: -50.0 %"));
  base.variants[1].steps[0].samplesNs = {1000, 2000, 3000, 4000};
  const RoundComparison vague = compareRoundsOf(run, baselineOf(base), f.model.rowAt(f.model.index(0, 0)));
  QVERIFY2(wordsOf(vague).contains(QStringLiteral("95 % interval")), qPrintable(wordsOf(vague)));
  QVERIFY2(wordsOf(vague).endsWith(QStringLiteral("not statistically significant")), qPrintable(wordsOf(vague)));
}

void SamplesTest::rowsWithoutRoundsInBothSaySo() {
  RunRecord other = smallRun();
  other.variants[0].steps[0].name = "else";
  const Model f;
  const TimingsRow& part = f.model.rowAt(f.model.index(0, 0, f.model.index(0, 0)));
  QCOMPARE(wordsOf(compareRoundsOf(f.record, baselineOf(other), part)),
           QStringLiteral("Baseline A has no rounds for this row."));
  QCOMPARE(wordsOf(compareRoundsOf(other, baselineOf(f.record), part)),
           QStringLiteral("This run has no rounds for this row."));
}

void SamplesTest::theReferenceIsNextToTheRounds() {
  Panel f;
  QVERIFY(f.isOpen);
  RoundComparisonView& rounds = f.window.timings().rounds();
  QVERIFY(rounds.isHidden());
  QVERIFY(f.session.baselines().pin(smallRun()));
  QVERIFY(!rounds.isHidden());
  QCOMPARE(rounds.comparison().title, QStringLiteral("end to end · Fused"));
  f.session.selection().select({QStringLiteral("act")});
  QVERIFY(rounds.accessibleDescription().startsWith(QStringLiteral("Rule(fc, act) · forward · Fused: A: 3.500 µs")));
  QVERIFY(f.session.baselines().pin(smallRun()));
  QCOMPARE(rounds.comparison().slot, 1);  // the reference is the one that was pinned last
  named<QToolButton>(f.window.timings(), "Rounds")->click();
  QVERIFY(rounds.isHidden());
  named<QToolButton>(f.window.timings(), "Rounds")->click();
  f.session.baselines().unpinAll();
  QVERIFY(rounds.isHidden());
}

FUSELINE_UI_TEST(SamplesTest)

}  // namespace fuseline::ui::samples_test

#include "test_ui_samples.moc"
