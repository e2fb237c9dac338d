// Overrides of a recipe: quantizers by op, tensor and GEMM, edited in the inspector's table.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/inspector/overrides_table.h"
#include "ui/theme/format.h"

#include <QAction>
#include <QComboBox>
#include <QSignalSpy>
#include <QTest>
#include <QToolButton>

#include <algorithm>

namespace fuseline::ui::overrides_test {

class OverridesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void rowsAreAddedChangedMovedAndRemoved();
  void eachChangeIsOneUndoStep();
  void cellsAreEditedInPlace();
  void operandsThatNoGemmMultipliesAreAProblem();
  void aQuantizerThatCannotBeReadIsRefused();
  void overridesOfFilesAreShown();
  void theyNeedARecipe();
};

namespace {

constexpr const char* kTwoLinears = R"({
  "format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "symbols": {"M": 64, "H": 128},
  "recipe": {"name": "CustomRecipe"},
  "pipeline": {
    "inputs": [{"id": "x", "dtype": "bf16", "shape": ["M", "H"]}],
    "ops": [{"id": "fc1", "op": "Linear", "attributes": {"in_features": "H", "out_features": "H"}},
            {"id": "fc2", "op": "Linear", "attributes": {"in_features": "H", "out_features": "H"}}],
    "wires": [["x", "fc1.x"], ["fc1.y", "fc2.x"]],
    "outputs": [{"id": "y", "from": "fc2.y"}]}})";

struct Scene : Fixture {
  Scene() : Fixture(kTwoLinears) {
    window.showPane(QStringLiteral("inspector"));
    QCoreApplication::processEvents();
  }
  OverridesTable& table() { return *window.inspector().page()->findChild<OverridesTable*>(); }
  QAbstractItemModel& model() { return *table().view()->model(); }
  Json overrides() { return session.pipeline().document().recipe().value("overrides", Json::array()); }

  QToolButton& tool(const QString& name) {
    const auto tools = table().findChildren<QToolButton*>();
    return **std::ranges::find_if(tools, [&](QToolButton* tool) { return tool->toolTip().startsWith(name); });
  }
  bool set(int row, int column, const QString& text) {
    const bool isSet = model().setData(model().index(row, column), text, Qt::EditRole);
    return isSet && waitForAnalysis(session);
  }
  QStringList row(int row) {
    QStringList texts;
    for (int column = 0; column < OverridesModel::NumColumns; ++column)
      texts.append(model().index(row, column).data().toString());
    return texts;
  }
};

}  // namespace

void OverridesTest::rowsAreAddedChangedMovedAndRemoved() {
  Scene scene;
  QVERIFY(scene.table().view()->isHidden());
  scene.tool(QStringLiteral("Add")).click();
  QVERIFY(!scene.table().view()->isHidden());
  QCOMPARE(scene.row(0), QStringList({"every op", "every tensor", "every GEMM", "high_precision"}));
  QVERIFY(scene.set(0, OverridesModel::QuantizerColumn, QStringLiteral("mxfp8")));
  QVERIFY(scene.overrides() == Json::array({Json{{"quantizer", "MXFP8BlockScaling"}}}));
  const Graph& graph = scene.session.plan().analysis()->graph();
  QVERIFY(graph.node(graph.findNode("fc2.linear")).quantizers.weight.rowwise->scaling == Scaling::Mx1x32);

  scene.tool(QStringLiteral("Add")).click();
  QVERIFY(scene.set(1, OverridesModel::OpColumn, QStringLiteral("fc2")));
  QVERIFY(scene.set(1, OverridesModel::GemmColumn, QStringLiteral("wgrad")));
  QVERIFY(scene.overrides()[1] == (Json{{"format", "high_precision"}, {"op", "fc2"}, {"gemm", "wgrad"}}));
  scene.tool(QStringLiteral("Move up")).click();
  QCOMPARE(scene.row(0), QStringList({"fc2", "every tensor", "wgrad", "high_precision"}));
  scene.tool(QStringLiteral("Remove")).click();
  QCOMPARE(scene.model().rowCount(), 1);
  scene.table().view()->actions().first()->trigger();
  QVERIFY(!scene.session.pipeline().document().recipe().contains("overrides"));
}

