// Gestures on the canvas become edits; refusals say why.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/edit/block_edits.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/canvas/menus/context_menu.h"
#include "ui/canvas/metrics.h"
#include "ui/canvas/port_shape.h"
#include "ui/canvas/search_popup.h"
#include "ui/library/palette_model.h"
#include "ui/session/edits.h"
#include "ui/theme/format.h"

#include <QAction>
#include <QApplication>
#include <QDragEnterEvent>
#include <QImage>
#include <QInputDialog>
#include <QLineEdit>
#include <QMimeData>
#include <QPainter>
#include <QSignalSpy>
#include <QTest>
#include <QTimer>
#include <QTreeWidget>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

namespace fuseline::ui::canvas_test {

class CanvasTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void aWireFromNowhereIsLeftWhereItIs();
  void anUnsteadyClickMovesNothing();
  void anOpThatIsNotRunSaysSo();
  void dropsAnOpFromThePalette();
  void aDropBesideTheSelectedOpConnects();
  void aTitleFromFarAwayStaysInItsArea_data();
  void aTitleFromFarAwayStaysInItsArea();
  void aWirePassesThroughReroutePoints();
  void aWireFillsRequiredSizes();
  void aNewPipelineHasNoError();
  void keysAloneBuildANewPipeline();
  void aDropIntoANewPipelineConnects();
  void timesOfTheLastRunAreOnTheNodes();
  void editsShowWhatANewCanvasShows();
  void noWireRunsThroughANode_data();
  void noWireRunsThroughANode();
  void labelsOfWiresCoverNothing_data();
  void labelsOfWiresCoverNothing();
  void aShortWireHasNoLabel();
  void aLabelOfTheUsualShapeIsWhole();
  void fusionsCanBeReadFromFarAway();
  void theViewFollowsInsertedOps();
  void aDropIntoAWireLeavesRoomForLabels();
  void pastesWithIncomingWires();
  void dropsAnOpOntoAWire();
  void dropOntoAWireMakesRoom_data();
  void dropOntoAWireMakesRoom();
  void dropOntoALongWireStaysWhereItIs();
  void wireUnderADraggedOpIsHighlighted();
  void draggedOpHangsBelowThePointer();
  void drawsAWireByDragging();
  void drawsAWireByClickingBothPorts();
  void refusesAnIllegalWireWithItsReason();
  void aWireDroppedOnNothingAsksForItsTarget();
  void aWireDroppedOnNothingLeavesNoTraceOnEsc();
  void aWireThatLeadsToAnInputAsksForItsSource();
  void aLooseOpIsPutIntoAWireUnderIt();
  void withAltALooseOpOnlyMoves();
  void cutTakesOpsToTheClipboard();
  void aBypassedOpIsAGhostAndIsUsedAgain();
  void aBypassThatCannotBeSaysWhy();
  void findsOpsAndTheNextOne();
  void fShowsTheSelection();
  void takesAWireOffItsInput();
  void drawsAWireByKeys();
  void arrowKeysAimAWire();
  void keysTakeAWireOffItsInput();
  void saysWhereAWireByKeysBegins();
  void wireByKeysBeginsAtAFreePort();
  void selectedOpIsDescribedInWords();
  void movesANodeAsOneUndoStep();
  void snappingCanBeSwitchedOff();
  void ctrlDuringADragPlacesFreely();
  void ctrlAndADragMovesAllWiresOfAnOutput();
  void aBrokenWireIsMarked();
  void keysChooseTheOutlinedPass();
  void undoGivesBackTheSameBytes();
  void arrowKeysWalkAlongThePipeline();
  void ctrlArrowKeysFollowWires();
  void tabSearchesAndInserts();
  void deleteReconnectsWithCtrl();
  void layoutIsOneUndoStepWithoutOverlaps();
  void layoutOfTheSelectionLeavesTheRest();
  void arrangesTheSelection_data();
  void arrangesTheSelection();
  void arrangingNeedsTwoNodes();
  void keysMoveTheSelection();
  void hullsFollowThePlan();
  void aFusionIsSwitchedOffAndOnAtItsHull();
  void drawsUnknownOpsAndKeepsThem();
  void drawsThePortsThatAttributesDefine();
  void makesABlockAndExpandsIt();
  void asksForTheNameOfABlock();
  void dropsABlockFromThePalette();
  void rightClickSelectsTheSubjectOfTheMenu();
  void pinchZoomsAtTheFingers();
  void shiftAddsToTheSelection();
  void selectsUpstreamAndDownstream();
  void menusAreAboutTheItemUnderThePointer();
  void portsHaveAMenu();
  void reroutePointsHaveAMenu();
  void replacesTheSelectedOp();
  void aChainIsPutIntoAWireUnderIt();
  void pastesIntoTheSelectedWire();
  void dividesFusersAtTheBordersOfSequentials();
  void showsIncompatibleOpsAndWhy();
  void wiresSayAsMuchAsIsChosen();
  void theChoiceOfLabelsIsKept();
  void portsTellTheirDtypeByShapeAndTip();
  void altAndADragCopyTheSelection();
  void aCopyThatIsGivenUpLeavesNoTrace();
  void altOnAnInputOnlyMovesIt();
  void xAndADragCutWires();
  void aCutThatIsGivenUpLeavesNoTrace();
};

namespace {

void drop(GraphView& view, const char* entry, QPoint position) {
  QMimeData data;
  data.setData(QString::fromLatin1(kOpMimeType), entry);
  QDragEnterEvent enter(position, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(view.viewport(), &enter);
  QDragMoveEvent move(position, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(view.viewport(), &move);
  QDropEvent event(position, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(view.viewport(), &event);
}

/// The command of this key, which the window gives to the canvas while that has the keyboard.
void press(Fixture& f, Qt::Key key) {
  f.window.activateWindow();
  if (!QTest::qWaitForWindowActive(&f.window)) return;
  f.window.canvas().setFocus();
  QTest::keyClick(&f.window.canvas(), key);
}

void pressW(Fixture& f) { press(f, Qt::Key_W); }

QString lastOf(const QSignalSpy& hints) { return hints.isEmpty() ? QString() : hints.last().front().toString(); }

bool isWired(const Session& session, const char* from, const char* to) {
  for (const Link& link : linksOf(session.pipeline().document())) {
    if (toString(link.from) == from && toString(link.to) == to) return true;
  }
  return false;
}

}  // namespace

/// A file may say so; its Problems do, too.
void CanvasTest::aWireFromNowhereIsLeftWhereItIs() {
  std::string text = smallPipeline();
  const std::string wire = "\"fc.y\"";
  QVERIFY(text.find(wire) != std::string::npos);
  text.replace(text.find(wire), wire.size(), "\"ghost.y\"");
  Fixture f(text);
  const std::vector<Wire> wires = f.session.pipeline().document().wires();
  f.session.selection().select({QStringLiteral("act")});
  for (int times = 0; times < 4; ++times) pressW(f);
  QVERIFY(f.window.scene().wires().isDrawing());
  press(f, Qt::Key_Escape);
  QVERIFY(!f.window.scene().wires().isDrawing());
  QVERIFY(f.session.pipeline().document().wires() == wires);
}

void CanvasTest::anOpThatIsNotRunSaysSo() {
  Fixture f(R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "pipeline": {
    "inputs": [{"id": "x", "dtype": "bf16", "shape": [8, 16]}],
    "ops": [{"id": "act", "op": "GELU"}, {"id": "attention", "op": "External"}, {"id": "proj", "op": "SiLU"}],
    "wires": [["x", "act.x"], ["act.y", "attention.x"], ["attention.y", "proj.x"]],
    "outputs": [{"id": "y", "from": "proj.y"}]}})");
  const NodeLook& attention = f.window.scene().node("attention")->look();
  QVERIFY(attention.isNotRun && attention.isHatched() && !attention.isUnknown);
  QVERIFY(!attention.status);
  QCOMPARE(attention.subtitle, QStringLiteral("attention · not executed"));
  QVERIFY(f.window.scene().node("proj")->look().status);
  QVERIFY(f.session.plan().analysis()->isRunnable());
}

void CanvasTest::anUnsteadyClickMovesNothing() {
  Fixture f(smallPipeline());
  QVERIFY(f.session.pipeline().apply(MoveNode{"norm", Position{203, 41}}));
  QVERIFY(waitForAnalysis(f.session));
  const std::size_t depth = f.session.pipeline().history().depth();
  const QPoint at = f.window.canvas().mapFromScene(f.window.scene().node("norm")->sceneBoundingRect().center());
  dragMouse(f.window.canvas().viewport(), at, at + QPoint(1, 1));
  QCOMPARE(f.session.selection().single(), QStringLiteral("norm"));
  QCOMPARE(f.session.pipeline().history().depth(), depth);
  QCOMPARE(f.window.scene().node("norm")->pos(), QPointF(203, 41));
}

void CanvasTest::dropsAnOpFromThePalette() {
  Fixture f(smallPipeline());
  drop(f.window.canvas(), "GELU", {60, 60});
  QVERIFY(f.session.pipeline().document().findOp("gelu"));
  QVERIFY(f.window.scene().node("gelu"));
  QCOMPARE(f.session.selection().single(), QStringLiteral("gelu"));
}

void CanvasTest::aDropBesideTheSelectedOpConnects() {
  Fixture f(smallPipeline());
  f.window.canvas().fit();
  f.session.selection().select({QStringLiteral("act")});
  const QPointF act = f.window.scene().node("act")->sceneBox().center();
  drop(f.window.canvas(), "Linear", f.window.canvas().mapFromScene(act + QPointF(1.4 * kNodePitchPx, 200)));
  QVERIFY(!isWired(f.session, "act.y", "linear.x"));  // too far below
  f.session.pipeline().undo();
  f.session.selection().select({QStringLiteral("act")});
  f.window.scene().drops().drop("Linear", act + QPointF(1.4 * kNodePitchPx, 10));
  QVERIFY(isWired(f.session, "act.y", "linear.x") && isWired(f.session, "linear.y", "y"));
  QCOMPARE(f.session.selection().single(), QStringLiteral("linear"));
  QVERIFY(waitForAnalysis(f.session) && f.session.plan().analysis()->isRunnable());
}

/// As Tab fills them.
void CanvasTest::aTitleFromFarAwayStaysInItsArea_data() {
  QTest::addColumn<QString>("title");
  for (const char* title : {"input_ids", "a_very_long_name_of_an_input", "MakeExtraOutput", "RotaryPositionEmbedding",
                            "Short, then_a_long_one"})
    QTest::newRow(title) << QString::fromLatin1(title);
}

void CanvasTest::aTitleFromFarAwayStaysInItsArea() {
  QFETCH(const QString, title);
  constexpr int kMarginPx = 40;
  QImage image(80 + 2 * kMarginPx, kNodeHeightPx + 2 * kMarginPx, QImage::Format_RGB32);
  image.fill(Qt::white);
  const QRect area = image.rect().adjusted(kMarginPx, kMarginPx, -kMarginPx, -kMarginPx);
  {
    QPainter painter(&image);
    painter.setFont(scaledFont(kFarFontFactor, QFont::DemiBold));
    drawFarTitle(painter, area, breakableTitle(title));
  }
  bool isDrawn = false;
  for (int x = 0; x < image.width(); ++x)
    for (int y = 0; y < image.height(); ++y) {
      const bool isInk = image.pixelColor(x, y).lightness() < 128;
      isDrawn = isDrawn || isInk;
      QVERIFY(!isInk || area.contains(x, y));
    }
  QVERIFY(isDrawn);
}

/// A double click adds one, a drag moves it, Delete removes it; each is one undo step.
void CanvasTest::aWirePassesThroughReroutePoints() {
  Fixture f(smallPipeline());
  GraphView& view = f.window.canvas();
  f.window.resize(1400, 900);
  f.window.show();
  view.zoomTo(1.0);
  const auto& items = f.window.scene().canvasItems();
  const auto wire = [&] {
    return *std::ranges::find(items.links(), "act", [](const LinkItem* item) { return item->link().to.node; });
  };
  const auto isOnWire = [&](QPointF place) { return wire()->shape().contains(place); };
  const QPointF middle = wire()->path().pointAtPercent(0.5);
  view.centerOn(middle);
  const auto onView = [&](QPointF place) { return view.mapFromScene(place); };
  QTest::mouseDClick(view.viewport(), Qt::LeftButton, {}, onView(middle));
  QCOMPARE(items.reroutes().items().size(), std::size_t{1});
  const QPointF added = items.reroutes().items().front()->pos();
  QVERIFY(isOnWire(added));
  dragMouse(view.viewport(), onView(added), onView(added + QPointF(0, 160)));
  const QPointF moved = items.reroutes().items().front()->pos();
  QVERIFY(moved.y() > added.y() + 140 && isOnWire(moved));
  QCOMPARE(f.session.pipeline().history().undoLabel(), std::string("Move reroute points"));
  QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, onView(moved));
  f.window.scene().commands().removeSelected(Reconnect::No);
  QVERIFY(items.reroutes().items().empty());
  QVERIFY(wire() != nullptr);
  f.session.pipeline().undo();
  QCOMPARE(items.reroutes().items().front()->pos(), moved);
  f.session.pipeline().undo();
  QCOMPARE(items.reroutes().items().front()->pos(), added);
  f.session.pipeline().undo();
  QVERIFY(items.reroutes().items().empty());
}

void CanvasTest::aWireFillsRequiredSizes() {
  Fixture f(smallPipeline());
  QVERIFY(f.session.pipeline().apply(AddOp{.op = {.id = "late", .operation = "Linear"}}));
  f.window.canvas().fit();
  dragMouse(f.window.canvas().viewport(), f.portOnView({"act", "y", true}), f.portOnView({"late", "x", false}));
  QVERIFY(isWired(f.session, "act.y", "late.x"));
  QCOMPARE(f.op("late").attributes.at("in_features"), Json(64));
}

void CanvasTest::aNewPipelineHasNoError() {
  Fixture f(smallPipeline());
  f.window.files().newDocument();
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(f.session.pipeline().document().inputs().size(), std::size_t{1});
  QCOMPARE(f.session.pipeline().document().outputs().size(), std::size_t{1});
  QCOMPARE(f.window.problems().model().count(Severity::Error), 0);
  QVERIFY(!f.window.scene().node("y")->look().worst);
  for (const char* entry : {"LayerNorm", "Linear"}) {
    f.window.scene().commands().insertAfterSelection(entry);
    QVERIFY(waitForAnalysis(f.session));
  }
  QVERIFY(f.session.plan().analysis()->isRunnable());
  QVERIFY(isWired(f.session, "linear.y", "y"));
}

namespace {

/// Tab, a name and Enter.
void typeOp(Fixture& f, const char* name) {
  QTest::keyClick(&f.window.canvas(), Qt::Key_Tab);
  QLineEdit* const query = f.window.canvas().findChildren<SearchPopup*>().last()->findChild<QLineEdit*>();
  QTest::keyClicks(query, QString::fromLatin1(name));
  QTest::keyClick(query, Qt::Key_Return);
  QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
}

}  // namespace

void CanvasTest::keysAloneBuildANewPipeline() {
  Fixture f(smallPipeline());
  f.window.files().newDocument();
  QVERIFY(waitForAnalysis(f.session));
  for (const char* name : {"layernorm", "linear", "gelu"}) {
    typeOp(f, name);
    QVERIFY(waitForAnalysis(f.session));
    f.session.selection().select({});  // the next one goes to the end all the same
  }
  QVERIFY(f.session.plan().analysis()->isRunnable());
  QVERIFY(isWired(f.session, "gelu.y", "y"));
  const GraphScene& scene = f.window.scene();
  const std::vector<std::string> ids = {"x", "layernorm", "linear", "gelu", "y"};
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
    const QRectF box = scene.node(ids[i])->sceneBox();
    const QRectF next = scene.node(ids[i + 1])->sceneBox();
    QVERIFY2(next.left() > box.right(), ids[i].c_str());
    QVERIFY2(std::abs(next.center().y() - box.center().y()) < kNodeHeightPx / 2.0, ids[i].c_str());
  }
}

