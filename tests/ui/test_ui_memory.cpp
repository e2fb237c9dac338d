// The memory panel: what its columns and its table say, and that they follow the selection and the plan.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/text.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/memory/memory_panel.h"
#include "ui/session/edits.h"
#include "ui/theme/format.h"
#include "ui/timings/run_filter.h"

#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QGuiApplication>
#include <QTest>

#include <algorithm>

namespace fuseline::ui::memory_test {

class MemoryTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void columnsAreTheStepsOfThePlan();
  void theTableShowsTensorsThatEachOpKeeps();
  void aFusionThatRecomputesKeepsLess();
  void theSelectionGoesBothWays();
  void keysWalkTheSteps();
  void alwaysResidentTensorsCanBeHidden();
  void theUnfusedPlanIsShownToo();
  void inferenceKeepsNothing();
  void errorsLeaveNothingToSee();
  void copiesTheTable();
  void manyStepsAreDrawn();
  void aFilterKeepsStepsAndOps();
  void layersAreThoseOfExplain();
};

namespace {

/// The small pipeline: x [16, 32] bf16 -> norm -> fc (32 to 64) -> act -> y.
struct Seen : Fixture {
  explicit Seen(const std::string& text = smallPipeline()) : Fixture(text) {
    window.showPane(QStringLiteral("memory"));
    chart().setFocus();
  }
  MemoryPanel& panel() { return window.memory(); }
  MemoryChart& chart() { return *panel().chart(); }
  const std::vector<MemoryColumn>& columns() { return chart().plot().columns; }
  QString cell(int row, int column) const {
    const auto* table = window.findChild<KeptTable*>();
    return table->model()->index(row, column).data().toString();
  }
  void choosePlan(int index) {
    QComboBox* plans = nullptr;
    for (QComboBox* const box : panel().findChildren<QComboBox*>())
      if (box->accessibleName() == QStringLiteral("Plan to show")) plans = box;
    plans->setCurrentIndex(index);
    Q_EMIT plans->activated(index);
  }
};

QStringList labelsOf(const std::vector<MemoryColumn>& columns) {
  QStringList labels;
  for (const MemoryColumn& column : columns) labels.append(column.label);
  return labels;
}

}  // namespace

/// y of norm, 16 x 32 bf16, is 1 KiB; y of fc, 16 x 64 bf16, is 2 KiB; rstd, 16 f32, is 64 bytes.
void MemoryTest::columnsAreTheStepsOfThePlan() {
  Seen f;
  f.choosePlan(1);
  QCOMPARE(labelsOf(f.columns()), (QStringList{"norm", "fc", "act", "act", "fc", "norm"}));
  QVERIFY(f.columns()[2].phase == Phase::Forward && f.columns()[3].phase == Phase::Backward);
  QCOMPARE(f.columns()[0].of(MemoryPurpose::Kept), 1024 + 64);
  QCOMPARE(f.columns()[2].of(MemoryPurpose::Kept), 1024 + 64 + 2048);
  const QString tip = f.chart().tipAt(f.chart().areaOf(2).center());
  QVERIFY2(tip.contains(QStringLiteral("3.06 KiB kept for backward")), qPrintable(tip));
  QVERIFY2(f.panel().caption().contains(QStringLiteral("Kept for backward: 3.06 KiB")),
           qPrintable(f.panel().caption()));
}

void MemoryTest::theTableShowsTensorsThatEachOpKeeps() {
  Seen f;
  QCOMPARE(f.cell(0, KeptTable::NameColumn), QStringLiteral("norm"));
  QCOMPARE(f.cell(0, KeptTable::UnfusedColumn), QStringLiteral("64 B"));
  QCOMPARE(f.cell(1, KeptTable::NameColumn), QStringLiteral("fc"));
  QCOMPARE(f.cell(1, KeptTable::UnfusedColumn), QStringLiteral("1 KiB"));
  QCOMPARE(f.cell(2, KeptTable::NameColumn), QStringLiteral("act"));
  QCOMPARE(f.cell(2, KeptTable::FusedColumn), QStringLiteral("2 KiB"));
  const QAbstractItemModel* model = f.panel().table()->model();
  const QModelIndex tensor = model->index(0, KeptTable::NameColumn, model->index(1, 0));
  QCOMPARE(tensor.data().toString(), QStringLiteral("norm:y"));
  QCOMPARE(tensor.siblingAtColumn(KeptTable::SpecColumn).data().toString(), QStringLiteral("16 × 32 bf16"));
  QVERIFY(
      tensor.siblingAtColumn(KeptTable::LifetimeColumn).data().toString().endsWith(QStringLiteral("consumed by fc")));
}

