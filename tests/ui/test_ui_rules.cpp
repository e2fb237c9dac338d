// The rules panel: what each rule did in this pipeline, its links, and its switch.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/read_file.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/theme/format.h"

#include <QTest>

namespace fuseline::ui::rules_test {

class RulesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void beginsWithARuleThatHit();
  void tellsHitsAndMisses();
  void tellsTimesOfTheModel();
  void showsTheTotalSavingOfSeveralHits();
  void followsEdits();
  void tellsWhichRulesAreNotTried();
  void saysTheConditionAndWhyItFailed();
  void linksSelectTheOps();
  void linksAndTicksTakeTheMouseAndTheKeyboard();
  void aHullThatIsSelectedBringsItsRule();
  void aTickIsAnEditThatCanBeUndone();
  void aPlaceThatIsOffIsCounted();
  void aPipelineWithErrorsHasNoPlaces();
  void catchesUpWhenItIsShown();
};

namespace {

const QString kLinearAdd = QStringLiteral("ForwardLinearBiasAdd");
const QString kEpilogue = QStringLiteral("ForwardLinearEpilogue");

struct Shown : Fixture {
  explicit Shown(const std::string& text) : Fixture(text) { window.showPane(QStringLiteral("rules")); }

  QModelIndex cell(const QString& rule, RulesModel::Column column) {
    RulesModel& model = window.rules().model();
    return model.index(model.rowOf(rule), column);
  }
  QString text(const QString& rule, RulesModel::Column column) { return cell(rule, column).data().toString(); }
  QString details(const QString& rule) {
    window.rules().view()->setCurrentIndex(cell(rule, RulesModel::NameColumn));
    return window.rules().details()->toPlainText();
  }
  void click(const QString& link) { Q_EMIT window.rules().details()->anchorClicked(QUrl(link)); }
  bool isFused(const std::string& rule) {
    for (const FusedOperation& entry : session.plan().analysis()->report.forward)
      if (entry.rule && entry.rule->name == rule) return true;
    return false;
  }
};

/// On the browser's viewport; null: it is not in sight.
QPoint placeOf(const QTextBrowser& browser, const QString& link) {
  for (int y = 1; y < browser.viewport()->height(); y += 3)
    for (int x = 1; x < 60; x += 3)
      if (browser.anchorAt({x, y}) == link) return {x, y};
  return {};
}

}  // namespace

void RulesTest::beginsWithARuleThatHit() {
  Shown f(residualPipeline(true));
  QVERIFY(f.window.rules().details()->toPlainText().startsWith(kLinearAdd));
  QVERIFY(!f.details(kEpilogue).isEmpty());
  QVERIFY(f.session.pipeline().apply(MoveNode{.id = "fc", .position = Position{8, 8}}));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.window.rules().details()->toPlainText().startsWith(kEpilogue));
}

void RulesTest::tellsHitsAndMisses() {
  Shown f(residualPipeline(true));
  QCOMPARE(f.text(kLinearAdd, RulesModel::HitsColumn), QStringLiteral("1"));
  QCOMPARE(f.text(kLinearAdd, RulesModel::MissesColumn), QStringLiteral("–"));
  // The product, of 16 x 32 values of 2 bytes, is neither written nor read again.
  QCOMPARE(f.text(kLinearAdd, RulesModel::SavesColumn), QStringLiteral("2 KiB"));
  QCOMPARE(f.text(kLinearAdd, RulesModel::LaunchesColumn), QStringLiteral("1"));
  QCOMPARE(f.text(kLinearAdd, RulesModel::TimeColumn), QString());
  QVERIFY2(f.window.rules().caption().contains(QStringLiteral("Predicted to save ")),
           qPrintable(f.window.rules().caption()));
  QCOMPARE(f.text(kLinearAdd, RulesModel::PassColumn), QStringLiteral("forward"));
  QCOMPARE(f.text(kLinearAdd, RulesModel::PatternColumn), QStringLiteral("BasicLinear → [Bias] → AddExtraInput"));
  QCOMPARE(f.window.rules().model().rowCount(), static_cast<int>(builtinRules().all().size()));
}

