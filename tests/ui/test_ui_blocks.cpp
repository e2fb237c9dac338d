// Inside blocks on the canvas: the way in and out, and that edits there are edits of the block.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/document_operation.h"
#include "tests/ui/block_examples.h"
#include "tests/ui/ui_test_main.h"
#include "ui/inspector/attribute_field.h"
#include "ui/inspector/block_section.h"
#include "ui/session/edits.h"
#include "ui/window/block_bar.h"

#include <QSignalSpy>
#include <QTest>

#include <algorithm>
#include <random>

namespace fuseline::ui::blocks_test {

namespace {

QStringList namesOf(const GraphScene& scene) {
  QStringList names;
  for (const auto& [id, item] : scene.nodes()) names.append(toQt(id));
  return names;
}

}  // namespace

class BlocksTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void aDoubleClickGoesInside();
  void keysGoInAndOut();
  void aPlaceOfTheBarLeadsOut();
  void aDoubleClickOnAnOpDoesNot();
  void shapesAreThoseOfTheInstance();
  void hullsAreThoseOfTheInstance();
  void anEditInsideIsOneOfTheBlock();
  void anEditIsUndoneOutside();
  void wiresAreDrawnInside();
  void aMoveIsKeptWithTheBlock();
  void pasteInside();
  void layersThatRepeatBecomeABlock();
  void layersThatRepeatInsideTakeTheirOverridesAlong();
  void aBlockIsMadeInside();
  void aBlockDoesNotHoldItself();
  void whoIsSelectedOutsideIsShown();
  void aVanishedInstanceLeadsOut();
  void anotherDocumentLeadsOut();
  void theInspectorOpensTheSelectedOp();
  void theOutlineLeadsInside();
  void aProblemLeadsInside();
  void randomEditsAreUndone();
};

void BlocksTest::aDoubleClickGoesInside() {
  Stack f;
  QVERIFY(!f.window.blockBar().isVisibleTo(&f.window));
  f.doubleClick("layer1");
  QCOMPARE(namesOf(f.scene()), QStringList({"add", "mlp", "save", "x", "y"}));
  QVERIFY(f.window.blockBar().isVisibleTo(&f.window));
  QVERIFY2(f.window.blockBar().note().contains("all 2 instances"), qPrintable(f.window.blockBar().note()));
  f.doubleClick("mlp");
  QCOMPARE(f.scope().path(), QStringList({"layer1", "mlp"}));
  QCOMPARE(namesOf(f.scene()), QStringList({"act", "fc1", "fc2", "norm", "x", "y"}));
  QCOMPARE(f.scope().numInstances(), std::ptrdiff_t{2});
  QVERIFY(f.scene().node("x")->sceneBox().right() < f.scene().node("norm")->sceneBox().left());
  QVERIFY(f.scene().node("y")->sceneBox().left() > f.scene().node("fc2")->sceneBox().right());
  QCOMPARE(f.session.selection().single(), QStringLiteral("layer1"));
}

void BlocksTest::keysGoInAndOut() {
  Stack f;
  f.window.show();
  f.window.canvas().setFocus();
  f.session.selection().select({QStringLiteral("layer2")});
  QTest::keyClick(&f.window.canvas(), Qt::Key_Down, Qt::ControlModifier);
  QCOMPARE(f.scope().path(), QStringList({"layer2"}));
  QTest::keyClick(&f.window.canvas(), Qt::Key_Up, Qt::ControlModifier);
  QVERIFY(!f.scope().isInside());
  QVERIFY(f.scene().node("layer2")->isSelected());
}

void BlocksTest::aPlaceOfTheBarLeadsOut() {
  Stack f;
  f.enter({"layer1", "mlp"});
  QStringList names;
  for (const QToolButton* place : f.window.blockBar().places()) names.append(place->text());
  QCOMPARE(names, QStringList({"Pipeline", "layer1", "mlp"}));
  f.window.blockBar().places().at(1)->click();
  QCOMPARE(f.scope().path(), QStringList({"layer1"}));
  QVERIFY2(f.scene().node("mlp")->isSelected(), "one sees where one was");
  f.window.blockBar().places().at(0)->click();
  QVERIFY(f.scene().node("layer2"));
}

void BlocksTest::aDoubleClickOnAnOpDoesNot() {
  Stack f;
  f.doubleClick("norm");
  QVERIFY(!f.scope().isInside());
}

