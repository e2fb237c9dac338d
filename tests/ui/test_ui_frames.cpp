// Frames and notes on the canvas: what takes them, what they take along, and what keys do.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/document/format_version.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/canvas/drawing.h"
#include "ui/canvas/frame_editor.h"
#include "ui/canvas/frame_palette.h"
#include "ui/canvas/search_popup.h"
#include "ui/session/edits.h"
#include "ui/theme/format.h"
#include "ui/widgets/expression_edit.h"
#include "ui/window/menu_commands.h"

#include <QApplication>
#include <QClipboard>
#include <QMouseEvent>
#include <QSignalSpy>
#include <QTest>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <random>

namespace fuseline::ui::frames_test {

class FramesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void ctrlGPutsAFrameAroundTheSelection();
  void framesAreNested();
  void aFrameNeedsASelection();
  void theHeaderMovesTheContents();
  void anAnalysisLeavesTheFrameInTheHand();
  void keysMoveFramesWithTheirContents();
  void aLockedFrameStaysUnderKeys();
  void theHeaderKeepsContentsOffTheGrid();
  void framesInsideAFrameGoWithIt();
  void withAltTheFrameMovesAlone();
  void whatLiesInAFrameIsTakenAsIfThereWereNone();
  void edgesResizeTheFrame();
  void aRubberBandTakesAFrameOnlyAllAround();
  void lockedFramesLetClicksThrough();
  void lockedFramesHaveAMenu();
  void deletingAFrameLeavesItsOps();
  void aDoubleClickEditsTheTitle();
  void escapeCancelsTheTitle();
  void savingWhileATitleIsTypedLeavesTheKeyboardHere();
  void aNoteHasSeveralLines();
  void aNoteTakesNothingAlong();
  void layingOutRefitsFrames();
  void layingOutKeepsOtherOpsOutOfFrames();
  void anOpInAWireWidensItsFrame();
  void anOpInAWireLeavesFramesAloneThatAreNotDrawn();
  void framesAreCopiedAndPasted();
  void keysReachFramesAndFindKnowsTheirTitles();
  void whatIsInsideCanBeSelected();
  void aFrameIsDescribedInWords();
  void drawingsHaveTitlesAndNotes();
  void whatCannotBeDrawnIsLeftOut();
  void placesHaveLimits();
  void anyCommandsUndoneGiveBackTheSameBytes();
  void colorsCanBeRead_data();
  void colorsCanBeRead();
};

namespace {

/// The small pipeline in a row, with these frames.
std::string withFrames(const std::string& frames) {
  std::string text = smallPipeline();
  text.insert(
      text.rfind('}'),
      R"(, "view": {"positions": {"x": [0, 0], "norm": [200, 0], "fc": [424, 0], "act": [648, 0], "y": [872, 0]},
                 "frames": )" +
          frames + "}");
  return text;
}

/// Around norm and fc.
constexpr const char* kMlp = R"([{"id": "mlp", "title": "Feed forward", "area": [160, -72, 456, 168]}])";

struct Framed : Fixture {
  explicit Framed(const std::string& frames = kMlp) : Fixture(withFrames(frames)) { canvas().zoomTo(1.0); }

  GraphView& canvas() { return window.canvas(); }
  FrameLayer& frames() { return window.scene().frames(); }
  const DocumentFrame& frame(const char* id = "mlp") const { return *session.pipeline().document().findFrame(id); }
  QPoint onView(double x, double y) { return canvas().mapFromScene(QPointF(x, y)); }
  void drag(QPointF from, QPointF way) {
    dragMouse(canvas().viewport(), onView(from.x(), from.y()), onView(from.x() + way.x(), from.y() + way.y()));
  }
  void click(double x, double y) { QTest::mouseClick(canvas().viewport(), Qt::LeftButton, {}, onView(x, y)); }
  FrameEditor* editor() { return canvas().viewport()->findChild<FrameEditor*>(); }
  void press(const QKeySequence& keys) {
    window.activateWindow();
    if (!QTest::qWaitForWindowActive(&window)) return;
    canvas().setFocus();
    QTest::keySequence(&canvas(), keys);
  }
  std::map<std::string, Position> positions() const {
    return {session.pipeline().document().positions().begin(), session.pipeline().document().positions().end()};
  }
};