void MemoryTest::aFusionThatRecomputesKeepsLess() {
  Fixture f(findTemplate("llama-mlp")->text);
  QVERIFY(f.session.pipeline().apply(SetFusion{Json{{"with", Json::array({"ForwardBackwardSwiGLULinear"})}}}));
  QVERIFY(waitForAnalysis(f.session));
  const std::vector<KeptGroup> groups = keptByOp(*f.session.plan().analysis());
  std::int64_t unfused = 0;
  std::int64_t fused = 0;
  for (const KeptGroup& group : groups) {
    unfused += group.unfusedBytes();
    fused += group.fusedBytes();
  }
  QCOMPARE(unfused, f.session.plan().analysis()->unfusedPlan().savedForBackwardBytes);
  QCOMPARE(fused, f.session.plan().analysis()->fusedPlan->savedForBackwardBytes);
  QVERIFY(fused < unfused);
}

void MemoryTest::theSelectionGoesBothWays() {
  Seen f;
  f.session.selection().select({QStringLiteral("fc")});
  QVERIFY(f.chart().currentColumn());
  QVERIFY(f.chart().currentColumn()->owners.contains(QStringLiteral("fc")));
  QVERIFY(f.panel().table()->selectionModel()->isRowSelected(1));
  f.panel().table()->setCurrentIndex(f.panel().table()->model()->index(2, 0));
  QCOMPARE(f.session.selection().ids(), QSet<QString>{QStringLiteral("act")});
  const QRectF norm = f.chart().areaOf(0);
  QTest::mouseClick(&f.chart(), Qt::LeftButton, {}, norm.center().toPoint());
  QCOMPARE(f.session.selection().ids(), QSet<QString>{QStringLiteral("norm")});
}

void MemoryTest::keysWalkTheSteps() {
  Seen f;
  QTest::keyClick(&f.chart(), Qt::Key_Home);
  QVERIFY(f.session.selection().ids().contains(QStringLiteral("norm")));
  QTest::keyClick(&f.chart(), Qt::Key_Right);
  QVERIFY(f.session.selection().ids().contains(QStringLiteral("fc")));
  QVERIFY2(f.chart().accessibleDescription().contains(QStringLiteral("in use")),
           qPrintable(f.chart().accessibleDescription()));
  QTest::keyClick(&f.chart(), Qt::Key_End);
  QVERIFY(f.session.selection().ids().contains(QStringLiteral("norm")));
  QVERIFY(f.chart().currentColumn()->phase == Phase::Backward);
}

void MemoryTest::alwaysResidentTensorsCanBeHidden() {
  Seen f;
  const double all = f.chart().areaOf(0).height();
  f.panel().findChild<QCheckBox*>()->setChecked(true);
  QVERIFY(f.chart().isOnlyChanging());
  QVERIFY(f.chart().areaOf(0).height() < all);
  QVERIFY(f.chart().areaOf(2).height() > f.chart().areaOf(0).height());
}

void MemoryTest::theUnfusedPlanIsShownToo() {
  Seen f(residualPipeline(true));
  const std::size_t fused = f.columns().size();
  f.choosePlan(1);
  QVERIFY(f.columns().size() > fused);
}

void MemoryTest::inferenceKeepsNothing() {
  Seen f;
  f.session.setup().setPass(ExecutionMode::Inference);
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(!f.panel().table()->isVisibleTo(&f.panel()));
  QCOMPARE(std::ranges::count(f.columns(), Phase::Backward, &MemoryColumn::phase), 0);
  QVERIFY(!f.panel().caption().contains(QStringLiteral("Kept")));
}

void MemoryTest::errorsLeaveNothingToSee() {
  Seen f;
  QVERIFY(f.session.pipeline().apply(
      removeNodes(f.session.pipeline().document(), {QStringLiteral("fc")}, {}, Reconnect::No)));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(!f.session.plan().analysis()->isRunnable());
  QVERIFY(f.panel().emptyText().contains(QStringLiteral("errors")));
  QVERIFY(!f.chart().isVisibleTo(&f.panel()));
}

void MemoryTest::copiesTheTable() {
  Seen f;
  f.panel().table()->setFocus();
  QTest::keyClick(f.panel().table(), Qt::Key_C, Qt::ControlModifier);
  const QString copied = QGuiApplication::clipboard()->text();
  QVERIFY2(copied.startsWith(QStringLiteral("Saved for backward by\tUnfused\tFused\tTensor\tIn use\n")),
           qPrintable(copied));
  QVERIFY2(copied.contains(QStringLiteral("norm:y\t1 KiB\t")), qPrintable(copied));
}

