// Panels: the inspector edits, the selection is one, files round-trip, problems are repaired.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/edit/node_edits.h"
#include "core/lowering/connections.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/inspector/attribute_field.h"
#include "ui/inspector/block_section.h"
#include "ui/inspector/overrides_table.h"
#include "ui/library/palette_panel.h"
#include "ui/theme/format.h"
#include "ui/widgets/table_copying.h"
#include "ui/window/drawing_dialog.h"

#include <QAccessible>
#include <QAction>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QDrag>
#include <QGuiApplication>
#include <QHeaderView>
#include <QHelpEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QPushButton>
#include <QSignalSpy>
#include <QSlider>
#include <QSpinBox>
#include <QStandardItemModel>
#include <QStatusBar>
#include <QTemporaryDir>
#include <QTest>
#include <QTextDocumentFragment>
#include <QTimer>
#include <QToolButton>
#include <QToolTip>
#include <QTreeView>

#include <algorithm>
#include <map>
#include <set>

namespace fuseline::ui::panels_test {

class PanelsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void inspectorEditsUndoAndRedo();
  void undoKeysAreThePipelinesOnceAFieldIsCommitted();
  void undoKeysAreTheFieldsWhileItIsTypedInto();
  void undoReachesThePipelineFromTheNextField();
  void undoReachesThePipelineFromOtherFields();
  void committedTextIsShownAsItIsKept();
  void inspectorShowsTheValueOfAnExpression();
  void inspectorEditsAnOpWhosePortsDependOnItsAttributes();
  void inspectorRenamesAndKeepsTheSelection();
  void inspectorEscapeGivesTheFieldBack();
  void inspectorSetsSharedAttributes();
  void inspectorOfSeveralOpsTellsDifferences();
  void numbersAreTypedShort();
  void symbolsAreEditable();
  void symbolsTellTheirProblems_data();
  void symbolsTellTheirProblems();
  void theWayLeadsFromThePlanToTheError();
  void recipesAreChosenAndSet();
  void inputsOfIntegersHaveNoGradient();
  void fusionsArePlannedForRanksAndForOtherHardware();
  void planPanelFollowsInPlace();
  void withErrorsNothingIsPlannedAnywhere_data();
  void withErrorsNothingIsPlannedAnywhere();
  void whyNotSwitchesARuleOff();
  void fusionsAreGroupedAndSwitchedInPlace();
  void attentionShowsItsMask();
  void aFusionOpensItsReason();
  void aFusionNamesItsOps();
  void aMatchInsideAnotherFusionIsNotAMiss();
  void theFieldsOfAnOpAreNearTheTop();
  void fixAllCountsErrorsThatItFinds();
  void panesComeToTheSelection();
  void fieldsStandInOneColumn();
  void instancesShareACard();
  void comboBoxesAreNamedByWhatTheySet();
  void whyNotTakesTheBorderOfASequentialAway();
  void boxesOfThePlanHaveTips();
  void selectionIsTheSameEverywhere();
  void problemsOfferRepairs();
  void problemIsShownAtItsField();
  void aFixStandsAtItsField();
  void savesAndOpensTheSameBytes();
  void modifiedMarkFollowsTheSavedState();
  void brokenFileIsASentenceInTheWindow();
  void lateAnalysesAreDropped();
  void paletteEnterAppendsAndWires();
  void logKeepsMessages();
  void everyMeasurementIsLogged();
  void aFilterKeepsTensorsOfItsOps();
  void placesOfProblemsAreWords();
  void logSelectsTheOpsOfAMessage();
  void tablesAreCopiedAsTheyAreShown();
  void selectedRowsAreDraggedOut();
  void theDrawingIsDraggedFromItsButton();
  void ctrlCInATableIsAboutTheTable();
  void recipesThatTheDeviceCannotRunSayWhy();
  void theStatusBarLeadsOn();
  void opsInsideABlockAreEditedAtAnInstance();
  void aFieldInsideABlockTellsItsProblem();
  void suggestionsAreTriedWhileSomebodyLooks();
  void aSearchForSuggestionsIsCanceled();
  void undoIsNoUseOfAnOp();
  void singleGemmsStayInHighPrecision();
};

namespace {

template <class Widget>
Widget* named(Fixture& f, const char* accessibleName) {
  for (auto* candidate : f.window.inspector().page()->findChildren<Widget*>()) {
    if (candidate->accessibleName() == QString::fromLatin1(accessibleName)) return candidate;
  }
  return nullptr;
}

ExpressionEdit* edit(Fixture& f, const char* accessibleName) { return named<ExpressionEdit>(f, accessibleName); }

void type(ExpressionEdit* field, const QString& text) {
  field->selectAll();
  QTest::keyClicks(field, text);
  QTest::keyClick(field, Qt::Key_Return);
}

/// Selects an op and waits for its page.
void inspect(Fixture& f, const char* id) {
  f.session.selection().select({QString::fromLatin1(id)});
  QCoreApplication::processEvents();
}

struct Dragged {
  QString text;
  bool hasUrls = false;
};

/// Looks at the drags that a widget begins. Without a display they end at once, and go soon after.
class DragWatch : public QObject {
 public:
  explicit DragWatch(QWidget& widget) { widget.installEventFilter(this); }
  Dragged dragged;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::ChildAdded) {
      QObject* child = static_cast<QChildEvent*>(event)->child();
      QMetaObject::invokeMethod(
          child, [this, child] { look(qobject_cast<QDrag*>(child)); }, Qt::QueuedConnection);
    }
    return QObject::eventFilter(watched, event);
  }

 private:
  void look(const QDrag* drag) {
    if (drag) dragged = {.text = drag->mimeData()->text(), .hasUrls = drag->mimeData()->hasUrls()};
  }
};

/// Contents of a drag from that place.
Dragged draggedOut(QWidget& widget, QPoint from) {
  const DragWatch watch(widget);
  dragMouse(&widget, from, from + QPoint(0, 80));
  QCoreApplication::processEvents();
  return watch.dragged;
}

}  // namespace

void PanelsTest::inspectorEditsUndoAndRedo() {
  Fixture f(smallPipeline());
  inspect(f, "fc");
  QVERIFY(edit(f, "out_features"));
  type(edit(f, "out_features"), QStringLiteral("4*H"));
  QVERIFY(f.op("fc").attributes.at("out_features") == Json("4*H"));
  f.session.pipeline().undo();
  QVERIFY(f.op("fc").attributes.at("out_features") == Json("2*H"));
  QCOMPARE(edit(f, "out_features")->text(), QStringLiteral("2*H"));
  f.session.pipeline().redo();
  QCOMPARE(edit(f, "out_features")->text(), QStringLiteral("4*H"));
}

namespace {

/// As a hand would: the field has the keyboard, and the window's shortcuts are alive.
ExpressionEdit* enter(Fixture& f, const char* accessibleName) {
  f.window.activateWindow();
  ExpressionEdit* field = edit(f, accessibleName);
  if (!field || !QTest::qWaitForWindowActive(&f.window)) return nullptr;
  field->setFocus();
  field->selectAll();
  return field->hasFocus() ? field : nullptr;
}

void pressUndo(QWidget* widget) { QTest::keyClick(widget, Qt::Key_Z, Qt::ControlModifier); }
void pressRedo(QWidget* widget) { QTest::keyClick(widget, Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier); }

}  // namespace

void PanelsTest::undoKeysAreThePipelinesOnceAFieldIsCommitted() {
  Fixture f(smallPipeline());
  inspect(f, "fc");
  ExpressionEdit* field = enter(f, "in_features");
  QVERIFY(field);
  QTest::keyClicks(field, QStringLiteral("H*2"));
  QTest::keyClick(field, Qt::Key_Return);
  QVERIFY(f.op("fc").attributes.at("in_features") == Json("H*2"));
  pressUndo(field);
  QVERIFY(f.op("fc").attributes.at("in_features") == Json("H"));
  QCOMPARE(field->text(), QStringLiteral("H"));
  pressUndo(field);  // there is nothing left to undo: the field must not go back by itself
  QCOMPARE(field->text(), QStringLiteral("H"));
  pressRedo(field);
  QVERIFY(f.op("fc").attributes.at("in_features") == Json("H*2"));
  QCOMPARE(field->text(), QStringLiteral("H*2"));
}