const std::vector<std::string> kOnlyMlp = {"mlp"};

/// With Alt held down.
void dragWithAlt(QWidget* viewport, QPoint from, QPoint to) {
  const auto send = [&](QEvent::Type type, QPoint at, Qt::MouseButton button, Qt::MouseButtons buttons) {
    QMouseEvent event(type, at, viewport->mapToGlobal(at), button, buttons, Qt::AltModifier);
    QApplication::sendEvent(viewport, &event);
  };
  send(QEvent::MouseButtonPress, from, Qt::LeftButton, Qt::LeftButton);
  send(QEvent::MouseMove, (from + to) / 2, Qt::NoButton, Qt::LeftButton);
  send(QEvent::MouseMove, to, Qt::NoButton, Qt::LeftButton);
  send(QEvent::MouseButtonRelease, to, Qt::LeftButton, Qt::NoButton);
}

}  // namespace

void FramesTest::ctrlGPutsAFrameAroundTheSelection() {
  Framed f("[]");
  const std::string before = serialize(f.session.pipeline().document());
  f.session.selection().select({QStringLiteral("norm"), QStringLiteral("fc")});
  f.press(QKeySequence(QStringLiteral("Ctrl+G")));
  QCOMPARE(f.session.pipeline().document().frames().size(), std::size_t{1});
  const FrameArea area = *f.frame("frame").area;
  QCOMPARE(area, (FrameArea{160, -72, 456, 168}));
  QVERIFY(f.editor());
  QTest::keyClicks(f.editor(), QStringLiteral("Feed forward"));
  QTest::keyClick(f.editor(), Qt::Key_Return);
  QCOMPARE(f.frame("frame").title, std::string("Feed forward"));
  f.session.pipeline().undo();
  QCOMPARE(serialize(f.session.pipeline().document()), before);
  QVERIFY(!f.session.pipeline().history().canUndo());
}

/// One in another, and one around another: no two edges lie upon each other.
void FramesTest::framesAreNested() {
  Framed f;
  f.session.selection().select({QStringLiteral("fc")});
  f.frames().frameSelected();
  QCOMPARE(*f.frame("frame").area, (FrameArea{384, -72, 232, 168}));
  QCOMPARE(*f.frame().area, (FrameArea{160, -120, 472, 232}));
  f.session.pipeline().undo();
  f.session.selection().select({QStringLiteral("norm"), QStringLiteral("fc"), QStringLiteral("act")});
  f.frames().frameSelected();
  QCOMPARE(*f.frame().area, (FrameArea{160, -72, 456, 168}));
  QCOMPARE(*f.frame("frame").area, (FrameArea{144, -120, 696, 232}));
}

void FramesTest::aFrameNeedsASelection() {
  Framed f("[]");
  QString said;
  QObject::connect(&f.window.scene(), &GraphScene::hint, &f.window, [&](const QString& text) { said = text; });
  f.frames().frameSelected();
  QVERIFY(f.session.pipeline().document().frames().empty());
  QCOMPARE(said, QStringLiteral("No ops are selected. Select the ops to put into a frame."));
}

void FramesTest::anAnalysisLeavesTheFrameInTheHand() {
  Framed f;
  const QPoint from = f.onView(300, -60);
  const QPoint to = f.onView(300, 100);
  QTest::mousePress(f.canvas().viewport(), Qt::LeftButton, {}, from);
  for (int step = 1; step <= 4; ++step) QTest::mouseMove(f.canvas().viewport(), from + (to - from) * step / 4);
  Q_EMIT f.session.plan().analysisChanged(f.session.plan().analysis());
  QTest::mouseRelease(f.canvas().viewport(), Qt::LeftButton, {}, to);
  QCOMPARE(*f.frame().area, (FrameArea{160, 88, 456, 168}));
  QCOMPARE(f.positions()["norm"], (Position{200, 160}));
}