/// Between its ends, beside the input that nothing reads.
void CanvasTest::aDropIntoANewPipelineConnects() {
  Fixture f(smallPipeline());
  f.window.files().newDocument();
  QVERIFY(waitForAnalysis(f.session));
  f.session.selection().select({});
  const GraphScene& scene = f.window.scene();
  const QPointF middle = (scene.node("x")->sceneBox().center() + scene.node("y")->sceneBox().center()) / 2;
  drop(f.window.canvas(), "Linear", f.window.canvas().mapFromScene(middle));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(isWired(f.session, "x", "linear.x") && isWired(f.session, "linear.y", "y"));
  for (const char* id : {"x", "y"}) QVERIFY(!scene.node(id)->sceneBox().intersects(scene.node("linear")->sceneBox()));
}

namespace {

/// A chain of ops, some of which add the output of an earlier one: residuals within residuals.
std::string randomPipeline(unsigned seed) {
  std::mt19937 random(seed);
  const int numOps = 6 + static_cast<int>(random() % 24);
  std::string ops;
  std::string wires = R"(["x", "n0.x"])";
  for (int i = 0; i < numOps; ++i) {
    const bool isSum = i > 1 && random() % 3 == 0;
    const std::string id = "n" + std::to_string(i);
    ops += std::string(i > 0 ? ", " : "") + R"({"id": ")" + id + R"(", "op": ")" +
           (isSum ? "AddExtraInput" : "Identity") + R"(", "attributes": {}})";
    if (i > 0) wires += R"(, ["n)" + std::to_string(i - 1) + R"(.y", ")" + id + R"(.x"])";
    if (isSum)
      wires += R"(, ["n)" + std::to_string(random() % static_cast<unsigned>(i)) + R"(.y", ")" + id + R"(.extra"])";
  }
  return testing::smallDocument(R"("inputs": [{"id": "x", "dtype": "bf16", "shape": ["M", "H"]}], "ops": [)" + ops +
                                R"(], "wires": [)" + wires + R"(], "outputs": [{"id": "y", "from": "n)" +
                                std::to_string(numOps - 1) + R"(.y"}])");
}

/// "n3 to n9 through n5"; empty where no wire of the canvas runs through a node.
QString wireThroughNode(const GraphScene& scene) {
  constexpr double kStepPx = 4.0;
  for (const LinkItem* link : scene.links()) {
    const QPainterPath path = link->path();
    const int numSteps = static_cast<int>(path.length() / kStepPx);
    for (int step = 0; step <= numSteps; ++step) {
      const QPointF point = path.pointAtPercent(static_cast<double>(step) / std::max(numSteps, 1));
      for (const auto& [id, node] : scene.nodes())
        if (node->sceneBox().adjusted(2, 2, -2, -2).contains(point))
          return toQt(link->link().from.node + " to " + link->link().to.node + " through " + id);
    }
  }
  return {};
}

}  // namespace

void CanvasTest::noWireRunsThroughANode_data() {
  QTest::addColumn<QString>("text");
  for (unsigned seed = 1; seed <= 12; ++seed)
    QTest::newRow(("random " + std::to_string(seed)).c_str()) << toQt(randomPipeline(seed));
  for (const DocumentTemplate& entry : documentTemplates())
    QTest::newRow(std::string(entry.name).c_str()) << toQt(std::string(entry.text));
}

/// As nodes stand after they were arranged.
void CanvasTest::noWireRunsThroughANode() {
  QFETCH(const QString, text);
  Fixture f(text.toStdString());
  (void)f.window.scene().moves().layOut();
  QVERIFY(waitForAnalysis(f.session));
  const QString found = wireThroughNode(f.window.scene());
  QVERIFY2(found.isEmpty(), qPrintable(found));
}

namespace {

/// Edits of ops, wires, attributes and places, at random.
void editAtRandom(Fixture& f, std::mt19937& random) {
  GraphScene& scene = f.window.scene();
  const auto& ops = f.session.pipeline().document().ops();
  if (!ops.empty()) scene.scope().select({toQt(ops[random() % ops.size()].id)});
  switch (random() % 8) {
    case 0: scene.commands().removeSelected(Reconnect::Yes); break;
    case 1: scene.commands().removeSelected(Reconnect::No); break;
    case 2: scene.commands().insertAfterSelection("GELU"); break;
    case 3: scene.commands().toggleBypass(); break;
    case 4: scene.commands().duplicateSelected(); break;
    case 5: scene.moves().moveSelected({3, 7}); break;
    case 6: f.session.pipeline().undo(); break;
    default: scene.drops().drop("Linear", {60, 300}); break;
  }
}

/// The kind of items in which two canvases differ; empty: none.
QString differenceOf(const GraphScene& a, const GraphScene& b) {
  const auto isSameNode = [](const auto& one, const auto& other) {
    return one.second->look() == other.second->look() && one.second->pos() == other.second->pos();
  };
  const auto isSameLink = [](const LinkItem* one, const LinkItem* other) {
    return one->link() == other->link() && one->path() == other->path() && one->labelArea() == other->labelArea() &&
           one->spec() == other->spec() && one->isBroken() == other->isBroken();
  };
  const auto isSameHull = [](const HullItem* one, const HullItem* other) {
    return one->look() == other->look() && one->isVisible() == other->isVisible() &&
           one->outlineRect() == other->outlineRect() && one->labelArea() == other->labelArea();
  };
  if (!std::ranges::equal(a.nodes(), b.nodes(), isSameNode)) return QStringLiteral("nodes");
  if (!std::ranges::equal(a.links(), b.links(), isSameLink)) return QStringLiteral("wires");
  if (!std::ranges::equal(a.canvasItems().hulls(), b.canvasItems().hulls(), isSameHull)) return QStringLiteral("hulls");
  return {};
}

}  // namespace

/// The canvas changes only what an edit changes. Some edits come before the plan of the last one.
void CanvasTest::editsShowWhatANewCanvasShows() {
  std::mt19937 random(45);
  for (const char* name : {"llama-mlp", "gpt-layer"}) {
    Fixture f(std::string(findTemplate(name)->text));
    for (int step = 0; step < 20; ++step) {
      editAtRandom(f, random);
      if (random() % 3 > 0) QVERIFY(waitForAnalysis(f.session));
      GraphScene whole(f.session, f.theme);
      whole.measured().setStatusesVisible(true);
      const QString difference = differenceOf(f.window.scene(), whole);
      QVERIFY2(difference.isEmpty(), qPrintable(QStringLiteral("%1 at step %2").arg(difference).arg(step)));
    }
  }
}

/// Off, time, share, roofline, error; each pass apart, and nothing for a pipeline that has changed since.
void CanvasTest::timesOfTheLastRunAreOnTheNodes() {
  OpenedRun f(measuredRun(), QStringLiteral("timings"));
  QVERIFY(f.isOpen && waitForAnalysis(f.session));
  HeatOverlay& overlay = f.window.scene().measured().overlay();
  const auto look = [&](const char* id) -> const NodeLook& { return f.window.scene().node(id)->look(); };
  overlay.choose(HeatMode::Off);
  QVERIFY(!look("fc").hasHeat() && !overlay.scale());
  press(f, Qt::Key_O);
  QCOMPARE(overlay.mode(), HeatMode::Time);
  QVERIFY(look("fc").forwardHeat && look("fc").backwardHeat && overlay.scale());
  const MeasuredOps measured = measuredOps(f.session.results().lastRun()->record);
  QCOMPARE(look("fc").forwardHeat->heat, measured.ops.at("fc").forward.ns / measured.hottestNs);
  QCOMPARE(overlay.scale()->most, formatDurationNs(measured.hottestNs));
  QVERIFY(!look("x").hasHeat());
  press(f, Qt::Key_O);
  QCOMPARE(overlay.mode(), HeatMode::Share);
  QVERIFY(overlay.scale()->most.endsWith(u'%'));
  press(f, Qt::Key_O);
  QCOMPARE(overlay.mode(), HeatMode::Roofline);
  press(f, Qt::Key_O);
  QCOMPARE(overlay.mode(), HeatMode::Error);
  QVERIFY(!look("fc").hasHeat());
  overlay.choose(HeatMode::Time);
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "fc", .name = "out_features", .value = 16}));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(!look("fc").hasHeat() && !overlay.scale());
}

