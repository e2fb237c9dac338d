// Every item model against Qt's own checker, and what the models show.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/apply_edit.h"
#include "core/fusion/rule_text.h"
#include "core/ops/catalog.h"
#include "core/profile/run_file.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/canvas/node_item.h"
#include "ui/flame/flame_boxes.h"
#include "ui/fusions/attempt_list.h"
#include "ui/fusions/gain_text.h"
#include "ui/fusions/plan_lanes.h"
#include "ui/library/op_search.h"
#include "ui/library/operation_card.h"
#include "ui/library/palette_model.h"
#include "ui/numerics/numerics_model.h"
#include "ui/problems/problems_model.h"
#include "ui/runs/run_progress.h"
#include "ui/theme/format.h"
#include "ui/timeline/timeline_tracks.h"
#include "ui/timings/timings_model.h"
#include "ui/widgets/tip_lines.h"

#include <QAbstractItemModelTester>
#include <QMimeData>
#include <QTest>

namespace fuseline::ui::models_test {

class ModelsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void paletteIsAWellFormedTreeWithDragData();
  void paletteFilterFindsKeywordsAndInitials();
  void paletteListsTheBlocksOfTheDocument();
  void problemsAreSortedAndNotRepeated();
  void timingsShowFusedOpsWithTheirParts();
  void timingsAreSetBesideBaselines();
  void stepsThatAreNewOrGoneAreListed();
  void changesWithinTheNoiseAreMarked();
  void timingsWithinTheNoiseAreMarked();
  void timingsTellKernelsApartWhereTheyWereTraced();
  void timingsCompareStepsWithTheirRooflineLimit();
  void lanesCoverEveryOpOnce();
  void summariesCountInWords();
  void lanesChangeWhenInPlaceIsToggled();
  void lanesStepThroughThePasses();
  void lanesShowQuantizationOfAStep();
  void layersThatAreLeftOutAreShownAsBypassed();
  void fusedAttemptsComeFirst();
  void anOpThatNoRuleMatchesShowsTheBrokenFusion();
  void missesThatGainMoreTimeComeFirst();
  void gainsAreToldAsPredictedAndAsMeasured();
  void editorTextRoundTrips();
  void textColoursReachTheirContrast();
  void errorsArePercentsOfTwoDigits();
  void heatGrowsWithTheErrorAndIsReadInGrey();
  void numericsShowErrorsAndTheirOwners();
  void progressShowsTheRemainingTime();
  void cardsShowTheTextOfTheOpLibrary();
  void longTooltipsSayHowMuchIsLeftOut();
  void noTooltipOfARunOrAnOpHasMoreThanSixLines();
};

namespace {

constexpr auto kStrict = QAbstractItemModelTester::FailureReportingMode::QtTest;

VariantRecord variant(const char* name, std::vector<StepRecord> steps, double totalNs) {
  VariantRecord record{.name = name, .steps = std::move(steps)};
  record.endToEndNs.assign(8, totalNs);
  record.instrumentedNs.assign(8, totalNs);
  record.peakBytes = 4096;
  return record;
}

StepRecord step(const char* name, const char* rule, std::vector<std::string> ops, double durationNs) {
  StepRecord record{.name = name, .rule = rule, .phase = "forward", .ops = ops, .owners = ops};
  for (int i = 0; i < 8; ++i) record.samplesNs.push_back(durationNs + i);
  return record;
}

/// Two ops of 3 ms and 2 ms that are fused in 4 ms.
RunRecord fusedRun() {
  RunRecord record;
  record.variants = {variant("unfused", {step("a", "", {"a"}, 3e6), step("b", "", {"b"}, 2e6)}, 5e6),
                     variant("fused", {step("Rule(a, b)", "Rule", {"a", "b"}, 4e6)}, 4e6)};
  return record;
}

/// The fused run beside this one.
ComparedBaseline compared(const RunRecord& base, int slot) {
  return {{.record = std::make_shared<const RunRecord>(base), .name = QStringLiteral("before"), .slot = slot},
          *compareRuns(base, fusedRun())};
}

Analysis analysisOf(const std::string& text) { return analyze(parseDocument(text).document); }

}  // namespace

void ModelsTest::paletteIsAWellFormedTreeWithDragData() {
  Theme theme;
  PaletteModel model(theme);
  const QAbstractItemModelTester tester(&model, kStrict);
  QVERIFY(model.rowCount() >= 4);
  const QModelIndex op = model.index(0, 0, model.index(0, 0));
  const std::unique_ptr<QMimeData> data(model.mimeData({op}));
  QCOMPARE(QString::fromUtf8(data->data(QString::fromLatin1(kOpMimeType))), op.data().toString());
}

