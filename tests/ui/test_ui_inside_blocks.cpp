// Inside blocks: what keys, other panes and the rest of the window are about while one is in there.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/node_edits.h"
#include "tests/ui/block_examples.h"
#include "tests/ui/ui_test_main.h"
#include "ui/canvas/blocks/block_doors.h"
#include "ui/canvas/drawing.h"
#include "ui/canvas/frame_editor.h"
#include "ui/canvas/metrics.h"
#include "ui/inspector/attribute_field.h"
#include "ui/inspector/block_section.h"
#include "ui/session/edits.h"
#include "ui/window/block_bar.h"

#include <QAccessible>
#include <QApplication>
#include <QClipboard>
#include <QSignalSpy>
#include <QStatusBar>
#include <QTest>

#include <algorithm>

namespace fuseline::ui::inside_blocks_test {

class InsideBlocksTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void enterGoesToTheFieldsOfTheOp();
  void theOutlineDeletesTheSelectedOp();
  void theInstanceItselfLeadsOut_data();
  void theInstanceItselfLeadsOut();
  void aProblemOfTheInstanceLeadsOut();
  void leavingFindsThePlaceAgain();
  void leavingToAPlaceNeverSeenShowsTheSelection();
  void aNewInputHasNoTensor();
  void aPastedPipelineLeavesTheRecipe();
  void anOutputStaysWhenItsOpGoes();
  void aTypedTitleSurvivesTheWayIn();
  void aScreenReaderHearsTheSelectionInside();
  void portsStayAtTheEdges();
  void keysScrollToTheSelection();
  void theStatusBarCountsTheSelectionInside();
  void bookmarksAreOfThePipeline();
  void aBlockWithAPlaceTwiceIsShownAsItIs();
  void renamesInside();
  void aPortThatIsRenamedKeepsItsWires();
  void whoIsRenamedStaysOpen();
  void theInspectorOpensTheSectionOfThePath();
  void theInspectorCountsInstancesAsTheBarDoes();
  void theInspectorSumsUpABlock();
  void drawingsAreOfThePipeline();
  void aBlockOpensInPlace();
  void aBlockOpensWhereTheCanvasKeepsIt();
  void movesBesideAnOpenBlockAreStoredWithoutItsRoom();
  void theArrowOpensAndAnInnerOpIsGoneTo();
};

namespace {

QAction* actionOf(const QWidget& widget, const QString& text) {
  for (QAction* action : widget.actions())
    if (action->text().remove(u'&') == text) return action;
  return nullptr;
}

QModelIndex rowOf(Stack& f, const char* node) { return f.window.outline().indexOf(QString::fromUtf8(node)); }

bool hasStatus(const Stack& f, const QString& text) {
  const auto labels = f.window.statusBar()->findChildren<QLabel*>();
  return std::ranges::any_of(labels, [&](const QLabel* label) { return label->text() == text; });
}

double distance(QPointF a, QPointF b) { return QLineF(a, b).length(); }

bool isInSight(Stack& f, const char* node) {
  const QRectF shown = f.canvas().mapToScene(f.canvas().viewport()->rect()).boundingRect();
  return shown.contains(f.scene().node(node)->sceneBox());
}

}  // namespace

void InsideBlocksTest::enterGoesToTheFieldsOfTheOp() {
  Stack f;
  QVERIFY(f.activate());
  f.enter({"layer1", "mlp"});
  QTest::qWait(10);
  f.scope().select({QStringLiteral("fc1")});
  QTest::keyClick(&f.canvas(), Qt::Key_Return);
  auto* field = qobject_cast<ExpressionEdit*>(QApplication::focusWidget());
  QVERIFY(field);
  QCOMPARE(field->accessibleName(), QStringLiteral("in_features"));
  QTest::keyClicks(field, QStringLiteral("1024"));
  QTest::keyClick(field, Qt::Key_Return);
  QVERIFY(f.session.pipeline().document().findOp("layer1"));
  QVERIFY(f.scope().isInside());
}