void FramesTest::keysMoveFramesWithTheirContents() {
  Framed f;
  const std::string before = serialize(f.session.pipeline().document());
  const auto old = f.positions();
  const FrameArea area = *f.frame().area;
  f.frames().select("mlp");
  for (int i = 0; i < 2; ++i) f.window.scene().moves().moveSelected({5, 1});
  QCOMPARE(*f.frame().area, (FrameArea{area.x + 80, area.y + 16, area.width, area.height}));
  for (const char* inside : {"norm", "fc"})
    QCOMPARE(f.positions()[inside], (Position{old.at(inside).x + 80, old.at(inside).y + 16}));
  QCOMPARE(f.positions()["act"], old.at("act"));
  f.session.pipeline().undo();
  QCOMPARE(serialize(f.session.pipeline().document()), before);
}

void FramesTest::aLockedFrameStaysUnderKeys() {
  Framed f;
  f.frames().select("mlp");
  f.frames().toggleLock();
  const std::string before = serialize(f.session.pipeline().document());
  QSignalSpy hints(&f.window.scene(), &GraphScene::hint);
  f.window.scene().moves().moveSelected({1, 0});
  QCOMPARE(serialize(f.session.pipeline().document()), before);
  QVERIFY(hints.last().first().toString().contains(QStringLiteral("unlocked")));
}

void FramesTest::theHeaderMovesTheContents() {
  Framed f;
  const std::string before = serialize(f.session.pipeline().document());
  const auto old = f.positions();
  f.drag({300, -56}, {80, 40});
  QCOMPARE(*f.frame().area, (FrameArea{240, -32, 456, 168}));
  QCOMPARE(f.positions()["norm"], (Position{280, 40}));
  QCOMPARE(f.positions()["fc"], (Position{504, 40}));
  for (const char* outside : {"x", "act", "y"}) QCOMPARE(f.positions()[outside], old.at(outside));
  f.session.pipeline().undo();
  QCOMPARE(serialize(f.session.pipeline().document()), before);
  QVERIFY(!f.session.pipeline().history().canUndo());
}

void FramesTest::theHeaderKeepsContentsOffTheGrid() {
  Framed f;
  QVERIFY(f.session.pipeline().apply(MoveNode{.id = "fc", .position = Position{421, 3}}));
  f.drag({300, -56}, {0, 80});
  QCOMPARE(f.positions()["fc"], (Position{421, 83}));
}

void FramesTest::framesInsideAFrameGoWithIt() {
  Framed f(R"([{"id": "inner", "area": [184, -40, 184, 112]}, {"id": "mlp", "area": [160, -80, 456, 176]},
               {"id": "held", "area": [400, -40, 200, 120], "locked": true}, {"id": "apart", "area": [640, -40, 184, 112]}])");
  f.drag({380, -64}, {0, 160});
  QCOMPARE(*f.frame("inner").area, (FrameArea{184, 120, 184, 112}));
  QCOMPARE(*f.frame("held").area, (FrameArea{400, 120, 200, 120}));  // else it would stand around something else
  QCOMPARE(*f.frame("apart").area, (FrameArea{640, -40, 184, 112}));
  QCOMPARE(f.positions()["norm"], (Position{200, 160}));
}

void FramesTest::withAltTheFrameMovesAlone() {
  Framed f;
  const auto old = f.positions();
  dragWithAlt(f.canvas().viewport(), f.onView(300, -56), f.onView(300, 104));
  QCOMPARE(*f.frame().area, (FrameArea{160, 88, 456, 168}));
  QCOMPARE(f.positions(), old);
}

void FramesTest::whatLiesInAFrameIsTakenAsIfThereWereNone() {
  Framed f;
  f.click(300, -36);  // between its header and its ops
  QVERIFY(f.frames().selected().empty());
  f.drag({500, 30}, {0, 160});
  QCOMPARE(f.positions()["fc"], (Position{424, 160}));
  QCOMPARE(*f.frame().area, (FrameArea{160, -72, 456, 168}));
}

void FramesTest::edgesResizeTheFrame() {
  Framed f;
  const auto old = f.positions();
  f.drag({616, 40}, {80, 0});
  QCOMPARE(*f.frame().area, (FrameArea{160, -72, 536, 168}));
  f.drag({160, -72}, {-40, -16});
  QCOMPARE(*f.frame().area, (FrameArea{120, -88, 576, 184}));
  f.drag({696, 96}, {-2000, -2000});
  QCOMPARE(*f.frame().area, (FrameArea{120, -88, 96, 48}));
  QCOMPARE(f.positions(), old);
}