void ModelsTest::paletteFilterFindsKeywordsAndInitials() {
  const auto firstHit = [](const char* query) {
    const auto found = searchEntries(QString::fromLatin1(query));
    return found.empty() ? std::string() : found.front().name;
  };
  QCOMPARE(firstHit("rms"), std::string("RMSNorm"));
  QCOMPARE(firstHit("lyn"), std::string("LayerNorm"));
  QCOMPARE(firstHit("residual"), std::string("AddExtraInput"));
  QVERIFY(searchEntries(QStringLiteral("zzzz")).empty());
}

void ModelsTest::paletteListsTheBlocksOfTheDocument() {
  Theme theme;
  PaletteModel model(theme);
  const QAbstractItemModelTester tester(&model, kStrict);
  PaletteFilter filter(model);
  const int numCategories = model.rowCount();
  PipelineDocument document;
  QVERIFY(applyEdit(document, AddBlock{.name = "Layer", .block = {}}).hasValue());
  model.setBlocks(blockEntries(document));
  QCOMPARE(model.rowCount(), numCategories + 1);
  const QModelIndex category = model.index(numCategories, 0);
  QCOMPARE(category.data().toString(), QStringLiteral("Blocks"));
  const QModelIndex block = model.index(0, 0, category);
  QCOMPARE(block.data().toString(), QStringLiteral("Layer"));
  const std::unique_ptr<QMimeData> data(model.mimeData({block}));
  QCOMPARE(data->data(QString::fromLatin1(kOpMimeType)), QByteArray("block:Layer"));
  filter.setQuery(QStringLiteral("layer"));
  QVERIFY(filter.mapFromSource(block).isValid());
  QCOMPARE(searchEntries(QStringLiteral("layer"), blockEntries(document)).size(),
           std::size_t{3});  // and LayerNorm, and MoEAuxLoss of all layers
  model.setBlocks({});
  QCOMPARE(model.rowCount(), numCategories);
}

void ModelsTest::problemsAreSortedAndNotRepeated() {
  Theme theme;
  ProblemsModel model(theme);
  const QAbstractItemModelTester tester(&model, kStrict);
  const Diagnostic warning{.severity = Severity::Warning, .code = "w", .node = "a", .message = "first"};
  const Diagnostic error{.severity = Severity::Error, .code = "e", .node = "b", .message = "second"};
  model.setProblems({warning}, {warning, error});
  QCOMPARE(model.rowCount(), 2);
  QCOMPARE(model.index(0, ProblemsModel::MessageColumn).data().toString(), QStringLiteral("second"));
  QCOMPARE(model.count(Severity::Error), 1);
}

void ModelsTest::timingsShowFusedOpsWithTheirParts() {
  Theme theme;
  TimingsModel model(theme);
  const QAbstractItemModelTester tester(&model, kStrict);
  model.setRecord(fusedRun());
  const QModelIndex fused = model.index(0, TimingsModel::OpColumn);
  QCOMPARE(model.rowCount(fused), 2);
  QCOMPARE(model.index(0, TimingsModel::UnfusedColumn).data().toString(), QStringLiteral("5.00"));
  QCOMPARE(model.index(0, TimingsModel::FusedColumn).data().toString(), QStringLiteral("4.00"));
  QCOMPARE(model.index(0, TimingsModel::SpeedupColumn).data().toString(), QStringLiteral("1.25×"));
  QCOMPARE(fused.data(TimingsModel::OwnersRole).toStringList(), QStringList({"a", "b"}));
  const QModelIndex part = model.index(0, TimingsModel::FusedColumn, fused);
  QVERIFY(part.data().toString().isEmpty());  // a part has no time of its own in the fused plan
  model.clear();
  QCOMPARE(model.rowCount(), 0);
}

void ModelsTest::timingsAreSetBesideBaselines() {
  Theme theme;
  TimingsModel model(theme);
  const QAbstractItemModelTester tester(&model, kStrict);
  RunRecord slower = fusedRun();
  for (double& sample : slower.variants[1].steps[0].samplesNs) sample *= 2.0;
  slower.variants[1].peakBytes = 8192;
  model.setRecord(fusedRun());
  const auto textOf = [&](const char* label, int slot) {
    for (int row = 0; row < model.rowCount(); ++row)
      if (model.index(row, TimingsModel::OpColumn).data().toString() == QString::fromLatin1(label))
        return model.index(row, TimingsModel::BaselineColumn + slot).data().toString();
    return QStringLiteral("no such row");
  };
  QCOMPARE(textOf("Rule(a, b)", 0), QString());
  model.setComparisons({compared(slower, 0), compared(fusedRun(), 2)});
  QCOMPARE(textOf("Rule(a, b)", 0), QStringLiteral("▼ -50.0 %"));
  QCOMPARE(textOf("Rule(a, b)", 1), QString());
  QCOMPARE(textOf("Rule(a, b)", 2), QStringLiteral("same"));
  QCOMPARE(textOf("end to end", 0), QStringLiteral("same"));
  QCOMPARE(textOf("Peak memory", 0), QStringLiteral("▼ -50.0 %"));
  const QModelIndex fused = model.index(0, TimingsModel::BaselineColumn);
  QCOMPARE(fused.data(Qt::ForegroundRole).value<QColor>(), theme.colors().good);
  QVERIFY(fused.data(Qt::ToolTipRole).toString().contains(QStringLiteral("baseline: median 8.00 ms")));
  model.setChangeUnit(ChangeUnit::Amount);
  QCOMPARE(textOf("Rule(a, b)", 0), QStringLiteral("▼ -4.000"));  // ms, of 8 and 4
  QCOMPARE(textOf("Peak memory", 0), QStringLiteral("▼ -4 KiB"));
  QCOMPARE(model.headerData(TimingsModel::BaselineColumn, Qt::Horizontal).toString(), QStringLiteral("vs. A (ms)"));
  model.setChangeUnit(ChangeUnit::Ratio);
  QCOMPARE(textOf("Rule(a, b)", 0), QStringLiteral("▼ 0.500×"));
  model.setComparisons({});
  QCOMPARE(textOf("Rule(a, b)", 0), QString());
}