void PanelsTest::undoKeysAreTheFieldsWhileItIsTypedInto() {
  Fixture f(smallPipeline());
  inspect(f, "fc");
  ExpressionEdit* field = enter(f, "out_features");
  QVERIFY(field);
  QTest::keyClicks(field, QStringLiteral("4*H"));
  QTest::keyClick(field, Qt::Key_Return);
  QTest::keyClicks(field, QStringLiteral("+1"));
  pressUndo(field);
  QCOMPARE(field->text(), QStringLiteral("4*H"));  // and not what was typed before the Return
  QVERIFY(f.op("fc").attributes.at("out_features") == Json("4*H"));
  pressUndo(field);
  QVERIFY(f.op("fc").attributes.at("out_features") == Json("2*H"));
  QCOMPARE(field->text(), QStringLiteral("2*H"));
}

void PanelsTest::undoReachesThePipelineFromTheNextField() {
  Fixture f(smallPipeline());
  inspect(f, "fc");
  ExpressionEdit* field = enter(f, "in_features");
  QVERIFY(field);
  QTest::keyClicks(field, QStringLiteral("H*2"));
  QTest::keyClick(field, Qt::Key_Tab);
  QVERIFY(edit(f, "out_features")->hasFocus());
  pressUndo(edit(f, "out_features"));
  QVERIFY(f.op("fc").attributes.at("in_features") == Json("H"));
  QCOMPARE(field->text(), QStringLiteral("H"));
}

void PanelsTest::undoReachesThePipelineFromOtherFields() {
  Fixture f(smallPipeline());
  inspect(f, "nothing");
  ExpressionEdit* symbol = enter(f, "Value of H");
  QVERIFY(symbol);
  QTest::keyClicks(symbol, QStringLiteral("48"));
  QTest::keyClick(symbol, Qt::Key_Return);
  auto* ranks = named<QSpinBox>(f, "Ranks");
  ranks->setFocus();
  ranks->selectAll();
  QTest::keyClicks(ranks, QStringLiteral("2"));
  QTest::keyClick(ranks, Qt::Key_Return);
  pressUndo(ranks);
  QVERIFY(f.session.pipeline().document().symbols()["H"] == Json(32));
  QCOMPARE(ranks->text(), QStringLiteral("2"));

  QLineEdit* filter = f.window.palettePanel().filterEdit();
  filter->setFocus();
  QTest::keyClicks(filter, QStringLiteral("identity"));
  QTest::keyClick(filter, Qt::Key_Return);
  QVERIFY(f.session.pipeline().document().findOp("identity"));
  pressUndo(filter);
  QVERIFY(!f.session.pipeline().document().findOp("identity"));
}

void PanelsTest::committedTextIsShownAsItIsKept() {
  Fixture f(smallPipeline());
  inspect(f, "fc");
  ExpressionEdit* field = enter(f, "in_features");
  QVERIFY(field);
  QTest::keyClicks(field, QStringLiteral(" H "));
  QTest::keyClick(field, Qt::Key_Return);
  QCOMPARE(field->text(), QStringLiteral("H"));
  QVERIFY(!f.session.pipeline().history().canUndo());
}

void PanelsTest::inspectorShowsTheValueOfAnExpression() {
  Fixture f(smallPipeline());
  inspect(f, "fc");
  const auto labels = f.window.inspector().page()->findChildren<QLabel*>();
  QVERIFY(std::ranges::any_of(labels, [](const QLabel* label) { return label->text() == QStringLiteral("= 64"); }));
}

void PanelsTest::inspectorEditsAnOpWhosePortsDependOnItsAttributes() {
  Fixture f(smallPipeline());
  f.session.pipeline().apply(addNode(f.session.pipeline().document(), "Formula", std::nullopt).edit);
  inspect(f, "formula");
  QVERIFY(edit(f, "y"));
  type(edit(f, "y"), QStringLiteral("x * sigmoid(q)"));
  QVERIFY(waitForAnalysis(f.session));
  const auto problems = [&] { return f.window.inspector().page()->findChildren<QLabel*>(); };
  const auto saysWhere = [](const QLabel* label) { return label->text().contains(QStringLiteral("column 13")); };
  QVERIFY(std::ranges::any_of(problems(), saysWhere));
  type(edit(f, "y"), QStringLiteral("x * x"));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(std::ranges::none_of(problems(), saysWhere));
}

void PanelsTest::inspectorRenamesAndKeepsTheSelection() {
  Fixture f(smallPipeline());
  inspect(f, "fc");
  type(edit(f, "Name of the op"), QStringLiteral("project"));
  QVERIFY(f.session.pipeline().document().findOp("project"));
  QCOMPARE(f.session.selection().single(), QStringLiteral("project"));
}

void PanelsTest::inspectorEscapeGivesTheFieldBack() {
  Fixture f(smallPipeline());
  inspect(f, "fc");
  ExpressionEdit* field = edit(f, "out_features");
  QTest::keyClicks(field, QStringLiteral("99"));
  QTest::keyClick(field, Qt::Key_Escape);
  QCOMPARE(field->text(), QStringLiteral("2*H"));
  QVERIFY(!f.session.pipeline().history().canUndo());
}

void PanelsTest::inputsOfIntegersHaveNoGradient() {
  Fixture f(smallPipeline());
  inspect(f, "nothing");
  auto* dtype = named<QComboBox>(f, "dtype of x");
  auto* gradient = named<QCheckBox>(f, "Gradient of x");
  QVERIFY(dtype && gradient && gradient->isEnabled());
  gradient->click();
  QVERIFY(f.session.pipeline().document().inputs().front().requiresGradient == false);
  Q_EMIT dtype->textActivated(QStringLiteral("i64"));
  QVERIFY(f.session.pipeline().document().inputs().front().dtype == "i64");
  QVERIFY(!f.session.pipeline().document().inputs().front().requiresGradient.has_value());
  QVERIFY(!gradient->isEnabled());
  QVERIFY(!gradient->isChecked());
  QCOMPARE(dtype->currentText(), QStringLiteral("i64"));
}

void PanelsTest::inspectorSetsSharedAttributes() {
  Fixture f(smallPipeline());
  f.session.pipeline().apply(addNode(f.session.pipeline().document(), "Linear", std::nullopt).edit);
  f.session.pipeline().apply(SetAttribute{.id = "linear", .name = "in_features", .value = "H"});
  f.session.pipeline().apply(SetAttribute{.id = "linear", .name = "out_features", .value = 8});
  f.session.selection().select({QStringLiteral("fc"), QStringLiteral("linear")});
  QVERIFY(waitForAnalysis(f.session));
  QCoreApplication::processEvents();
  const Json before = f.op("fc").attributes;
  type(edit(f, "out_features"), QStringLiteral("*2"));
  QCOMPARE(f.op("fc").attributes["out_features"], Json("2*H*2"));
  QCOMPARE(f.op("linear").attributes["out_features"], Json(16));
  auto* bias = named<QCheckBox>(f, "bias");
  QCOMPARE(bias->checkState(), Qt::PartiallyChecked);
  QTest::mouseClick(bias, Qt::LeftButton, {}, QPoint(8, bias->height() / 2));
  QCOMPARE(f.op("fc").attributes["bias"], Json(true));
  QCOMPARE(f.op("linear").attributes["bias"], Json(true));
  f.session.pipeline().undo();
  f.session.pipeline().undo();
  QCOMPARE(f.op("fc").attributes, before);
  QCOMPARE(f.op("linear").attributes["out_features"], Json(8));
}

void PanelsTest::inspectorOfSeveralOpsTellsDifferences() {
  Fixture f(smallPipeline());
  f.session.selection().select({QStringLiteral("fc"), QStringLiteral("act")});
  QCoreApplication::processEvents();
  QVERIFY(!edit(f, "in_features"));  // GELU has none
  const auto labels = f.window.inspector().page()->findChildren<QLabel*>();
  const auto says = [&](const QString& text) {
    return std::ranges::any_of(labels, [&](const QLabel* label) { return label->text() == text; });
  };
  QVERIFY(says(QStringLiteral("2 ops")) && says(QStringLiteral("fc, act")));

  f.session.pipeline().apply(addNode(f.session.pipeline().document(), "Linear", std::nullopt).edit);
  f.session.pipeline().apply(SetAttribute{.id = "linear", .name = "in_features", .value = 8});
  f.session.selection().select({QStringLiteral("fc"), QStringLiteral("linear")});
  QCoreApplication::processEvents();
  QCOMPARE(edit(f, "in_features")->text(), QString());
  QCOMPARE(edit(f, "in_features")->placeholderText(), QStringLiteral("different"));
}