void CanvasTest::dropsAnOpOntoAWire() {
  Fixture f(smallPipeline());
  const QPoint from = f.portOnView({"norm", "y", true});
  const QPoint to = f.portOnView({"fc", "x", false});
  drop(f.window.canvas(), "Identity", (from + to) / 2);
  QVERIFY(isWired(f.session, "norm.y", "identity.x"));
  QVERIFY(isWired(f.session, "identity.y", "fc.x"));
}

namespace {

/// "gelu over fc"; empty when no two nodes cover each other.
QString overlapIn(Fixture& f) {
  for (const DocumentOp& a : f.session.pipeline().document().ops())
    for (const DocumentOp& b : f.session.pipeline().document().ops())
      if (a.id < b.id && f.window.scene().node(a.id)->sceneBox().intersects(f.window.scene().node(b.id)->sceneBox()))
        return toQt(a.id + " over " + b.id);
  return {};
}

/// Gives every node a place of its own in the document, `pitchPx` apart.
void placeInARow(Fixture& f, int pitchPx) {
  int x = 0;
  for (const char* id : {"x", "norm", "fc", "act", "y"})
    QVERIFY(f.session.pipeline().apply(MoveNode{.id = id, .position = Position{pitchPx * x++, 0}}));
  f.window.canvas().fit();
}

QPoint middleOfWire(Fixture& f) { return (f.portOnView({"norm", "y", true}) + f.portOnView({"fc", "x", false})) / 2; }

}  // namespace

void CanvasTest::dropOntoAWireMakesRoom_data() {
  QTest::addColumn<bool>("isPlaced");
  QTest::newRow("nodes with places") << true;
  QTest::newRow("nodes laid out automatically") << false;
}

void CanvasTest::dropOntoAWireMakesRoom() {
  QFETCH(const bool, isPlaced);
  Fixture f(smallPipeline());
  if (isPlaced) placeInARow(f, kNodePitchPx);
  const std::string before = serialize(f.session.pipeline().document());
  const double y = f.window.scene().node("fc")->pos().y();
  drop(f.window.canvas(), "GELU", middleOfWire(f));
  QVERIFY(isWired(f.session, "norm.y", "gelu.x") && isWired(f.session, "gelu.y", "fc.x"));
  QCOMPARE(overlapIn(f), QString());
  const auto left = [&](const char* id) { return f.window.scene().node(id)->pos().x(); };
  QVERIFY(left("norm") < left("gelu") && left("gelu") < left("fc") && left("fc") < left("act"));
  QCOMPARE(f.window.scene().node("gelu")->pos().y(), y);
  f.session.pipeline().undo();
  QCOMPARE(serialize(f.session.pipeline().document()), before);
}

void CanvasTest::dropOntoALongWireStaysWhereItIs() {
  Fixture f(smallPipeline());
  placeInARow(f, 3 * kNodePitchPx);
  const QPointF fc = f.window.scene().node("fc")->pos();
  const QPoint place = middleOfWire(f);
  drop(f.window.canvas(), "GELU", place);
  QVERIFY(f.window.scene().node("gelu")->sceneBox().contains(f.window.canvas().mapToScene(place)));
  QCOMPARE(f.window.scene().node("fc")->pos(), fc);
}