void ModelsTest::stepsThatAreNewOrGoneAreListed() {
  Theme theme;
  TimingsModel model(theme);
  const QAbstractItemModelTester tester(&model, kStrict);
  RunRecord other = fusedRun();
  other.variants[1].steps[0].name = "Other(a, b)";
  model.setRecord(fusedRun());
  const int numRows = model.rowCount();
  model.setComparisons({compared(other, 0), compared(fusedRun(), 1), compared(other, 2)});
  QCOMPARE(model.rowCount(), numRows + 1);  // once, though two baselines have it
  const QModelIndex gone = model.index(1, TimingsModel::OpColumn);
  QCOMPARE(gone.data().toString(), QStringLiteral("Other(a, b)"));
  QCOMPARE(gone.data(TimingsModel::OwnersRole).toStringList(), QStringList({"a", "b"}));
  QVERIFY(!gone.data(TimingsModel::FooterRole).toBool());
  QVERIFY(gone.data(Qt::FontRole).value<QFont>().strikeOut());
  const auto textAt = [&](int row, int slot) { return model.index(row, TimingsModel::BaselineColumn + slot).data(); };
  QCOMPARE(textAt(1, 0).toString(), QStringLiteral("gone"));
  QCOMPARE(textAt(1, 1).toString(), QString());
  QCOMPARE(textAt(1, 2).toString(), QStringLiteral("gone"));
  QCOMPARE(textAt(0, 0).toString(), QStringLiteral("new"));
  QCOMPARE(textAt(0, 1).toString(), QStringLiteral("same"));
  model.setComparisons({});
  QCOMPARE(model.rowCount(), numRows);
}

void ModelsTest::changesWithinTheNoiseAreMarked() {
  const SampleStats base{.median = 4e6, .count = 9};
  const SampleStats next{.median = 4.04e6, .count = 9};
  MetricChange change{.name = "fc", .unit = "ns", .base = base, .next = next, .change = {1.01, 0.98, 1.04}};
  const ColumnUnit ms = timeUnitFor(4e6);
  QCOMPARE(changeText(change, ChangeUnit::Percent, ms), QStringLiteral("~ +1.0 %"));
  QCOMPARE(changeText(change, ChangeUnit::Amount, ms), QStringLiteral("~ +0.040"));
  QCOMPARE(changeInterval(change), QStringLiteral("+1.0 % (95 % interval -2.0 % to +4.0 %)"));
  QCOMPARE(changeStrength(change), 0.0);
  change.change.low = 1.005;
  QVERIFY(changeStrength(change) > 0.0 && changeStrength(change) < 0.1);
  QCOMPARE(changeText(change, ChangeUnit::Ratio, ms), QStringLiteral("▲ 1.010×"));
  change.change = {1079.411, 1000.0, 1100.0};
  QCOMPARE(changeText(change, ChangeUnit::Percent, ms), QStringLiteral("▲ ×1079"));
  QCOMPARE(changeStrength(change), 1.0);
  change.base.count = 0;
  QCOMPARE(changeText(change, ChangeUnit::Amount, ms), QStringLiteral("new"));
  QVERIFY(!changeValue(change, ChangeUnit::Percent));
}

void ModelsTest::timingsWithinTheNoiseAreMarked() {
  RatioStats noise{.median = 1.01, .low = 0.98, .high = 1.04};
  QCOMPARE(formatSpeedup(noise), QStringLiteral("~ 1.01×"));
  RatioStats clear{.median = 1.25, .low = 1.2, .high = 1.3};
  QCOMPARE(formatSpeedup(clear), QStringLiteral("1.25×"));
  QCOMPARE(formatTiming({.median = 2e6, .lowerQuartile = 2e6, .upperQuartile = 2e6, .count = 1}),
           QStringLiteral("2.00 ms"));  // one sample has no spread
}