void PanelsTest::numbersAreTypedShort() {
  Fixture f(smallPipeline());
  inspect(f, "fc");
  type(edit(f, "out_features"), QStringLiteral("2^10"));
  QCOMPARE(f.op("fc").attributes["out_features"], Json(1024));
  QCOMPARE(edit(f, "out_features")->text(), QStringLiteral("1024"));
  type(edit(f, "out_features"), QStringLiteral("*4"));
  QCOMPARE(f.op("fc").attributes["out_features"], Json(4096));
  f.session.selection().select({});
  QCoreApplication::processEvents();
  type(edit(f, "Shape: integers, symbols or expressions; outermost dimension first"), QStringLiteral("1k, H"));
  QCOMPARE(f.session.pipeline().document().inputs().front().shape, Json::array({1024, "H"}));
}

void PanelsTest::symbolsAreEditable() {
  Fixture f(smallPipeline());
  inspect(f, "nothing");
  type(edit(f, "Value of H"), QStringLiteral("48"));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.session.pipeline().document().symbols()["H"] == Json(48));
  const Value* value = valueAt(f.session.plan().analysis()->graph(), {"norm", "y"});
  QVERIFY(value);
  QCOMPARE(value->spec.shape, (Shape{16, 48}));
}

void PanelsTest::symbolsTellTheirProblems_data() {
  QTest::addColumn<QString>("value");
  QTest::addColumn<QString>("sentence");
  QTest::newRow("no number") << QStringLiteral("abc")
                             << QStringLiteral("Symbol H is \"abc\"; at character 1: there is no symbol abc.");
  QTest::newRow("negative") << QStringLiteral("-3")
                            << QStringLiteral("x: dimension 1 of the shape is -3; expected 0 or more.");
}

void PanelsTest::symbolsTellTheirProblems() {
  QFETCH(const QString, value);
  QFETCH(const QString, sentence);
  Fixture f(smallPipeline());
  inspect(f, "nothing");
  QVERIFY(!edit(f, "Value of H")->isProblem());
  type(edit(f, "Value of H"), value);
  QVERIFY(waitForAnalysis(f.session));
  QCoreApplication::processEvents();
  ExpressionEdit* field = edit(f, "Value of H");
  QVERIFY(field->isProblem());
  QVERIFY(!edit(f, "Value of M")->isProblem());
  const auto* problem = field->parentWidget()->findChild<FieldProblem*>();
  QVERIFY(problem && problem->isVisibleTo(f.window.inspector().page()));
  QVERIFY2(problem->text().split(u'\n').contains(sentence), qPrintable(problem->text()));
  f.session.pipeline().undo();
  QVERIFY(waitForAnalysis(f.session));
  QCoreApplication::processEvents();
  QVERIFY(!edit(f, "Value of H")->isProblem());
}

void PanelsTest::theWayLeadsFromThePlanToTheError() {
  Fixture f(smallPipeline());
  f.window.show();
  QVERIFY(QTest::qWaitForWindowExposed(&f.window));
  const RunBar& bar = *f.window.findChild<RunBar*>();
  QVERIFY(!bar.refusalAction()->isEnabled());
  QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "H", .value = "abc"}));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(!bar.runAction()->isEnabled());
  QTest::keyClick(&f.window, Qt::Key_Return, Qt::ControlModifier);
  QVERIFY(f.window.messageBar().isVisible());
  QCOMPARE(f.window.messageBar().text(),
           QStringLiteral("The pipeline cannot run: Symbol H is \"abc\"; at character 1: there is no symbol abc."));
  Q_EMIT f.window.plan().unplanned()->linkActivated(QStringLiteral("problems"));
  QCOMPARE(f.window.problems().view()->currentIndex().row(), 0);
  QVERIFY(f.window.problems().view()->visibleRegion().boundingRect().height() > 0);
}

void PanelsTest::recipesAreChosenAndSet() {
  Fixture f(smallPipeline());
  inspect(f, "nothing");
  const auto combo = [&](const char* name) {
    return f.window.inspector().page()->findChild<QComboBox*>(QString::fromUtf8(name));
  };
  QVERIFY(combo("recipe"));
  QCOMPARE(combo("recipe")->currentText(), QStringLiteral("None"));
  Q_EMIT combo("recipe")->textActivated(QStringLiteral("DelayedScaling"));
  QVERIFY(waitForAnalysis(f.session));
  QCoreApplication::processEvents();
  QVERIFY(f.session.pipeline().document().recipe() == (Json{{"name", "DelayedScaling"}}));
  QVERIFY(f.session.plan().analysis()->graph().node(1).quantizers.any());
  Q_EMIT combo("fp8_format")->textActivated(QStringLiteral("E4M3"));
  QVERIFY(f.session.pipeline().document().recipe() == (Json{{"name", "DelayedScaling"}, {"fp8_format", "E4M3"}}));
  Q_EMIT combo("fp8_format")->textActivated(QStringLiteral("HYBRID"));  // the default is not written
  QVERIFY(f.session.pipeline().document().recipe() == (Json{{"name", "DelayedScaling"}}));
  QVERIFY(f.session.pipeline().apply(SetRecipe{.recipe = Json{{"name", "Float9"}}}));
  QTRY_COMPARE(combo("recipe")->currentIndex(), -1);
  QCOMPARE(combo("recipe")->placeholderText(), QStringLiteral("Float9"));
  Q_EMIT combo("recipe")->textActivated(QStringLiteral("None"));
  QVERIFY(f.session.pipeline().document().recipe().is_null());
}

namespace {

bool appliesForward(const Session& session, const std::string& rule) {
  return std::ranges::any_of(session.plan().analysis()->report.forward,
                             [&](const FusedOperation& entry) { return entry.rule && entry.rule->name == rule; });
}

/// Does the pipeline's page show this text?
bool says(Fixture& f, const QString& text) {
  const auto labels = f.window.inspector().page()->findChildren<QLabel*>();
  return std::ranges::any_of(labels, [&](const QLabel* label) { return label->text().contains(text); });
}

}  // namespace

void PanelsTest::fusionsArePlannedForRanksAndForOtherHardware() {
  Fixture f(smallPipeline());
  for (const auto& [name, value] : {std::pair<std::string, Json>{"userbuffers_comm_name", "fc"},
                                    {"tensor_parallel_mode", "column"},
                                    {"sequence_parallel", true}})
    QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "fc", .name = name, .value = value}));
  inspect(f, "nothing");
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(!appliesForward(f.session, "UserbuffersForwardLinear"));
  QVERIFY(!says(f, QStringLiteral("one rank")));

  auto* const device = named<QComboBox>(f, "Plan for");
  device->setCurrentText(QStringLiteral("sm_90"));
  Q_EMIT device->activated(device->currentIndex());
  named<QSpinBox>(f, "Ranks")->setValue(2);
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(appliesForward(f.session, "UserbuffersForwardLinear"));
  QVERIFY(says(f, QStringLiteral("Runs still use the device in the toolbar.")));
  QVERIFY(!says(f, QStringLiteral("compute capability")));
  const auto summaries = f.window.plan().findChildren<QLabel*>();
  QVERIFY(summaries.front()->text().endsWith(QStringLiteral("planned for sm_90, one of 2 ranks")));

  QVERIFY(f.session.pipeline().apply(SetRecipe{.recipe = Json{{"name", "MXFP8BlockScaling"}}}));
  QVERIFY(waitForAnalysis(f.session));
  QCoreApplication::processEvents();
  QVERIFY(says(f, QStringLiteral("compute capability 10.0")));
  f.session.setup().setPlanTarget({});
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(!appliesForward(f.session, "UserbuffersForwardLinear"));
}

void PanelsTest::planPanelFollowsInPlace() {
  Fixture f(residualPipeline(true));
  const PlanLanes before = f.window.plan().lanesView()->lanes();
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "add", .name = "in_place", .value = false}));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.window.plan().lanesView()->lanes() != before);
  f.session.pipeline().undo();
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.window.plan().lanesView()->lanes() == before);
}

namespace {

/// Is this sentence in the panel for the user to see?
bool shows(const QWidget& panel, const QString& sentence) {
  const auto labels = panel.findChildren<QLabel*>();
  return std::ranges::any_of(labels, [&](const QLabel* label) {
    const bool saysIt =
        label->text() == sentence || QTextDocumentFragment::fromHtml(label->text()).toPlainText() == sentence;
    return saysIt && label->isVisibleTo(&panel);
  });
}

qsizetype numCards(Fixture& f) { return f.window.fusions().findChildren<QFrame*>(QStringLiteral("card")).size(); }

}  // namespace

void PanelsTest::withErrorsNothingIsPlannedAnywhere_data() {
  QTest::addColumn<QString>("mistake");
  for (const char* mistake : {"attribute", "loose op", "recipe", "rule"})
    QTest::newRow(mistake) << QString::fromLatin1(mistake);
}