void FramesTest::aRubberBandTakesAFrameOnlyAllAround() {
  Framed f;
  const QSet<QString> both = {QStringLiteral("norm"), QStringLiteral("fc")};
  f.drag({180, -30}, {430, 115});
  QCOMPARE(f.session.selection().ids(), both);
  QVERIFY(f.frames().selected().empty());
  f.drag({140, -100}, {490, 220});
  QCOMPARE(f.session.selection().ids(), both);
  QCOMPARE(f.frames().selected(), kOnlyMlp);
}

void FramesTest::lockedFramesLetClicksThrough() {
  Framed f(R"([{"id": "behind", "text": "A large note", "area": [160, -400, 400, 300]},
               {"id": "locked", "title": "Fixed", "area": [200, -360, 200, 120], "locked": true}])");
  f.click(260, -344);
  QCOMPARE(f.frames().selected(), std::vector<std::string>{"behind"});
  f.drag({260, -344}, {0, -80});
  QCOMPARE(*f.frame("locked").area, (FrameArea{200, -360, 200, 120}));
  QCOMPARE(*f.frame("behind").area, (FrameArea{160, -480, 400, 300}));
  f.frames().select("locked");
  f.window.scene().commands().removeSelected(Reconnect::No);
  QVERIFY(f.session.pipeline().document().findFrame("locked"));
  f.frames().toggleLock();
  QVERIFY(!f.frame("locked").locked);
  f.click(260, -344);
  QCOMPARE(f.frames().selected(), std::vector<std::string>{"locked"});
}

void FramesTest::lockedFramesHaveAMenu() {
  Framed f(R"([{"id": "mlp", "area": [160, -72, 456, 168], "locked": true}])");
  QTest::mousePress(f.canvas().viewport(), Qt::RightButton, {}, f.onView(300, -56));
  QCOMPARE(f.frames().selected(), kOnlyMlp);
  const QList<QAction*> actions = f.canvas().actions();
  QVERIFY(std::ranges::any_of(actions, [](const QAction* action) { return action->menu() != nullptr; }));
}

void FramesTest::deletingAFrameLeavesItsOps() {
  Framed f;
  f.click(300, -56);
  QCOMPARE(f.frames().selected(), kOnlyMlp);
  const std::size_t numOps = f.session.pipeline().document().ops().size();
  f.press(QKeySequence::Delete);
  QVERIFY(f.session.pipeline().document().frames().empty());
  QCOMPARE(f.session.pipeline().document().ops().size(), numOps);
  f.session.pipeline().undo();
  QCOMPARE(f.frame().title, std::string("Feed forward"));
}

void FramesTest::aDoubleClickEditsTheTitle() {
  Framed f;
  QTest::mouseDClick(f.canvas().viewport(), Qt::LeftButton, {}, f.onView(300, -56));
  QVERIFY(f.editor());
  QCOMPARE(f.editor()->toPlainText(), QStringLiteral("Feed forward"));
  QTest::keyClicks(f.editor(), QStringLiteral("Wide"));
  QTest::keyClick(f.editor(), Qt::Key_Return);
  QCOMPARE(f.frame().title, std::string("Wide"));
  QCOMPARE(f.session.pipeline().history().undoLabel(), std::string("Rename frame Wide"));
}

void FramesTest::escapeCancelsTheTitle() {
  Framed f;
  f.frames().select("mlp");
  f.press(QKeySequence(Qt::Key_F2));
  QVERIFY(f.editor());
  QTest::keyClicks(f.editor(), QStringLiteral("nothing"));
  QTest::keyClick(f.editor(), Qt::Key_Escape);
  QCOMPARE(f.frame().title, std::string("Feed forward"));
  QVERIFY(!f.session.pipeline().history().canUndo());
  QTRY_VERIFY(!f.editor());
  QVERIFY(f.canvas().hasFocus());
}

void FramesTest::savingWhileATitleIsTypedLeavesTheKeyboardHere() {
  Framed f;
  f.press(QKeySequence(Qt::Key_F4));
  f.frames().editSelected();
  QVERIFY(f.editor());
  f.editor()->setPlainText(QStringLiteral("Saved"));
  commitTypedField();
  QCOMPARE(f.frame().title, std::string("Saved"));
  QVERIFY(f.canvas().hasFocus());
}