void ModelsTest::timingsCompareStepsWithTheirRooflineLimit() {
  RunRecord record = fusedRun();
  record.peaks = DevicePeaks{.copyGBps = 2, .fmaF32Gflops = 4000};
  StepRecord& fused = record.variants[1].steps[0];
  fused.arithmetic = Arithmetic::F32;
  fused.bytes = 4000000;
  fused.flops = 8000000000;
  Theme theme;
  TimingsModel model(theme);
  const QAbstractItemModelTester tester(&model, kStrict);
  model.setRecord(record);
  const auto text = [&](TimingsModel::Column column) { return model.index(0, column).data().toString(); };
  // 4 MB and 8 GFLOP in 4 ms; the peaks allow 2 ms for each.
  QCOMPARE(text(TimingsModel::BandwidthColumn), QStringLiteral("1.00"));
  QCOMPARE(text(TimingsModel::RateColumn), QStringLiteral("2.00"));
  QCOMPARE(model.headerData(TimingsModel::RateColumn, Qt::Horizontal).toString(), QStringLiteral("TFLOP/s"));
  QCOMPARE(text(TimingsModel::RooflineColumn), QStringLiteral("2.00"));
  QCOMPARE(text(TimingsModel::BoundColumn), QStringLiteral("memory"));
  record.peaks.reset();
  model.setRecord(record);
  QCOMPARE(text(TimingsModel::RooflineColumn), QString());
}

void ModelsTest::timingsTellKernelsApartWhereTheyWereTraced() {
  RunRecord record = fusedRun();
  record.settings.timing = StepTiming::Cupti;
  record.variants[1].steps[0].activities = {{"gemm", "grid 8", {1e6, 1e6}}, {"add", "grid 9", {2e3, 2e3}}};
  record.variants[1].unattributed = {{"fill", "64 B", std::vector<double>(8, 5e3)}};
  Theme theme;
  TimingsModel model(theme);
  model.setRecord(record);
  const QString tip = model.index(0, TimingsModel::FusedColumn).data(Qt::ToolTipRole).toString();
  QVERIFY2(tip.contains(QStringLiteral("1.00 ms  gemm (grid 8)\n2.00 µs  add (grid 9)")), qPrintable(tip));
  QStringList labels;
  for (int row = 0; row < model.rowCount(); ++row) labels.append(model.index(row, 0).data().toString());
  const int rest = static_cast<int>(labels.indexOf(QStringLiteral("Outside of steps")));
  QVERIFY(rest > 0);
  QCOMPARE(model.index(rest, TimingsModel::FusedColumn).data().toString(), QStringLiteral("0.005"));
  QVERIFY(labels.contains(QStringLiteral("End to end, with tracing")));
}

void ModelsTest::lanesCoverEveryOpOnce() {
  const Analysis analysis = analysisOf(smallPipeline());
  const PlanLanes lanes = planLanes(analysis);
  int numCovered = 0;
  for (const LaneBox& box : lanes.forward) numCovered += box.lastColumn - box.firstColumn + 1;
  QCOMPARE(numCovered, static_cast<int>(lanes.columns.size()));
  QVERIFY(!lanes.backward.empty());
  QVERIFY(!planSummary(analysis).isEmpty());
}

void ModelsTest::summariesCountInWords() {
  const QString one =
      planSummary(analysisOf(R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "pipeline": {
      "inputs": [{"id": "x", "dtype": "bf16", "shape": [16, 32]}], "ops": [{"id": "act", "op": "GELU", "attributes": {}}],
      "wires": [["x", "act.x"]], "outputs": [{"id": "y", "from": "act.y"}]}})"));
  QVERIFY2(
      one.startsWith(QStringLiteral(
          "Forward: 1 step, the same number as unfused  ·  backward: 1 step, the same number as unfused  ·  peak ")),
      qPrintable(one));
  QVERIFY2(one.endsWith(QStringLiteral("B, the same as unfused")), qPrintable(one));
  const QString fewer = planSummary(analysisOf(residualPipeline(true)));
  QVERIFY2(fewer.startsWith(QStringLiteral("Forward: 2 → 1 step  ·  ")), qPrintable(fewer));
}

void ModelsTest::lanesChangeWhenInPlaceIsToggled() {
  // TransformerEngine fuses the addition into the GEMM exactly when it may overwrite the extra input.
  const PlanLanes inPlace = planLanes(analysisOf(residualPipeline(true)));
  const PlanLanes outOfPlace = planLanes(analysisOf(residualPipeline(false)));
  QVERIFY(inPlace.forward.size() < outOfPlace.forward.size());
}