void OverridesTest::eachChangeIsOneUndoStep() {
  Scene scene;
  scene.tool(QStringLiteral("Add")).click();
  QVERIFY(scene.set(0, OverridesModel::QuantizerColumn, QStringLiteral("nvfp4(disable_rht=true)")));
  QCOMPARE(scene.row(0).last(), QStringLiteral("NVFP4BlockScaling(disable_rht=true)"));
  QCOMPARE(toQt(scene.session.pipeline().history().undoLabel()), QStringLiteral("Change an override"));
  scene.session.pipeline().undo();
  QCOMPARE(scene.row(0).last(), QStringLiteral("high_precision"));
  scene.session.pipeline().undo();
  QCOMPARE(scene.model().rowCount(), 0);
  scene.session.pipeline().redo();
  QCOMPARE(scene.model().rowCount(), 1);
}

void OverridesTest::cellsAreEditedInPlace() {
  Scene scene;
  scene.tool(QStringLiteral("Add")).click();
  QTableView& view = *scene.table().view();
  view.edit(scene.model().index(0, OverridesModel::OpColumn));
  auto* box = view.findChild<QComboBox*>();
  QVERIFY(box && box->isEditable());
  QCOMPARE(box->itemText(1), QStringLiteral("fc1"));
  box->setCurrentText(QStringLiteral("fc1"));
  QTest::keyClick(box, Qt::Key_Return);
  QTRY_COMPARE(scene.row(0).first(), QStringLiteral("fc1"));

  view.edit(scene.model().index(0, OverridesModel::TensorColumn));
  const auto boxes = view.findChildren<QComboBox*>();
  const auto tensor = std::ranges::find_if(boxes, [](QComboBox* other) { return !other->isEditable(); });
  QVERIFY(tensor != boxes.end());
  (*tensor)->setCurrentText(QStringLiteral("weight"));
  Q_EMIT(*tensor)->activated((*tensor)->currentIndex());
  QTRY_COMPARE(scene.row(0).at(1), QStringLiteral("weight"));
}

void OverridesTest::operandsThatNoGemmMultipliesAreAProblem() {
  Scene scene;
  scene.tool(QStringLiteral("Add")).click();
  QVERIFY(scene.set(0, OverridesModel::QuantizerColumn, QStringLiteral("MXFP8BlockScaling")));
  QVERIFY(scene.set(0, OverridesModel::TensorColumn, QStringLiteral("input")));
  auto* problem = scene.table().findChild<FieldProblem*>();
  QVERIFY2(problem->text().contains(QStringLiteral("fprop would multiply the input in mx_1x32 by the weight")),
           qPrintable(problem->text()));
  QVERIFY(scene.set(0, OverridesModel::TensorColumn, QString()));
  QVERIFY(problem->text().isEmpty());
}

void OverridesTest::aQuantizerThatCannotBeReadIsRefused() {
  Scene scene;
  scene.tool(QStringLiteral("Add")).click();
  const QSignalSpy refused(&scene.session.pipeline(), &OpenPipeline::editRefused);
  QVERIFY(!scene.set(0, OverridesModel::QuantizerColumn, QStringLiteral("int8")));
  QCOMPARE(refused.size(), 1);
  QVERIFY2(refused[0][0].toString().contains(QStringLiteral("there is no recipe 'int8'")),
           qPrintable(refused[0][0].toString()));
  QCOMPARE(scene.row(0).last(), QStringLiteral("high_precision"));
}

/// With all that a file may say, valid or not.
void OverridesTest::overridesOfFilesAreShown() {
  Scene scene;
  const Json weight = {{"tensor", "weight"},
                       {"gemm", "dgrad"},
                       {"quantizer", {{"name", "Float8CurrentScaling"}, {"fp8_format", "E4M3"}}},
                       {"columnwise_source", "rowwise_dequantized"}};
  const Json recipe = {{"name", "CustomRecipe"}, {"overrides", {weight, {{"op", 7}}, "fc1"}}};
  QVERIFY(scene.session.pipeline().apply(SetRecipe{recipe}));
  QVERIFY(waitForAnalysis(scene.session));
  QCOMPARE(scene.row(0), QStringList({"every op", "weight", "dgrad", "~Float8CurrentScaling(fp8_format=E4M3)"}));
  QCOMPARE(scene.row(1), QStringList({"7", "every tensor", "every GEMM", "high_precision"}));
  QCOMPARE(scene.row(2).last(), QStringLiteral("\"fc1\""));
  QVERIFY(!scene.table().findChild<FieldProblem*>()->text().isEmpty());
}

void OverridesTest::theyNeedARecipe() {
  Scene scene;
  QVERIFY(!scene.table().isHidden());
  QVERIFY(scene.session.pipeline().apply(SetRecipe{nullptr}));
  QTRY_VERIFY(scene.table().isHidden());
}

FUSELINE_UI_TEST(OverridesTest)

}  // namespace fuseline::ui::overrides_test

#include "test_ui_overrides.moc"