void PanelsTest::withErrorsNothingIsPlannedAnywhere() {
  QFETCH(const QString, mistake);
  const std::map<QString, Edit> edits = {
      {QStringLiteral("attribute"), SetAttribute{.id = "fc", .name = "in_features", .value = "H*2"}},
      {QStringLiteral("loose op"), AddOp{.op = {.id = "loose", .operation = "GELU"}}},
      {QStringLiteral("recipe"), SetRecipe{.recipe = Json{{"name", "FP8"}}}},
      {QStringLiteral("rule"), SetFusion{.fusion = Json{{"without", {"NoSuchRule"}}}}}};
  Fixture f(residualPipeline(true));
  inspect(f, "fc");
  const auto numHulls = f.window.scene().canvasItems().hulls().size();
  const qsizetype numCardsBefore = numCards(f);
  QVERIFY(numHulls > 0 && numCardsBefore > 0);

  QVERIFY(f.session.pipeline().apply(edits.at(mistake)));
  QVERIFY(waitForAnalysis(f.session));
  const QString sentence = QStringLiteral("Fix 1 error to see the plan.");
  QVERIFY(shows(f.window.plan(), sentence));
  QVERIFY(shows(f.window.fusions(), sentence));
  QVERIFY(shows(f.window.timings(), QStringLiteral("Fix 1 error to measure.")));
  QCOMPARE(numCards(f), 0);
  QVERIFY(f.window.scene().canvasItems().hulls().empty());

  f.session.pipeline().undo();
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(!shows(f.window.plan(), sentence) && !shows(f.window.fusions(), sentence));
  QCOMPARE(numCards(f), numCardsBefore);
  QCOMPARE(f.window.scene().canvasItems().hulls().size(), numHulls);
}

void PanelsTest::whyNotSwitchesARuleOff() {
  Fixture f(residualPipeline(true));
  inspect(f, "add");
  const auto buttons = f.window.fusions().findChildren<QPushButton*>();
  const auto off = std::ranges::find_if(
      buttons, [](const QPushButton* button) { return button->text() == QStringLiteral("Switch this rule off"); });
  QVERIFY(off != buttons.end());
  const auto before = f.session.plan().analysis()->report.forward.size();
  (*off)->click();
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.session.plan().analysis()->report.forward.size() > before);
}

void PanelsTest::fusionsAreGroupedAndSwitchedInPlace() {
  Fixture f(residualPipeline(true));
  const auto texts = [&] {
    QStringList found;
    for (const QLabel* label : f.window.fusions().findChildren<QLabel*>()) found.append(label->text());
    return found.join(u'|');
  };
  QVERIFY2(texts().contains(QStringLiteral("Fused  1")), qPrintable(texts()));
  const auto fusedSwitch = [&]() -> QCheckBox* {
    for (QCheckBox* box : f.window.fusions().findChildren<QCheckBox*>())
      if (box->accessibleName().startsWith(QStringLiteral("ForwardLinearBiasAdd"))) return box;
    return nullptr;
  };
  QVERIFY(fusedSwitch() && fusedSwitch()->isChecked());
  fusedSwitch()->click();
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(fusedSwitch() && !fusedSwitch()->isChecked());
  QVERIFY(texts().contains(QStringLiteral("Fused  1")));  // it stays where it was
  fusedSwitch()->click();
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(fusedSwitch()->isChecked());
}