void FramesTest::aNoteHasSeveralLines() {
  Framed f("[]");
  const std::string before = serialize(f.session.pipeline().document());
  f.frames().addNote({0, 320});
  QVERIFY(f.editor());
  QTest::keyClicks(f.editor(), QStringLiteral("one"));
  QTest::keyClick(f.editor(), Qt::Key_Return);
  QTest::keyClicks(f.editor(), QStringLiteral("two"));
  QTest::keyClick(f.editor(), Qt::Key_Return, Qt::ControlModifier);
  QCOMPARE(f.frame("note").text, std::optional<std::string>("one\ntwo"));
  f.session.pipeline().undo();
  QCOMPARE(serialize(f.session.pipeline().document()), before);
}

void FramesTest::aNoteTakesNothingAlong() {
  Framed f(R"([{"id": "note", "text": "behind fc", "area": [400, -40, 240, 160]}])");
  const auto old = f.positions();
  f.drag({500, 100}, {0, 160});
  QCOMPARE(*f.frame("note").area, (FrameArea{400, 120, 240, 160}));
  QCOMPARE(f.positions(), old);
}

void FramesTest::layingOutRefitsFrames() {
  Framed f(R"([{"id": "mlp", "area": [160, -72, 456, 168]}, {"id": "away", "area": [0, 400, 96, 48]}])");
  QVERIFY(f.session.pipeline().apply(MoveNode{.id = "norm", .position = Position{200, 24}}));
  const std::string before = serialize(f.session.pipeline().document());
  f.window.scene().moves().layOut();
  const QRect frame = boxOf(*f.frame().area);
  const GraphScene& scene = f.window.scene();
  for (const char* inside : {"norm", "fc"}) QVERIFY(frame.contains(scene.node(inside)->sceneBox().toRect()));
  for (const char* outside : {"x", "act", "y"}) QVERIFY(!frame.contains(scene.node(outside)->sceneBox().toRect()));
  const QRect ops = scene.node("norm")->sceneBox().toRect().united(scene.node("fc")->sceneBox().toRect());
  QVERIFY(frame.contains(ops.adjusted(-40, -72, 40, 40)));
  QVERIFY(ops.adjusted(-48, -80, 48, 48).contains(frame));  // on the grid
  QCOMPARE(*f.frame("away").area, (FrameArea{0, 400, 96, 48}));
  f.session.pipeline().undo();
  QCOMPARE(serialize(f.session.pipeline().document()), before);
}

/// norm and act are framed, and fc, which stands between them along the wires, is not.
void FramesTest::layingOutKeepsOtherOpsOutOfFrames() {
  Framed f(R"([{"id": "odd", "area": [160, -72, 680, 168]}])");
  QVERIFY(f.session.pipeline().apply(MoveNode{.id = "fc", .position = Position{424, 400}}));
  f.window.scene().moves().layOut();
  const QRect frame = boxOf(*f.frame("odd").area);
  const GraphScene& scene = f.window.scene();
  for (const char* inside : {"norm", "act"}) QVERIFY(frame.contains(scene.node(inside)->sceneBox().toRect()));
  QVERIFY(!frame.intersects(scene.node("fc")->sceneBox().toRect()));
}

void FramesTest::anOpInAWireWidensItsFrame() {
  Framed f;
  const Link link{.from = {"norm", "y"}, .to = {"fc", "x"}};
  QVERIFY(f.session.pipeline().apply(
      splice(f.session.pipeline().document(), f.session.plan().analysis()->graph(), "GELU", link, std::nullopt).edit));
  const QRect frame = boxOf(*f.frame().area);
  for (const char* inside : {"norm", "gelu", "fc"})
    QVERIFY(frame.contains(f.window.scene().node(inside)->sceneBox().toRect()));
  QVERIFY(!frame.contains(f.window.scene().node("act")->sceneBox().toRect()));
}