/// The figures of `fuseline explain --memory`; recomputation is labeled as an estimate.
void MemoryTest::layersAreThoseOfExplain() {
  Seen f(findTemplate("tiny-llama")->text);
  f.panel().setByLayer(true);
  QVERIFY(f.panel().layers()->isVisibleTo(&f.panel()) && !f.chart().isVisibleTo(&f.panel()));
  QTRY_VERIFY(f.panel().layers()->isUpToDate());
  const Analysis& analysis = *f.session.plan().analysis();
  const MemoryForecast expected = memoryForecast(f.session.pipeline().document(), f.session.plan().options(), analysis);
  const QAbstractItemModel& model = *f.panel().layers()->model();
  const auto cell = [&](int group, int row, int column) {
    return model.index(row, column, model.index(group, 0)).data().toString();
  };
  const std::vector<LayerMemory> layers = groupedLayers(expected.layers);
  QCOMPARE(model.rowCount(model.index(0, 0)), static_cast<int>(layers.size()));
  for (int row = 0; row < static_cast<int>(layers.size()); ++row) {
    const LayerMemory& layer = layers[static_cast<std::size_t>(row)];
    QCOMPARE(cell(0, row, LayerTable::NameColumn), toQt(layer.layer));
    QCOMPARE(cell(0, row, LayerTable::ParametersColumn), toQt(formatBytes(layer.parameters)));
    QCOMPARE(cell(0, row, LayerTable::GradientsColumn), toQt(formatBytes(layer.gradients)));
    QCOMPARE(cell(0, row, LayerTable::KeptColumn), toQt(formatBytes(layer.kept)));
    QCOMPARE(cell(0, row, LayerTable::OptimizerColumn), toQt(formatBytes(layer.optimizer)));
  }
  const int last = static_cast<int>(expected.changes.size()) - 1;
  QCOMPARE(model.rowCount(model.index(1, 0)), last + 1);
  QVERIFY(expected.changes.back().isEstimate);
  QVERIFY(cell(1, last, LayerTable::NameColumn).endsWith(QStringLiteral("(estimate)")));
  QCOMPARE(cell(1, 0, LayerTable::AllocatedColumn), toQt(formatBytes(analysis.fusedPlan->peakBytes())));
}

/// More steps than pixels: every pixel is the highest of its steps, and nothing is left white.
void MemoryTest::manyStepsAreDrawn() {
  Seen f;
  MemoryPlot plot;
  for (int i = 0; i < 20'000; ++i) {
    MemoryColumn column;
    column.bytes[static_cast<std::size_t>(MemoryPurpose::Kept)] = i % 100 == 50 ? 2048 : 1024;
    plot.columns.push_back(column);
  }
  plot.allocatedBytes = 2048;
  f.chart().setPlot(plot);
  f.chart().resize(500, 200);
  const QImage image = f.chart().grab().toImage();
  const QRectF low = f.chart().areaOf(0);
  const QRectF high = f.chart().areaOf(50);
  const QColor ground = f.theme.colors().base;
  const double middle = (low.top() + high.top()) / 2;
  QVERIFY(image.pixelColor(QPointF(low.left() + 200, middle).toPoint()) != ground);
  QVERIFY(image.pixelColor(QPointF(low.left() + 200, low.top() + 10).toPoint()) != ground);
}

/// Nothing was measured: the filter is of the plan.
void MemoryTest::aFilterKeepsStepsAndOps() {
  Seen f;
  f.choosePlan(1);
  const QString caption = f.panel().caption();
  auto* filter = f.window.findChild<RunFilter*>();
  QVERIFY(std::ranges::count(filter->choices(), FilterTerm{FilterTerm::Kind::Category, QStringLiteral("Activation")}) ==
          1);
  filter->add({FilterTerm::Kind::Category, QStringLiteral("Activation")});
  QCOMPARE(labelsOf(f.columns()), (QStringList{"act", "act"}));
  QCOMPARE(f.cell(0, KeptTable::NameColumn), QStringLiteral("act"));
  QCOMPARE(f.window.findChild<KeptTable*>()->model()->rowCount(), 1);
  filter->add({FilterTerm::Kind::Pass, QStringLiteral("backward")});
  QCOMPARE(labelsOf(f.columns()), (QStringList{"act"}));
  QVERIFY(f.columns().front().phase == Phase::Backward && f.chart().plot().peak == 0);
  filter->clear();
  filter->add({FilterTerm::Kind::Text, QStringLiteral("nothing of this name")});
  QVERIFY(f.columns().empty());
  QVERIFY2(f.panel().emptyText().contains(QStringLiteral("filter")), qPrintable(f.panel().emptyText()));
  QCOMPARE(f.panel().caption(), caption);
}

FUSELINE_UI_TEST(MemoryTest)

}  // namespace fuseline::ui::memory_test

#include "test_ui_memory.moc"