void CanvasTest::wireUnderADraggedOpIsHighlighted() {
  Fixture f(smallPipeline());
  const QPoint place = middleOfWire(f);
  const LinkItem* wire = f.window.scene().canvasItems().linkAt(f.window.canvas().mapToScene(place));
  QVERIFY(wire);
  const auto drag = [&](const char* entry, QPoint to) {
    QMimeData data;
    data.setData(QString::fromLatin1(kOpMimeType), entry);
    QDragEnterEvent enter(to, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(f.window.canvas().viewport(), &enter);
    QDragMoveEvent move(to, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(f.window.canvas().viewport(), &move);
  };
  drag("GELU", place);
  QVERIFY(wire->isDropTarget());
  drag("GELU", {30, 30});
  QVERIFY(!wire->isDropTarget());
  drag("Input", place);  // it cannot go into a wire
  QVERIFY(!wire->isDropTarget());
}

void CanvasTest::draggedOpHangsBelowThePointer() {
  Fixture f(smallPipeline());
  PaletteView* view = f.window.palettePanel().view();
  const QModelIndex category = view->model()->index(0, 0);
  view->setCurrentIndex(category);
  QVERIFY(!view->makeDrag());
  view->setCurrentIndex(view->model()->index(0, 0, category));
  const std::unique_ptr<QDrag> drag = view->makeDrag();
  QVERIFY(drag && drag->mimeData()->hasFormat(QString::fromLatin1(kOpMimeType)));
  QVERIFY(!drag->pixmap().isNull());
  QVERIFY(!drag->pixmap().rect().contains(drag->hotSpot()));
}

void CanvasTest::drawsAWireByDragging() {
  Fixture f(smallPipeline());
  QVERIFY(f.session.pipeline().apply(RemoveWire{.wire = {{"fc", "y"}, {"act", "x"}}}));
  dragMouse(f.window.canvas().viewport(), f.portOnView({"fc", "y", true}), f.portOnView({"act", "x", false}));
  QVERIFY(isWired(f.session, "fc.y", "act.x"));
}

void CanvasTest::drawsAWireByClickingBothPorts() {
  Fixture f(smallPipeline());
  QVERIFY(f.session.pipeline().apply(RemoveWire{.wire = {{"fc", "y"}, {"act", "x"}}}));
  QWidget* viewport = f.window.canvas().viewport();
  QTest::mouseClick(viewport, Qt::LeftButton, {}, f.portOnView({"fc", "y", true}));
  QVERIFY(f.window.scene().wires().isDrawing());
  QTest::mouseClick(viewport, Qt::LeftButton, {}, f.portOnView({"act", "x", false}));
  QVERIFY(isWired(f.session, "fc.y", "act.x"));
}

void CanvasTest::refusesAnIllegalWireWithItsReason() {
  Fixture f(smallPipeline());
  const std::string before = serialize(f.session.pipeline().document());
  QSignalSpy hints(&f.window.scene(), &GraphScene::hint);
  dragMouse(f.window.canvas().viewport(), f.portOnView({"act", "y", true}), f.portOnView({"norm", "x", false}));
  QCOMPARE(serialize(f.session.pipeline().document()), before);
  QStringList sentences;
  for (const QList<QVariant>& arguments : hints) sentences.append(arguments.front().toString());
  QVERIFY2(sentences.join(u' ').contains(QStringLiteral("cycle")), qPrintable(sentences.join(u'|')));
}

namespace {

/// Types into the search that is open and confirms.
bool search(Fixture& f, const char* text) {
  auto* popup = f.window.canvas().findChild<SearchPopup*>();
  if (!popup) return false;
  auto* query = popup->findChild<QLineEdit*>();
  QTest::keyClicks(query, QString::fromLatin1(text));
  QTest::keyClick(query, Qt::Key_Return);
  return true;
}

QStringList listedIn(const SearchPopup& popup) {
  const auto* list = popup.findChild<QTreeWidget*>();
  QStringList titles;
  for (int i = 0; i < list->topLevelItemCount(); ++i) titles.append(list->topLevelItem(i)->text(0));
  return titles;
}

}  // namespace

void CanvasTest::aWireDroppedOnNothingAsksForItsTarget() {
  Fixture f(smallPipeline());
  const std::string before = serialize(f.session.pipeline().document());
  const QPoint place(60, 60);
  dragMouse(f.window.canvas().viewport(), f.portOnView({"fc", "y", true}), place);
  QVERIFY(!f.window.scene().wires().isDrawing());
  QVERIFY(f.session.selection().ids().isEmpty());  // no rubber band went with it
  auto* popup = f.window.canvas().findChild<SearchPopup*>();
  QVERIFY(popup);
  const QStringList legal = listedIn(*popup);
  QVERIFY(legal.contains(QStringLiteral("RMSNorm")) && legal.contains(QStringLiteral("Output")));
  QVERIFY(!legal.contains(QStringLiteral("Input")));
  QVERIFY(search(f, "silu"));
  QVERIFY(isWired(f.session, "fc.y", "silu.x"));
  QVERIFY(isWired(f.session, "fc.y", "act.x"));  // who has read it still does
  const QPoint port = f.portOnView({"silu", "x", false});
  QVERIFY((port - place).manhattanLength() < 20);
  f.session.pipeline().undo();
  QCOMPARE(serialize(f.session.pipeline().document()), before);
}

void CanvasTest::aWireDroppedOnNothingLeavesNoTraceOnEsc() {
  Fixture f(smallPipeline());
  const std::string before = serialize(f.session.pipeline().document());
  dragMouse(f.window.canvas().viewport(), f.portOnView({"fc", "y", true}), {60, 60});
  auto* popup = f.window.canvas().findChild<SearchPopup*>();
  QVERIFY(popup);
  QTest::keyClick(popup, Qt::Key_Escape);
  QVERIFY(!popup->isVisible());
  QCOMPARE(serialize(f.session.pipeline().document()), before);
  QVERIFY(!f.session.pipeline().history().canUndo());
}

void CanvasTest::aWireThatLeadsToAnInputAsksForItsSource() {
  Fixture f(smallPipeline());
  QVERIFY(f.session.pipeline().apply(RemoveWire{.wire = {{"fc", "y"}, {"act", "x"}}}));
  QVERIFY(waitForAnalysis(f.session));
  f.window.canvas().fit();
  const QPoint below(30, f.window.canvas().viewport()->height() - 30);
  dragMouse(f.window.canvas().viewport(), f.portOnView({"act", "x", false}), below);
  auto* popup = f.window.canvas().findChild<SearchPopup*>();
  QVERIFY(popup && listedIn(*popup).contains(QStringLiteral("Input")));
  QVERIFY(!listedIn(*popup).contains(QStringLiteral("Output")));
  QVERIFY(search(f, "bias"));
  QVERIFY(isWired(f.session, "bias.y", "act.x"));
}

namespace {

/// A loose op above the wire from norm to fc, and the middle of that wire.
QPoint placeAboveAWire(Fixture& f) {
  f.window.scene().moves().layOut();
  drop(f.window.canvas(), "Identity", {60, 60});
  f.window.canvas().fit();
  return (f.portOnView({"norm", "y", true}) + f.portOnView({"fc", "x", false})) / 2;
}

void dragNode(Fixture& f, const char* id, QPoint to, Qt::KeyboardModifiers modifiers,
              Qt::KeyboardModifiers atPress = Qt::NoModifier) {
  GraphView& view = f.window.canvas();
  const QPoint from = view.mapFromScene(f.window.scene().node(id)->sceneBox().center());
  QTest::mousePress(view.viewport(), Qt::LeftButton, atPress, from);
  for (int step = 1; step <= 4; ++step) {
    const QPoint at = from + (to - from) * step / 4;
    QMouseEvent move(QEvent::MouseMove, at, view.viewport()->mapToGlobal(at), Qt::NoButton, Qt::LeftButton, modifiers);
    QApplication::sendEvent(view.viewport(), &move);
  }
  QTest::mouseRelease(view.viewport(), Qt::LeftButton, modifiers, to);
}

}  // namespace

void CanvasTest::aLooseOpIsPutIntoAWireUnderIt() {
  Fixture f(smallPipeline());
  const QPoint middle = placeAboveAWire(f);
  const std::string before = serialize(f.session.pipeline().document());
  dragNode(f, "identity", middle, Qt::NoModifier);
  QVERIFY(isWired(f.session, "norm.y", "identity.x"));
  QVERIFY(isWired(f.session, "identity.y", "fc.x"));
  QCOMPARE(overlapIn(f), QString());
  f.session.pipeline().undo();
  QCOMPARE(serialize(f.session.pipeline().document()), before);
}

void CanvasTest::withAltALooseOpOnlyMoves() {
  Fixture f(smallPipeline());
  const QPoint middle = placeAboveAWire(f);
  const QPointF before = f.window.scene().node("identity")->pos();
  dragNode(f, "identity", middle, Qt::AltModifier);
  QVERIFY(isWired(f.session, "norm.y", "fc.x"));
  QVERIFY(f.window.scene().node("identity")->pos() != before);
}

void CanvasTest::cutTakesOpsToTheClipboard() {
  Fixture f(smallPipeline());
  f.session.selection().select({QStringLiteral("fc"), QStringLiteral("x")});
  f.window.scene().commands().cutSelected();
  QVERIFY(!f.session.pipeline().document().findOp("fc"));
  QVERIFY(f.session.pipeline().document().findInput("x"));  // it would not come back
  f.window.scene().commands().paste();
  QVERIFY(f.session.pipeline().document().findOp("fc"));
}

void CanvasTest::aBypassedOpIsAGhostAndIsUsedAgain() {
  Fixture f(smallPipeline());
  const std::string before = serialize(f.session.pipeline().document());
  f.session.selection().select({QStringLiteral("norm"), QStringLiteral("act")});
  f.window.activateWindow();
  QVERIFY(QTest::qWaitForWindowActive(&f.window));
  f.window.canvas().setFocus();
  QTest::keyClick(&f.window.canvas(), Qt::Key_D);
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.window.scene().node("act")->look().isBypassed);
  QVERIFY(f.window.canvas().sentences().of("act").contains(QStringLiteral("bypassed")));
  QCOMPARE(f.session.plan().analysis()->graph().nodes().size(), std::size_t{1});
  f.session.pipeline().undo();
  QCOMPARE(serialize(f.session.pipeline().document()), before);
  f.session.pipeline().redo();
  QTest::keyClick(&f.window.canvas(), Qt::Key_D);
  QCOMPARE(serialize(f.session.pipeline().document()), before);
}

void CanvasTest::aBypassThatCannotBeSaysWhy() {
  Fixture f(smallPipeline());
  QSignalSpy hints(&f.window.scene(), &GraphScene::hint);
  f.session.selection().select({QStringLiteral("norm"), QStringLiteral("fc")});
  f.window.scene().commands().toggleBypass();
  QVERIFY2(lastOf(hints).startsWith(QStringLiteral("fc is bypassed, but turns [16, 32] bf16 into [16, 64] bf16")),
           qPrintable(lastOf(hints)));
  QVERIFY(!f.session.pipeline().history().canUndo());
}

void CanvasTest::findsOpsAndTheNextOne() {
  Fixture f(smallPipeline());
  f.window.canvas().search().find();
  QVERIFY(search(f, "16x64"));  // fc makes it, act as well, and y is it
  QCOMPARE(f.session.selection().single(), QStringLiteral("fc"));
  f.window.canvas().search().findNext(1);
  QCOMPARE(f.session.selection().single(), QStringLiteral("act"));
  f.window.canvas().search().findNext(1);
  QCOMPARE(f.session.selection().single(), QStringLiteral("y"));
  f.window.canvas().search().findNext(1);
  QCOMPARE(f.session.selection().single(), QStringLiteral("fc"));
  f.window.canvas().search().findNext(-1);
  QCOMPARE(f.session.selection().single(), QStringLiteral("y"));
}

void CanvasTest::fShowsTheSelection() {
  Fixture f(smallPipeline());
  GraphView& view = f.window.canvas();
  view.zoomTo(0.3);
  f.session.selection().select({QStringLiteral("act")});
  QTest::keyClick(&view, Qt::Key_F);
  const QPoint centre = view.mapFromScene(f.window.scene().node("act")->sceneBox().center());
  QVERIFY((centre - view.viewport()->rect().center()).manhattanLength() < 10);
  QCOMPARE(view.zoom(), 1.0);
  QTest::keyClick(&view, Qt::Key_Home);
  QVERIFY(view.viewport()->rect().contains(view.mapFromScene(f.window.scene().node("x")->sceneBox().center())));
}

void CanvasTest::takesAWireOffItsInput() {
  Fixture f(smallPipeline());
  dragMouse(f.window.canvas().viewport(), f.portOnView({"act", "x", false}), {30, 30});
  QVERIFY(!isWired(f.session, "fc.y", "act.x"));
  f.session.pipeline().undo();
  QVERIFY(isWired(f.session, "fc.y", "act.x"));
}

/// The nearest input that has no wire is aimed at.
void CanvasTest::drawsAWireByKeys() {
  Fixture f(smallPipeline());
  QVERIFY(f.session.pipeline().apply(RemoveWire{.wire = {{"fc", "y"}, {"act", "x"}}}));
  f.session.selection().select({QStringLiteral("fc")});
  QSignalSpy hints(&f.window.scene(), &GraphScene::hint);
  pressW(f);
  QVERIFY(f.window.scene().wires().isDrawing());
  QVERIFY2(lastOf(hints).startsWith(QStringLiteral("fc.y → act.x. Enter: connect")), qPrintable(lastOf(hints)));
  QTest::keyClick(&f.window.canvas(), Qt::Key_Return);
  QVERIFY(!f.window.scene().wires().isDrawing());
  QCOMPARE(lastOf(hints), QString());
  QVERIFY(isWired(f.session, "fc.y", "act.x"));
  f.session.pipeline().undo();
  QVERIFY(!isWired(f.session, "fc.y", "act.x"));
}

/// Only at ports that the wire may join.
void CanvasTest::arrowKeysAimAWire() {
  Fixture f(smallPipeline());
  f.session.selection().select({QStringLiteral("norm")});
  QSignalSpy hints(&f.window.scene(), &GraphScene::hint);
  pressW(f);
  QTest::keyClick(&f.window.canvas(), Qt::Key_Right);
  QVERIFY2(lastOf(hints).contains(QStringLiteral("fc.x")), qPrintable(lastOf(hints)));
  QTest::keyClick(&f.window.canvas(), Qt::Key_Right);
  QVERIFY2(lastOf(hints).contains(QStringLiteral("act.x")), qPrintable(lastOf(hints)));
  QTest::keyClick(&f.window.canvas(), Qt::Key_Left);
  QVERIFY2(lastOf(hints).contains(QStringLiteral("fc.x")), qPrintable(lastOf(hints)));
  QTest::keyClick(&f.window.canvas(), Qt::Key_Left);  // there is none: norm's own, and x is an input of the pipeline
  QVERIFY2(lastOf(hints).contains(QStringLiteral("fc.x")), qPrintable(lastOf(hints)));
  QCOMPARE(f.session.selection().single(), QStringLiteral("norm"));
  f.window.scene().wires().cancel();
  QTest::keyClick(&f.window.canvas(), Qt::Key_Right);
  QCOMPARE(f.session.selection().single(), QStringLiteral("fc"));
}

void CanvasTest::keysTakeAWireOffItsInput() {
  Fixture f(smallPipeline());
  const std::string before = serialize(f.session.pipeline().document());
  f.session.selection().select({QStringLiteral("act")});
  QSignalSpy hints(&f.window.scene(), &GraphScene::hint);
  pressW(f);
  pressW(f);
  QVERIFY2(lastOf(hints).startsWith(QStringLiteral("Disconnected from act.x.")), qPrintable(lastOf(hints)));
  f.window.scene().wires().cancel();
  QCOMPARE(serialize(f.session.pipeline().document()), before);
  pressW(f);
  pressW(f);
  QTest::keyClick(&f.window.canvas(), Qt::Key_Return);
  QVERIFY(!isWired(f.session, "fc.y", "act.x"));
}

void CanvasTest::saysWhereAWireByKeysBegins() {
  Fixture f(smallPipeline());
  f.session.selection().select({});
  QSignalSpy hints(&f.window.scene(), &GraphScene::hint);
  pressW(f);
  QVERIFY(!f.window.scene().wires().isDrawing());
  QVERIFY2(lastOf(hints).startsWith(QStringLiteral("No op is selected. Select the source op")),
           qPrintable(lastOf(hints)));
}

void CanvasTest::wireByKeysBeginsAtAFreePort() {
  Fixture f(smallPipeline());
  drop(f.window.canvas(), "MakeExtraOutput", f.portOnView({"fc", "y", true}) + QPoint(20, 0));
  const std::string id = f.session.selection().single().toStdString();
  QVERIFY(isWired(f.session, "fc.y", (id + ".x").c_str()));
  QSignalSpy hints(&f.window.scene(), &GraphScene::hint);
  pressW(f);
  QVERIFY2(lastOf(hints).startsWith(toQt(id + ".extra → ...")), qPrintable(lastOf(hints)));
  pressW(f);
  QVERIFY2(lastOf(hints).startsWith(toQt(id + ".y → ")), qPrintable(lastOf(hints)));
}

void CanvasTest::selectedOpIsDescribedInWords() {
  Fixture f(smallPipeline());
  QVERIFY(waitForAnalysis(f.session));
  f.session.selection().select({QStringLiteral("fc")});
  const QString text = f.window.canvas().accessibleDescription();
  QVERIFY2(text.startsWith(QStringLiteral("fc, Linear, input 16 × 32 bf16, output 16 × 64 bf16")), qPrintable(text));
  QVERIFY2(text.contains(QStringLiteral("fused forward in ForwardLinearEpilogue")), qPrintable(text));
  f.session.selection().select({QStringLiteral("fc"), QStringLiteral("act")});
  QCOMPARE(f.window.canvas().accessibleDescription(), QStringLiteral("Selected: act, fc"));
}

void CanvasTest::movesANodeAsOneUndoStep() {
  Fixture f(smallPipeline());
  const std::string before = serialize(f.session.pipeline().document());
  GraphView& view = f.window.canvas();
  const QPoint centre = view.mapFromScene(f.window.scene().node("fc")->sceneBox().center());
  dragMouse(view.viewport(), centre, centre + QPoint(0, 80));
  QCOMPARE(f.session.pipeline().document().positions().size(), std::size_t{1});
  QVERIFY(f.session.pipeline().history().canUndo());
  f.session.pipeline().undo();
  QCOMPARE(serialize(f.session.pipeline().document()), before);
  QVERIFY(!f.session.pipeline().history().canUndo());
}

void CanvasTest::snappingCanBeSwitchedOff() {
  Fixture f(smallPipeline());
  const auto isOnGridAfter = [&](int distance) {
    GraphView& view = f.window.canvas();
    const QPoint centre = view.mapFromScene(f.window.scene().node("fc")->sceneBox().center());
    dragMouse(view.viewport(), centre, centre + QPoint(0, distance));
    return f.window.scene().node("fc")->pos().toPoint().y() % kGridPx == 0;
  };
  for (const int distance : {41, 43, 46}) QVERIFY(isOnGridAfter(distance));
  for (QAction* action : f.window.findChildren<QAction*>())
    if (action->text().remove(u'&') == QStringLiteral("Snap nodes to the grid")) action->trigger();
  QVERIFY(!isOnGridAfter(-41) || !isOnGridAfter(-43) || !isOnGridAfter(-46));
}

void CanvasTest::ctrlDuringADragPlacesFreely() {
  Fixture f(smallPipeline());
  QWidget* viewport = f.window.canvas().viewport();
  const QPoint centre = f.window.canvas().mapFromScene(f.window.scene().node("fc")->sceneBox().center());
  const double before = f.window.scene().node("fc")->pos().y();
  QTest::mousePress(viewport, Qt::LeftButton, {}, centre);
  for (const int way : {20, 41, 43}) QTest::mouseMove(viewport, centre + QPoint(0, way));
  QTest::mouseRelease(viewport, Qt::LeftButton, Qt::ControlModifier, centre + QPoint(0, 43));
  const double way = (f.window.scene().node("fc")->pos().y() - before) * f.window.canvas().zoom();
  QVERIFY2(std::abs(way - 43) < 1.5, qPrintable(QString::number(way)));
}

void CanvasTest::ctrlAndADragMovesAllWiresOfAnOutput() {
  Fixture f(smallPipeline());
  f.session.pipeline().apply(AddOp{{.id = "other", .operation = "ReLU"}});
  f.session.pipeline().apply(AddWire{{{"norm", "y"}, {"other", "x"}}});
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(isWired(f.session, "norm.y", "fc.x") && isWired(f.session, "norm.y", "other.x"));
  f.window.canvas().fit();
  QWidget* viewport = f.window.canvas().viewport();
  const auto moveWires = [&](const PortRef& to) {
    const QPoint end = f.portOnView(to);
    QTest::mousePress(viewport, Qt::LeftButton, Qt::ControlModifier, f.portOnView({"norm", "y", true}));
    QTest::mouseMove(viewport, end + QPoint(30, 30));
    QTest::mouseMove(viewport, end);
    QTest::mouseRelease(viewport, Qt::LeftButton, Qt::ControlModifier, end);
  };
  moveWires({"act", "y", true});  // downstream of fc: a cycle
  QVERIFY(isWired(f.session, "norm.y", "fc.x") && isWired(f.session, "norm.y", "other.x"));
  moveWires({"x", "", true});
  QVERIFY(isWired(f.session, "x", "fc.x") && isWired(f.session, "x", "other.x"));
  f.session.pipeline().undo();
  QVERIFY(isWired(f.session, "norm.y", "fc.x") && isWired(f.session, "norm.y", "other.x"));
}

void CanvasTest::aBrokenWireIsMarked() {
  Fixture f(smallPipeline());
  const auto broken = [&] {
    QStringList ends;
    for (const LinkItem* link : f.window.scene().links())
      if (link->isBroken()) ends.append(QString::fromStdString(toString(link->link().to)));
    return ends;
  };
  QCOMPARE(broken(), QStringList());
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "fc", .name = "in_features", .value = 7}));
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(broken(), QStringList("fc.x"));
  for (const LinkItem* link : f.window.scene().links())
    if (link->isBroken()) QCOMPARE(link->color(), f.theme.colors().error);
  f.session.pipeline().undo();
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(broken(), QStringList());
}