void InsideBlocksTest::theOutlineDeletesTheSelectedOp() {
  Stack f;
  QVERIFY(f.activate());
  QVERIFY(f.window.showPane(QStringLiteral("outline")));
  f.enter({"layer1", "mlp"});
  f.scope().select({QStringLiteral("fc1")});
  f.window.outline().view()->setFocus();
  actionOf(*f.window.outline().view(), QStringLiteral("Delete"))->trigger();
  QVERIFY(!f.scope().isInside());
  QVERIFY(!f.session.pipeline().document().findOp("layer1"));
  QVERIFY(std::ranges::count(f.feedForward().ops, "fc1", &DocumentOp::id) == 1);
}

void InsideBlocksTest::theInstanceItselfLeadsOut_data() {
  QTest::addColumn<QString>("pane");
  for (const char* pane : {"outline", "plan"}) QTest::newRow(pane) << QString::fromUtf8(pane);
}

void InsideBlocksTest::theInstanceItselfLeadsOut() {
  QFETCH(const QString, pane);
  Stack f;
  QVERIFY(f.activate());
  QVERIFY(f.window.showPane(pane));
  f.enter({"layer1", "mlp"});
  if (pane == QStringLiteral("outline")) {
    OutlineView& view = *f.window.outline().view();
    QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, view.visualRect(rowOf(f, "layer1")).center());
  } else {
    QTest::keyClick(f.window.plan().lanesView(), Qt::Key_Right);
  }
  QVERIFY(!f.scope().isInside());
  QCOMPARE(f.session.selection().single(), QStringLiteral("layer1"));
}

void InsideBlocksTest::aProblemOfTheInstanceLeadsOut() {
  Stack f;
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "layer2", .name = "sequential", .value = Json("perhaps")}));
  QVERIFY(waitForAnalysis(f.session));
  f.enter({"layer2"});
  QVERIFY(f.scope().isInside());
  f.window.problems().selectNext(1);
  QCOMPARE(f.session.selection().single(), QStringLiteral("layer2"));
  QVERIFY(!f.scope().isInside());
}

void InsideBlocksTest::leavingFindsThePlaceAgain() {
  Stack f;
  f.window.show();
  QTest::qWait(50);
  f.canvas().camera().showPlace({700, 40}, 1.5);
  const QPointF middle = f.canvas().camera().middle();
  f.enter({"layer1", "mlp"});
  QTest::qWait(50);  // the bar above the canvas takes its place
  QVERIFY(distance(f.canvas().camera().middle(), middle) > 50);
  QVERIFY(f.canvas().camera().pipelinePlace());
  QVERIFY(distance(f.canvas().camera().pipelinePlace()->middle, middle) < 2);
  f.scope().leaveTo(0);
  QTest::qWait(50);
  QCOMPARE(f.canvas().zoom(), 1.5);
  QVERIFY(distance(f.canvas().camera().middle(), middle) < 2);
}

void InsideBlocksTest::leavingToAPlaceNeverSeenShowsTheSelection() {
  Stack f;
  f.window.resize(700, 600);
  f.window.show();
  QTest::qWait(50);
  QVERIFY(f.scope().goTo(QStringLiteral("layer1.mlp.fc1")));
  f.scope().leaveTo(1);
  QCOMPARE(f.scope().singleSelection(), QStringLiteral("mlp"));
  QVERIFY(isInSight(f, "mlp"));
}

void InsideBlocksTest::aNewInputHasNoTensor() {
  Stack f;
  f.enter({"layer1", "mlp"});
  f.scene().drops().drop("Input", {60, 300});
  QCOMPARE(f.feedForward().inputs.size(), std::size_t{2});
  QVERIFY(f.feedForward().inputs.back() ==
          (DocumentInput{.id = "x2", .dtype = {}, .shape = nullptr, .requiresGradient = {}}));
}

void InsideBlocksTest::aPastedPipelineLeavesTheRecipe() {
  Stack f;
  QVERIFY(f.session.pipeline().apply(AddBlock{"Empty", {}}));
  QVERIFY(f.session.pipeline().apply(AddOp{{.id = "empty", .operation = "block:Empty"}}));
  std::string text = smallPipeline();
  text.insert(1, R"("recipe": {"name": "DelayedScaling"}, "fusion": {"rules": "none"}, )");
  QApplication::clipboard()->setText(toQt(text));
  const Json recipe = f.session.pipeline().document().recipe();
  const Json fusion = f.session.pipeline().document().fusion();
  f.enter({"empty"});
  QVERIFY(f.scope().isInside());
  f.scene().commands().paste();
  QCOMPARE(f.block("Empty").ops.size(), std::size_t{3});
  QVERIFY(f.session.pipeline().document().recipe() == recipe);
  QVERIFY(f.session.pipeline().document().fusion() == fusion);
}

