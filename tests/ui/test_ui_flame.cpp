// The flame graph: where its boxes are, zooming, searching, and the selection it shares with the other views.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/flame/flame_panel.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFile>
#include <QLineEdit>
#include <QXmlStreamReader>

#include <algorithm>
#include <cmath>

namespace fuseline::ui::flame_test {

class FlameTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void boxesAreAsWideAsTheirTime();
  void partsOfAFusedStepAreEstimates();
  void partsThatTakeMoreThanTheWholeAreNarrowed();
  void zoomsInAndOut();
  void keysWalkTheBoxes();
  void theSelectionGoesBothWays();
  void searchesByRegularExpression();
  void matchesCountOnce();
  void theOtherPlanIsShownToo();
  void aNewRunKeepsTheZoom();
  void saysWhyThereIsNothing();
  void savesAPicture();
};

namespace {

StepRecord step(std::string name, std::string phase, double ns, std::vector<std::string> ops, std::string rule = {}) {
  StepRecord record{.name = std::move(name),
                    .rule = std::move(rule),
                    .phase = std::move(phase),
                    .kernel = "BasicLinear",
                    .ops = ops,
                    .owners = {},
                    .samplesNs = {ns, ns, ns}};
  for (const std::string& op : ops) record.owners.push_back(op);
  return record;
}

/// The small pipeline; unfused 100 + 60 + 40, then 200 back; fused 100 + 50, then 100 back.
RunRecord flameRun() {
  RunRecord record = measuredRun();
  record.variants = {
      {.name = "unfused",
       .steps = {step("norm", "forward", 100, {"norm"}), step("fc", "forward", 60, {"fc"}),
                 step("act", "forward", 40, {"act"}), step("fc", "backward", 200, {"fc"})}},
      {.name = "fused",
       .steps = {step("norm", "forward", 100, {"norm"}), step("R(fc, act)", "forward", 50, {"fc", "act"}, "R"),
                 step("fc", "backward", 100, {"fc"})}}};
  return record;
}

struct Opened : OpenedRun {
  explicit Opened(const RunRecord& record = flameRun()) : OpenedRun(record, QStringLiteral("flame")) {
    view().setFocus();
  }
  FlamePanel& panel() { return window.flame(); }
  FlameView& view() { return *panel().view(); }
  std::size_t boxOf(const QString& label) {
    const auto& boxes = view().boxes();
    return static_cast<std::size_t>(std::ranges::find(boxes, label, &FlameBox::label) - boxes.begin());
  }
  double shareOf(const QString& label) { return view().areaOf(boxOf(label)).width() / view().width(); }
  QPoint middleOf(const QString& label) { return view().areaOf(boxOf(label)).center().toPoint(); }
  void search(const QString& text) { panel().findChild<QLineEdit*>()->setText(text); }
};

const QString kFused = QStringLiteral("fc + act · R");

bool isNear(double a, double b) { return std::abs(a - b) < 1e-9; }

}  // namespace

void FlameTest::boxesAreAsWideAsTheirTime() {
  Opened f;
  QVERIFY(f.isOpen);
  QVERIFY(isNear(f.shareOf("fused"), 1.0));
  QVERIFY(isNear(f.shareOf("Forward →"), 0.6));
  QVERIFY(isNear(f.shareOf("norm"), 0.4));
  QVERIFY(isNear(f.shareOf(kFused), 0.2));
  QVERIFY(isNear(f.view().areaOf(f.boxOf("← Backward")).left(), 0.6 * f.view().width()));
  QVERIFY2(f.panel().caption().contains("250 ns"), qPrintable(f.panel().caption()));
  const QString tip = f.view().tipAt(f.middleOf("norm"));
  QVERIFY2(tip.contains("40.0 % of the plan") && tip.contains("66.7 % of Forward →"), qPrintable(tip));
}

/// Three fifths of what is unfused are fc's.
void FlameTest::partsOfAFusedStepAreEstimates() {
  Opened f;
  const auto& boxes = f.view().boxes();
  const FlameBox& fc = boxes[f.boxOf(kFused) + 1];
  QCOMPARE(fc.label, QStringLiteral("fc"));
  QVERIFY(fc.isEstimate);
  QVERIFY(isNear(fc.lengthNs(), 30.0));
  QVERIFY2(fc.tip.contains("Estimate, not measured"), qPrintable(fc.tip));
}

void FlameTest::partsThatTakeMoreThanTheWholeAreNarrowed() {
  RunRecord record = flameRun();
  record.variants[1].steps[0].activities = {{"k", "", {80.0}}, {"l", "", {40.0}}};
  Opened f(record);
  const auto& boxes = f.view().boxes();
  const std::size_t norm = f.boxOf("norm");
  QVERIFY(isNear(boxes[norm + 1].lengthNs(), 80.0 * 100.0 / 120.0));
  QVERIFY(isNear(boxes[norm + 2].endNs, boxes[norm].endNs));
}

void FlameTest::zoomsInAndOut() {
  Opened f;
  QTest::mouseDClick(&f.view(), Qt::LeftButton, {}, f.middleOf("Forward →"));
  QVERIFY(isNear(f.shareOf("Forward →"), 1.0));
  QVERIFY(isNear(f.shareOf("fused"), 1.0));
  QVERIFY(isNear(f.shareOf("norm"), 100.0 / 150.0));
  QVERIFY(f.view().areaOf(f.boxOf("← Backward")).isNull());
  QVERIFY2(f.panel().caption().contains("zoomed in"), qPrintable(f.panel().caption()));
  QTest::mouseDClick(&f.view(), Qt::LeftButton, {}, f.middleOf(kFused));
  QTest::keyClick(&f.view(), Qt::Key_Backspace);
  QCOMPARE(f.view().zoomed(), f.boxOf("Forward →"));
  QTest::keyClick(&f.view(), Qt::Key_Escape);
  QCOMPARE(f.view().zoomed(), std::size_t{0});
}