void CanvasTest::keysChooseTheOutlinedPass() {
  Fixture f(residualPipeline(true));
  f.window.show();
  const auto filterAfter = [&](Qt::Key key) {
    press(f, key);
    return f.window.scene().canvasItems().hullFilter();
  };
  QVERIFY(filterAfter(Qt::Key_B) == HullFilter::Forward);
  QVERIFY(filterAfter(Qt::Key_B) == HullFilter::Backward);
  QVERIFY(filterAfter(Qt::Key_U) == HullFilter::None);
  QVERIFY(filterAfter(Qt::Key_U) == HullFilter::Backward);
  QVERIFY(filterAfter(Qt::Key_B) == HullFilter::Both);
}

void CanvasTest::undoGivesBackTheSameBytes() {
  Fixture f(smallPipeline());
  const std::string before = serialize(f.session.pipeline().document());
  drop(f.window.canvas(), "RMSNorm", {80, 80});
  f.window.scene().commands().insertAfterSelection("Bias");
  f.session.selection().select({QStringLiteral("fc")});
  f.window.scene().commands().duplicateSelected();
  f.window.scene().commands().removeSelected(Reconnect::No);
  while (f.session.pipeline().history().canUndo()) f.session.pipeline().undo();
  QCOMPARE(serialize(f.session.pipeline().document()), before);
}

void CanvasTest::makesABlockAndExpandsIt() {
  Fixture f(smallPipeline());
  const std::string before = serialize(f.session.pipeline().document());
  f.session.selection().select({QStringLiteral("fc"), QStringLiteral("act")});
  f.window.scene().commands().makeBlockOfSelected("Mlp");
  QCOMPARE(f.session.selection().single(), QStringLiteral("mlp"));
  QVERIFY(isWired(f.session, "norm.y", "mlp.x"));
  QVERIFY(isWired(f.session, "mlp.y", "y"));
  QVERIFY(waitForAnalysis(f.session));
  const NodeLook& look = f.window.scene().node("mlp")->look();
  QCOMPARE(look.title, QStringLiteral("Mlp"));
  QCOMPARE(look.inputs.size(), std::size_t{1});
  QCOMPARE(look.outputs.size(), std::size_t{1});
  QVERIFY(!look.isUnknown);
  QVERIFY(valueAt(f.session.plan().analysis()->graph(), {"mlp", "y"}));
  f.window.scene().commands().expandSelected();
  QCOMPARE(f.session.selection().ids(), QSet<QString>({QStringLiteral("fc"), QStringLiteral("act")}));
  QVERIFY(isWired(f.session, "fc.y", "act.x"));
  while (f.session.pipeline().history().canUndo()) f.session.pipeline().undo();
  QCOMPARE(serialize(f.session.pipeline().document()), before);
}

void CanvasTest::asksForTheNameOfABlock() {
  Fixture f(smallPipeline());
  f.session.selection().select({QStringLiteral("fc")});
  QAction* command = nullptr;
  for (QAction* action : f.window.canvas().actions()) {
    if (action->text() == QStringLiteral("&Make block...")) command = action;
  }
  QVERIFY(command);
  QTimer::singleShot(0, &f.window, [] {
    auto* dialog = qobject_cast<QInputDialog*>(QApplication::activeModalWidget());
    if (!dialog) return;
    dialog->setTextValue(QStringLiteral("Project"));
    dialog->accept();
  });
  command->trigger();
  QVERIFY(f.session.pipeline().document().findBlock("Project"));
}

void CanvasTest::dropsABlockFromThePalette() {
  Fixture f(smallPipeline());
  f.session.selection().select({QStringLiteral("act")});
  f.window.scene().commands().makeBlockOfSelected("Act");
  drop(f.window.canvas(), "block:Act", {60, 60});
  const DocumentOp* op = f.session.pipeline().document().findOp("act2");
  QVERIFY(op);
  QCOMPARE(op->operation, std::string("block:Act"));
}

void CanvasTest::rightClickSelectsTheSubjectOfTheMenu() {
  Fixture f(smallPipeline());
  const NodeItem* item = f.window.scene().node("fc");
  const QPoint place = f.window.canvas().mapFromScene(item->sceneBox().center());
  QTest::mouseClick(f.window.canvas().viewport(), Qt::RightButton, {}, place);
  QCOMPARE(f.session.selection().single(), QStringLiteral("fc"));
  f.session.selection().select({QStringLiteral("fc"), QStringLiteral("act")});
  QTest::mouseClick(f.window.canvas().viewport(), Qt::RightButton, {}, place);
  QCOMPARE(f.session.selection().ids().size(), 2);
}

void CanvasTest::arrowKeysWalkAlongThePipeline() {
  Fixture f(smallPipeline());
  f.session.selection().select({QStringLiteral("norm")});
  QTest::keyClick(&f.window.canvas(), Qt::Key_Right);
  QCOMPARE(f.session.selection().single(), QStringLiteral("fc"));
  QTest::keyClick(&f.window.canvas(), Qt::Key_Left);
  QTest::keyClick(&f.window.canvas(), Qt::Key_Left);
  QCOMPARE(f.session.selection().single(), QStringLiteral("x"));
}

/// The residual's wire leads over the ops between.
void CanvasTest::ctrlArrowKeysFollowWires() {
  Fixture f(residualPipeline(false));
  QVERIFY(waitForAnalysis(f.session));
  const Link* across = nullptr;
  const std::vector<Link> links = linksOf(f.session.pipeline().document());
  for (const Link& link : links)
    if (link.to.port == "extra") across = &link;
  QVERIFY(across);
  f.session.selection().select({toQt(across->to.node)});
  QTest::keyClick(&f.window.canvas(), Qt::Key_Left, Qt::ControlModifier);
  const auto isLinked = [&](const std::string& from, const std::string& to) {
    return std::ranges::any_of(links, [&](const Link& link) { return link.from.node == from && link.to.node == to; });
  };
  const std::string before = f.session.selection().single().toStdString();
  QVERIFY(isLinked(before, across->to.node));
  QTest::keyClick(&f.window.canvas(), Qt::Key_Right, Qt::ControlModifier);
  QVERIFY(isLinked(before, f.session.selection().single().toStdString()));
  f.session.selection().select({QStringLiteral("x")});
  QTest::keyClick(&f.window.canvas(), Qt::Key_Left, Qt::ControlModifier);
  QCOMPARE(f.session.selection().single(), QStringLiteral("x"));  // nothing is wired into an input
}

void CanvasTest::tabSearchesAndInserts() {
  Fixture f(smallPipeline());
  f.session.selection().select({QStringLiteral("fc")});
  QTest::keyClick(&f.window.canvas(), Qt::Key_Tab);
  auto* popup = f.window.canvas().findChild<SearchPopup*>();
  QVERIFY(popup);
  auto* query = popup->findChild<QLineEdit*>();
  QTest::keyClicks(query, QStringLiteral("bias"));
  QTest::keyClick(query, Qt::Key_Return);
  QVERIFY(isWired(f.session, "fc.y", "bias.x"));
  QVERIFY(isWired(f.session, "bias.y", "act.x"));
}

void CanvasTest::deleteReconnectsWithCtrl() {
  Fixture f(smallPipeline());
  f.session.selection().select({QStringLiteral("fc")});
  f.window.scene().commands().removeSelected(Reconnect::Yes);
  QVERIFY(isWired(f.session, "norm.y", "act.x"));
}

void CanvasTest::layoutOfTheSelectionLeavesTheRest() {
  Fixture f(smallPipeline());
  const auto cornerOf = [&](const char* id) { return f.window.scene().node(id)->pos(); };
  QVERIFY(f.session.pipeline().apply(MoveNode{.id = "fc", .position = Position{400, 800}}));
  QVERIFY(f.session.pipeline().apply(MoveNode{.id = "act", .position = Position{480, 640}}));
  const QPointF norm = cornerOf("norm");
  f.session.selection().select({QStringLiteral("fc"), QStringLiteral("act")});
  f.window.scene().moves().layOut();
  QCOMPARE(cornerOf("norm"), norm);
  QCOMPARE(cornerOf("fc"), QPointF(400, 640));
  QCOMPARE(cornerOf("act").y(), 640.0);
  QVERIFY(cornerOf("act").x() > cornerOf("fc").x() + kNodeWidthPx);
  f.session.pipeline().undo();
  QCOMPARE(cornerOf("fc"), QPointF(400, 800));
}

/// Three boxes of 152 x 56 with their corners at (0, 0), (400, 80) and (200, 304).
void CanvasTest::arrangesTheSelection_data() {
  QTest::addColumn<int>("arrangement");
  QTest::addColumn<QList<QPoint>>("corners");
  const auto row = [](const char* name, Arrangement arrangement, const QList<QPoint>& corners) {
    QTest::newRow(name) << static_cast<int>(arrangement) << corners;
  };
  row("left", Arrangement::Left, {{0, 0}, {0, 80}, {0, 304}});
  row("centre", Arrangement::Centre, {{200, 0}, {200, 80}, {200, 304}});
  row("right", Arrangement::Right, {{400, 0}, {400, 80}, {400, 304}});
  row("top", Arrangement::Top, {{0, 0}, {400, 0}, {200, 0}});
  row("middle", Arrangement::Middle, {{0, 152}, {400, 152}, {200, 152}});
  row("bottom", Arrangement::Bottom, {{0, 304}, {400, 304}, {200, 304}});
  row("straight", Arrangement::Straight, {{0, 0}, {400, 0}, {200, 0}});
  row("across", Arrangement::SpaceAcross, {{0, 0}, {400, 80}, {200, 304}});
  row("down", Arrangement::SpaceDown, {{0, 0}, {400, 152}, {200, 304}});
}