/// Queries downwards, keys to the right: the lower triangle, or a band of it.
void PanelsTest::attentionShowsItsMask() {
  const auto pipeline = [](const char* attributes) {
    return testing::smallDocument(std::string(R"("inputs": [{"id": "q", "dtype": "bf16", "shape": [64, 2, 8, 16]},
                    {"id": "k", "dtype": "bf16", "shape": [64, 2, 2, 16]},
                    {"id": "v", "dtype": "bf16", "shape": [64, 2, 2, 16]}],
         "ops": [{"id": "att", "op": "DotProductAttention", "attributes": {"num_attention_heads": 8,
                  "num_gqa_groups": 2, "kv_channels": [16])") +
                                  attributes + R"(}}], "wires": [["q", "att.x"], ["k", "att.k"], ["v", "att.v"]],
         "outputs": [{"id": "y", "from": "att.y"}])");
  };
  Fixture f(pipeline(""));
  QVERIFY(f.session.plan().analysis()->isRunnable());
  const auto mask = attentionMask(f.session.plan().analysis()->graph(), "att");
  QVERIFY(mask.has_value());
  QVERIFY(mask->sees(8, 0, 16) && mask->sees(15, 15, 16) && !mask->sees(0, 8, 16));
  inspect(f, "att");
  const QString words = f.window.inspector().findChild<AttentionSection*>()->words();
  QVERIFY2(words.startsWith(QStringLiteral("8 heads in 2 groups of 4")), qPrintable(words));
  QVERIFY2(words.contains(QStringLiteral("51 % of the pairs")), qPrintable(words));  // 65 of 128

  Fixture windowed(pipeline(R"(, "window_size": [16, 0])"));
  const auto band = attentionMask(windowed.session.plan().analysis()->graph(), "att");
  QVERIFY(band && band->sees(15, 15, 16) && band->sees(15, 12, 16) && !band->sees(15, 2, 16));
  // 20 keys are a third of a cell: queries 0 to 127 see keys from 852 to 999.
  const AttentionMask narrow{
      .form = {.left = 20, .right = 0, .isBottomRight = true}, .numQueries = 128, .numKeys = 1000};
  QVERIFY(narrow.sees(0, 13, 16) && narrow.sees(7, 14, 16) && narrow.sees(15, 15, 16));
  QVERIFY(!narrow.sees(0, 12, 16) && !narrow.sees(0, 15, 16) && !narrow.sees(15, 13, 16));
}

/// One line each; the reason opens.
void PanelsTest::aFusionOpensItsReason() {
  Fixture f(residualPipeline(false));
  QVERIFY(f.window.showPane(QStringLiteral("whyNot")));
  auto* card = f.window.fusions().findChild<FusionCard*>();
  QVERIFY(card);
  auto* arrow = card->findChild<QToolButton*>();
  const int closedPx = card->sizeHint().height();
  arrow->click();
  QVERIFY(card->sizeHint().height() > closedPx);
  QTest::mouseClick(card, Qt::LeftButton, {}, arrow->geometry().center() + QPoint(60, 0));  // as its line does
  QCOMPARE(card->sizeHint().height(), closedPx);
  QTest::mouseClick(card, Qt::LeftButton, {}, arrow->geometry().center() + QPoint(60, 0));
  QVERIFY(card->sizeHint().height() > closedPx);
  QVERIFY(f.session.pipeline().apply(MoveNode{.id = "fc", .position = Position{8, 8}}));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.window.fusions().findChild<FusionCard*>()->sizeHint().height() > closedPx);  // it stays open
}

/// On a line of their own, whole.
void PanelsTest::aFusionNamesItsOps() {
  Fixture f(residualPipeline(true));
  const auto labels = f.window.fusions().findChildren<ElidedLabel*>();
  const auto isShown = [&](const char* text) {
    return std::ranges::any_of(labels, [&](const QLabel* label) { return label->text() == QString::fromUtf8(text); });
  };
  QVERIFY(isShown("ForwardLinearBiasAdd") && isShown("fc, add"));
}

/// All of its ops are fused already.
void PanelsTest::aMatchInsideAnotherFusionIsNotAMiss() {
  Fixture f(std::string(findTemplate("llama-mlp")->text));
  const Analysis& analysis = *f.session.plan().analysis();
  const auto fusionOf = [&](NodeId node, FusionPass pass) -> const Attempt* {
    for (const Attempt& attempt : analysis.report.attempts)
      if (attempt.outcome == Outcome::Fused && attempt.rule->pass == pass &&
          std::ranges::count(attempt.nodes, node) > 0)
        return &attempt;
    return nullptr;
  };
  int numInside = 0;
  const AttemptList list = attemptsFor(analysis, {});
  for (const Attempt& attempt : analysis.report.attempts) {
    if (attempt.outcome != Outcome::TakenByAnother && attempt.outcome != Outcome::ConditionFailed) continue;
    const Attempt* const first = fusionOf(attempt.nodes.front(), attempt.rule->pass);
    const bool isInside = first && std::ranges::all_of(attempt.nodes, [&](NodeId node) {
                            return fusionOf(node, attempt.rule->pass) == first;
                          });
    numInside += isInside;
    QCOMPARE(std::ranges::count(list.shown, &attempt) == 0, isInside);
  }
  QVERIFY(numInside > 0);
}

/// In a laptop's window: the help has the rest of its text.
void PanelsTest::theFieldsOfAnOpAreNearTheTop() {
  Fixture f(smallPipeline());
  f.window.resize(1366, 768);
  inspect(f, "act");
  QCoreApplication::processEvents();
  const QWidget* name = named<ExpressionEdit>(f.window.inspector(), "Name of the op");
  QVERIFY(name->mapTo(f.window.inspector().page(), QPoint()).y() < 6 * name->height());
  QVERIFY(hasLabel(f.window.inspector(), "0.79788456"));  // whole, in its tip
  named<QToolButton>(f.window.inspector(), "Help on this op")->click();
  const auto* help = f.window.findChild<GuideWindow*>();
  QVERIFY(help && help->isVisible() && help->windowTitle().contains(QStringLiteral("GELU")));
}

/// fc2 gets its error's fix only when fc1 has its sizes.
void PanelsTest::fixAllCountsErrorsThatItFinds() {
  Fixture f(testing::smallDocument(R"("inputs": [{"id": "x", "dtype": "bf16", "shape": ["M", "H"]}],
    "ops": [{"id": "fc1", "op": "Linear", "attributes": {"out_features": 8}},
            {"id": "fc2", "op": "Linear", "attributes": {"out_features": 4}}],
    "wires": [["x", "fc1.x"], ["fc1.y", "fc2.x"]], "outputs": [{"id": "y", "from": "fc2.y"}])"));
  QCOMPARE(f.window.problems().model().count(Severity::Error), 2);
  auto* all = f.window.problems().findChild<QPushButton*>(QStringLiteral("fixAll"));
  QVERIFY(all);
  QCOMPARE(all->text(), QStringLiteral("Fix all 2"));
  all->click();
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(f.window.problems().model().count(Severity::Error), 0);
}

void PanelsTest::panesComeToTheSelection() {
  std::string ops;
  std::string wires = R"(["x", "op0.x"])";
  for (int i = 0; i < 60; ++i) {
    const std::string id = "op" + std::to_string(i);
    ops += std::string(i > 0 ? ", " : "") + R"({"id": ")" + id + R"(", "op": "GELU", "attributes": {}})";
    if (i > 0) wires += R"(, ["op)" + std::to_string(i - 1) + R"(.y", ")" + id + R"(.x"])";
  }
  Fixture f(testing::smallDocument(R"("inputs": [{"id": "x", "dtype": "bf16", "shape": ["M", "H"]}], "ops": [)" + ops +
                                   R"(], "wires": [)" + wires + R"(], "outputs": [{"id": "y", "from": "op59.y"}])"));
  QVERIFY(f.window.showPane(QStringLiteral("plan")));
  const LanesView* lanes = f.window.plan().lanesView();
  QCoreApplication::processEvents();
  QVERIFY(lanes->x() == 0);
  f.session.selection().select({QStringLiteral("op59")});
  QVERIFY(lanes->x() < 0);
}

void PanelsTest::whyNotTakesTheBorderOfASequentialAway() {
  Fixture f(smallPipeline());
  f.session.selection().select({QStringLiteral("fc")});
  f.window.scene().commands().makeBlockOfSelected("Project");
  QVERIFY(waitForAnalysis(f.session));
  const auto numEntries = [&] { return f.session.plan().analysis()->report.forward.size(); };
  const std::size_t fused = numEntries();
  inspect(f, "project");
  auto* sequential = named<QCheckBox>(f, "sequential");
  QVERIFY(sequential && !sequential->isChecked());
  sequential->click();
  QVERIFY(f.op("project").attributes.at("sequential") == Json(true));
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(numEntries(), fused + 1);
  QCOMPARE(f.window.scene().node("project")->look().subtitle, QStringLiteral("project · Sequential"));
  const auto buttons = f.window.fusions().findChildren<QPushButton*>();
  const auto off = std::ranges::find_if(buttons, [](const QPushButton* button) {
    return button->text() == QStringLiteral("Switch sequential off for project");
  });
  QVERIFY(off != buttons.end());
  (*off)->click();
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(numEntries(), fused);
  QCOMPARE(f.window.scene().node("project")->look().subtitle, QStringLiteral("project"));
}

/// At each stage, of the box that is pointed at.
void PanelsTest::boxesOfThePlanHaveTips() {
  Fixture f(smallPipeline());
  LanesView* lanes = f.window.plan().lanesView();
  const auto tipOf = [&](const char* op) {
    QRect area;
    const auto connection = connect(lanes, &LanesView::revealed, this, [&](const QRect& box) { area = box; });
    f.session.selection().select({});
    f.session.selection().select({QString::fromLatin1(op)});
    disconnect(connection);
    QHelpEvent event(QEvent::ToolTip, area.center(), lanes->mapToGlobal(area.center()));
    QApplication::sendEvent(lanes, &event);
    return QToolTip::text();
  };
  const QString fused = tipOf("act");
  for (const char* part : {"ForwardLinearEpilogue", "(forward)", "fc → act", "Predicted to save"})
    QVERIFY2(fused.contains(QString::fromUtf8(part)), qPrintable(fused));
  QVERIFY(tipOf("norm").startsWith(QStringLiteral("<b>RMSNorm</b> (forward)<br>norm")));
  f.window.plan().findChild<QSlider*>()->setValue(0);  // no fusions yet
  QVERIFY2(tipOf("act").startsWith(QStringLiteral("<b>GELU</b> (forward)<br>act")), qPrintable(tipOf("act")));
}

void PanelsTest::selectionIsTheSameEverywhere() {
  Fixture f(smallPipeline());
  LanesView* lanes = f.window.plan().lanesView();
  lanes->setFocus();
  QTest::keyClick(lanes, Qt::Key_Right);
  QVERIFY(!f.session.selection().ids().isEmpty());
  const QString id = *f.session.selection().ids().begin();
  QVERIFY(f.window.scene().node(id.toStdString())->isSelected());
  f.window.scene().clearSelection();
  QVERIFY(f.session.selection().ids().isEmpty());
}

void PanelsTest::problemsOfferRepairs() {
  Fixture f(smallPipeline());
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "fc", .name = "in_features", .value = 7}));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(!f.session.plan().analysis()->isRunnable());
  QVERIFY(f.window.problems().model().count(Severity::Error) >= 1);
  QVERIFY(!f.window.problems().findChildren<QPushButton*>().isEmpty());  // there before a row is chosen
  QCOMPARE(f.session.selection().single(), QString());
  f.window.problems().selectNext(1);
  QCOMPARE(f.session.selection().single(), QStringLiteral("fc"));
  const auto buttons = f.window.problems().findChildren<QPushButton*>();
  QVERIFY(!buttons.isEmpty());
  buttons.front()->click();
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.session.plan().analysis()->isRunnable());
}

void PanelsTest::problemIsShownAtItsField() {
  Fixture f(smallPipeline());
  inspect(f, "fc");
  type(edit(f, "out_features"), QStringLiteral("2*Q"));
  QVERIFY(waitForAnalysis(f.session));
  const auto labels = f.window.inspector().page()->findChildren<QLabel*>();
  QVERIFY(std::ranges::any_of(labels, [](const QLabel* label) {
    return label->isVisibleTo(label->window()) && label->text().contains(QStringLiteral("Q")) &&
           label->text().size() > 10;
  }));
}

void PanelsTest::aFixStandsAtItsField() {
  Fixture f(smallPipeline());
  inspect(f, "fc");
  const auto shownFixes = [&] {
    QStringList texts;
    for (const auto* fix : f.window.inspector().page()->findChildren<QPushButton*>(QStringLiteral("fieldFix")))
      if (fix->isVisibleTo(fix->window())) texts.append(fix->text());
    return texts;
  };
  QVERIFY(shownFixes().isEmpty());
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "fc", .name = "in_features", .value = nullptr}));
  QVERIFY(waitForAnalysis(f.session));
  const QStringList texts = shownFixes();
  QVERIFY2(texts.size() == 1 && texts.front().startsWith(QStringLiteral("Set in_features to ")),
           qPrintable(texts.join(u'|')));
  for (auto* fix : f.window.inspector().page()->findChildren<QPushButton*>(QStringLiteral("fieldFix")))
    if (fix->isVisibleTo(fix->window())) fix->click();
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.session.plan().analysis()->isRunnable());
  QVERIFY(shownFixes().isEmpty());
}