/// The run told how fast the device moves bytes.
void RulesTest::tellsTimesOfTheModel() {
  OpenedRun f(measuredRun(), QStringLiteral("rules"));
  QVERIFY(f.isOpen);
  const DeviceModel& device = f.session.plan().analysis()->report.device;
  QVERIFY(device.bandwidthBytesPerSecond > 0.0);
  RulesModel& model = f.window.rules().model();
  int numHits = 0;
  for (int row = 0; row < model.rowCount(); ++row) {
    const Saving saved = model.use(row).saved();
    const QModelIndex cell = model.index(row, RulesModel::TimeColumn);
    numHits += saved.bytes > 0;
    const double ns = 1e9 * static_cast<double>(saved.bytes) / device.bandwidthBytesPerSecond;
    QCOMPARE(cell.data().toString(), saved == Saving{} ? QStringLiteral("–") : formatDurationNs(ns));
    QVERIFY(cell.data(Qt::ToolTipRole).toString().startsWith(QStringLiteral("Predicted")));
  }
  QVERIFY(numHits > 0);
}

/// The epilogues of both layers, as `fuseline rules --in` prints them (tests/golden/cli/rules_in.txt).
void RulesTest::showsTheTotalSavingOfSeveralHits() {
  Shown f(*readWholeFile(FUSELINE_SOURCE_DIR "/tests/golden/cli/sample.fuseline", {.what = "pipeline", .maxMiB = 1}));
  const QString details = f.details(kEpilogue);
  QVERIFY2(details.contains(
               QStringLiteral("2 places where it applies · Predicted to save 512 B of memory traffic and 3 launches.")),
           qPrintable(details));
}

void RulesTest::followsEdits() {
  Shown f(residualPipeline(false));
  QCOMPARE(f.text(kLinearAdd, RulesModel::HitsColumn), QStringLiteral("–"));
  QCOMPARE(f.text(kLinearAdd, RulesModel::MissesColumn), QStringLiteral("1"));
  f.window.rules().view()->setCurrentIndex(f.cell(kLinearAdd, RulesModel::NameColumn));
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "add", .name = "in_place", .value = true}));
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(f.text(kLinearAdd, RulesModel::HitsColumn), QStringLiteral("1"));
  QCOMPARE(f.window.rules().view()->currentIndex().row(), f.cell(kLinearAdd, RulesModel::NameColumn).row());
  QVERIFY(f.window.rules().details()->toPlainText().contains(QStringLiteral("fc, add are fused")));
}

void RulesTest::tellsWhichRulesAreNotTried() {
  Shown f(residualPipeline(true));
  QCOMPARE(f.text(kEpilogue, RulesModel::StateColumn), QStringLiteral("not in this rule set"));
  QVERIFY(f.window.rules().caption().contains(QStringLiteral("Rule set: TransformerEngine")));
  f.session.setup().setPass(ExecutionMode::Inference);
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(f.text(QStringLiteral("BackwardLinearAdd"), RulesModel::StateColumn), QStringLiteral("not in this pass"));
  QVERIFY(f.session.pipeline().apply(SetFusion{.fusion = Json{{"rules", "all"}}}));
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(f.text(kEpilogue, RulesModel::StateColumn), QStringLiteral("on"));
  QVERIFY(f.window.rules().caption().contains(QStringLiteral("all rules")));
}

void RulesTest::saysTheConditionAndWhyItFailed() {
  Shown f(residualPipeline(false));
  const QString details = f.details(kLinearAdd);
  QVERIFY2(details.contains(QStringLiteral("The op works in place.")), qPrintable(details));
  QVERIFY2(details.contains(QStringLiteral("1 place where it does not apply")), qPrintable(details));
  QVERIFY2(details.contains(QStringLiteral("fc, add · condition failed")), qPrintable(details));
  QVERIFY2(details.contains(QStringLiteral("add has in_place off, but this fusion needs it on.")), qPrintable(details));
}

void RulesTest::linksSelectTheOps() {
  Shown f(residualPipeline(true));
  QVERIFY(!f.details(kLinearAdd).isEmpty());
  f.click(QStringLiteral("#hit0"));
  QCOMPARE(f.session.selection().ids(), (QSet<QString>{QStringLiteral("fc"), QStringLiteral("add")}));
  QCOMPARE(f.session.selection().rule(), kLinearAdd);
  f.session.selection().select({});
  f.click(QStringLiteral("#hit7"));
  f.click(QStringLiteral("https://example.org"));
  QVERIFY(f.session.selection().ids().isEmpty());
  QVERIFY(!f.details(QStringLiteral("BackwardLinearAdd")).isEmpty());  // save is not in place
  f.click(QStringLiteral("#miss0"));
  QCOMPARE(f.session.selection().ids(), (QSet<QString>{QStringLiteral("save"), QStringLiteral("fc")}));
}