void BlocksTest::shapesAreThoseOfTheInstance() {
  Stack f;
  f.enter({"layer2", "mlp"});
  const Graph& whole = f.session.plan().analysis()->graph();
  const Graph& inside = f.scope().analysis()->graph();
  for (const char* value : {"fc1.y", "act.y", "fc2.y"}) {
    const ValueId expected = whole.findValue(std::string("layer2.mlp.") + value);
    const ValueId actual = inside.findValue(value);
    QVERIFY2(expected >= 0 && actual >= 0, value);
    QCOMPARE(toString(inside.value(actual).spec), toString(whole.value(expected).spec));
  }
}

void BlocksTest::hullsAreThoseOfTheInstance() {
  Stack f;
  f.enter({"layer1", "mlp"});
  QVERIFY(!f.scene().canvasItems().hulls().empty());
  for (const HullItem* hull : f.scene().canvasItems().hulls())
    for (const QString& owner : hull->look().owners) QVERIFY2(f.scene().node(owner.toStdString()), qPrintable(owner));
}

void BlocksTest::anEditInsideIsOneOfTheBlock() {
  Stack f;
  f.enter({"layer1", "mlp"});
  f.scope().select({QStringLiteral("act")});
  f.scene().commands().removeSelected(Reconnect::Yes);
  QVERIFY(!f.scene().node("act"));
  QVERIFY(std::ranges::none_of(f.feedForward().ops, [](const DocumentOp& op) { return op.id == "act"; }));
  QVERIFY(std::ranges::count(f.feedForward().wires, Wire{{"fc1", "y"}, {"fc2", "x"}}) == 1);
  QCOMPARE(f.session.pipeline().document().ops().size(), std::size_t{3});
  f.scene().commands().insertAfterSelection("GELU");
  QVERIFY(std::ranges::any_of(f.feedForward().ops, [](const DocumentOp& op) { return op.operation == "GELU"; }));
  f.scope().select({QStringLiteral("norm")});
  f.scene().commands().toggleBypass();
  QVERIFY(f.feedForward().ops.front().isBypassed());
}

void BlocksTest::anEditIsUndoneOutside() {
  Stack f;
  const QString before = f.bytes();
  f.enter({"layer1", "mlp"});
  f.scope().select({QStringLiteral("act")});
  f.scene().commands().removeSelected(Reconnect::Yes);
  f.scope().leaveTo(0);
  QVERIFY2(toQt(f.session.pipeline().history().undoLabel()).contains("in FeedForward"),
           f.session.pipeline().history().undoLabel().c_str());
  f.session.pipeline().undo();
  QCOMPARE(f.bytes(), before);
}

void BlocksTest::wiresAreDrawnInside() {
  Stack f;
  f.window.resize(1600, 1000);
  f.window.show();
  f.enter({"layer1", "mlp"});
  QTest::qWait(50);  // the bar above the canvas takes its place
  f.window.canvas().fit();
  const Link link{{"act", "y"}, {"fc2", "x"}};
  QVERIFY(f.scope().apply(unlinkEdit(f.scope().document(), link)));
  QCOMPARE(f.feedForward().wires.size(), std::size_t{3});
  QVERIFY(linkVerdict(f.scope().document(), link.from, link.to));
  dragMouse(f.window.canvas().viewport(), f.portOnView({"act", "y", true}), f.portOnView({"fc2", "x", false}));
  QCOMPARE(std::ranges::count(f.feedForward().wires, Wire{link.from, link.to}), 1);
}

void BlocksTest::aMoveIsKeptWithTheBlock() {
  Stack f;
  f.enter({"layer1"});
  f.scope().select({QStringLiteral("save")});
  f.scene().moves().moveSelected({1, 0});
  const auto& positions = f.session.pipeline().document().findBlock("Layer")->positions;
  const auto save = std::ranges::find_if(positions, [](const auto& entry) { return entry.first == "save"; });
  QVERIFY(save != positions.end());
  QVERIFY(save->second.x > 0);
  QVERIFY(f.session.pipeline().document().findBlock("Layer")->inputs.front().shape.empty());
}