void PanelsTest::savesAndOpensTheSameBytes() {
  QTemporaryDir folder;
  const QString path = folder.filePath(QStringLiteral("p.fuseline"));
  Fixture f(smallPipeline());
  f.window.scene().commands().insertAfterSelection("Identity");
  QVERIFY(f.session.pipeline().save(path).hasValue());
  const std::string saved = serialize(f.session.pipeline().document());
  Fixture other(smallPipeline());
  QVERIFY(other.window.openFile(path));
  QCOMPARE(serialize(other.session.pipeline().document()), saved);
  QVERIFY(!other.session.pipeline().isModified());
}

void PanelsTest::modifiedMarkFollowsTheSavedState() {
  Fixture f(smallPipeline());
  QVERIFY(!f.window.isWindowModified());
  QVERIFY(f.session.pipeline().apply(MoveNode{.id = "fc", .position = Position{8, 8}}));
  QVERIFY(f.window.isWindowModified());
  f.session.pipeline().undo();
  QVERIFY(!f.window.isWindowModified());
}

void PanelsTest::brokenFileIsASentenceInTheWindow() {
  Fixture f(smallPipeline());
  const std::string before = serialize(f.session.pipeline().document());
  QVERIFY(!f.window.openFile(QStringLiteral("no/such/file.fuseline")));
  QVERIFY(f.window.message().contains(QStringLiteral("no/such/file.fuseline")));
  QCOMPARE(serialize(f.session.pipeline().document()), before);
}

void PanelsTest::lateAnalysesAreDropped() {
  Fixture f(smallPipeline());
  QSignalSpy changes(&f.session.plan(), &LivePlan::analysisChanged);
  for (int width = 1; width <= 20; ++width) {
    QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "H", .value = width}));
  }
  QVERIFY(waitForAnalysis(f.session));
  QTest::qWait(50);
  QCOMPARE(changes.count(), 1);  // only the last one was still of interest
  QCOMPARE(valueAt(f.session.plan().analysis()->graph(), {"norm", "y"})->spec.cols(), std::int64_t{20});
}

void PanelsTest::paletteEnterAppendsAndWires() {
  Fixture f(smallPipeline());
  f.session.selection().select({QStringLiteral("norm")});
  QLineEdit* filter = f.window.palettePanel().filterEdit();
  QTest::keyClicks(filter, QStringLiteral("identity"));
  QTest::keyClick(filter, Qt::Key_Return);
  QVERIFY(linkInto(f.session.pipeline().document(), {"fc", "x"})->from == (Endpoint{"identity", "y"}));
}

void PanelsTest::logKeepsMessages() {
  Fixture f(smallPipeline());
  MessageLog& log = f.window.log().log();
  log.clear();
  f.window.openFile(QStringLiteral("/no/such/file.fuseline"));
  f.window.statusBar()->showMessage(QStringLiteral("a note"));
  f.window.statusBar()->showMessage(QStringLiteral("a note"));
  QCOMPARE(log.rowCount(), 2);
  QVERIFY2(log.sentence(0).contains(QStringLiteral("/no/such/file.fuseline")), qPrintable(log.sentence(0)));
  QCOMPARE(log.sentence(1), QStringLiteral("a note"));
  const QStringList lines = log.asText().split(u'\n');
  QVERIFY2(lines[0].contains(QStringLiteral("  error  ")), qPrintable(lines[0]));
  QVERIFY2(lines[1].endsWith(QStringLiteral("  note  a note")), qPrintable(lines[1]));
  for (int line = 0; line < 2 * MessageLog::kMostLines; ++line) log.add(Severity::Note, QString::number(line));
  QCOMPARE(log.rowCount(), MessageLog::kMostLines);
  QCOMPARE(log.sentence(MessageLog::kMostLines - 1), QString::number(2 * MessageLog::kMostLines - 1));
}

void PanelsTest::everyMeasurementIsLogged() {
  Fixture f(smallPipeline());
  MessageLog& log = f.window.log().log();
  log.clear();
  const RunRecord record = measuredRun();
  for (int run = 0; run < 2; ++run) Q_EMIT f.session.runner().worker().finished(record, nullptr);
  QCOMPARE(log.rowCount(), 2);
  QVERIFY2(log.sentence(1).startsWith(QStringLiteral("Measured: ")), qPrintable(log.sentence(1)));
  Q_EMIT f.session.runner().worker().numericsMeasured({});
  QCOMPARE(log.sentence(2), QStringLiteral("Numerics: nothing to compare"));
}

void PanelsTest::aFilterKeepsTensorsOfItsOps() {
  Fixture f(smallPipeline());
  const NumericsReport report{.copies = {{.name = "fc.input@rowwise", .owner = "fc", .format = "e4m3 (mx_1x32)"}},
                              .errors = {{.name = "norm:y", .owner = "norm"},
                                         {.name = "act:y", .owner = "act"},
                                         {.name = "grad.fc.weight", .owner = "fc"}}};
  Q_EMIT f.session.runner().worker().numericsMeasured(report);
  const NumericsPanel& panel = f.window.numerics();
  const auto tensors = [&] {
    QStringList names;
    for (int row = 0; row < panel.model().rowCount(); ++row)
      names.append(panel.model().index(row, 0).data().toString());
    return names;
  };
  QCOMPARE(tensors().size(), 3);
  QCOMPARE(panel.copies()->count(), 1);
  auto* filter = f.window.findChild<RunFilter*>();
  filter->add({FilterTerm::Kind::Op, QStringLiteral("fc")});
  QCOMPARE(tensors(), QStringList({"grad.fc.weight"}));
  QCOMPARE(panel.copies()->count(), 1);
  filter->add({FilterTerm::Kind::Pass, QStringLiteral("forward")});
  QVERIFY(tensors().isEmpty());
  filter->clear();
  filter->add({FilterTerm::Kind::Category, QStringLiteral("Activation")});
  QCOMPARE(tensors(), QStringList({"act:y"}));
  QCOMPARE(panel.copies()->count(), 0);
  QVERIFY2(panel.lossText().contains(QStringLiteral("filter")), qPrintable(panel.lossText()));
}

void PanelsTest::placesOfProblemsAreWords() {
  Fixture f(smallPipeline());
  ProblemsModel model(f.theme);
  model.setProblems({{.pointer = "/symbols/M"}, {.pointer = "/pipeline"}, {.line = 13, .column = 93}}, {});
  QStringList places;
  for (int row = 0; row < model.rowCount(); ++row) places.append(model.index(row, 0).data().toString());
  QCOMPARE(places,
           QStringList({QStringLiteral("symbol M"), QStringLiteral("pipeline"), QStringLiteral("file (13:93)")}));
}

void PanelsTest::logSelectsTheOpsOfAMessage() {
  Fixture f(smallPipeline());
  f.window.showMessage(QStringLiteral("The step fc (act) of the fused plan failed; norms did not."), Severity::Error);
  QTreeView* view = f.window.log().view();
  const MessageLog& log = f.window.log().log();
  Q_EMIT view->activated(log.index(log.rowCount() - 1, 1));
  QCOMPARE(f.session.selection().ids(), (QSet<QString>{QStringLiteral("fc"), QStringLiteral("act")}));
}

/// Hidden columns are left out, moved ones stand where they are shown, and rows within others are indented.
void PanelsTest::selectedRowsAreDraggedOut() {
  Fixture f(smallPipeline());
  QVERIFY(f.window.showPane(QStringLiteral("outline")));
  QCoreApplication::processEvents();
  OutlineView& outline = *f.window.outline().view();
  QVERIFY(!selectedRows(outline));
  f.session.selection().select({QStringLiteral("norm"), QStringLiteral("fc")});
  const QStringList all = tableText(outline).split(u'\n');
  const QString wanted = (all.mid(0, 1) + all.mid(2, 2)).join(u'\n') + u'\n';  // the head, norm and fc
  const QPoint fc = outline.visualRect(f.window.outline().indexOf(QStringLiteral("fc"))).center();
  QCOMPARE(draggedOut(*outline.viewport(), fc).text, wanted);
  QCOMPARE(f.session.selection().ids(), (QSet<QString>{QStringLiteral("norm"), QStringLiteral("fc")}));
}

void PanelsTest::theDrawingIsDraggedFromItsButton() {
  Fixture f(smallPipeline());
  const QList<QToolButton*> buttons = f.window.findChildren<QToolButton*>();
  const auto found = std::ranges::find(buttons, QStringLiteral("Export drawing"), &QToolButton::text);
  QVERIFY(found != buttons.end());
  QToolButton& button = **found;
  QVERIFY(draggedOut(button, button.rect().center()).hasUrls);
  QVERIFY(!button.isDown());
  bool isAsked = false;
  QTimer::singleShot(0, &button, [&] {
    isAsked = qobject_cast<DrawingDialog*>(QApplication::activeModalWidget()) != nullptr;
    if (isAsked) QApplication::activeModalWidget()->close();
  });
  QTest::mouseClick(&button, Qt::LeftButton);
  QVERIFY(isAsked);
}