void InsideBlocksTest::anOutputStaysWhenItsOpGoes() {
  Stack f;
  const QString before = f.bytes();
  f.enter({"layer1", "mlp"});
  f.scope().select({QStringLiteral("fc2")});
  f.scene().commands().removeSelected(Reconnect::No);
  QCOMPARE(f.feedForward().ops.size(), std::size_t{3});
  QCOMPARE(f.feedForward().outputs.size(), std::size_t{1});
  QVERIFY(f.feedForward().outputs.front().from.node.empty());
  QCOMPARE(std::ranges::count(f.block("Layer").wires, Wire{{"mlp", "y"}, {"add", "x"}}), 1);
  f.session.pipeline().undo();
  QCOMPARE(f.bytes(), before);
  f.scope().select({QStringLiteral("fc2"), QStringLiteral("y")});
  f.scene().commands().removeSelected(Reconnect::No);
  QVERIFY2(f.feedForward().outputs.empty(), "unless it is selected, too");
}

void InsideBlocksTest::aTypedTitleSurvivesTheWayIn() {
  Stack f;
  QVERIFY(f.activate());
  f.session.selection().select({QStringLiteral("layer1")});
  f.scene().frames().frameSelected();
  auto* editor = f.canvas().viewport()->findChild<FrameEditor*>();
  QVERIFY(editor);
  editor->setPlainText(QStringLiteral("First half"));
  QVERIFY(f.scope().enter(QStringLiteral("layer1")));
  QCOMPARE(f.session.pipeline().document().frames().front().title, std::string("First half"));
}

void InsideBlocksTest::aScreenReaderHearsTheSelectionInside() {
  Stack f;
  QVERIFY(f.activate());
  f.enter({"layer1", "mlp"});
  f.scope().select({QStringLiteral("fc1")});
  const QAccessibleInterface* canvas = QAccessible::queryAccessibleInterface(&f.canvas());
  QStringList selected;
  for (int index = 0; index < canvas->childCount(); ++index)
    if (canvas->child(index)->state().selected) selected.append(canvas->child(index)->text(QAccessible::Name));
  QCOMPARE(selected.size(), 1);
  QVERIFY2(selected.front().startsWith(QStringLiteral("fc1,")), qPrintable(selected.front()));
  QVERIFY(canvas->focusChild());
  QCOMPARE(canvas->focusChild()->text(QAccessible::Name), selected.front());
}

void InsideBlocksTest::portsStayAtTheEdges() {
  Fixture f(smallPipeline());
  f.session.selection().select({QStringLiteral("norm"), QStringLiteral("fc"), QStringLiteral("act")});
  f.window.scene().commands().makeBlockOfSelected("All");
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.window.scene().scope().enter(QStringLiteral("all")));
  f.window.scene().scope().select({QStringLiteral("norm")});
  f.window.scene().moves().moveSelected({1, 0});
  const auto box = [&](const char* id) { return f.window.scene().node(id)->sceneBox(); };
  QVERIFY(box("y").left() > box("act").right());
  QVERIFY(box("x").right() < box("norm").left());
}

void InsideBlocksTest::keysScrollToTheSelection() {
  Stack f;
  QVERIFY(f.activate());
  f.session.selection().select({QStringLiteral("layer1")});
  f.canvas().camera().showPlace({-1500, 0}, 1.0);
  QVERIFY(!isInSight(f, "layer2"));
  QTest::keyClick(&f.canvas(), Qt::Key_Right);
  QCOMPARE(f.session.selection().single(), QStringLiteral("layer2"));
  QVERIFY(isInSight(f, "layer2"));
  f.canvas().camera().showPlace({-1500, 0}, 1.0);
  QTest::keyClick(&f.canvas(), Qt::Key_Right, Qt::ControlModifier);
  QVERIFY(isInSight(f, "norm"));
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "norm", .name = "eps", .value = Json("?")}));
  QVERIFY(waitForAnalysis(f.session));
  f.canvas().camera().showPlace({-1500, 0}, 1.0);
  f.window.problems().selectNext(1);
  QVERIFY(isInSight(f, "norm"));
}