void FlameTest::keysWalkTheBoxes() {
  Opened f;
  const auto walk = [&](Qt::Key key) {
    QTest::keyClick(&f.view(), key);
    return f.view().boxes()[*f.view().currentBox()].label;
  };
  QCOMPARE(walk(Qt::Key_Down), QStringLiteral("fused"));
  QCOMPARE(walk(Qt::Key_Down), QStringLiteral("Forward →"));
  QCOMPARE(walk(Qt::Key_Down), QStringLiteral("norm"));
  QCOMPARE(walk(Qt::Key_Right), kFused);
  QVERIFY(f.view().accessibleDescription().startsWith(kFused));
  QCOMPARE(walk(Qt::Key_Right), QStringLiteral("fc"));
  QCOMPARE(walk(Qt::Key_Up), QStringLiteral("← Backward"));
  QCOMPARE(walk(Qt::Key_Left), QStringLiteral("Forward →"));
  QTest::keyClick(&f.view(), Qt::Key_Return);
  QCOMPARE(f.view().zoomed(), f.boxOf("Forward →"));
}

void FlameTest::theSelectionGoesBothWays() {
  Opened f;
  QTest::mouseClick(&f.view(), Qt::LeftButton, {}, f.middleOf(kFused));
  QCOMPARE(f.session.selection().ids(), (QSet<QString>{"fc", "act"}));
  f.session.selection().select({QStringLiteral("norm")});
  const QImage marked = f.view().grab().toImage();
  f.session.selection().select({});
  QVERIFY(marked != f.view().grab().toImage());
}

void FlameTest::searchesByRegularExpression() {
  Opened f;
  QTest::keyClick(&f.view(), Qt::Key_Slash);
  QVERIFY(f.panel().findChild<QLineEdit*>()->hasFocus());
  f.search("^NORM$");
  QCOMPARE(f.view().numMatches(), 1);
  QVERIFY2(f.panel().caption().contains("1 box found, 40.0 % of the plan"), qPrintable(f.panel().caption()));
  QTest::keyClick(f.panel().findChild<QLineEdit*>(), Qt::Key_Return);
  QCOMPARE(f.session.selection().ids(), QSet<QString>{"norm"});
  f.search("(");
  QVERIFY2(f.panel().caption().contains("Invalid regular expression"), qPrintable(f.panel().caption()));
  f.search("nothing of the kind");
  QVERIFY(f.panel().caption().contains("No matches"));
  QTest::keyClick(f.panel().findChild<QLineEdit*>(), Qt::Key_Escape);
  QVERIFY(f.view().hasFocus() && f.panel().findChild<QLineEdit*>()->text().isEmpty());
}

/// fc is found in the fused step, in its estimate and in backward: 50 and 100 of 250 ns.
void FlameTest::matchesCountOnce() {
  Opened f;
  f.search("fc");
  QCOMPARE(f.view().numMatches(), 3);
  QVERIFY(isNear(f.view().matchedShare(), 0.6));
}

void FlameTest::theOtherPlanIsShownToo() {
  Opened f;
  auto* plans = f.panel().findChild<QComboBox*>();
  plans->setCurrentIndex(plans->findText("unfused"));
  Q_EMIT plans->activated(plans->currentIndex());
  QCOMPARE(f.view().boxes().front().label, QStringLiteral("unfused"));
  QVERIFY(isNear(f.shareOf("act"), 0.1));
  QVERIFY(!f.panel().findChild<QCheckBox*>()->isVisible());  // the pipeline has no blocks
}

void FlameTest::aNewRunKeepsTheZoom() {
  Opened f;
  f.view().zoomTo(f.boxOf("← Backward"));
  f.view().setBoxes(flameBoxes(flameRun(), flameRun().variants[0], Instances::Apart, nullptr));
  QCOMPARE(f.view().zoomed(), f.boxOf("← Backward"));
}

void FlameTest::saysWhyThereIsNothing() {
  Fixture f(smallPipeline());
  f.window.showPane(QStringLiteral("flame"));
  QVERIFY(f.window.flame().emptyText().contains("No measurements yet"));
  RunRecord record = measuredRun(StepTiming::None);
  Opened untimed(record);
  QVERIFY2(untimed.panel().emptyText().contains("--timing none"), qPrintable(untimed.panel().emptyText()));
}

void FlameTest::savesAPicture() {
  Opened f;
  const QString path = QString::fromStdString((f.folder.path() / "flame.svg").string());
  QVERIFY(f.panel().saveSvg(path));
  QFile file(path);
  QVERIFY(file.open(QIODevice::ReadOnly));
  QXmlStreamReader xml(&file);
  QString texts;
  while (!xml.atEnd())
    if (xml.readNext() == QXmlStreamReader::Characters) texts += xml.text();
  QVERIFY2(!xml.hasError(), qPrintable(xml.errorString()));
  QVERIFY2(texts.contains("Backward") && texts.contains("norm"), qPrintable(texts));
  QVERIFY(!f.panel().saveSvg(path + "/nowhere/flame.svg"));
}

FUSELINE_UI_TEST(FlameTest)

}  // namespace fuseline::ui::flame_test

#include "test_ui_flame.moc"