void PanelsTest::tablesAreCopiedAsTheyAreShown() {
  QStandardItemModel model;
  model.setHorizontalHeaderLabels({"Step", "Hidden", "Time"});
  model.horizontalHeaderItem(2)->setTextAlignment(Qt::AlignRight);
  const auto row = [](const char* name, const char* time) {
    return QList<QStandardItem*>{new QStandardItem(name), new QStandardItem("x"), new QStandardItem(time)};
  };
  model.appendRow(row("fc | act", "2"));
  model.item(0)->appendRow(row("fc", "1"));
  QTreeView view;
  view.setModel(&model);
  view.hideColumn(1);
  QCOMPARE(tableText(view), QStringLiteral("Step\tTime\nfc | act\t2\n"));  // as long as it is closed
  view.expandAll();
  QCOMPARE(tableText(view), QStringLiteral("Step\tTime\nfc | act\t2\n  fc\t1\n"));
  QCOMPARE(tableMarkdown(view), QStringLiteral("| Step | Time |\n| :-- | --: |\n| fc \\| act | 2 |\n| └ fc | 1 |\n"));
  view.header()->moveSection(2, 0);
  QVERIFY(tableMarkdown(view).startsWith(QStringLiteral("| Time | Step |\n| --: | :-- |\n")));
}

void PanelsTest::ctrlCInATableIsAboutTheTable() {
  Fixture f(findTemplate("llama-mlp")->text);
  f.window.showPane(QStringLiteral("rules"));
  QTreeView& rules = *f.window.rules().view();
  rules.setFocus();
  QGuiApplication::clipboard()->clear();
  QTest::keySequence(&rules, QKeySequence::Copy);
  QCOMPARE(QGuiApplication::clipboard()->text(), tableText(rules));
  const QList<QAction*> actions = rules.actions();
  const auto markdown = std::ranges::find_if(actions, [](auto* action) { return action->text().contains("Markdown"); });
  QVERIFY(markdown != actions.end());
  (*markdown)->trigger();
  QCOMPARE(QGuiApplication::clipboard()->text(), tableMarkdown(rules));
}

/// MXFP8 needs tensor cores of Blackwell; a CPU emulates them.
void PanelsTest::recipesThatTheDeviceCannotRunSayWhy() {
  Fixture f(smallPipeline());
  auto* bar = f.window.findChild<RunBar*>();
  QComboBox& recipes = *bar->recipeChoice();
  const int row = recipes.findData(QStringLiteral("MXFP8BlockScaling"));
  QVERIFY(row >= 0 && recipes.itemData(row, Qt::ToolTipRole).toString().isEmpty());
  f.session.setup().setRunTarget({.device = "cuda:0", .architecture = "sm_90"});
  const QString whyNot = recipes.itemData(row, Qt::ToolTipRole).toString();
  QVERIFY2(whyNot.contains("MXFP8BlockScaling"), qPrintable(whyNot));
  QVERIFY(!recipes.itemIcon(row).isNull());
  QVERIFY(recipes.itemData(recipes.findData(QStringLiteral("Float8CurrentScaling")), Qt::ToolTipRole).isNull());
  recipes.setCurrentIndex(row);
  Q_EMIT recipes.activated(row);
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY2(bar->runAction()->toolTip().contains(whyNot), qPrintable(bar->runAction()->toolTip()));
  QVERIFY(f.session.plan().analysis()->isRunnable());  // it is planned all the same
}

void PanelsTest::theStatusBarLeadsOn() {
  Fixture f(smallPipeline());
  const auto button = [&](const char* text) -> QToolButton* {
    for (auto* each : f.window.statusBar()->findChildren<QToolButton*>())
      if (each->text().contains(text)) return each;
    return nullptr;
  };
  f.session.selection().select({QStringLiteral("fc"), QStringLiteral("act")});
  const auto labels = f.window.statusBar()->findChildren<QLabel*>();
  QVERIFY(std::ranges::any_of(labels, [](const QLabel* label) { return label->text() == "2 selected"; }));
  QVERIFY(button("No problems"));
  button("No problems")->click();
  QVERIFY(f.window.problems().isVisible());
  f.window.canvas().zoomTo(2.0);
  QVERIFY(button("200 %"));
  button("200 %")->click();
  const double fitted = f.window.canvas().zoom();
  QVERIFY(fitted <= 1.0);
  button("%")->click();
  QCOMPARE(f.window.canvas().zoom(), 1.0);
}

/// layer1 and layer2 are instances of Layer, whose mlp is one of FeedForward.
struct InsideBlocks : Fixture {
  InsideBlocks() : Fixture(findTemplate("transformer-stack")->text) {
    session.selection().select({QStringLiteral("layer2")});
    QTest::qWait(0);
    inspector().findChild<BlockSection*>()->findChild<QToolButton*>("mlp", Qt::FindDirectChildrenOnly)->click();
  }
  QWidget& inspector() { return window.inspector(); }
  QWidget* open(const char* op) {
    for (auto* section : inspector().findChildren<BlockSection*>())
      if (QToolButton* opener = section->findChild<QToolButton*>(op, Qt::FindDirectChildrenOnly);
          opener && !opener->isChecked())
        opener->click();
    return &inspector();
  }
  const DocumentOp& inner(const char* op) const {
    const auto& ops = session.pipeline().document().findBlock("FeedForward")->ops;
    return *std::ranges::find(ops, op, &DocumentOp::id);
  }
  AttributeField* field(const QString& name) {
    for (auto* each : inspector().findChildren<AttributeField*>())
      if (each->editor()->accessibleName() == name && each->isVisibleTo(&inspector())) return each;
    return nullptr;
  }
};

void PanelsTest::opsInsideABlockAreEditedAtAnInstance() {
  InsideBlocks f;
  f.open("norm");
  const auto labels = f.inspector().findChildren<QLabel*>();
  QVERIFY(std::ranges::any_of(labels,
                              [](const QLabel* label) { return label->text().contains("apply to all 2 instances"); }));
  AttributeField* eps = f.field("eps");
  QVERIFY(eps);
  auto* edit = qobject_cast<QLineEdit*>(eps->editor());
  edit->setFocus();
  edit->selectAll();
  QTest::keyClicks(edit, "0.25");
  QTest::keyClick(edit, Qt::Key_Return);
  QCOMPARE(f.inner("norm").attributes["eps"], Json(0.25));
  QCOMPARE(f.session.selection().single(), QStringLiteral("layer2"));
  QVERIFY2(f.field("eps") == eps, "the page stays as it is, with what is open in it");
  QVERIFY(waitForAnalysis(f.session));
  int numFollowing = 0;
  for (const Node& node : f.session.plan().analysis()->graph().nodes())
    if (node.path.ends_with("mlp.norm") && node.attributes.real("eps") == 0.25) ++numFollowing;
  QCOMPARE(numFollowing, 2);
  f.session.pipeline().undo();
  QCOMPARE(f.inner("norm").attributes["eps"], Json(1e-05));
  QCOMPARE(edit->text(), QStringLiteral("1e-05"));
}

void PanelsTest::aFieldInsideABlockTellsItsProblem() {
  InsideBlocks f;
  f.open("fc1");
  AttributeField* width = f.field("out_features");
  QVERIFY(width);
  QVERIFY(f.session.pipeline().apply(
      EditInBlock{"FeedForward", {SetAttribute{.id = "fc1", .name = "out_features", .value = "NoSuchSymbol"}}}));
  QVERIFY(waitForAnalysis(f.session));
  const auto labels = width->findChildren<QLabel*>();
  QVERIFY(std::ranges::any_of(labels, [](const QLabel* label) { return label->text().contains("NoSuchSymbol"); }));
}

namespace {

/// The scale is a step of its own where it stands; behind the product it is none.
constexpr const char* kScaleBeforeProduct = R"({
  "format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "symbols": {"M": 64, "H": 32},
  "pipeline": {
    "inputs": [{"id": "x", "dtype": "bf16", "shape": ["M", "H"]}],
    "ops": [{"id": "scale", "op": "ConstantScale", "attributes": {"scale": 0.5}},
            {"id": "fc", "op": "BasicLinear", "attributes": {"in_features": "H", "out_features": "H"}}],
    "wires": [["x", "scale.x"], ["scale.y", "fc.x"]],
    "outputs": [{"id": "y", "from": "fc.y"}]}})";