void ModelsTest::lanesStepThroughThePasses() {
  Fixture f(findTemplate("llama-mlp")->text);
  PlanPanel& plan = f.window.plan();
  const auto fusedBoxes = [&] {
    const PlanLanes& lanes = plan.lanesView()->lanes();
    return std::pair(std::ranges::count_if(lanes.forward, &LaneBox::isFused),
                     std::ranges::count_if(lanes.backward, &LaneBox::isFused));
  };
  const auto whole = fusedBoxes();
  const QString summary = plan.summary();
  QVERIFY(whole.first > 0 && whole.second > 0);
  named<QSlider>(plan, "Stage of the fuser")->setFocus();
  QTest::keyClick(named<QSlider>(plan, "Stage of the fuser"), Qt::Key_Home);
  QCOMPARE(fusedBoxes(), std::pair(std::ptrdiff_t{0}, std::ptrdiff_t{0}));
  QTest::keyClick(named<QSlider>(plan, "Stage of the fuser"), Qt::Key_Right);
  QVERIFY2(plan.summary().endsWith(QStringLiteral("no fusions.")), qPrintable(plan.summary()));
  QTest::keyClick(named<QSlider>(plan, "Stage of the fuser"), Qt::Key_Right);
  QCOMPARE(fusedBoxes(), std::pair(whole.first, std::ptrdiff_t{0}));
  QVERIFY2(plan.summary().contains(QStringLiteral("ForwardLinearBiasAdd (fc2, add)")), qPrintable(plan.summary()));
  QTest::keyClick(named<QSlider>(plan, "Stage of the fuser"), Qt::Key_End);
  QCOMPARE(fusedBoxes(), whole);
  QCOMPARE(plan.summary(), summary);
}

void ModelsTest::lanesShowQuantizationOfAStep() {
  const auto analysisUnder = [](const std::string& recipe) {
    const std::string text = R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0},
      "pipeline": {"inputs": [{"id": "x", "dtype": "bf16", "shape": [64, 32]}],
        "ops": [{"id": "norm", "op": "RMSNorm", "attributes": {"normalized_shape": [32]}},
                {"id": "fc", "op": "BasicLinear", "attributes": {"in_features": 32, "out_features": 32}}],
        "wires": [["x", "norm.x"], ["norm.y", "fc.x"]], "outputs": [{"id": "y", "from": "fc.y"}]},
      "recipe": {"name": ")" +
                             recipe + "\"}}";
    return analysisOf(text);
  };
  const auto firstTip = [](const Analysis& analysis, const PlanLanes& lanes) {
    return laneTip(analysis, FusionStage::FusedOperands, lanes.forward.front(), Phase::Forward);
  };
  const Analysis delayedOne = analysisUnder("DelayedScaling");
  const PlanLanes delayed = planLanes(delayedOne);
  QCOMPARE(delayed.forward.front().label, QStringLiteral("RMSNorm → e4m3"));
  QVERIFY(firstTip(delayedOne, delayed).contains(QStringLiteral("Writes the quantized GEMM input of fc.")));
  QCOMPARE(delayed.forward.back().label, QStringLiteral("BasicLinear"));
  const Analysis currentOne = analysisUnder("Float8CurrentScaling");
  const PlanLanes current = planLanes(currentOne);
  QCOMPARE(current.forward.front().label, QStringLiteral("RMSNorm → amax"));
  QVERIFY(
      firstTip(currentOne, current).contains(QStringLiteral("Computes the amax that fc uses to quantize its input.")));
}

void ModelsTest::layersThatAreLeftOutAreShownAsBypassed() {
  const PipelineDocument document = parseDocument(R"({"format": "fuseline-pipeline",
    "formatVersion": {"major": 1, "minor": 6}, "symbols": {"layers": 1}, "pipeline": {
      "inputs": [{"id": "x", "dtype": "bf16", "shape": [16, 32]}],
      "ops": [{"id": "layer0", "op": "block:Layer", "attributes": {"layer": 0}},
              {"id": "layer1", "op": "block:Layer", "attributes": {"layer": 1}}],
      "wires": [["x", "layer0.x"], ["layer0.y", "layer1.x"]], "outputs": [{"id": "y", "from": "layer1.y"}]},
    "blocks": {"Layer": {"inputs": [{"id": "x"}], "ops": [{"id": "act", "op": "GELU"}], "wires": [["x", "act.x"]],
                         "outputs": [{"id": "y", "from": "act.y"}]}}})")
                                        .document;
  QCOMPARE(document.ops().size(), std::size_t{2});
  const std::vector<NodeLook> looks = nodeLooks(document, analyze(document), {});
  const auto look = [&](const char* id) { return *std::ranges::find(looks, id, &NodeLook::id); };
  QVERIFY(!look("layer0").isBypassed && look("layer1").isBypassed);
  QVERIFY(look("layer1").tip.contains(QStringLiteral("layers")));
}

