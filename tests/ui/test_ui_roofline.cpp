// The roofline: where its dots are, what fusions moved, and what keys and the mouse do with them.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/roofline/roofline_painter.h"

#include <QHeaderView>
#include <QTest>

#include <algorithm>

namespace fuseline::ui::roofline_test {

class RooflineTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void dotsStandByIntensityAndSpeed();
  void fusionsHaveArrowsAndOtherStepsHaveNone();
  void axesShowAllOfIt();
  void numbersOfTheAxisAreWhole();
  void clickSelectsTheOp();
  void keysWalkAPlanAndGoToTheOther();
  void keysContinueFromTheSelectionOfOtherPanes();
  void theRidgeIsLabelled();
  void namesOfPeaksStandBesideDots();
  void listsTheMeasuredPeaks();
  void dataSheetPeaksAreNextToMeasuredOnes();
  void saysWhyThereIsNothing();
  void timingsHaveColumnsForKnownFigures();
};

namespace {

StepRecord step(std::string name, std::string phase, std::vector<std::string> ops, std::int64_t flops,
                std::string rule = {}) {
  return {.name = std::move(name),
          .rule = std::move(rule),
          .phase = std::move(phase),
          .kernel = "BasicLinear",
          .ops = ops,
          .owners = std::move(ops),
          .arithmetic = Arithmetic::F32,
          .flops = flops,
          .bytes = 200,
          .samplesNs = {100.0, 100.0, 100.0}};
}

/// a and b forward, a backward, c only copies; the fused plan does both forward in one.
RunRecord twoVariants() {
  RunRecord record;
  record.peaks = DevicePeaks{.copyGBps = 4, .fmaF32Gflops = 50, .bf16Gflops = 200};
  record.variants = {{.name = "unfused",
                      .steps = {step("a", "forward", {"a"}, 4000), step("b", "forward", {"b"}, 20),
                                step("c", "forward", {"c"}, 0), step("a", "backward", {"a"}, 8000)}},
                     {.name = "fused",
                      .steps = {step("R(a, b)", "forward", {"a", "b"}, 4020, "R"), step("c", "forward", {"c"}, 0),
                                step("a", "backward", {"a"}, 8000)}}};
  return record;
}

/// As if the device of the run had these.
RunRecord runWithPeaks() {
  RunRecord record = measuredRun();
  record.peaks = DevicePeaks{.copyGBps = 4, .fmaF32Gflops = 50};
  return record;
}

struct Opened : OpenedRun {
  explicit Opened(const RunRecord& record) : OpenedRun(record, QStringLiteral("roofline")) { view().setFocus(); }
  RooflineView& view() { return *window.roofline().view(); }
  std::size_t dot(const char* label) {
    const auto& dots = view().plot().dots;
    const auto found = std::ranges::find(dots, QString::fromLatin1(label), &RooflineDot::label);
    return static_cast<std::size_t>(found - dots.begin());
  }
};

}  // namespace

void RooflineTest::dotsStandByIntensityAndSpeed() {
  const RooflinePlot plot = rooflinePlot(twoVariants(), nullptr);
  QStringList labels;
  for (const RooflineDot& dot : plot.dots) labels.append(dot.label);
  QCOMPARE(labels, QStringList({"a", "b", "a", "R(a, b)", "a"}));
  QCOMPARE(plot.numWithoutArithmetic, 2);
  QCOMPARE(plot.dots[0].intensity, 20.0);
  QCOMPARE(plot.dots[0].gflops, 40.0);
  QVERIFY(!plot.dots[0].isOfFusedPlan && plot.dots[3].isOfFusedPlan);
  QVERIFY(plot.dots[0].phase == Phase::Forward && plot.dots[2].phase == Phase::Backward);
  QCOMPARE(plot.dots[3].owners, QStringList({"a", "b"}));
  // 4000 FLOP take 80 ns at 50 GFLOP/s, 200 bytes 50 ns at 4 GB/s.
  QCOMPARE(plot.dots[0].words,
           QStringLiteral("a: forward, unfused plan, 100 ns ± 0.0 %, 2.00 GB/s · 40 GFLOP/s · 1.25× its roofline limit "
                          "(f32 compute), 20.0 FLOP per byte, roofline limit 80 ns"));
}

void RooflineTest::fusionsHaveArrowsAndOtherStepsHaveNone() {
  const RooflinePlot plot = rooflinePlot(twoVariants(), nullptr);
  QCOMPARE(plot.arrows.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    QCOMPARE(plot.arrows[i].from, i);
    QCOMPARE(plot.arrows[i].to, 3u);
  }
}