void InsideBlocksTest::theStatusBarCountsTheSelectionInside() {
  Stack f;
  f.enter({"layer1", "mlp"});
  f.scope().select({QStringLiteral("fc1"), QStringLiteral("fc2"), QStringLiteral("act")});
  QVERIFY(hasStatus(f, QStringLiteral("3 selected")));
  f.scope().leaveTo(0);
  QVERIFY(hasStatus(f, QStringLiteral("1 selected")));
}

void InsideBlocksTest::bookmarksAreOfThePipeline() {
  Stack f;
  QVERIFY(f.activate());
  f.canvas().camera().showPlace({700, 40}, 1.5);
  QTest::keySequence(&f.canvas(), QKeySequence(QStringLiteral("Ctrl+Shift+3")));
  f.enter({"layer1"});
  QTest::keySequence(&f.canvas(), QKeySequence(QStringLiteral("Ctrl+Shift+4")));
  QVERIFY(f.window.statusBar()->currentMessage().contains(QStringLiteral("only outside of blocks")));
  QTest::keySequence(&f.canvas(), QKeySequence(QStringLiteral("3")));
  QVERIFY(!f.scope().isInside());
  QVERIFY(distance(f.canvas().camera().middle(), {700, 40}) < 2);
  QTest::keySequence(&f.canvas(), QKeySequence(QStringLiteral("4")));
  QVERIFY(f.window.statusBar()->currentMessage().startsWith(QStringLiteral("Bookmark 4 is not set")));
}

void InsideBlocksTest::aBlockWithAPlaceTwiceIsShownAsItIs() {
  Fixture f(smallPipeline());
  DocumentBlock twice;  // no file has one place twice
  twice.ops = {{.id = "a", .operation = "GELU"}, {.id = "b", .operation = "GELU"}};
  twice.positions = {{"a", {0, 0}}, {"a", {0, 0}}, {"b", {0, 0}}};
  QVERIFY(f.session.pipeline().apply(AddBlock{"Twice", twice}));
  QVERIFY(f.session.pipeline().apply(AddOp{{.id = "t", .operation = "block:Twice"}}));
  f.session.selection().select({QStringLiteral("t")});
  f.window.scene().blocks().enterSelected();
  QVERIFY(f.window.scene().scope().isInside());
  QCOMPARE(f.window.scene().scope().document().pipeline(), twice);
}

void InsideBlocksTest::renamesInside() {
  Stack f;
  const QString before = f.bytes();
  f.enter({"layer1", "mlp"});
  QVERIFY(f.scope().rename(QStringLiteral("fc1"), QStringLiteral("first")));
  QCOMPARE(f.scope().path(), QStringList({"layer1", "mlp"}));
  QCOMPARE(f.scope().singleSelection(), QStringLiteral("first"));
  QCOMPARE(std::ranges::count(f.feedForward().wires, Wire{{"norm", "y"}, {"first", "x"}}), 1);
  QVERIFY(!f.scope().rename(QStringLiteral("first"), QStringLiteral("act")));
  f.session.pipeline().undo();
  QCOMPARE(f.bytes(), before);
}

void InsideBlocksTest::aPortThatIsRenamedKeepsItsWires() {
  Stack f;
  const QString before = f.bytes();
  f.enter({"layer1", "mlp"});
  QVERIFY(f.scope().rename(QStringLiteral("x"), QStringLiteral("tokens")));
  QVERIFY(f.feedForward().inputs.front() ==
          (DocumentInput{.id = "tokens", .dtype = {}, .shape = nullptr, .requiresGradient = {}}));
  QCOMPARE(std::ranges::count(f.block("Layer").wires, Wire{{"save", "y"}, {"mlp", "tokens"}}), 1);
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.session.plan().analysis()->isRunnable());
  f.session.pipeline().undo();
  QCOMPARE(f.bytes(), before);
}