void FramesTest::anOpInAWireLeavesFramesAloneThatAreNotDrawn() {
  Framed f(
      R"([{"id": "a", "title": "one", "area": [160, -72, 456, 168]}, {"id": "a", "title": "two", "area": [0, 300, 900, 96]}])");
  const Link link{.from = {"norm", "y"}, .to = {"fc", "x"}};
  QVERIFY(f.session.pipeline().apply(
      splice(f.session.pipeline().document(), f.session.plan().analysis()->graph(), "GELU", link, std::nullopt).edit));
  QCOMPARE(f.session.pipeline().document().frames()[0].title, std::string("one"));
  QCOMPARE(*f.session.pipeline().document().frames()[1].area, (FrameArea{0, 300, 900, 96}));
}

void FramesTest::framesAreCopiedAndPasted() {
  Framed f;
  f.session.selection().select({QStringLiteral("norm")});
  f.frames().item("mlp")->setSelected(true);
  f.window.scene().commands().copySelected();
  f.window.scene().commands().paste();
  QCOMPARE(f.session.pipeline().document().frames().size(), std::size_t{2});
  QCOMPARE(f.frame("mlp2").title, std::string("Feed forward"));
  QCOMPARE(*f.frame("mlp2").area, (FrameArea{160, 168, 456, 168}));  // two rows down: one would cover the original
  QCOMPARE(f.positions()["norm2"], (Position{200, 240}));
  QCOMPARE(f.frames().selected(), std::vector<std::string>{"mlp2"});
  f.frames().select("mlp");
  f.window.scene().commands().duplicateSelected();
  QVERIFY(f.session.pipeline().document().findFrame("mlp3"));
  f.frames().select("mlp3");
  f.window.scene().commands().cutSelected();
  QVERIFY(!f.session.pipeline().document().findFrame("mlp3"));
}

void FramesTest::keysReachFramesAndFindKnowsTheirTitles() {
  Framed f(
      R"([{"id": "b", "title": "Second", "area": [400, 200, 200, 80]}, {"id": "a", "title": "First", "area": [0, 200, 200, 80]}])");
  f.press(QKeySequence(Qt::Key_F4));
  QCOMPARE(f.frames().selected(), std::vector<std::string>{"a"});
  f.press(QKeySequence(Qt::Key_F4));
  QCOMPARE(f.frames().selected(), std::vector<std::string>{"b"});
  f.press(QKeySequence(Qt::SHIFT | Qt::Key_F4));
  QCOMPARE(f.frames().selected(), std::vector<std::string>{"a"});
  f.canvas().search().find();
  auto* popup = f.canvas().findChild<SearchPopup*>();
  QVERIFY(popup);
  QTest::keyClicks(popup->findChild<QLineEdit*>(), QStringLiteral("second"));
  QTest::keyClick(popup->findChild<QLineEdit*>(), Qt::Key_Return);
  QCOMPARE(f.frames().selected(), std::vector<std::string>{"b"});
  QVERIFY(f.session.selection().ids().isEmpty());
}

void FramesTest::whatIsInsideCanBeSelected() {
  Framed f;
  f.frames().select("mlp");
  f.frames().selectContent();
  QCOMPARE(f.session.selection().ids(), (QSet<QString>{QStringLiteral("norm"), QStringLiteral("fc")}));
  QVERIFY(f.frames().selected().empty());
}

void FramesTest::aFrameIsDescribedInWords() {
  Framed f;
  f.frames().select("mlp");
  f.frames().setColor("blue");
  f.frames().toggleLock();
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(f.canvas().accessibleDescription(), QStringLiteral("Frame Feed forward, around fc and norm, blue, locked"));
  f.session.selection().select({QStringLiteral("act")});
  QVERIFY(f.frames().selected().empty());
  QVERIFY(!f.canvas().accessibleDescription().contains(QStringLiteral("frame")));
  f.session.selection().select({QStringLiteral("fc")});
  QVERIFY(f.canvas().accessibleDescription().contains(QStringLiteral(", in frame Feed forward")));
}

void FramesTest::drawingsHaveTitlesAndNotes() {
  Framed f(R"([{"id": "a", "title": "Feed forward", "area": [160, -72, 456, 168]},
               {"id": "n", "text": "first line\nsecond", "area": [0, 200, 240, 96]}])");
  const Result<QByteArray> svg = drawing(f.session, f.window.scene(), {.embedsPipeline = false});
  QVERIFY(svg);
  for (const char* text : {">Feed forward<", ">first line<", ">second<"}) QVERIFY2(svg->contains(text), text);
}