void CanvasTest::arrangesTheSelection() {
  QFETCH(const int, arrangement);
  QFETCH(const QList<QPoint>, corners);
  Fixture f(smallPipeline());
  const QList<const char*> ids = {"norm", "fc", "act"};
  const QList<Position> before = {{0, 0}, {400, 80}, {200, 304}};
  for (int i = 0; i < 3; ++i) QVERIFY(f.session.pipeline().apply(MoveNode{.id = ids[i], .position = before[i]}));
  f.session.selection().select({QStringLiteral("norm"), QStringLiteral("fc"), QStringLiteral("act")});
  f.window.scene().moves().arrangeSelected(static_cast<Arrangement>(arrangement));
  for (int i = 0; i < 3; ++i) QCOMPARE(f.window.scene().node(ids[i])->pos().toPoint(), corners[i]);
}

void CanvasTest::arrangingNeedsTwoNodes() {
  Fixture f(smallPipeline());
  f.session.selection().select({QStringLiteral("fc")});
  QSignalSpy hints(&f.window.scene(), &GraphScene::hint);
  const std::string text = serialize(f.session.pipeline().document());
  f.window.scene().moves().arrangeSelected(Arrangement::Left);
  QCOMPARE(serialize(f.session.pipeline().document()), text);
  QVERIFY(hints.last().first().toString().startsWith(QStringLiteral("Fewer than two nodes are selected")));
}

void CanvasTest::keysMoveTheSelection() {
  Fixture f(smallPipeline());
  QVERIFY(f.session.pipeline().apply(MoveNode{.id = "norm", .position = Position{160, 80}}));
  QVERIFY(f.session.pipeline().apply(MoveNode{.id = "fc", .position = Position{400, 80}}));
  const std::string before = serialize(f.session.pipeline().document());
  const auto cornerOf = [&](const char* id) { return f.window.scene().node(id)->pos(); };
  const QPointF act = cornerOf("act");
  f.session.selection().select({QStringLiteral("norm"), QStringLiteral("fc")});
  f.window.canvas().setFocus();
  for (int i = 0; i < 3; ++i) QTest::keyClick(&f.window, Qt::Key_Right, Qt::AltModifier);
  QTest::keyClick(&f.window, Qt::Key_Up, Qt::AltModifier);
  QCOMPARE(cornerOf("norm"), QPointF(184, 72));
  QCOMPARE(cornerOf("fc"), QPointF(424, 72));
  QCOMPARE(cornerOf("act"), act);
  f.session.pipeline().undo();
  QCOMPARE(serialize(f.session.pipeline().document()), before);
  f.session.selection().select({});
  QTest::keyClick(&f.window, Qt::Key_Down, Qt::AltModifier);
  QCOMPARE(serialize(f.session.pipeline().document()), before);
}

void CanvasTest::layoutIsOneUndoStepWithoutOverlaps() {
  Fixture f(residualPipeline(true));
  const std::string before = serialize(f.session.pipeline().document());
  for (const DocumentOp& op : f.session.pipeline().document().ops()) {
    QVERIFY(f.session.pipeline().apply(MoveNode{.id = op.id, .position = Position{0, 0}}));
  }
  f.window.scene().moves().layOut();
  for (const DocumentOp& a : f.session.pipeline().document().ops()) {
    for (const DocumentOp& b : f.session.pipeline().document().ops()) {
      if (a.id == b.id) continue;
      QVERIFY(!f.window.scene().node(a.id)->sceneBox().intersects(f.window.scene().node(b.id)->sceneBox()));
    }
  }
  f.session.pipeline().undo();
  QCOMPARE(f.window.scene().node("fc")->pos(), QPointF(0, 0));
}

void CanvasTest::hullsFollowThePlan() {
  Fixture f(residualPipeline(true));
  const auto numForward = [&] {
    f.window.scene().canvasItems().setHullFilter(HullFilter::Forward);
    return f.window.scene().canvasItems().hulls().size();
  };
  const auto numInPlace = numForward();
  QVERIFY(numInPlace >= 1);
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "add", .name = "in_place", .value = false}));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(numForward() < numInPlace);
  f.window.scene().canvasItems().setHullFilter(HullFilter::None);
  QVERIFY(f.window.scene().canvasItems().hulls().empty());
}

void CanvasTest::aFusionIsSwitchedOffAndOnAtItsHull() {
  Fixture f(smallPipeline());
  GraphView& view = f.window.canvas();
  const auto hull = [&](bool isOff) -> const HullItem* {
    const auto& hulls = f.window.scene().canvasItems().hulls();
    const auto found = std::ranges::find_if(hulls, [&](const HullItem* item) {
      return item->look().rule == QStringLiteral("ForwardLinearEpilogue") && item->look().isOff == isOff;
    });
    return found == hulls.end() ? nullptr : *found;
  };
  QVERIFY(hull(false) && !hull(true));
  QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, view.mapFromScene(hull(false)->labelArea().center()));
  QCOMPARE(f.session.selection().rule(), QStringLiteral("ForwardLinearEpilogue"));
  f.window.activateWindow();
  QVERIFY(QTest::qWaitForWindowActive(&f.window));
  view.setFocus();
  QTest::keyClick(&view, Qt::Key_T);
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(!hull(false) && hull(true));
  QTest::keyClick(&view, Qt::Key_T);
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(hull(false) && !hull(true));
  QTest::keyClick(&view, Qt::Key_Right);  // another selection: the hull is not meant any more
  QVERIFY(f.session.selection().rule().isEmpty());
}

void CanvasTest::drawsUnknownOpsAndKeepsThem() {
  std::string text = smallPipeline();
  text.replace(text.find("\"GELU\""), 6, "\"FutureOp\"");
  Fixture f(text);
  const NodeItem* item = f.window.scene().node("act");
  QVERIFY(item);
  QVERIFY(item->look().isUnknown);
  QCOMPARE(item->look().title, QStringLiteral("FutureOp"));
  QVERIFY(item->portPosition({"act", "x", false}).has_value());
  QVERIFY(!f.session.plan().analysis()->isRunnable());
  QVERIFY(serialize(f.session.pipeline().document()).find("FutureOp") != std::string::npos);
}

void CanvasTest::drawsThePortsThatAttributesDefine() {
  std::string text = smallPipeline();
  text.replace(text.find("\"GELU\""), 6, "\"Formula\"");
  Fixture f(text);
  const auto hasPort = [&](const char* port) {
    return f.window.scene().node("act")->portPosition({"act", port, false}).has_value();
  };
  const auto set = [&](const char* name, const char* value) {
    return f.session.pipeline().apply(SetAttribute{.id = "act", .name = name, .value = value}) &&
           waitForAnalysis(f.session);
  };
  QVERIFY(!hasPort("b"));
  QVERIFY(set("inputs", "b"));
  QVERIFY(set("y", "x * b"));
  QVERIFY(hasPort("b"));
  QVERIFY(f.session.pipeline().apply(
      AddWire{.wire = {f.session.pipeline().document().wires().front().from, {"act", "b"}}}));
  QVERIFY(waitForAnalysis(f.session));

  // The formula is wrong for a while: wire and port stay.
  QVERIFY(set("y", "x * b +"));
  QVERIFY(hasPort("b"));
  QVERIFY(!f.session.plan().analysis()->isRunnable());
  QVERIFY(set("inputs", ""));
  QVERIFY(set("y", "2 * x"));
  QVERIFY(hasPort("b"));
  const auto& problems = f.session.plan().analysis()->lowered.diagnostics;
  QVERIFY(std::ranges::any_of(problems, [](const Diagnostic& d) { return d.code == "unknown-port"; }));
  const Endpoint from = f.session.pipeline().document().wires().back().from;
  QVERIFY(f.session.pipeline().apply(RemoveWire{.wire = {from, {"act", "b"}}}));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(!hasPort("b"));
}

void CanvasTest::pinchZoomsAtTheFingers() {
  Fixture f(smallPipeline());
  GraphView& view = f.window.canvas();
  view.zoomTo(0.5);
  const QPoint fingers(60, 40);
  const QPointF before = view.mapToScene(fingers);
  pinch(*view.viewport(), fingers, 1.5);
  QVERIFY(std::abs(view.zoom() - 0.75) < 1e-9);
  const QPointF moved = view.mapToScene(fingers) - before;
  QVERIFY2(std::hypot(moved.x(), moved.y()) < 3.0, "the place under the fingers stays there");
  pinch(*view.viewport(), fingers, 0.5);
  QVERIFY(std::abs(view.zoom() - 0.375) < 1e-9);
}

void CanvasTest::shiftAddsToTheSelection() {
  Fixture f(smallPipeline());
  GraphView& view = f.window.canvas();
  const auto middleOf = [&](const char* id) {
    return view.mapFromScene(f.window.scene().node(id)->sceneBox().center());
  };
  QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, middleOf("norm"));
  QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::ShiftModifier, middleOf("act"));
  QCOMPARE(f.session.selection().ids(), (QSet<QString>{"norm", "act"}));
  QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::ShiftModifier, middleOf("act"));
  QCOMPARE(f.session.selection().ids(), (QSet<QString>{"norm", "act"}));
  const QRectF box = f.window.scene().node("fc")->sceneBox().adjusted(-6, -6, 6, 6);
  const QPoint corner = view.mapFromScene(box.topLeft());
  QTest::mousePress(view.viewport(), Qt::LeftButton, Qt::ShiftModifier, corner);
  for (const double share : {0.5, 1.0}) {
    const QPoint place = corner + (view.mapFromScene(box.bottomRight()) - corner) * share;
    QMouseEvent move(QEvent::MouseMove, place, view.viewport()->mapToGlobal(place), Qt::NoButton, Qt::LeftButton,
                     Qt::ShiftModifier);
    QApplication::sendEvent(view.viewport(), &move);
  }
  QTest::mouseRelease(view.viewport(), Qt::LeftButton, Qt::ShiftModifier, view.mapFromScene(box.bottomRight()));
  QCOMPARE(f.session.selection().ids(), (QSet<QString>{"norm", "fc", "act"}));
}

void CanvasTest::selectsUpstreamAndDownstream() {
  Fixture f(smallPipeline());
  GraphView& view = f.window.canvas();
  const QPoint fc = view.mapFromScene(f.window.scene().node("fc")->sceneBox().center());
  QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::ShiftModifier | Qt::AltModifier, fc);
  QCOMPARE(f.session.selection().ids(), (QSet<QString>{"x", "norm", "fc"}));
  f.session.selection().select({});
  QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::ControlModifier | Qt::AltModifier, fc);
  QVERIFY(f.session.selection().ids().contains("act") && !f.session.selection().ids().contains("norm"));
  f.session.selection().select({QStringLiteral("norm")});
  f.window.scene().selection().selectReachable(FlowDirection::Upstream);
  QCOMPARE(f.session.selection().ids(), (QSet<QString>{"x", "norm"}));
}

void CanvasTest::menusAreAboutTheItemUnderThePointer() {
  Fixture f(smallPipeline());
  GraphView& view = f.window.canvas();
  GraphScene& scene = f.window.scene();
  const auto has = [&](QPoint place, const QString& text) {
    const auto menu = contextMenuAt(view, place);
    return std::ranges::any_of(menu->actions(), [&](const QAction* action) { return action->text().contains(text); });
  };
  const QPoint node = view.mapFromScene(scene.node("fc")->sceneBox().center());
  const QPoint wire = view.mapFromScene(scene.links().front()->path().pointAtPercent(0.5));
  QVERIFY(has(node, "Replace") || has(node, "Rep&lace"));
  const auto ofNode = contextMenuAt(view, node);
  const QList<QAction*> commands = ofNode->actions();
  QVERIFY(std::ranges::count_if(commands, &QAction::isSeparator) >= 3);
  QVERIFY(!commands.front()->isSeparator() && !commands.back()->isSeparator());
  for (const QAction* command : commands) QVERIFY(!command->property(kViewKeyProperty).toBool());
  QVERIFY(has({2, 2}, "Insert op here") && has({2, 2}, "Fit all") && !has({2, 2}, "Remove the wire"));
  QVERIFY(has(wire, "Remove the wire to norm.x"));
  f.session.selection().select({QStringLiteral("act")});
  const auto menu = contextMenuAt(view, wire);
  menu->actions().last()->trigger();
  QVERIFY(!linkInto(f.session.pipeline().document(), {"norm", "x"}));
  QVERIFY2(f.session.pipeline().document().findOp("act"), "the menu is about the wire, not about what is selected");
}