void ModelsTest::fusedAttemptsComeFirst() {
  const Analysis analysis = analysisOf(residualPipeline(true));
  const AttemptList list = attemptsFor(analysis, {QStringLiteral("add")});
  QVERIFY(!list.shown.empty());
  QCOMPARE(list.shown.front()->outcome, Outcome::Fused);
  for (const Attempt* attempt : list.shown) QVERIFY(!attempt->explanation.empty());
  QVERIFY(attemptsFor(analysis, {QStringLiteral("nothing")}).shown.empty());
}

void ModelsTest::anOpThatNoRuleMatchesShowsTheBrokenFusion() {
  const Analysis analysis =
      analysisOf(R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "pipeline": {
      "inputs": [{"id": "x", "dtype": "bf16", "shape": [16, 32]}],
      "ops": [{"id": "fc", "op": "Linear", "attributes": {"in_features": 32, "out_features": 64, "bias": false}},
              {"id": "l2", "op": "L2Normalization", "attributes": {}}, {"id": "act", "op": "GELU", "attributes": {}}],
      "wires": [["x", "fc.x"], ["fc.y", "l2.x"], ["l2.y", "act.x"]], "outputs": [{"id": "y", "from": "act.y"}]}})");
  const AttemptList list = attemptsFor(analysis, {QStringLiteral("l2")});
  const auto epilogue = std::ranges::find_if(
      list.shown, [](const Attempt* attempt) { return attempt->rule->name == "ForwardLinearEpilogue"; });
  QVERIFY(epilogue != list.shown.end());
  QVERIFY2((*epilogue)->explanation.starts_with("fc (BasicLinear) is followed by l2"),
           (*epilogue)->explanation.c_str());
}

void ModelsTest::missesThatGainMoreTimeComeFirst() {
  const auto miss = [](const char* rule, Saving saving) {
    return Attempt{.rule = builtinRules().find(rule),
                   .nodes = {0},
                   .stepsMatched = 2,
                   .outcome = Outcome::OutsideUse,
                   .saving = saving};
  };
  Analysis analysis = analysisOf(smallPipeline());
  analysis.report.attempts = {miss("ForwardLinearEpilogue", {.bytes = 2000}),
                              miss("ForwardAddNorm", {.bytes = 1000, .launches = 1})};
  const auto first = [&] { return attemptsFor(analysis, {}).shown.front()->rule->name; };
  QCOMPARE(first(), std::string("ForwardLinearEpilogue"));
  // At 1 GB/s the 1,000 bytes more take 1 us, and a launch 5 us.
  analysis.report.device = {.bandwidthBytesPerSecond = 1e9, .launchSeconds = 5e-6, .source = "a test"};
  QCOMPARE(first(), std::string("ForwardAddNorm"));
}

void ModelsTest::gainsAreToldAsPredictedAndAsMeasured() {
  const DeviceModel device{.bandwidthBytesPerSecond = 1e9, .source = "a test"};
  Attempt attempt{.saving = Saving{.bytes = 8192, .launches = 1}};
  QCOMPARE(predictedText(attempt, {}), QStringLiteral("Predicted to save 8 KiB of memory traffic and 1 launch."));
  QCOMPARE(predictedText(attempt, device),
           QStringLiteral("Predicted to save 8.19 µs: 8 KiB of memory traffic and 1 launch."));
  QCOMPARE(measuredText(attempt), QString());
  MeasuredGain gain{.gainNs = -2500, .speedup = 0.9, .speedupLow = 0.88, .speedupHigh = 0.92, .device = "a CPU"};
  attempt.measured = std::make_shared<const MeasuredGain>(gain);
  QCOMPARE(measuredText(attempt),
           QStringLiteral("Measured: costs 2.50 µs (0.90×, 95 % interval 0.88 to 0.92) on a CPU."));
  gain.speedupHigh = 1.1;
  attempt.measured = std::make_shared<const MeasuredGain>(gain);
  QCOMPARE(measuredText(attempt),
           QStringLiteral("No significant difference measured (0.90×, 95 % interval 0.88 to 1.10) on a CPU."));
}

void ModelsTest::editorTextRoundTrips() {
  const auto roundTrip = [](const char* json, AttributeType type) {
    const Json value = Json::parse(json);
    return jsonFromEditor(editorText(value), type) == value;
  };
  QVERIFY(roundTrip("1024", AttributeType::Integer));
  QVERIFY(roundTrip("\"2*F\"", AttributeType::Integer));
  QVERIFY(roundTrip("1e-05", AttributeType::Real));
  QVERIFY(roundTrip(R"json(["M", "4*(H, 2)", 8])json", AttributeType::IntegerList));
  QVERIFY(listFromEditor(QStringLiteral("[H, 4]")) == Json::parse(R"(["H", 4])"));
  QVERIFY(jsonFromEditor(QStringLiteral("  "), AttributeType::Integer).is_null());
}