void InsideBlocksTest::whoIsRenamedStaysOpen() {
  Stack f;
  f.enter({"layer1", "mlp"});
  f.scope().select({QStringLiteral("act")});
  QVERIFY(f.session.rename(QStringLiteral("layer1"), QStringLiteral("top")));
  QCOMPARE(f.scope().path(), QStringList({"top", "mlp"}));
  QCOMPARE(f.scope().singleSelection(), QStringLiteral("act"));
  QCOMPARE(f.session.selection().single(), QStringLiteral("top"));
  QCOMPARE(f.window.blockBar().places().at(1)->text(), QStringLiteral("top"));
  f.session.pipeline().undo();
  QCOMPARE(f.scope().path(), QStringList({"layer1", "mlp"}));
  QCOMPARE(f.session.selection().single(), QStringLiteral("layer1"));
}

void InsideBlocksTest::theInspectorOpensTheSectionOfThePath() {
  Stack f;
  f.window.show();
  f.enter({"layer1"});
  f.scope().select({QStringLiteral("mlp")});
  f.scene().commands().duplicateSelected();
  QVERIFY(waitForAnalysis(f.session));
  for (const char* place : {"layer1.mlp.fc1", "layer1.mlp2.fc2"}) {
    QVERIFY(f.scope().goTo(QString::fromUtf8(place)));
    QTest::qWait(20);
  }
  const auto* layer = f.window.inspector().page()->findChild<BlockSection*>();
  const auto isOpen = [&](const char* instance, const char* op) {
    const QWidget* inside = layer->open(QString::fromUtf8(instance));
    return inside->findChild<BlockSection*>()
        ->findChild<QToolButton*>(QString::fromUtf8(op), Qt::FindDirectChildrenOnly)
        ->isChecked();
  };
  QVERIFY(isOpen("mlp2", "fc2"));
  QVERIFY(!isOpen("mlp", "fc2"));
}

void InsideBlocksTest::theInspectorCountsInstancesAsTheBarDoes() {
  Stack f;
  f.enter({"layer1", "mlp"});
  f.scope().select({QStringLiteral("fc1")});
  QTest::qWait(20);
  const auto notes = f.window.inspector().findChildren<QLabel*>();
  QVERIFY(f.window.blockBar().note().contains(QStringLiteral("all 2 instances")));
  QVERIFY(std::ranges::any_of(notes, [](const QLabel* label) {
    return label->text().startsWith(QStringLiteral("<b>Inside FeedForward</b>")) &&
           label->text().contains(QStringLiteral("all 2 instances"));
  }));
}

void InsideBlocksTest::theInspectorSumsUpABlock() {
  Stack f;
  f.scope().select({QStringLiteral("layer1")});
  QTest::qWait(20);
  const auto facts = f.window.inspector().findChildren<QLabel*>();
  QVERIFY(std::ranges::any_of(facts, [](const QLabel* label) {
    return label->text().contains(QStringLiteral("parameters")) && label->text().contains(QStringLiteral("MiB")) &&
           label->text().contains(QStringLiteral("FLOP"));
  }));
}

void InsideBlocksTest::drawingsAreOfThePipeline() {
  Stack f;
  QVERIFY(f.session.pipeline().apply(AddBlock{"Empty", {}}));
  QVERIFY(f.session.pipeline().apply(AddOp{{.id = "empty", .operation = "block:Empty"}}));
  QVERIFY(waitForAnalysis(f.session));
  const DrawingOptions options{.embedsPipeline = false};
  const QSize size = drawingSize(f.session, f.scene(), options);
  const Result<QByteArray> outside = drawing(f.session, f.scene(), options);
  f.enter({"empty"});
  QVERIFY(f.scope().isInside());
  const Result<QByteArray> inside = drawing(f.session, f.scene(), options);
  QVERIFY(outside && inside);
  QCOMPARE(*inside, *outside);
  QCOMPARE(drawingSize(f.session, f.scene(), options), size);
}