void RooflineTest::axesShowAllOfIt() {
  const RooflinePlot plot = rooflinePlot(twoVariants(), nullptr);
  QCOMPARE(plot.measured.ceilings.front().name, QStringLiteral("bf16"));
  QCOMPARE(plot.measured.ridge(), 50.0);
  const LogRange intensity = intensityRange(plot);
  const LogRange speed = speedRange(plot);
  const auto isWithin = [](double share) { return share > 0.0 && share < 1.0; };
  for (const RooflineDot& dot : plot.dots)
    QVERIFY(isWithin(intensity.shareOf(dot.intensity)) && isWithin(speed.shareOf(dot.gflops)));
  for (const RooflineCeiling& ceiling : plot.measured.ceilings) QVERIFY(isWithin(speed.shareOf(ceiling.gflops)));
  QVERIFY(isWithin(intensity.shareOf(plot.measured.ridge())));
  QCOMPARE((LogRange{0.05, 2000}).decades(10), (std::vector<double>{0.1, 1, 10, 100, 1000}));
  QCOMPARE((LogRange{0.05, 2000}).decades(2), (std::vector<double>{0.1, 100}));
  RooflinePlot one;
  one.dots.push_back({.intensity = 3.0, .gflops = 3.0});
  QVERIFY(!intensityRange(one).decades(5).empty());
}

/// None is cut off at the right edge, wherever the last one is.
void RooflineTest::numbersOfTheAxisAreWhole() {
  Opened f(runWithPeaks());
  for (int width = 300; width < 700; width += 13) {
    f.view().resize(width, 260);
    const QImage image = f.view().grab().toImage();
    for (int y = image.height() / 2; y < image.height() - 1; ++y)
      QVERIFY2(image.pixelColor(image.width() - 2, y) == image.pixelColor(image.width() - 2, image.height() / 2),
               qPrintable(QString::number(width)));
  }
}

void RooflineTest::clickSelectsTheOp() {
  Opened f(runWithPeaks());
  QVERIFY(f.isOpen);
  const std::size_t norm = f.dot("norm");
  QVERIFY(norm < f.view().plot().dots.size());
  QCOMPARE(f.view().plot().dots[norm].category, std::string("Normalization"));
  const QPoint place = f.view().areaOf(norm).center().toPoint();
  QVERIFY(f.view().rect().contains(place));
  QTest::mouseClick(&f.view(), Qt::LeftButton, {}, place);
  QCOMPARE(f.view().tipAt(place), f.view().currentDot()->tip);
  QCOMPARE(f.session.selection().ids(), QSet<QString>({"norm"}));
  QTest::mouseClick(&f.view(), Qt::LeftButton, {}, QPoint(1, f.view().height() - 2));
  QVERIFY(f.session.selection().ids().isEmpty());
}

void RooflineTest::keysWalkAPlanAndGoToTheOther() {
  Opened f(runWithPeaks());
  QVERIFY(f.isOpen);
  QTest::keyClick(&f.view(), Qt::Key_Right);
  QCOMPARE(f.view().currentDot()->label, QStringLiteral("norm"));
  QCOMPARE(f.session.selection().ids(), QSet<QString>({"norm"}));
  QTest::keyClick(&f.view(), Qt::Key_Left);
  QCOMPARE(f.view().currentDot()->label, QStringLiteral("norm"));
  QTest::keyClick(&f.view(), Qt::Key_Right);
  QCOMPARE(f.session.selection().ids(), QSet<QString>({"fc"}));
  QCOMPARE(f.view().accessibleDescription(), f.view().currentDot()->words);
  QVERIFY(!f.view().currentDot()->isOfFusedPlan);
  QTest::keyClick(&f.view(), Qt::Key_Down);
  QVERIFY(f.view().currentDot()->isOfFusedPlan);
  QVERIFY(f.view().currentDot()->owners.contains(QStringLiteral("fc")));
  QTest::keyClick(&f.view(), Qt::Key_Up);
  QVERIFY(!f.view().currentDot()->isOfFusedPlan);
}

void RooflineTest::keysContinueFromTheSelectionOfOtherPanes() {
  Opened f(runWithPeaks());
  QVERIFY(f.isOpen);
  f.session.selection().select({QStringLiteral("fc")});
  QCOMPARE(f.view().currentDot()->label, QStringLiteral("fc"));
  QTest::keyClick(&f.view(), Qt::Key_Left);
  QCOMPARE(f.session.selection().ids(), QSet<QString>({"norm"}));
  f.session.selection().select({});
  QVERIFY(!f.view().currentDot());
}