QPushButton* buttonOf(const QWidget& panel, const QString& text) {
  for (auto* button : panel.findChildren<QPushButton*>())
    if (button->text() == text) return button;
  return nullptr;
}

}  // namespace

void PanelsTest::suggestionsAreTriedWhileSomebodyLooks() {
  Fixture f(kScaleBeforeProduct);
  SuggestionsPanel& panel = f.window.suggestionsPanel();
  QVERIFY(!panel.search().isSearching() && panel.search().found().empty());
  f.window.showPane(QStringLiteral("suggestions"));
  QTRY_VERIFY(!panel.search().isSearching() && panel.search().found().size() == 1);
  QVERIFY(shows(panel, QStringLiteral("<b>Move scale after fc</b>")));
  QVERIFY(hasLabel(panel, " traffic · −2 launches"));

  QPushButton* select = buttonOf(panel, QStringLiteral("Select scale"));
  QVERIFY(select);
  select->click();
  QCOMPARE(f.session.selection().single(), QStringLiteral("scale"));
  const auto numSteps = f.session.plan().analysis()->fusedPlan->numLaunches();
  QPushButton* apply = buttonOf(panel, QStringLiteral("Apply"));
  QVERIFY(apply && apply->accessibleName().contains(QStringLiteral("Move scale after fc")));
  apply->click();
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(f.session.plan().analysis()->fusedPlan->numLaunches(), numSteps - 2);
  QTRY_VERIFY(!panel.search().isSearching() && panel.search().found().empty());
  QVERIFY(shows(panel, QStringLiteral("No suggestions: no edit that was tried saves time, traffic or memory.")));

  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "fc", .name = "in_features", .value = 7}));
  QVERIFY(waitForAnalysis(f.session));
  QTRY_VERIFY(!panel.search().isSearching());
  QVERIFY(shows(panel, QStringLiteral("Fix 1 error to see the plan.")));
}

void PanelsTest::aSearchForSuggestionsIsCanceled() {
  Fixture f(kScaleBeforeProduct);
  SuggestionsPanel& panel = f.window.suggestionsPanel();
  f.window.showPane(QStringLiteral("suggestions"));
  QVERIFY(panel.search().isSearching());
  QVERIFY(hasLabel(panel, "Trying edits..."));
  named<QPushButton>(panel, "Cancel")->click();
  QVERIFY(!panel.search().isSearching() && hasLabel(panel, "Canceled after 0 edits."));
  QTest::qWait(50);
  QVERIFY(panel.search().found().empty());
  std::size_t most = 0;
  connect(&panel.search(), &SuggestionSearch::progressed, this, [&] { most = panel.search().mostTried(); });
  auto* const again = named<QPushButton>(panel, "Search again");
  again->click();
  QTRY_VERIFY(!panel.search().isSearching() && panel.search().found().size() == 1);
  QVERIFY(most > 0 && again->isHidden());
}

void PanelsTest::undoIsNoUseOfAnOp() {
  Fixture f(smallPipeline());
  const OpUse& use = f.window.findChild<PalettePanel*>()->use();
  QVERIFY(f.session.pipeline().apply(removeOpWithWires(f.session.pipeline().document(), "norm", true)));
  f.session.pipeline().undo();
  QVERIFY(use.recents().isEmpty());
  QVERIFY(f.session.pipeline().apply(AddOp{{.id = "drop", .operation = "Dropout"}}));
  QCOMPARE(use.recents(), QStringList{QStringLiteral("Dropout")});
}

void PanelsTest::singleGemmsStayInHighPrecision() {
  Fixture f(kScaleBeforeProduct);
  inspect(f, "fc");
  const auto section = [&] { return f.window.inspector().page()->findChild<GemmSection*>(); };
  QVERIFY(section() && section()->isHidden());
  QVERIFY(f.session.pipeline().apply(SetRecipe{Json{{"name", "Float8CurrentScaling"}, {"use_power_2_scales", true}}}));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(!section()->isHidden());
  QVERIFY(section()->box(GemmRole::Wgrad)->isChecked());

  section()->box(GemmRole::Wgrad)->click();
  QVERIFY(waitForAnalysis(f.session));
  const Json special = {{"gemm", "wgrad"}, {"op", "fc"}, {"format", "high_precision"}};
  QVERIFY(f.session.pipeline().document().recipe().at("overrides") == Json::array({special}));
  QVERIFY(f.session.pipeline().document().recipe().at("use_power_2_scales") == Json(true));
  QVERIFY(!section()->box(GemmRole::Wgrad)->isChecked() && section()->box(GemmRole::Dgrad)->isChecked());
  QCOMPARE(toQt(f.session.pipeline().history().undoLabel()), QStringLiteral("Leave wgrad of fc in high precision"));
  const Graph& graph = f.session.plan().analysis()->graph();
  const LinearQuantizers& quantizers = graph.node(graph.findNode("fc")).quantizers;
  QVERIFY(!quantizers.input.columnwise && quantizers.input.rowwise);

  QVERIFY(f.session.rename(QStringLiteral("fc"), QStringLiteral("project")));
  QVERIFY(f.session.pipeline().document().recipe().at("overrides").at(0).at("op") == Json("project"));
  f.session.selection().select({});
  QCoreApplication::processEvents();
  auto* overrides = f.window.inspector().page()->findChild<OverridesTable*>();
  QVERIFY(overrides);
  const QAbstractItemModel& rows = *overrides->view()->model();
  QCOMPARE(rows.index(0, OverridesModel::OpColumn).data().toString(), QStringLiteral("project"));
  QCOMPARE(rows.index(0, OverridesModel::GemmColumn).data().toString(), QStringLiteral("wgrad"));
  overrides->view()->setCurrentIndex(rows.index(0, 0));
  overrides->view()->actions().first()->trigger();
  QVERIFY(!f.session.pipeline().document().recipe().contains("overrides"));
}

void PanelsTest::fieldsStandInOneColumn() {
  Fixture f(residualPipeline(false));
  f.window.panes().show(QStringLiteral("inspector"));
  inspect(f, "fc");
  QCoreApplication::processEvents();
  std::set<int> lefts;
  std::set<int> widths;
  for (const AttributeField* field : f.window.inspector().findChildren<AttributeField*>()) {
    lefts.insert(field->editor()->mapTo(&f.window, QPoint()).x());
    if (!qobject_cast<QCheckBox*>(field->editor())) widths.insert(field->editor()->width());
    const auto* label = field->findChild<QLabel*>();
    QVERIFY2(label->fontMetrics().horizontalAdvance(label->text()) <= label->width(), qPrintable(label->text()));
  }
  QCOMPARE(lefts.size(), std::size_t{1});
  QCOMPARE(widths.size(), std::size_t{1});
}

void PanelsTest::instancesShareACard() {
  Fixture f(findTemplate("transformer-stack")->text);
  QVERIFY(f.window.showPane(QStringLiteral("whyNot")));
  QStringList shared;
  for (const FusionCard* card : f.window.fusions().findChildren<FusionCard*>())
    if (card->accessibleName().endsWith(QStringLiteral(" in 2 instances"))) shared.append(card->accessibleName());
  QVERIFY(!shared.isEmpty());
  const auto numFused = [&] {
    return std::ranges::count(f.session.plan().analysis()->report.attempts, Outcome::Fused, &Attempt::outcome);
  };
  const auto before = numFused();
  const auto boxes = f.window.fusions().findChildren<QCheckBox*>();
  const auto box = std::ranges::find_if(boxes, [](const QCheckBox* each) {
    return each->isChecked() && each->toolTip().endsWith(QStringLiteral("in 2 instances"));
  });
  QVERIFY(box != boxes.end());
  (*box)->click();
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY2(numFused() <= before - 2, "the switch is that of all instances");
}

/// The value of a box is no name.
void PanelsTest::comboBoxesAreNamedByWhatTheySet() {
  Fixture f(residualPipeline(false));
  for (const QString& id : f.window.panes().ids()) f.window.panes().show(id);
  QCoreApplication::processEvents();
  for (QComboBox* box : f.window.findChildren<QComboBox*>()) {
    const QAccessibleInterface* shown = QAccessible::queryAccessibleInterface(box);
    const QString name = shown->text(QAccessible::Name);
    QVERIFY2(!name.isEmpty(), qPrintable(box->currentText()));
    if (box->count() > 1) QVERIFY2(name != box->currentText(), qPrintable(name));
    QCOMPARE(shown->text(QAccessible::Value), box->currentText());
  }
}

FUSELINE_UI_TEST(PanelsTest)

}  // namespace fuseline::ui::panels_test

#include "test_ui_panels.moc"