namespace {

/// Enabled commands alone.
QAction* commandOf(const QMenu& menu, const char* text) {
  const QList<QAction*> commands = menu.actions();
  const auto found = std::ranges::find_if(commands, [&](const QAction* command) {
    return command->text().startsWith(QString::fromLatin1(text)) && command->isEnabled();
  });
  return found == commands.end() ? nullptr : *found;
}

}  // namespace

void CanvasTest::portsHaveAMenu() {
  Fixture f(smallPipeline());
  GraphView& view = f.window.canvas();
  QSignalSpy inspected(&view, &GraphView::tensorWanted);
  const auto output = contextMenuAt(view, f.portOnView({"norm", "y", true}));
  QVERIFY(commandOf(*output, "Find an op to connect norm.y to"));
  commandOf(*output, "Inspect tensor")->trigger();
  QCOMPARE(inspected.takeFirst().front().toString(), QStringLiteral("norm.y"));
  const auto input = contextMenuAt(view, f.portOnView({"fc", "x", false}));
  commandOf(*input, "Inspect tensor")->trigger();
  QCOMPARE(inspected.takeFirst().front().toString(), QStringLiteral("norm.y"));
  QVERIFY(!commandOf(*input, "Find an op"));  // it has a wire
  commandOf(*input, "Disconnect fc.x")->trigger();
  QVERIFY(!isWired(f.session, "norm.y", "fc.x"));
  const auto open = contextMenuAt(view, f.portOnView({"fc", "x", false}));
  QVERIFY(!commandOf(*open, "Disconnect") && commandOf(*open, "Find an op to feed fc.x"));
  commandOf(*open, "Draw a wire from fc.x")->trigger();
  QVERIFY(f.window.scene().wires().isDrawing());
  QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, f.portOnView({"norm", "y", true}));
  QVERIFY(isWired(f.session, "norm.y", "fc.x"));
}

void CanvasTest::reroutePointsHaveAMenu() {
  Fixture f(smallPipeline());
  GraphView& view = f.window.canvas();
  const RerouteLayer& reroutes = f.window.scene().canvasItems().reroutes();
  const QPoint wire = view.mapFromScene(f.window.scene().links().front()->path().pointAtPercent(0.5));
  commandOf(*contextMenuAt(view, wire), "Add a reroute point")->trigger();
  QCOMPARE(reroutes.items().size(), std::size_t{1});
  const QPoint point = view.mapFromScene(reroutes.items().front()->pos());
  commandOf(*contextMenuAt(view, point), "Remove the reroute point")->trigger();
  QVERIFY(reroutes.items().empty());
}

void CanvasTest::replacesTheSelectedOp() {
  Fixture f(smallPipeline());
  f.session.selection().select({QStringLiteral("act")});
  f.window.canvas().search().replace();
  auto* popup = f.window.canvas().findChild<SearchPopup*>();
  QVERIFY(popup);
  auto* list = popup->findChild<QTreeWidget*>();
  QVERIFY(!list->findItems("SiLU", Qt::MatchStartsWith).isEmpty());
  QVERIFY2(list->findItems("AddExtraInput", Qt::MatchStartsWith).size() == 1, "an input more is no hindrance");
  QVERIFY2(list->findItems("GELU", Qt::MatchExactly).isEmpty(), "it is one already");
  auto* const all = popup->findChild<QCheckBox*>();
  all->click();
  list->setCurrentItem(list->findItems("GELU", Qt::MatchStartsWith).front());
  QVERIFY(hasLabel(*popup, "act is already of type GELU."));
  all->click();
  const auto rowOf = [list](const char* op) {
    return list->indexOfTopLevelItem(list->findItems(op, Qt::MatchStartsWith).front());
  };
  QVERIFY2(rowOf("SiLU") < rowOf("AddExtraInput"), "ops with as many ports come first");
  QTest::keyClicks(popup->findChild<QLineEdit*>(), "SiLU");
  QTest::keyClick(popup->findChild<QLineEdit*>(), Qt::Key_Return);
  QCOMPARE(f.op("act").operation, std::string("SiLU"));
  QCOMPARE(f.session.selection().single(), QStringLiteral("act"));
}

namespace {

/// X is held and the left button drawn from above one op's output to below the other's, and not let go.
void drawCut(Fixture& f, const PortRef& above, const PortRef& below) {
  GraphView& view = f.window.canvas();
  const QPoint from = f.portOnView(above) + QPoint(20, -60);
  const QPoint to = f.portOnView(below) + QPoint(20, 60);
  QTest::keyPress(&view, Qt::Key_X);
  QTest::mousePress(view.viewport(), Qt::LeftButton, {}, from);
  for (const double share : {0.5, 1.0}) {
    const QPoint at = from + (to - from) * share;
    QMouseEvent move(QEvent::MouseMove, at, view.viewport()->mapToGlobal(at), Qt::NoButton, Qt::LeftButton, {});
    QApplication::sendEvent(view.viewport(), &move);
  }
}

void letGoOfCut(Fixture& f) {
  QTest::mouseRelease(f.window.canvas().viewport(), Qt::LeftButton, {}, {});
  QTest::keyRelease(&f.window.canvas(), Qt::Key_X);
}

QStringList markedForCut(Fixture& f) {
  QStringList ends;
  for (const LinkItem* item : f.window.scene().links())
    if (item->isCut()) ends.append(toQt(toString(item->link().to)));
  return ends;
}

}  // namespace

void CanvasTest::aChainIsPutIntoAWireUnderIt() {
  Fixture f(smallPipeline());
  placeInARow(f, kNodePitchPx);
  QVERIFY(f.session.pipeline().apply(AddOp{.op = {.id = "id", .operation = "Identity"}}));
  QVERIFY(f.session.pipeline().apply(AddOp{.op = {.id = "silu", .operation = "SiLU"}}));
  QVERIFY(f.session.pipeline().apply(AddWire{{{"id", "y"}, {"silu", "x"}}}));
  QVERIFY(f.session.pipeline().apply(MoveNode{.id = "id", .position = Position{0, 240}}));
  QVERIFY(f.session.pipeline().apply(MoveNode{.id = "silu", .position = Position{kNodePitchPx, 240}}));
  f.window.canvas().fit();
  const std::string before = serialize(f.session.pipeline().document());
  f.session.selection().select({"id", "silu"});
  dragNode(f, "silu", middleOfWire(f), Qt::NoModifier);
  QVERIFY(isWired(f.session, "norm.y", "id.x") && isWired(f.session, "silu.y", "fc.x"));
  QCOMPARE(overlapIn(f), QString());
  f.session.pipeline().undo();
  QCOMPARE(serialize(f.session.pipeline().document()), before);
}

void CanvasTest::pastesIntoTheSelectedWire() {
  Fixture f(smallPipeline());
  const auto selectWireTo = [&](const char* node) {
    f.session.selection().select({});
    for (LinkItem* item : f.window.scene().links()) item->setSelected(item->link().to.node == node);
  };
  f.session.selection().select({"norm"});
  f.window.scene().commands().copySelected();
  QSignalSpy hints(&f.window.scene(), &GraphScene::hint);
  selectWireTo("act");
  f.window.scene().commands().paste();
  QVERIFY(f.session.pipeline().document().findOp("norm2") && isWired(f.session, "fc.y", "act.x"));
  QVERIFY2(lastOf(hints).contains("act.x") && lastOf(hints).contains("64"), qPrintable(lastOf(hints)));
  f.session.pipeline().undo();
  selectWireTo("norm");
  f.window.scene().commands().paste();
  QVERIFY(isWired(f.session, "x", "norm2.x") && isWired(f.session, "norm2.y", "norm.x"));
  f.session.pipeline().undo();
  QVERIFY(!f.session.pipeline().document().findOp("norm2"));
  QVERIFY(!f.session.pipeline().history().canUndo());
}

namespace {

QAction* labelsAction(Fixture& f, const QString& name) {
  for (const MenuCommand& command : menuCommands(*f.window.menuBar(), MenuFilling::AsTheyStand))
    if (command.path() == QStringLiteral("View > Wire labels > ") + name) return command.action;
  return nullptr;
}

const LinkItem& wireTo(Fixture& f, const char* node) {
  const auto& links = f.window.scene().links();
  return **std::ranges::find_if(links, [&](const LinkItem* item) { return item->link().to.node == node; });
}

}  // namespace

void CanvasTest::showsIncompatibleOpsAndWhy() {
  Fixture f(smallPipeline());
  const std::string before = serialize(f.session.pipeline().document());
  dragMouse(f.window.canvas().viewport(), f.portOnView({"fc", "y", true}), QPoint(60, 60));
  auto* popup = f.window.canvas().findChild<SearchPopup*>();
  QVERIFY(popup);
  const QStringList usable = listedIn(*popup);
  popup->findChild<QCheckBox*>()->click();
  const QStringList all = listedIn(*popup);
  QVERIFY(all.size() > usable.size());
  QCOMPARE(all.first(usable.size()), usable);
  auto* query = popup->findChild<QLineEdit*>();
  QTest::keyClicks(query, "Input");
  auto* list = popup->findChild<QTreeWidget*>();
  list->setCurrentItem(list->findItems("Input", Qt::MatchExactly).front());
  const auto* reason = popup->findChild<QLabel*>();
  QVERIFY(reason->isVisible());
  QCOMPARE(reason->text(), QStringLiteral("An input of the pipeline cannot be the target of a wire."));
  QTest::keyClick(query, Qt::Key_Return);
  QVERIFY(popup->isVisible());
  QCOMPARE(serialize(f.session.pipeline().document()), before);
}

void CanvasTest::wiresSayAsMuchAsIsChosen() {
  Fixture f(smallPipeline());
  QVERIFY(f.session.pipeline().apply(SetRecipe{{{"name", "Float8CurrentScaling"}}}));
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(wireTo(f, "fc").labelLines(), QStringList({"16×32", "bf16"}));
  labelsAction(f, "Off")->trigger();
  QCOMPARE(wireTo(f, "fc").labelLines(), QStringList());
  labelsAction(f, "Full")->trigger();
  QCOMPARE(wireTo(f, "fc").labelLines(), QStringList({"[16, 32]", "bf16 →"}));
  QVERIFY2(wireTo(f, "fc").toolTip().startsWith("[16, 32] bf16 → e4m3\n"), qPrintable(wireTo(f, "fc").toolTip()));
  placeInARow(f, 3 * kNodePitchPx);
  QCOMPARE(wireTo(f, "fc").labelLines(), QStringList({"[16, 32] bf16 → e4m3"}));
  QCOMPARE(wireTo(f, "act").labelLines(), QStringList({"[16, 64] bf16"}));
}

void CanvasTest::theChoiceOfLabelsIsKept() {
  const OwnSettings settings;
  Theme theme;
  Session session{SessionSettings()};
  for (const WireLabels expected : {WireLabels::Short, WireLabels::Full}) {
    MainWindow window(session, theme, Persistence::Settings);
    QCOMPARE(window.scene().canvasItems().wireLabels(), expected);
    for (const MenuCommand& command : menuCommands(*window.menuBar(), MenuFilling::AsTheyStand))
      if (command.path() == QStringLiteral("View > Wire labels > Full")) command.action->trigger();
  }
}

void CanvasTest::portsTellTheirDtypeByShapeAndTip() {
  Fixture f(smallPipeline());
  const auto outputOf = [&](const char* id) { return f.window.scene().node(id)->look().outputs.front(); };
  QVERIFY(outputOf("fc").dtype == DType::BF16);
  QVERIFY2(outputOf("fc").tip.contains("16 × 64 bf16 · 2 KiB"), qPrintable(outputOf("fc").tip));
  QVERIFY(f.window.scene().canvasItems().shown().dtypes == std::set<DType>{DType::BF16});
  DocumentInput wide = *f.session.pipeline().document().findInput("x");
  wide.id = "wide";
  wide.dtype = "f32";
  QVERIFY(f.session.pipeline().apply(AddInput{wide}));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(outputOf("wide").dtype == DType::F32);
  QVERIFY(f.window.scene().canvasItems().shown().dtypes == (std::set<DType>{DType::F32, DType::BF16}));
  std::vector<QPainterPath> shapes;
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::I64}) shapes.push_back(portShape(dtype, {}, 5));
  for (std::size_t i = 0; i < shapes.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) QVERIFY(shapes[i] != shapes[j]);
}