void RulesTest::linksAndTicksTakeTheMouseAndTheKeyboard() {
  Shown f(residualPipeline(true));
  f.window.activateWindow();
  f.window.rules().view()->setCurrentIndex(f.cell(kLinearAdd, RulesModel::NameColumn));
  f.window.rules().details()->moveCursor(QTextCursor::End);
  const QPoint link = placeOf(*f.window.rules().details(), QStringLiteral("#hit0"));
  QVERIFY(!link.isNull());
  QTest::mouseClick(f.window.rules().details()->viewport(), Qt::LeftButton, {}, link);
  QCOMPARE(f.session.selection().rule(), kLinearAdd);
  f.window.rules().view()->setFocus();
  QTest::keyClick(f.window.rules().view(), Qt::Key_Space);
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(!f.isFused("ForwardLinearBiasAdd"));
}

void RulesTest::aHullThatIsSelectedBringsItsRule() {
  Shown f(residualPipeline(true));
  QVERIFY(!f.details(kEpilogue).isEmpty());
  f.session.selection().selectFusion({QStringLiteral("fc"), QStringLiteral("add")}, kLinearAdd);
  QCOMPARE(f.window.rules().view()->currentIndex().row(), f.cell(kLinearAdd, RulesModel::NameColumn).row());
  QVERIFY(f.window.rules().details()->toPlainText().startsWith(kLinearAdd));
}

void RulesTest::aTickIsAnEditThatCanBeUndone() {
  Shown f(residualPipeline(true));
  QVERIFY(f.isFused("ForwardLinearBiasAdd"));
  RulesModel& model = f.window.rules().model();
  QVERIFY(model.setData(f.cell(kLinearAdd, RulesModel::NameColumn), Qt::Unchecked, Qt::CheckStateRole));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(!f.isFused("ForwardLinearBiasAdd"));
  QCOMPARE(f.session.pipeline().document().fusion()["without"].dump(), std::string(R"(["ForwardLinearBiasAdd"])"));
  QCOMPARE(f.text(kLinearAdd, RulesModel::StateColumn), QStringLiteral("off"));
  QCOMPARE(f.cell(kLinearAdd, RulesModel::NameColumn).data(Qt::CheckStateRole).toInt(),
           static_cast<int>(Qt::Unchecked));
  f.session.pipeline().undo();
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.isFused("ForwardLinearBiasAdd"));
  QCOMPARE(f.text(kLinearAdd, RulesModel::StateColumn), QStringLiteral("on"));
}

void RulesTest::aPlaceThatIsOffIsCounted() {
  Shown f(residualPipeline(true));
  QVERIFY(
      f.session.pipeline().apply(SetFusion{.fusion = Json{{"rules", "te"}, {"without", {"ForwardLinearBiasAdd@fc"}}}}));
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(f.text(kLinearAdd, RulesModel::StateColumn), QStringLiteral("off at 1 place"));
  QCOMPARE(f.cell(kLinearAdd, RulesModel::NameColumn).data(Qt::CheckStateRole).toInt(), static_cast<int>(Qt::Checked));
}

void RulesTest::aPipelineWithErrorsHasNoPlaces() {
  Shown f(residualPipeline(true));
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "fc", .name = "in_features", .value = 7}));
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(f.text(kLinearAdd, RulesModel::HitsColumn), QStringLiteral("–"));
  QVERIFY2(f.window.rules().caption().contains(QStringLiteral("Fix <a href=\"problems\">1 error</a> to see the plan.")),
           qPrintable(f.window.rules().caption()));
  QCOMPARE(f.text(kEpilogue, RulesModel::StateColumn), QStringLiteral("not in this rule set"));
  QVERIFY(!f.details(kLinearAdd).contains(QStringLiteral("No op of this pipeline")));
}

/// Closed it keeps what it showed, links included.
void RulesTest::catchesUpWhenItIsShown() {
  Shown f(residualPipeline(true));
  QVERIFY(!f.details(kLinearAdd).isEmpty());
  f.window.findChild<QDockWidget*>(QStringLiteral("rules"))->hide();
  f.session.openText(smallPipeline(), QStringLiteral("small"));
  QVERIFY(waitForAnalysis(f.session));
  f.click(QStringLiteral("#hit0"));
  f.session.selection().select({});
  QVERIFY(f.window.showPane(QStringLiteral("rules")));
  QTRY_COMPARE(f.text(kEpilogue, RulesModel::HitsColumn), QStringLiteral("1"));
  QCOMPARE(f.text(kLinearAdd, RulesModel::HitsColumn), QStringLiteral("–"));
}

FUSELINE_UI_TEST(RulesTest)

}  // namespace fuseline::ui::rules_test

#include "test_ui_rules.moc"