void RooflineTest::theRidgeIsLabelled() {
  const RooflinePlot plot = rooflinePlot(twoVariants(), nullptr);
  for (const QSizeF size : {QSizeF(900, 400), QSizeF(300, 200)}) {
    const RooflineScale scale(plot, QRectF(QPointF(), size));
    QCOMPARE(scale.ridgeName(), QStringLiteral("ridge 50.0 FLOP/byte"));
    QVERIFY(scale.ridgeNamePlace() && scale.plotArea().contains(*scale.ridgeNamePlace()));
    for (const QRectF& name : scale.ceilingNames()) QVERIFY(!name.intersects(*scale.ridgeNamePlace()));
  }
}

/// A step at the peak, right where its name would be.
void RooflineTest::namesOfPeaksStandBesideDots() {
  RooflinePlot plot = rooflinePlot(twoVariants(), nullptr);
  const RooflineCeiling peak = plot.measured.ceilings.front();
  const double highest = intensityRange(plot).high;
  plot.dots.push_back({.intensity = highest * 0.9, .gflops = peak.gflops, .timeNs = 1e6});
  const RooflineScale scale(plot, QRectF(0, 0, 900, 400));
  for (const QRectF& name : scale.ceilingNames()) {
    QVERIFY(scale.plotArea().left() <= name.left() && name.right() <= scale.plotArea().right());
    for (std::size_t dot = 0; dot < plot.dots.size(); ++dot) QVERIFY(!scale.areaOf(dot).intersects(name));
  }
}

void RooflineTest::listsTheMeasuredPeaks() {
  Opened f(runWithPeaks());
  QVERIFY(f.isOpen);
  const QString peaks = QStringLiteral("Peaks measured in this run: memory 4.00 GB/s, f32 50 GFLOP/s");
  QVERIFY2(f.window.roofline().caption().startsWith(peaks), qPrintable(f.window.roofline().caption()));
  Opened without(measuredRun());
  QVERIFY(without.isOpen);
  QVERIFY(!without.view().plot().dots.empty());
  QVERIFY(without.window.roofline().caption().startsWith(QStringLiteral("No peaks: ")));
}

void RooflineTest::dataSheetPeaksAreNextToMeasuredOnes() {
  RunRecord record = measuredRun();
  record.environment = {{"device", "NVIDIA H200"}};
  record.peaks = DevicePeaks{.copyGBps = 4200, .fmaF32Gflops = 50e3, .bf16Gflops = 700e3};
  Opened f(record);
  QVERIFY(f.isOpen);
  const QString sheet = QStringLiteral("dotted: NVIDIA's data sheet, memory 4800 GB/s, bf16 989 TFLOP/s, f32 67");
  QVERIFY2(f.window.roofline().caption().contains(sheet), qPrintable(f.window.roofline().caption()));
  const RooflinePlot& plot = f.view().plot();
  QCOMPARE(plot.published.ceilings.size(), plot.measured.ceilings.size());  // nothing of FP8, which was not measured
  QVERIFY(speedRange(plot).shareOf(plot.published.ceilings.front().gflops) < 1.0);

  record.environment = {{"device", "a CPU"}};
  Opened other(record);
  QVERIFY(!other.window.roofline().caption().contains(QStringLiteral("data sheet")));
}

void RooflineTest::saysWhyThereIsNothing() {
  Fixture empty(smallPipeline());
  QVERIFY(empty.window.roofline().emptyText().startsWith(QStringLiteral("No measurements yet. Press Run")));
  Opened f(measuredRun(StepTiming::None));
  QVERIFY(f.isOpen);
  QVERIFY(f.window.roofline().emptyText().startsWith(QStringLiteral("This run has no step times.")));
  QTest::keyClick(&f.view(), Qt::Key_Right);
  QTest::mouseClick(&f.view(), Qt::LeftButton, {}, QPoint(5, 5));
}

void RooflineTest::timingsHaveColumnsForKnownFigures() {
  OpenedRun f(runWithPeaks(), QStringLiteral("timings"));
  QVERIFY(f.isOpen);
  const QTreeView& view = *f.window.timings().view();
  QVERIFY(!view.isColumnHidden(TimingsModel::RooflineColumn) && !view.isColumnHidden(TimingsModel::BandwidthColumn));
  OpenedRun without(measuredRun(), QStringLiteral("timings"));
  QVERIFY(without.isOpen);
  QVERIFY(without.window.timings().view()->isColumnHidden(TimingsModel::RooflineColumn));
  QVERIFY(!without.window.timings().view()->isColumnHidden(TimingsModel::BandwidthColumn));
}

FUSELINE_UI_TEST(RooflineTest)

}  // namespace fuseline::ui::roofline_test

#include "test_ui_roofline.moc"