/// TransformerEngine calls a nested Sequential as a foreign module: what is before it, in it and behind it are three
/// fusers.
void CanvasTest::dividesFusersAtTheBordersOfSequentials() {
  Fixture f(smallPipeline());
  QVERIFY(f.window.scene().canvasItems().borders().empty());
  QVERIFY(f.session.pipeline().apply(
      makeBlock(f.session.pipeline().document(), std::vector<std::string>{"fc"}, "Mlp")->edit));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.window.scene().canvasItems().borders().empty());
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "mlp", .name = "sequential", .value = true}));
  QVERIFY(waitForAnalysis(f.session));
  const auto& borders = f.window.scene().canvasItems().borders();
  QCOMPARE(borders.size(), std::size_t{2});
  QCOMPARE(borders.front()->textBefore() + borders.front()->textBehind(), QStringLiteral("fuser 1fuser 2"));
  QCOMPARE(borders.back()->textBefore() + borders.back()->textBehind(), QStringLiteral("fuser 2fuser 3"));
  QVERIFY2(borders.front()->toolTip().contains("no fusion crosses"), qPrintable(borders.front()->toolTip()));
  const auto isBetween = [&](const BorderItem* border, const char* left, const char* right) {
    return f.window.scene().node(left)->sceneBox().right() < border->x() &&
           border->x() < f.window.scene().node(right)->sceneBox().left();
  };
  QVERIFY(isBetween(borders.front(), "norm", "mlp") && isBetween(borders.back(), "mlp", "act"));
  f.session.pipeline().undo();
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.window.scene().canvasItems().borders().empty());
}

void CanvasTest::altAndADragCopyTheSelection() {
  Fixture f(smallPipeline());
  const std::string before = serialize(f.session.pipeline().document());
  GraphView& view = f.window.canvas();
  const QPointF norm = f.window.scene().node("norm")->pos();
  const QPointF fc = f.window.scene().node("fc")->pos();
  f.session.selection().select({"norm", "fc"});
  const QPoint below = view.mapFromScene(f.window.scene().node("fc")->sceneBox().center() + QPointF(16, 240));
  dragNode(f, "fc", below, Qt::NoModifier, Qt::AltModifier);
  QCOMPARE(f.session.selection().ids(), (QSet<QString>{"norm2", "fc2"}));
  QVERIFY(isWired(f.session, "norm2.y", "fc2.x"));
  QVERIFY(!linkInto(f.session.pipeline().document(), {"norm2", "x"}));
  QCOMPARE(f.window.scene().node("norm")->pos(), norm);
  const QPointF offset = f.window.scene().node("fc2")->pos() - fc;
  QVERIFY(QLineF(offset, QPointF(16, 240)).length() <= kGridPx);
  QCOMPARE(f.window.scene().node("norm2")->pos() - norm, offset);
  QCOMPARE(f.session.pipeline().history().undoLabel(), std::string("Duplicate 2 nodes"));
  f.session.pipeline().undo();
  QCOMPARE(serialize(f.session.pipeline().document()), before);
}

void CanvasTest::aCopyThatIsGivenUpLeavesNoTrace() {
  Fixture f(smallPipeline());
  const std::string before = serialize(f.session.pipeline().document());
  GraphView& view = f.window.canvas();
  const QPoint from = view.mapFromScene(f.window.scene().node("fc")->sceneBox().center());
  const qsizetype numItems = f.window.scene().items().size();
  QTest::mousePress(view.viewport(), Qt::LeftButton, Qt::AltModifier, from);
  const QPoint to = from + QPoint(0, 120);
  QMouseEvent move(QEvent::MouseMove, to, view.viewport()->mapToGlobal(to), Qt::NoButton, Qt::LeftButton, {});
  QApplication::sendEvent(view.viewport(), &move);
  QVERIFY(f.window.scene().items().size() > numItems);
  press(f, Qt::Key_Escape);
  QCOMPARE(f.window.scene().items().size(), numItems);
  QTest::mouseRelease(view.viewport(), Qt::LeftButton, {}, to);
  QCOMPARE(serialize(f.session.pipeline().document()), before);
  QVERIFY(!f.session.pipeline().history().canUndo());
}

void CanvasTest::altOnAnInputOnlyMovesIt() {
  Fixture f(smallPipeline());
  const QPoint below = f.portOnView({"x", "", true}) + QPoint(-30, 120);
  dragNode(f, "x", below, Qt::NoModifier, Qt::AltModifier);
  QCOMPARE(f.session.pipeline().document().inputs().size(), std::size_t{1});
  QCOMPARE(f.session.pipeline().history().undoLabel(), std::string("Move x"));
}

void CanvasTest::xAndADragCutWires() {
  Fixture f(residualPipeline(false));
  const std::string before = serialize(f.session.pipeline().document());
  drawCut(f, {"save", "y", true}, {"save", "extra", true});
  QCOMPARE(markedForCut(f), QStringList({"fc.x", "add.extra"}));
  QCOMPARE(serialize(f.session.pipeline().document()), before);
  letGoOfCut(f);
  QVERIFY(!linkInto(f.session.pipeline().document(), {"fc", "x"}) &&
          !linkInto(f.session.pipeline().document(), {"add", "extra"}));
  QVERIFY(isWired(f.session, "fc.y", "add.x"));
  QVERIFY(f.session.selection().ids().isEmpty());  // no rubber band went with it
  f.session.pipeline().undo();
  QCOMPARE(serialize(f.session.pipeline().document()), before);
  QVERIFY(!f.session.pipeline().history().canUndo());
}

void CanvasTest::aCutThatIsGivenUpLeavesNoTrace() {
  Fixture f(residualPipeline(false));
  const std::string before = serialize(f.session.pipeline().document());
  drawCut(f, {"save", "y", true}, {"save", "extra", true});
  QVERIFY(!markedForCut(f).isEmpty());
  press(f, Qt::Key_Escape);
  QVERIFY(markedForCut(f).isEmpty());
  letGoOfCut(f);
  QCOMPARE(serialize(f.session.pipeline().document()), before);
  QVERIFY(!f.session.pipeline().history().canUndo());
  QVERIFY(!f.window.canvas().hand().cancelCut());
}

void CanvasTest::labelsOfWiresCoverNothing_data() {
  QTest::addColumn<QString>("name");
  for (const char* name : {"llama-layer", "gpt-mlp", "transformer-stack", "residual-norm"})
    QTest::newRow(name) << QString::fromLatin1(name);
}

void CanvasTest::labelsOfWiresCoverNothing() {
  QFETCH(QString, name);
  const DocumentTemplate* chosen = findTemplate(name.toStdString());
  QVERIFY(chosen);
  Fixture f(chosen->text);
  std::vector<QRectF> areas;
  for (const LinkItem* link : f.window.scene().links())
    if (link->isVisible() && link->isLabelShown()) areas.push_back(link->labelArea());
  QVERIFY(!areas.empty());
  for (std::size_t i = 0; i < areas.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) QVERIFY(!areas[i].intersects(areas[j]));
    for (const auto& [id, node] : f.window.scene().nodes())
      QVERIFY2(!areas[i].intersects(node->sceneBox()), id.c_str());
  }
}

void CanvasTest::aShortWireHasNoLabel() {
  Fixture f(smallPipeline());
  int x = 0;
  for (const char* id : {"x", "norm", "fc", "act", "y"})
    QVERIFY(f.session.pipeline().apply(MoveNode{.id = id, .position = Position{(kNodeWidthPx + 8) * x++, 0}}));
  const auto isShown = [&](const char* reader) {
    return std::ranges::any_of(f.window.scene().links(), [&](const LinkItem* link) {
      return link->link().to.node == reader && link->isLabelShown();
    });
  };
  QVERIFY(!isShown("fc") && !isShown("act"));
  QVERIFY(f.session.pipeline().apply(MoveNode{.id = "norm", .position = Position{0, 400}}));
  QVERIFY(isShown("fc"));
}

/// At the distance at which ops are inserted.
void CanvasTest::aLabelOfTheUsualShapeIsWhole() {
  Fixture f(smallPipeline());
  for (const int extent : {1024, 2048, 4096, 16384}) {
    QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "M", .value = 512}));
    QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "H", .value = extent}));
    int x = 0;
    for (const char* id : {"x", "norm", "fc", "act", "y"})
      QVERIFY(f.session.pipeline().apply(MoveNode{.id = id, .position = Position{kNodePitchPx * x++, 0}}));
    QVERIFY(waitForAnalysis(f.session));
    for (const LinkItem* link : f.window.scene().links())
      for (const LinkItem::FittedLine& line : link->fittedLines())
        QVERIFY2(!line.text.contains(u'…'), qPrintable(line.text));
  }
}

/// Where titles of nodes are larger, labels of hulls are, too.
void CanvasTest::fusionsCanBeReadFromFarAway() {
  Fixture f(std::string(findTemplate("llama-mlp")->text));
  QVERIFY(waitForAnalysis(f.session));
  const auto& hulls = f.window.scene().canvasItems().hulls();
  QVERIFY(!hulls.empty());
  for (const HullItem* hull : hulls) {
    QVERIFY(hull->farLabelArea().height() > 1.5 * hull->labelArea().height());
    QVERIFY(hull->boundingRect().contains(hull->farLabelArea()));
    QVERIFY(hull->look().farLabel.startsWith(hull->look().rule));
  }
}

void CanvasTest::theViewFollowsInsertedOps() {
  Fixture f(smallPipeline());
  f.window.canvas().zoomTo(1.0);
  f.session.selection().select({QStringLiteral("act")});
  for (int i = 0; i < 8; ++i) {
    f.window.scene().commands().insertAfterSelection("GELU");
    const std::string id = f.window.scene().scope().singleSelection().toStdString();
    const QRectF seen = f.window.canvas().mapToScene(f.window.canvas().viewport()->rect()).boundingRect();
    QVERIFY2(seen.contains(f.window.scene().node(id)->sceneBox()), id.c_str());
  }
}

void CanvasTest::aDropIntoAWireLeavesRoomForLabels() {
  Fixture f(smallPipeline());
  int x = 0;
  for (const char* id : {"x", "norm", "fc", "act", "y"})
    QVERIFY(f.session.pipeline().apply(MoveNode{.id = id, .position = Position{(kNodeWidthPx + 180) * x++, 0}}));
  QVERIFY(waitForAnalysis(f.session));
  const auto box = [&](const char* id) { return f.window.scene().node(id)->sceneBox(); };
  const QPointF middle((box("norm").right() + box("fc").left()) / 2, box("norm").center().y());
  f.window.scene().drops().drop("GELU", middle);
  const std::string added = f.window.scene().scope().singleSelection().toStdString();
  QVERIFY(added != "norm" && f.window.scene().node(added));
  QVERIFY(box(added.c_str()).left() - box("norm").right() >= 56);
  QVERIFY(box("fc").left() - box(added.c_str()).right() >= 56);
}

void CanvasTest::pastesWithIncomingWires() {
  Fixture f(smallPipeline());
  f.session.selection().select({QStringLiteral("fc"), QStringLiteral("act")});
  f.window.scene().commands().copySelected();
  f.window.scene().commands().pasteWithWires();
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(linkInto(f.session.pipeline().document(), {"fc2", "x"}).has_value());
  QCOMPARE(toString(linkInto(f.session.pipeline().document(), {"fc2", "x"})->from), std::string("norm.y"));
  f.session.pipeline().undo();
  QVERIFY(!f.session.pipeline().document().findOp("fc2"));
}

FUSELINE_UI_TEST(CanvasTest)

}  // namespace fuseline::ui::canvas_test

#include "test_ui_canvas.moc"