void ModelsTest::cardsShowTheTextOfTheOpLibrary() {
  for (const auto& op : builtinOperations().operations()) {
    const QString card = operationCard(*op, QStringLiteral("here"));
    std::vector<std::string> facts = {op->name, "here", op->summary, op->formula, op->derivative, op->source};
    for (const Port& port : op->inputs) facts.push_back(port.name + " " + port.shape);
    for (const ParameterSpec& parameter : op->parameters) facts.push_back(parameter.name + " " + parameter.shape);
    for (const AttributeSpec& attribute : op->attributes) facts.push_back(attribute.name);
    for (const FusionRule* rule : rulesFor(*op)) facts.push_back(rule->name + ": " + patternText(*rule));
    for (const std::string& fact : facts)
      QVERIFY2(card.contains(toQt(fact).toHtmlEscaped()), qPrintable(toQt(op->name + ": " + fact)));
  }
  const QString scale = operationCard(*builtinOperations().find("ConstantScale"), {});
  // 1024 x 1024 products; two tensors of 2 MiB each way.
  QVERIFY2(scale.contains(QStringLiteral("forward 1.05 MFLOP and 4 MiB, backward 1.05 MFLOP and 4 MiB")),
           qPrintable(scale));
}

void ModelsTest::longTooltipsSayHowMuchIsLeftOut() {
  QCOMPARE(cappedTip(QStringLiteral("1\n2\n3\n4\n5\n6")), QStringLiteral("1\n2\n3\n4\n5\n6"));
  QCOMPARE(cappedTip(QStringLiteral("1\n2\n3\n4\n5\n6\n7")), QStringLiteral("1\n2\n3\n4\n5\nand 2 more"));
  QCOMPARE(cappedTip(QStringLiteral("1<br><br>2"), QStringLiteral("%1 left")), QStringLiteral("1<br>2"));
}

/// The largest ones: ops with many attributes, steps with many kernels, differences of every size, many problems.
void ModelsTest::noTooltipOfARunOrAnOpHasMoreThanSixLines() {
  const auto isShort = [](const QString& tip) {
    return tip.count(QStringLiteral("<br>")) + tip.count(u'\n') < kMostTipLines;
  };
  for (const PaletteEntry& entry : paletteEntries()) QVERIFY2(isShort(entryTip(entry)), entry.name.c_str());
  RunRecord record =
      *loadRunRecord(FUSELINE_SOURCE_DIR "/resources/examples/runs/llama_mlp_8B_H100_Float8CurrentScaling.fuserun");
  for (VariantRecord& variant : record.variants) {
    for (StepRecord& step : variant.steps) {
      step.ways = {"one", "two"};
      step.note = "a note";
      step.activities.resize(std::max<std::size_t>(step.activities.size(), 5));
    }
    const std::vector<FlameBox> boxes = flameBoxes(record, variant, Instances::Apart, nullptr);
    QVERIFY(boxes.size() > 10);
    for (const FlameBox& box : boxes) QVERIFY2(isShort(box.tip), qPrintable(box.tip));
  }
  for (const TimelineTrack& track : timelineTracks(record, nullptr))
    for (const TimelineItem& item : track.items) QVERIFY2(isShort(item.tip), qPrintable(item.tip));
  const Theme theme;
  TimingsModel timings(theme);
  timings.setRecord(record);
  for (int row = 0; row < timings.rowCount(); ++row)
    for (int column = 0; column < timings.columnCount(); ++column) {
      const QString tip = timings.index(row, column).data(Qt::ToolTipRole).toString();
      QVERIFY2(isShort(tip), qPrintable(tip));
    }
  ErrorNumerics error = errorOf("fc:y", {1.0}, {1.0}, DType::BF16);
  error.ulpHistogram.fill(3);
  NumericsModel numerics;
  numerics.setReport({.errors = {error}, .fusionErrors = {error}});
  const QString tip = numerics.index(0, NumericsModel::TensorColumn).data(Qt::ToolTipRole).toString();
  QVERIFY2(isShort(tip) && tip.contains(QStringLiteral("more than 512: 3")), qPrintable(tip));
}

void ModelsTest::errorsArePercentsOfTwoDigits() {
  QCOMPARE(formatError(0.0), QStringLiteral("exact"));
  QCOMPARE(formatError(1e-4), QStringLiteral("0.01 %"));
  QCOMPARE(formatError(0.0378), QStringLiteral("3.8 %"));
  QCOMPARE(formatError(0.0999), QStringLiteral("10 %"));
  QCOMPARE(formatError(1.0), QStringLiteral("100 %"));
  QCOMPARE(formatError(12.34), QStringLiteral("1234 %"));
}