void BlocksTest::layersThatRepeatBecomeABlock() {
  Stack f;
  QSignalSpy hints(&f.scene(), &GraphScene::hint);
  f.scene().commands().foldRepeats();
  QCOMPARE(hints.count(), 1);
  QVERIFY2(hints[0][0].toString().startsWith(QStringLiteral("No repeated layers found")),
           qPrintable(hints[0][0].toString()));
  f.scope().select({QStringLiteral("layer1"), QStringLiteral("layer2")});
  f.scene().commands().expandSelected();
  QCOMPARE(f.session.pipeline().document().ops().size(), std::size_t{7});
  const QString flat = f.bytes();
  f.scene().commands().foldRepeats();
  QCOMPARE(f.session.pipeline().document().ops().size(), std::size_t{3});
  QVERIFY(f.session.pipeline().document().findBlock("Layer2"));
  QVERIFY(hints.back()[0].toString().contains(QStringLiteral("2 repetitions into block Layer2")));
  f.session.pipeline().undo();
  QCOMPARE(f.bytes(), flat);
}

void BlocksTest::layersThatRepeatInsideTakeTheirOverridesAlong() {
  Stack f;
  f.scope().select({QStringLiteral("layer1"), QStringLiteral("layer2")});
  f.scene().commands().expandSelected();
  QSet<QString> all;
  for (const DocumentOp& op : f.session.pipeline().document().ops()) all.insert(toQt(op.id));
  f.scope().select(all);
  f.scene().commands().makeBlockOfSelected("All");
  const Json override = {{"op", "all.mlp2.fc1"}, {"format", "high_precision"}};
  const Json other = {{"op", "mlp2"}, {"format", "high_precision"}};  // of the pipeline, where there is none of this id
  QVERIFY(f.session.pipeline().apply(
      SetRecipe{Json{{"name", "MXFP8BlockScaling"}, {"overrides", Json::array({override, other})}}}));
  f.enter({"all"});
  f.scene().commands().foldRepeats();
  const std::string place = f.session.pipeline().document().recipe()["overrides"][0]["op"];
  QCOMPARE(f.session.pipeline().document().findBlock("All")->ops.size(), std::size_t{3});
  QVERIFY(f.session.pipeline().document().recipe()["overrides"][1] == other);
  QCOMPARE(place, "all." + f.session.pipeline().document().findBlock("All")->ops[1].id + ".mlp.fc1");
}

void BlocksTest::pasteInside() {
  Stack f;
  f.session.selection().select({QStringLiteral("norm")});
  f.scene().commands().copySelected();
  f.enter({"layer1", "mlp"});
  f.scene().commands().paste();
  QVERIFY(std::ranges::any_of(f.feedForward().ops, [](const DocumentOp& op) { return op.id == "norm2"; }));
  QCOMPARE(f.scope().selection(), QSet<QString>{QStringLiteral("norm2")});
}

void BlocksTest::aBlockIsMadeInside() {
  Stack f;
  const QString before = f.bytes();
  const auto recipeAt = [](const char* place) {
    return Json{{"name", "MXFP8BlockScaling"}, {"overrides", {{{"op", place}, {"format", "high_precision"}}}}};
  };
  const auto switchAt = [](const std::string& place) {
    return Json{{"without", Json::array({"ForwardLinearEpilogue@" + place})}};
  };
  QVERIFY(f.session.pipeline().apply(SetRecipe{recipeAt("layer1.mlp.fc2")}));
  QVERIFY(f.session.pipeline().apply(SetFusion{switchAt("layer2.mlp.fc2")}));
  f.enter({"layer1", "mlp"});
  f.scope().select({QStringLiteral("act"), QStringLiteral("fc2")});
  f.scene().commands().makeBlockOfSelected("Half");
  QVERIFY(f.session.pipeline().document().findBlock("Half"));
  QVERIFY(f.scope().canEnter("half"));
  QVERIFY(f.session.pipeline().document().recipe() == recipeAt("layer1.mlp.half.fc2"));
  QVERIFY(f.session.pipeline().document().fusion() == switchAt("layer2.mlp.half.fc2"));
  f.scene().commands().expandSelected();
  QVERIFY(f.scene().node("act"));
  QVERIFY(f.session.pipeline().document().recipe() == recipeAt("layer1.mlp.fc2"));
  QVERIFY(f.session.pipeline().document().fusion() == switchAt("layer2.mlp.fc2"));
  while (f.session.pipeline().history().canUndo()) f.session.pipeline().undo();
  QCOMPARE(f.bytes(), before);
}

void BlocksTest::aBlockDoesNotHoldItself() {
  Stack f;
  const QString before = f.bytes();
  f.enter({"layer1", "mlp"});
  QSignalSpy refused(&f.session.pipeline(), &OpenPipeline::editRefused);
  f.scene().commands().insertAfterSelection("block:Layer");
  QCOMPARE(refused.count(), 1);
  QCOMPARE(f.bytes(), before);
}