/// Nodes to the right make room, in the view alone; what moves is stored without it.
void InsideBlocksTest::aBlockOpensInPlace() {
  Stack f;
  const QByteArray before = f.bytes().toUtf8();
  const QRectF closed = f.scene().node("layer1")->sceneBox();
  const double right = f.scene().node("layer2")->pos().x();
  f.session.selection().select({QStringLiteral("layer1")});
  f.scene().blocks().toggleSelected();
  const NodeItem& block = *f.scene().node("layer1");
  QCOMPARE(block.sceneBox().topLeft(), closed.topLeft());
  QVERIFY(block.sceneBox().width() > closed.width() && block.sceneBox().height() > closed.height());
  QCOMPARE(f.scene().node("layer2")->pos().x(), right + block.sceneBox().width() - closed.width());
  QStringList inner;
  for (const QGraphicsItem* child : block.childItems())
    if (const auto* item = qgraphicsitem_cast<const NodeItem*>(child)) {
      inner.append(toQt(item->look().id));
      QVERIFY2(block.sceneBox().contains(item->sceneBox()), item->look().id.c_str());
    }
  for (const DocumentOp& op : f.block("Layer").ops) QVERIFY2(inner.contains(toQt(op.id)), op.id.c_str());
  QCOMPARE(f.bytes().toUtf8(), before);
  QVERIFY(!f.session.pipeline().isModified());
}

/// Beside a placed node others stay where they were, although the pipeline would now be arranged otherwise.
void InsideBlocksTest::aBlockOpensWhereTheCanvasKeepsIt() {
  Stack f;
  EditGroup unplaced{.label = "Unplace", .edits = {}};
  for (const auto& [id, place] : f.session.pipeline().document().positions())
    unplaced.edits.emplace_back(MoveNode{.id = id, .position = std::nullopt});
  QVERIFY(unplaced.edits.empty() || f.session.pipeline().apply(unplaced));
  const QPointF before = f.scene().node("layer2")->pos();
  QVERIFY(f.session.pipeline().apply(MoveNode{.id = "x", .position = Position{-400, 400}}));
  QVERIFY(f.session.pipeline().apply(
      removeNodes(f.session.pipeline().document(), QSet<QString>{QStringLiteral("layer1")}, {}, Reconnect::Yes)));
  QCOMPARE(f.scene().node("layer2")->pos(), before);
  QVERIFY(f.scope().toggleOpen("layer2"));
  QCOMPARE(f.scene().node("layer2")->pos(), before);
}

void InsideBlocksTest::movesBesideAnOpenBlockAreStoredWithoutItsRoom() {
  Stack f;
  QVERIFY(f.scope().toggleOpen("layer1"));
  const QPointF shown = f.scene().node("layer2")->pos();
  f.session.selection().select({QStringLiteral("layer2")});
  f.scene().moves().moveSelected({2, 1});
  const QPointF moved = f.scene().node("layer2")->pos();
  QCOMPARE(moved, shown + QPointF(2 * kGridPx, kGridPx));
  const double opened = f.scene().node("layer1")->sceneBox().width();
  QVERIFY(f.scope().toggleOpen("layer1"));
  const double room = opened - f.scene().node("layer1")->sceneBox().width();
  QCOMPARE(f.scene().node("layer2")->pos().x(), moved.x() - room);
}

void InsideBlocksTest::theArrowOpensAndAnInnerOpIsGoneTo() {
  Stack f;
  const auto clickAt = [&](QPointF place, bool isDouble) {
    const QPoint at = f.canvas().mapFromScene(place);
    isDouble ? QTest::mouseDClick(f.canvas().viewport(), Qt::LeftButton, {}, at)
             : QTest::mouseClick(f.canvas().viewport(), Qt::LeftButton, {}, at);
  };
  const auto arrow = [&] {
    const QRectF box = f.scene().node("layer1")->sceneBox();
    return QPointF(box.right() - 18, box.top() + 28);
  };
  QVERIFY(f.scene().node("layer1")->isOnArrow(arrow()));
  clickAt(arrow(), false);
  QVERIFY(f.scope().openBlocks().isOpen("layer1"));
  clickAt(arrow(), false);
  QVERIFY(!f.scope().openBlocks().isOpen("layer1"));
  QVERIFY(f.scope().toggleOpen("layer1"));
  f.canvas().fit();
  for (const QGraphicsItem* child : f.scene().node("layer1")->childItems()) {
    const auto* item = qgraphicsitem_cast<const NodeItem*>(child);
    if (!item || item->look().id != "mlp") continue;
    clickAt(item->sceneBox().center(), true);
    break;
  }
  QCOMPARE(f.scope().path(), QStringList{"layer1"});
  QCOMPARE(f.scope().singleSelection(), QStringLiteral("mlp"));
}

FUSELINE_UI_TEST(InsideBlocksTest)

}  // namespace fuseline::ui::inside_blocks_test

#include "test_ui_inside_blocks.moc"