void ModelsTest::heatGrowsWithTheErrorAndIsReadInGrey() {
  QCOMPARE(heatShare(0.0), 0.0);
  QCOMPARE(heatShare(1e-2), 0.5);
  QCOMPARE(heatShare(3.0), 1.0);
  QCOMPARE(heatColor(0.0), QColor(0x44, 0x01, 0x54));
  QCOMPARE(heatColor(1.0), QColor(0xfd, 0xe7, 0x25));
  double before = 0.0;
  for (double share = 0.0; share <= 1.0; share += 0.05) {
    const QColor color = heatColor(share);
    const double onBlack = contrastRatio(color, Qt::black);
    QVERIFY2(onBlack > before, qPrintable(color.name()));
    QVERIFY2(contrastRatio(color, textOn(color)) >= 4.5, qPrintable(color.name()));
    before = onBlack;
  }
}

/// 12 of 50 took 6 s: the other 38 take 19.
void ModelsTest::progressShowsTheRemainingTime() {
  QCOMPARE(progressText("measuring", 12, 50, 6000), QStringLiteral("measuring 12/50 · 19 s left"));
  QCOMPARE(progressText("measuring", 12, 50, 500), QStringLiteral("measuring 12/50"));
  QCOMPARE(progressText("measuring", 2, 50, 6000), QStringLiteral("measuring 2/50"));
  QCOMPARE(progressText("measuring", 50, 50, 6000), QStringLiteral("measuring 50/50"));
  QCOMPARE(progressText("measuring", 10, 100, 10'000), QStringLiteral("measuring 10/100 · 2 min left"));
  QCOMPARE(progressText("preparing", 0, 1, 9000), QStringLiteral("preparing"));
  QCOMPARE(stageText("preparing", true), QStringLiteral("starting CUDA, choosing kernels"));
  QCOMPARE(stageText("preparing", false), QStringLiteral("preparing"));
  QCOMPARE(stageText("something newer", true), QStringLiteral("something newer"));
}

void ModelsTest::numericsShowErrorsAndTheirOwners() {
  ErrorNumerics first = errorOf("fc:y", {1.0, 2.5}, {1.0, 2.0}, DType::BF16);
  first.owner = "fc";
  ErrorNumerics second = errorOf("grad.fc.weight", {1.0}, {1.0}, DType::BF16);
  second.owner = "fc";
  const NumericsReport report{.errors = {first, second}, .fusionErrors = {second}};
  NumericsModel model;
  model.setReport(report);
  const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
  QCOMPARE(model.rowCount(), 2);
  QCOMPARE(model.index(0, NumericsModel::TensorColumn).data().toString(), QStringLiteral("fc:y"));
  QCOMPARE(model.index(0, NumericsModel::RmsColumn).data().toString(), QStringLiteral("22 %"));
  QCOMPARE(model.index(0, NumericsModel::FusedColumn).data().toString(), QStringLiteral("–"));
  QCOMPARE(model.index(1, NumericsModel::FusedColumn).data().toString(), QStringLiteral("exact"));
  QCOMPARE(errorsByOwner(report).at("fc"), first.rmsRelative);
  // 0.5 is 32 units in the last place of 2; sqrt(0.25 / 5), over the 0.016 that bf16 is allowed, is 13.975.
  QCOMPARE(model.index(0, NumericsModel::UlpColumn).data().toString(), QStringLiteral("32"));
  const QModelIndex verdict = model.index(0, NumericsModel::VerdictColumn);
  QCOMPARE(verdict.data().toString(), QStringLiteral("FAIL 13.97"));
  QCOMPARE(verdict.data(NumericsModel::IsWithinRole), QVariant(false));
  QVERIFY(!model.index(0, NumericsModel::FusedColumn).data(NumericsModel::IsWithinRole).isValid());
  model.setReport({.errors = {first}, .fusionErrors = {first}});
  QCOMPARE(model.index(0, NumericsModel::FusedColumn).data().toString(), QStringLiteral("22 %, FAIL 13.97"));
  QCOMPARE(model.index(0, NumericsModel::FusedColumn).data(NumericsModel::IsWithinRole), QVariant(false));
}

void ModelsTest::textColoursReachTheirContrast() {
  Theme theme;
  for (const ThemeChoice choice : {ThemeChoice::Light, ThemeChoice::Dark, ThemeChoice::HighContrast}) {
    theme.apply(choice);
    const ThemeColors& c = theme.colors();
    for (const std::string_view category :
         {"Linear", "Normalization", "Activation", "Elementwise", "Branch", "Attention"})
      QVERIFY2(contrastRatio(c.text, headColor(theme, category)) >= 4.5, category.data());
    for (const QColor& text : {c.text, c.dimText, c.error, c.warning, c.note, c.good, c.forward, c.backward, c.joint}) {
      for (const QColor& ground : {c.base, c.panel, c.canvas, c.node}) {
        QVERIFY2(contrastRatio(text, ground) >= 4.5, qPrintable(text.name() + " on " + ground.name()));
      }
    }
  }
}

FUSELINE_UI_TEST(ModelsTest)

}  // namespace fuseline::ui::models_test

#include "test_ui_models.moc"