void BlocksTest::whoIsSelectedOutsideIsShown() {
  Stack f;
  f.enter({"layer1"});
  f.session.selection().select({QStringLiteral("norm")});
  QVERIFY(!f.scope().isInside());
  QVERIFY(f.scene().node("norm")->isSelected());
}

void BlocksTest::aVanishedInstanceLeadsOut() {
  Fixture f(smallPipeline());
  f.session.selection().select({QStringLiteral("fc")});
  f.window.scene().commands().makeBlockOfSelected("Project");
  QVERIFY(f.window.scene().scope().enter(QStringLiteral("project")));
  QVERIFY(f.window.scene().scope().isInside());
  f.session.pipeline().undo();
  QVERIFY(!f.window.scene().scope().isInside());
  QVERIFY(f.window.scene().node("norm"));
}

void BlocksTest::anotherDocumentLeadsOut() {
  Stack f;
  f.enter({"layer1"});
  f.session.openText(findTemplate("transformer-stack")->text, QStringLiteral("again"));
  QVERIFY(!f.scope().isInside());
  QVERIFY(f.scene().node("layer1"));
}

void BlocksTest::theInspectorOpensTheSelectedOp() {
  Stack f;
  f.window.show();
  f.enter({"layer1", "mlp"});
  QTest::qWait(10);
  f.scope().select({QStringLiteral("fc1")});
  QTest::qWait(10);
  const auto fields = f.window.inspector().findChildren<AttributeField*>();
  const auto isOpen = [](const AttributeField* field) {
    return field->isVisible() && field->editor()->accessibleName() == QStringLiteral("out_features");
  };
  QVERIFY(std::ranges::any_of(fields, isOpen));
}

void BlocksTest::theOutlineLeadsInside() {
  Stack f;
  QVERIFY(f.scope().goTo(QStringLiteral("layer2.mlp.fc1")));
  QCOMPARE(f.scope().path(), QStringList({"layer2", "mlp"}));
  QCOMPARE(f.scope().singleSelection(), QStringLiteral("fc1"));
  QVERIFY(f.scope().goTo(QStringLiteral("layer1.add")));
  QCOMPARE(f.scope().path(), QStringList({"layer1"}));
  QCOMPARE(f.session.selection().single(), QStringLiteral("layer1"));
}

void BlocksTest::aProblemLeadsInside() {
  Stack f;
  QVERIFY(f.session.pipeline().apply(
      EditInBlock{"FeedForward", {SetAttribute{.id = "fc2", .name = "in_features", .value = Json(7)}}}));
  QVERIFY(waitForAnalysis(f.session));
  f.window.problems().selectNext(1);
  QCOMPARE(f.scope().path().size(), qsizetype{2});
  QCOMPARE(f.scope().singleSelection(), QStringLiteral("fc2"));
  QVERIFY2(f.scene().node("fc2")->look().worst, "the node is marked inside, too");
}

/// Random edits inside a block.
void BlocksTest::randomEditsAreUndone() {
  for (unsigned seed = 0; seed < 12; ++seed) {
    Stack f;
    const QString before = f.bytes();
    std::mt19937 random(seed);
    f.enter({"layer1", "mlp"});
    for (int step = 0; step < 25 && f.scope().isInside(); ++step) {
      const auto& ops = f.scope().document().ops();
      if (!ops.empty()) f.scope().select({toQt(ops[random() % ops.size()].id)});
      switch (random() % 7) {
        case 0: f.scene().commands().removeSelected(Reconnect::Yes); break;
        case 1: f.scene().commands().insertAfterSelection("GELU"); break;
        case 2: f.scene().commands().toggleBypass(); break;
        case 3: f.scene().moves().moveSelected({1, 1}); break;
        case 4: f.scene().commands().duplicateSelected(); break;
        case 5: f.scene().drops().drop("Input", {60, 300}); break;
        default: f.scene().commands().makeBlockOfSelected("Inner" + std::to_string(step)); break;
      }
    }
    const QString after = f.bytes();
    QVERIFY(after != before);
    const std::size_t depth = f.session.pipeline().history().depth();
    f.session.pipeline().goTo(0);
    QCOMPARE(f.bytes(), before);
    f.session.pipeline().goTo(depth);
    QCOMPARE(f.bytes(), after);
  }
}

FUSELINE_UI_TEST(BlocksTest)

}  // namespace fuseline::ui::blocks_test

#include "test_ui_blocks.moc"