void FramesTest::whatCannotBeDrawnIsLeftOut() {
  Framed f(R"([{"id": "a"}, {"id": "a", "area": [0, 200, 96, 48]}, 7, {"area": [0, 0, 9, 9]},
               {"id": "tiny", "text": "no room\nfor this", "area": [0, 300, 1, 1], "locked": true},
               {"id": "flat", "title": "nor here", "area": [0, 320, 1, 1], "locked": true}])");
  QCOMPARE(f.frames().items().size(), std::size_t{2});
  QVERIFY(f.frames().item("tiny"));
  QVERIFY(!drawing(f.session, f.window.scene(), {.embedsPipeline = false})->contains("no room"));
  f.window.scene().moves().layOut();
  QVERIFY(f.session.plan().analysis()->isRunnable());
}

/// So far away that nothing else can be seen with it.
void FramesTest::placesHaveLimits() {
  Framed f(R"([{"id": "far", "area": [1000000000, -1000000000, 1000000, 1000000], "locked": 1}])");
  QVERIFY(f.frames().item("far"));
  f.canvas().fit();
  f.window.scene().moves().layOut();
  QVERIFY(f.session.plan().analysis()->isRunnable());
}

/// Whatever is done to frames, ops and notes in whatever order.
void FramesTest::anyCommandsUndoneGiveBackTheSameBytes() {
  std::mt19937 random(20);
  const auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  Framed f;
  const std::string before = serialize(f.session.pipeline().document());
  GraphScene& scene = f.window.scene();
  const auto selectNode = [&] {
    const auto& nodes = scene.nodes();
    if (!nodes.empty())
      std::next(nodes.begin(), static_cast<std::ptrdiff_t>(below(nodes.size())))->second->setSelected(true);
  };
  const std::vector<std::function<void()>> commands = {
      [&] { f.frames().frameSelected(); },
      [&] {
        f.frames().addNote({static_cast<double>(below(900)), 300});
      },
      [&] { f.frames().selectNext(1); },
      [&] { f.frames().setColor(std::string(kFrameColors[below(kFrameColors.size())])); },
      [&] { f.frames().toggleLock(); },
      [&] { f.frames().fitSelected(); },
      [&] { f.frames().setText("frame", QString::number(below(100))); },
      [&] {
        f.drag({static_cast<double>(below(900)), -56}, {80, 40});
      },
      [&] { scene.commands().duplicateSelected(); },
      [&] { scene.commands().removeSelected(Reconnect::Yes); },
      [&] { scene.moves().layOut(); },
      [&] { f.session.pipeline().undo(); },
      selectNode,
      selectNode,
  };
  for (int i = 0; i < 200; ++i) {
    commands[below(commands.size())]();
    if (FrameEditor* editor = f.editor()) editor->close();
    const std::string text = serialize(f.session.pipeline().document());
    QCOMPARE(serialize(parseDocument(text).document), text);
  }
  while (f.session.pipeline().history().canUndo()) f.session.pipeline().undo();
  QCOMPARE(serialize(f.session.pipeline().document()), before);
}

void FramesTest::colorsCanBeRead_data() {
  QTest::addColumn<bool>("isDark");
  QTest::newRow("light") << false;
  QTest::newRow("dark") << true;
}

void FramesTest::colorsCanBeRead() {
  QFETCH(const bool, isDark);
  Theme theme;
  theme.apply(isDark ? ThemeChoice::Dark : ThemeChoice::Light);
  std::vector<std::string_view> names(kFrameColors.begin(), kFrameColors.end());
  names.emplace_back("mauve");  // of a newer version
  for (const std::string_view name : names) {
    QVERIFY(contrastRatio(theme.colors().text, headerGround(theme, name)) >= 4.5);
    QVERIFY(contrastRatio(frameColor(theme, name), theme.colors().canvas) >= 2.0);
  }
}

FUSELINE_UI_TEST(FramesTest)

}  // namespace fuseline::ui::frames_test

#include "test_ui_frames.moc"
