// Large pipelines: they are laid out in rows, and have an overview.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/node_edits.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/canvas/frame_palette.h"
#include "ui/canvas/metrics.h"
#include "ui/canvas/overview_map.h"
#include "ui/layout/box_index.h"
#include "ui/layout/layered_layout.h"
#include "ui/session/plan_steps.h"
#include "ui/theme/format.h"
#include "ui/widgets/long_job.h"
#include "ui/widgets/seen_refresh.h"

#include <QAction>
#include <QDockWidget>
#include <QProgressDialog>
#include <QPushButton>
#include <QSemaphore>
#include <QSignalSpy>
#include <QTest>
#include <QThread>
#include <QThreadPool>
#include <QToolButton>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace fuseline::ui::large_pipelines_test {

class LargePipelinesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void aLongChainIsLaidOutInRows_data();
  void aLongChainIsLaidOutInRows();
  void theLastRowIsNoLongerThanTheOthers_data();
  void theLastRowIsNoLongerThanTheOthers();
  void aShortChainIsOneRow();
  void rowsBeginWithLayers();
  void opensWhereItBeginsAndCanBeRead();
  void isThereWhereAPartOfManyNodesIsInView();
  void isNotThereForFewNodes();
  void isAsHighAsThePipelineNeeds();
  void canBeSwitchedOff();
  void showsFrames();
  void aPressShowsThatPlace();
  void aDragMovesTheView();
  void nodesThatMoveTogetherAreFollowedOnce();
  void boxesNearAnAreaAreFound();
  void lanesKeepTheMainLineStraight();
  void aVeryLongChainIsLaidOutWithoutOverlaps();
  void anEditKeepsTheItemsOfOthers();
  void aPlannedEditIsShownAsByANewCanvas_data();
  void aPlannedEditIsShownAsByANewCanvas();
  void anInsertedOpMovesItsRowAtOnce();
  void theFusionsAroundAnEditAreShownFirst();
  void anEditBeforeThePlanOfAnotherIsShownFirst();
  void anAttributeKeepsThePlanAndItsPanes();
  void aProblemOfAnAttributeIsOnItsNode();
  void canceledPlanningKeepsThePlanUntilItIsWanted();
  void wiresShowTheTensorsOfTheNewPlan();
  void movingANodeKeepsThePlan();
  void aPaneBehindAnotherIsRefreshedWhenItIsSeen();
  void aCostlyPaneWaitsForThePlanThatIsMade();
  void aShortJobHasNoDialog();
  void aLongJobShowsItself();
  void aLongJobCanBeCanceled();
};

namespace {

/// x -> act0 (GELU) -> ... -> y.
std::string chainOf(int numOps) {
  std::string ops;
  std::string wires;
  QString last = QStringLiteral("x");
  for (int i = 0; i < numOps; ++i) {
    const QString separator = i == 0 ? QString() : QStringLiteral(", ");
    ops += (separator + QStringLiteral(R"({"id": "act%1", "op": "GELU"})").arg(i)).toStdString();
    wires += (separator + QStringLiteral(R"(["%1", "act%2.x"])").arg(last).arg(i)).toStdString();
    last = QStringLiteral("act%1.y").arg(i);
  }
  return R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "pipeline": {
    "inputs": [{"id": "x", "dtype": "bf16", "shape": [16, 32]}], "ops": [)" +
         ops + R"(], "wires": [)" + wires + R"(], "outputs": [{"id": "y", "from": ")" + last.toStdString() + R"("}]}})";
}

/// Kernels that plans ask about. While it is closed, the thread that asks first, which plans the fusions around edits,
/// goes on, and others wait.
class Gate {
 public:
  Capabilities capabilities() {
    return [this](const KernelQuery&) {
      std::unique_lock lock(m_mutex);
      if (m_isClosed && m_first == std::thread::id()) m_first = std::this_thread::get_id();
      if (m_isClosed && m_first != std::this_thread::get_id()) {
        m_isWaitedAt = true;
        m_changed.notify_all();
        const bool wasOpened = m_changed.wait_for(lock, kPatience, [this] { return !m_isClosed; });
        m_wasWaitedInVain = m_wasWaitedInVain || !wasOpened;
        m_isClosed = false;
      }
      return Verdict::yes();
    };
  }
  void close() { set(true); }
  void open() { set(false); }
  /// False: no thread came in time.
  bool awaitThread() {
    std::unique_lock lock(m_mutex);
    return m_changed.wait_for(lock, kPatience, [this] { return m_isWaitedAt; });
  }
  bool wasWaitedInVain() const { return m_wasWaitedInVain; }

 private:
  static constexpr std::chrono::seconds kPatience{10};

  void set(bool isClosed) {
    const std::lock_guard lock(m_mutex);
    m_isClosed = isClosed;
    m_changed.notify_all();
  }

  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::thread::id m_first;
  bool m_isClosed = false;
  bool m_isWaitedAt = false;
  bool m_wasWaitedInVain = false;
};

/// Layers of six ops: a branch, a norm, two linear layers around a gate, and the sum with the branch.
std::string layers(int numLayers) {
  std::string ops;
  std::string wires;
  std::string last = "x";
  for (int i = 0; i < numLayers; ++i) {
    const std::string n = std::to_string(i);
    ops += R"({"id": "save)" + n + R"(", "op": "MakeExtraOutput"}, {"id": "norm)" + n +
           R"(", "op": "RMSNorm", "attributes": {"normalized_shape": [64]}}, {"id": "up)" + n +
           R"(", "op": "Linear", "attributes": {"in_features": 64, "out_features": 256}}, {"id": "gate)" + n +
           R"(", "op": "SwiGLU"}, {"id": "down)" + n +
           R"(", "op": "Linear", "attributes": {"in_features": 128, "out_features": 64}}, {"id": "add)" + n +
           R"(", "op": "AddExtraInput"}, )";
    for (const char* id : {"save", "norm", "up", "gate", "down", "add"}) {
      wires += R"([")" + last + R"(", ")" + id + n + R"(.x"], )";
      last = id + n + ".y";
    }
    wires += R"(["save)" + n + R"(.extra", "add)" + n + R"(.extra"], )";
  }
  ops.resize(ops.size() - 2);
  wires.resize(wires.size() - 2);
  return R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "pipeline": {
    "inputs": [{"id": "x", "dtype": "bf16", "shape": [16, 64]}], "ops": [)" +
         ops + R"(], "wires": [)" + wires + R"(], "outputs": [{"id": "y", "from": ")" + last + R"("}]}})";
}

struct LargePipeline : Fixture {
  explicit LargePipeline(int numOps = 40) : Fixture(chainOf(numOps)) {
    window.resize(1200, 800);
    window.show();
    window.canvas().zoomTo(1.0);
  }

  OverviewMap& map() { return *window.findChild<OverviewMap*>(); }
  QPointF middleOf(const char* id) { return window.scene().node(id)->sceneBox().center(); }
  QPointF middleOfView() {
    const GraphView& view = window.canvas();
    return view.mapToScene(view.viewport()->rect().center());
  }
};

constexpr double kTolerancePx = 40.0;  // a pixel of the map is many of the canvas

bool isNear(QPointF a, QPointF b) { return QLineF(a, b).length() < kTolerancePx; }

}  // namespace

void LargePipelinesTest::aLongChainIsLaidOutInRows_data() {
  QTest::addColumn<int>("numOps");
  for (const int numOps : {20, 33, 60, 150}) QTest::newRow(std::to_string(numOps).c_str()) << numOps;
}

/// In reading order: to the right within a row, then down to the next one.
void LargePipelinesTest::aLongChainIsLaidOutInRows() {
  QFETCH(const int, numOps);
  Fixture f(chainOf(numOps));
  const auto boxOf = [&](int op) { return f.window.scene().node("act" + std::to_string(op))->sceneBox(); };
  int numRows = 1;
  for (int op = 1; op < numOps; ++op) {
    const QRectF before = boxOf(op - 1);
    const QRectF box = boxOf(op);
    if (box.y() == before.y()) {
      QVERIFY(box.left() > before.right());
    } else {
      QVERIFY(box.top() > before.bottom());
      QVERIFY(box.left() <= boxOf(0).left());
      ++numRows;
    }
  }
  QVERIFY(numRows > 1);
  const QRectF content = f.window.scene().contentRect();
  QVERIFY2(content.width() < 5 * content.height(), qPrintable(QString::number(content.width() / content.height())));
}

void LargePipelinesTest::aShortChainIsOneRow() {
  Fixture f(chainOf(12));
  for (int op = 0; op < 12; ++op)
    QCOMPARE(f.window.scene().node("act" + std::to_string(op))->sceneBox().y(),
             f.window.scene().node("act0")->sceneBox().y());
}

/// Only one wire leads from layer to layer; inside of them there are two.
void LargePipelinesTest::rowsBeginWithLayers() {
  constexpr int kNumLayers = 8;
  Fixture f(layers(kNumLayers));
  const auto middleOf = [&](const std::string& id) { return f.window.scene().node(id)->sceneBox().center(); };
  int numRows = 1;
  for (int layer = 0; layer < kNumLayers; ++layer) {
    const std::string n = std::to_string(layer);
    QVERIFY2(std::abs(middleOf("save" + n).y() - middleOf("add" + n).y()) < kRowPitchPx, n.c_str());
    if (layer > 0) numRows += middleOf("save" + n).x() < middleOf("add" + std::to_string(layer - 1)).x();
  }
  QVERIFY(numRows > 2);
}

void LargePipelinesTest::opensWhereItBeginsAndCanBeRead() {
  LargePipeline f;
  f.session.openText(chainOf(60), QStringLiteral("large"));
  QVERIFY(waitForAnalysis(f.session));
  const GraphView& view = f.window.canvas();
  const auto isInView = [&](const char* id) {
    const QPolygonF box = view.mapFromScene(f.window.scene().node(id)->sceneBox());
    return QRectF(view.viewport()->rect()).contains(box.boundingRect());
  };
  QCOMPARE(view.zoom(), 0.75);
  QVERIFY(isInView("x") && isInView("act0") && !isInView("y"));
  f.window.resize(1100, 760);  // it stays the beginning, until something else is chosen
  QCOMPARE(view.zoom(), 0.75);
  QVERIFY(isInView("x"));
  f.window.canvas().fit();
  QVERIFY(view.zoom() < 0.75 && isInView("y"));
  f.session.openText(smallPipeline(), QStringLiteral("small"));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(view.zoom() >= 0.35 && isInView("x") && isInView("y"));
}

void LargePipelinesTest::isThereWhereAPartOfManyNodesIsInView() {
  LargePipeline f;
  QVERIFY(f.map().isVisible());
  QVERIFY(f.window.canvas().rect().contains(f.map().geometry()));
  f.window.canvas().fit();
  QVERIFY2(!f.map().isVisible(), "everything is in view");
  f.window.canvas().zoomTo(1.0);
  QVERIFY(f.map().isVisible());
}

void LargePipelinesTest::isNotThereForFewNodes() {
  LargePipeline f(OverviewMap::kFewestNodes - 3);  // with x and y one too few
  f.window.canvas().zoomTo(4.0);
  QVERIFY(!f.map().isVisible());
}

void LargePipelinesTest::isAsHighAsThePipelineNeeds() {
  LargePipeline rows(40);
  const int heightOfRows = rows.map().height();
  LargePipeline f(OverviewMap::kFewestNodes);
  std::vector<Edit> line;
  for (int i = 0; i < OverviewMap::kFewestNodes; ++i)
    line.push_back(MoveNode{.id = "act" + std::to_string(i), .position = Position{i * 232, 0}});
  QVERIFY(f.session.pipeline().apply(EditGroup{.label = "Line up", .edits = std::move(line)}));
  QVERIFY(f.map().isVisible());
  QVERIFY(f.map().height() < heightOfRows);
  for (const char* id : {"act0", "act14"})
    QVERIFY(f.map().rect().contains(f.map().toMap().map(f.middleOf(id)).toPoint()));
}

void LargePipelinesTest::canBeSwitchedOff() {
  LargePipeline f;
  for (QAction* action : f.window.findChildren<QAction*>())
    if (action->text().contains(QStringLiteral("Minimap"))) action->trigger();
  QVERIFY(!f.map().isWanted());
  QVERIFY(!f.map().isVisible());
}

void LargePipelinesTest::showsFrames() {
  LargePipeline f;
  QVERIFY(f.session.pipeline().apply(AddFrame{{.id = "a", .area = FrameArea{0, 2000, 4000, 2000}, .color = "red"}}));
  const QPoint middle = f.map().toMap().map(QPointF(2000, 3000)).toPoint();
  QCOMPARE(f.map().grab().toImage().pixelColor(middle), headerGround(f.theme, "red"));
}

void LargePipelinesTest::aPressShowsThatPlace() {
  LargePipeline f;
  for (const char* id : {"act35", "act2", "act20"}) {
    const QPointF place = f.middleOf(id);
    QTest::mouseClick(&f.map(), Qt::LeftButton, {}, f.map().toMap().map(place).toPoint());
    QVERIFY2(isNear(f.middleOfView(), place), id);
  }
}

void LargePipelinesTest::aDragMovesTheView() {
  LargePipeline f;
  f.window.canvas().centerOn(f.middleOf("act5"));
  const QPoint from = f.map().toMap().map(f.middleOfView()).toPoint();
  const QPoint to = from + QPoint(30, 20);
  const QPointF place = f.map().toMap().inverted().map(QPointF(to));
  QVERIFY(!isNear(f.middleOfView(), place));
  dragMouse(&f.map(), from, to);
  QVERIFY(isNear(f.middleOfView(), place));
}

void LargePipelinesTest::nodesThatMoveTogetherAreFollowedOnce() {
  Fixture f(smallPipeline());
  GraphView& view = f.window.canvas();
  f.session.selection().select({QStringLiteral("norm"), QStringLiteral("fc"), QStringLiteral("act")});
  const QPoint from = view.mapFromScene(f.window.scene().node("fc")->sceneBox().center());
  QSignalSpy moved(&f.window.scene().moves(), &NodeMoves::dragged);
  QTest::mousePress(view.viewport(), Qt::LeftButton, {}, from);
  QTest::mouseMove(view.viewport(), from + QPoint(0, 90));
  QCOMPARE(moved.count(), 1);
  QTest::mouseRelease(view.viewport(), Qt::LeftButton, {}, from + QPoint(0, 90));
  QCOMPARE(f.session.pipeline().document().positions().size(), std::size_t{3});
}

void LargePipelinesTest::theLastRowIsNoLongerThanTheOthers_data() {
  QTest::addColumn<QString>("pipeline");
  for (const int numOps : {40, 60, 150}) QTest::addRow("chain of %d", numOps) << toQt(chainOf(numOps));
  for (const int numLayers : {8, 12}) QTest::addRow("%d layers", numLayers) << toQt(layers(numLayers));
}

/// By the right edges of the rows, which all begin at the left.
void LargePipelinesTest::theLastRowIsNoLongerThanTheOthers() {
  QFETCH(QString, pipeline);
  Fixture f(pipeline.toStdString());
  std::map<int, double> rightEdges;
  const double pitch = 2.0 * kRowPitchPx;
  for (const auto& [id, node] : f.window.scene().nodes()) {
    double& right = rightEdges[static_cast<int>(std::floor(node->sceneBox().center().y() / pitch))];
    right = std::max(right, node->sceneBox().right());
  }
  QVERIFY(rightEdges.size() > 1);
  const double last = rightEdges.rbegin()->second;
  double widest = 0.0;
  for (auto row = rightEdges.begin(); std::next(row) != rightEdges.end(); ++row) widest = std::max(widest, row->second);
  QVERIFY2(last <= 1.2 * widest, qPrintable(QStringLiteral("%1 of %2").arg(last).arg(widest)));
}

/// Against a look at all of them: small ones, one that covers everything, and one without a size.
void LargePipelinesTest::boxesNearAnAreaAreFound() {
  std::vector<QRectF> boxes = {{-50'000, -50'000, 100'000, 100'000}, {700, 700, 0, 0}};
  for (int i = 0; i < 400; ++i)
    boxes.emplace_back((i * 7919) % 9000 - 4500, (i * 104729) % 7000 - 3500, 1 + i % 300, 1 + (i * 31) % 200);
  const BoxIndex index(boxes);
  for (const QRectF& area : {QRectF(-300, -200, 900, 700), QRectF(4000, 3000, 10, 10), QRectF(-1e5, -1e5, 2e5, 2e5),
                             QRectF(100, 100, 1, 2000)}) {
    const std::vector<std::size_t> near = index.near(area);
    QVERIFY(std::ranges::is_sorted(near));
    for (std::size_t i = 0; i < boxes.size(); ++i)
      if (boxes[i].intersects(area)) QVERIFY(std::ranges::binary_search(near, i));
  }
  QVERIFY(index.near({4000, 3000, 10, 10}).size() < 40);
}

/// 0 -> 1 -> 2 -> 3 with a branch 0 -> 4 -> 3, an input 5 of 3, and a cycle 6 <-> 7.
void LargePipelinesTest::lanesKeepTheMainLineStraight() {
  const std::vector<LayeredEdge> edges = {{0, 1},        {1, 2},        {2, 3}, {0, 4, false},
                                          {4, 3, false}, {5, 3, false}, {6, 7}, {7, 6}};
  const std::vector<LayeredPlace> places = layeredPlaces(8, edges);
  for (const std::size_t node : {0u, 1u, 2u, 3u}) QCOMPARE(places[node].lane, std::size_t{0});
  std::set<std::pair<std::size_t, std::size_t>> taken;
  for (const LayeredPlace& place : places) QVERIFY(taken.emplace(place.column, place.lane).second);
  for (std::size_t i = 0; i + 2 < edges.size(); ++i) QVERIFY(places[edges[i].from].column < places[edges[i].to].column);
  QCOMPARE(places[5].column, places[3].column - 1);
}

/// More nodes than Graphviz lays out.
void LargePipelinesTest::aVeryLongChainIsLaidOutWithoutOverlaps() {
  const PipelineDocument document = parseDocument(layers(110)).document;
  std::vector<NodeLook> looks = nodeLooks(document, Analysis(), {});
  const NodePositions places = autoLayout(document, looks);
  QCOMPARE(places.size(), looks.size());
  std::vector<QRectF> boxes;
  for (const NodeLook& look : looks)
    boxes.emplace_back(QPointF(places.at(look.id).x, places.at(look.id).y), look.size());
  const BoxIndex index(boxes);
  for (std::size_t i = 0; i < boxes.size(); ++i)
    for (const std::size_t near : index.near(boxes[i])) QVERIFY(near == i || !boxes[near].intersects(boxes[i]));
}

namespace {

/// Presses Cancel as soon as there is a dialog, and says whether the canvas could be painted meanwhile.
class ImpatientUser : public QObject {
 public:
  explicit ImpatientUser(TestWindow& window) : m_window(window) { startTimer(20); }
  bool hasSeenDialog() const { return m_hasSeenDialog; }
  bool mayCancel = true;

 protected:
  void timerEvent(QTimerEvent*) override {
    auto* dialog = m_window.findChild<QProgressDialog*>();
    if (!dialog || !dialog->isVisible()) return;
    m_hasSeenDialog = true;
    m_window.canvas().viewport()->repaint();
    if (mayCancel) QTest::mouseClick(dialog->findChild<QPushButton*>(), Qt::LeftButton);
  }

 private:
  TestWindow& m_window;
  bool m_hasSeenDialog = false;
};

}  // namespace

namespace {

bool placeAll(Fixture& f) {
  f.session.pipeline().apply(EditGroup{.label = "Place", .edits = f.window.scene().canvasItems().missingPlaces()});
  return waitForAnalysis(f.session);
}

}  // namespace

void LargePipelinesTest::aPlannedEditIsShownAsByANewCanvas_data() {
  QTest::addColumn<bool>("isPlaced");
  QTest::newRow("automatic places") << false;
  QTest::newRow("placed") << true;  // then only what the edit names is looked at
}

/// Wires and hulls follow with the plan, all at once.
void LargePipelinesTest::aPlannedEditIsShownAsByANewCanvas() {
  QFETCH(bool, isPlaced);
  Fixture f(layers(20));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(!isPlaced || placeAll(f));
  GraphScene& scene = f.window.scene();
  for (const char* op : {"gate3", "norm7", "add12"}) {
    scene.scope().select({QString::fromLatin1(op)});
    scene.commands().removeSelected(Reconnect::Yes);
    QVERIFY(waitForAnalysis(f.session));
    const GraphScene whole(f.session, f.theme);
    QVERIFY(std::ranges::equal(scene.links(), whole.links(), [](const LinkItem* one, const LinkItem* other) {
      return one->link() == other->link() && one->path() == other->path() && one->labelArea() == other->labelArea();
    }));
    QVERIFY(std::ranges::equal(scene.canvasItems().hulls(), whole.canvasItems().hulls(),
                               [](const HullItem* one, const HullItem* other) {
                                 return one->look() == other->look() && one->outlineRect() == other->outlineRect();
                               }));
  }
}

/// Wires and outlines follow the nodes that make room, before the plan.
void LargePipelinesTest::anInsertedOpMovesItsRowAtOnce() {
  Fixture f(layers(40));
  QVERIFY(waitForAnalysis(f.session) && placeAll(f));
  GraphScene& scene = f.window.scene();
  const CanvasItems& items = scene.canvasItems();
  std::map<std::string, QPointF> before;
  for (const auto& [id, item] : items.nodes()) before.emplace(id, item->pos());
  scene.scope().select({QStringLiteral("norm7")});
  scene.commands().insertAfterSelection("GELU");
  QVERIFY(f.session.plan().isAnalysing());
  int numMoved = 0;
  for (const auto& [id, position] : f.session.pipeline().document().positions()) {
    QCOMPARE(scene.node(id)->pos(), QPointF(position.x, position.y));
    numMoved += before.contains(id) && before.at(id) != scene.node(id)->pos();
  }
  QVERIFY(numMoved > 0 && numMoved < 100);
  for (const LinkItem* link : items.links()) {
    const auto& [from, to, isOutput] = link->link();
    QCOMPARE(link->path().pointAtPercent(0), *scene.node(from.node)->portPosition({from.node, from.port, true}));
    QCOMPARE(link->path().pointAtPercent(1), *scene.node(to.node)->portPosition({to.node, to.port, false}));
  }
  for (const HullItem* hull : items.hulls())
    for (const QString& owner : hull->look().owners)
      QVERIFY(hull->outlineRect().contains(scene.node(owner.toStdString())->sceneBox()));
  QVERIFY(waitForAnalysis(f.session));
}

namespace {

/// Outlines, wires and labels of these ops, as lines.
std::multiset<QString> shownAbout(const CanvasItems& items, const std::set<std::string>& ops) {
  std::multiset<QString> lines;
  for (const HullItem* hull : items.hulls()) {
    const HullLook& look = hull->look();
    const bool isAbout =
        std::ranges::any_of(look.owners, [&](const QString& owner) { return ops.contains(owner.toStdString()); });
    if (isAbout) lines.insert(look.rule + look.label + look.tip + look.owners.join(u' '));
  }
  for (const LinkItem* link : items.links())
    if (ops.contains(link->link().from.node))
      lines.insert(toQt(toString(link->link().from) + toString(link->link().to)) + link->labelLines().join(u' '));
  for (const std::string& id : ops)
    if (const NodeItem* node = items.node(id))
      for (const auto* ports : {&node->look().inputs, &node->look().outputs})
        for (const PortLook& port : *ports) lines.insert(toQt(id) + toQt(port.name) + port.tip);
  return lines;
}

Edit wireEdit(const PipelineDocument& document, const Endpoint& to, const Endpoint& from) {
  const auto wire = std::ranges::find(document.wires(), to, &Wire::to);
  return EditGroup{.label = "Rewire", .edits = {RemoveWire{*wire}, AddWire{{from, to}}}};
}

Edit insertion(const PipelineDocument& document, const Endpoint& to) {
  const auto wire = std::ranges::find(document.wires(), to, &Wire::to);
  const Position place =
      std::ranges::find(document.positions(), to.node, [](const auto& entry) { return entry.first; })->second;
  return EditGroup{.label = "Insert",
                   .edits = {RemoveWire{*wire}, AddOp{{.id = "new", .operation = "GELU"}},
                             MoveNode{.id = "new", .position = Position{place.x, place.y - 160}},
                             AddWire{{wire->from, {"new", "x"}}}, AddWire{{{"new", "y"}, to}}}};
}

}  // namespace

/// As they are in the whole plan, which comes later: 480 basic ops.
void LargePipelinesTest::theFusionsAroundAnEditAreShownFirst() {
  Fixture f(layers(60));
  QVERIFY(waitForAnalysis(f.session) && placeAll(f));
  const CanvasItems& items = f.window.scene().canvasItems();
  std::set<std::string> ops;
  std::multiset<QString> first;
  connect(&PlanSteps::of(f.session.plan()), &PlanSteps::neighborhoodPlanned, this, [&](const auto& part) {
    ops = part->ops;
    first = shownAbout(items, ops);
  });
  const PipelineDocument& document = f.session.pipeline().document();
  const auto isForetold = [&](const char* op) {
    ops.clear();
    return waitForAnalysis(f.session) && ops.contains(op) && first == shownAbout(items, ops);
  };
  QVERIFY(
      f.session.pipeline().apply(fuseline::removeNodes(document, std::set<std::string>{"norm30"}, {}, Reconnect::Yes)));
  QVERIFY(!items.node("norm30"));
  const auto numSeen = [&] {
    const QList<QGraphicsItem*> all = f.window.scene().items();
    return std::ranges::count_if(
        all, [](const QGraphicsItem* item) { return item->isVisible() && dynamic_cast<const NodeItem*>(item); });
  };
  QCOMPARE(numSeen(), std::ssize(items.nodes()));
  QVERIFY(std::ranges::none_of(
      items.hulls(), [](const HullItem* hull) { return hull->look().owners.contains(QStringLiteral("norm30")); }));
  QVERIFY(isForetold("up30"));
  QCOMPARE(std::ranges::count_if(f.window.scene().items(),
                                 [](const QGraphicsItem* item) { return dynamic_cast<const LinkItem*>(item); }),
           std::ssize(items.links()));  // none is kept
  f.session.pipeline().undo();
  QVERIFY(items.node("norm30"));
  QVERIFY(isForetold("norm30"));
  QVERIFY(f.session.pipeline().apply(insertion(document, {"up20", "x"})));
  QVERIFY(items.node("new"));
  QVERIFY(isForetold("new"));
  QVERIFY(f.session.pipeline().apply(wireEdit(document, {"add40", "extra"}, {"save39", "extra"})));
  QVERIFY(isForetold("add40"));
}

/// The plan of the first edit cannot end before the fusions around the second one are shown.
void LargePipelinesTest::anEditBeforeThePlanOfAnotherIsShownFirst() {
  Gate gate;
  Session session({.workerCommand = {}, .capabilitiesOf = [&gate](const std::string&) { return gate.capabilities(); }});
  session.openText(layers(60), QStringLiteral("test"));
  QVERIFY(waitForAnalysis(session));
  const auto before = session.plan().analysis();
  std::vector<std::set<std::string>> shown;
  const auto remove = [&](const char* op) {
    return session.pipeline().apply(
        fuseline::removeNodes(session.pipeline().document(), std::set<std::string>{op}, {}, Reconnect::Yes));
  };
  connect(&PlanSteps::of(session.plan()), &PlanSteps::neighborhoodPlanned, this, [&](const auto& part) {
    shown.push_back(part->ops);
    if (shown.size() == 1) QVERIFY(gate.awaitThread() && remove("norm40"));
    if (shown.size() == 2) gate.open();
  });
  gate.close();
  QVERIFY(remove("norm10"));
  QVERIFY(waitForAnalysis(session));
  QVERIFY(!gate.wasWaitedInVain());
  QCOMPARE(shown.size(), 2U);
  QVERIFY(shown.back().contains("up10") && shown.back().contains("up40"));
  QCOMPARE(session.plan().analysis()->graph().nodes().size(), before->graph().nodes().size() - 2);
}

/// Hulls, wires and nodes: all but the look of the op stays.
void LargePipelinesTest::anEditKeepsTheItemsOfOthers() {
  Fixture f(smallPipeline());
  const CanvasItems& items = f.window.scene().canvasItems();
  const auto links = items.links();
  const auto hulls = items.hulls();
  const auto nodes = items.nodes();
  QVERIFY(!hulls.empty());
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "norm", .name = "eps", .value = 1e-3}));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(items.links() == links && items.hulls() == hulls && items.nodes() == nodes);
}

void LargePipelinesTest::anAttributeKeepsThePlanAndItsPanes() {
  Fixture f(smallPipeline());
  const LivePlan& plan = f.session.plan();
  PlanSteps& steps = PlanSteps::of(plan);
  const QSignalSpy planned(&steps, &PlanSteps::planChanged);
  const auto eps = [&] {
    const Graph& graph = plan.analysis()->graph();
    return graph.node(graph.findNode("norm")).attributes.real("eps");
  };
  const double first = eps();
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "norm", .name = "eps", .value = 1e-3}));
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(eps(), 1e-3);
  QVERIFY(steps.changedOps() == std::set<std::string>{"norm"});
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "norm", .name = "eps", .value = nullptr}));
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(eps(), first);
  f.session.pipeline().undo();
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(eps(), 1e-3);
  QVERIFY(steps.changedOps() == std::set<std::string>{"norm"});
  f.session.pipeline().goTo(0);
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(eps(), first);
  f.session.pipeline().redo();
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(eps(), 1e-3);
  QCOMPARE(planned.count(), 0);
  QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "M", .value = 48}));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(!steps.changedOps());
  QCOMPARE(planned.count(), 1);
}

void LargePipelinesTest::aProblemOfAnAttributeIsOnItsNode() {
  Fixture f(smallPipeline());
  const auto worst = [&] { return f.window.scene().node("norm")->look().worst; };
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "norm", .name = "eps", .value = "nothing"}));
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(worst(), std::optional(Severity::Error));
  f.session.pipeline().undo();
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(worst(), std::nullopt);
}

void LargePipelinesTest::canceledPlanningKeepsThePlanUntilItIsWanted() {
  Fixture f(smallPipeline());
  const auto before = f.session.plan().analysis();
  QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "M", .value = 48}));
  PlanSteps::of(f.session.plan()).cancel();
  QVERIFY(!f.session.plan().isAnalysing());
  QTest::qWait(0);
  QCOMPARE(f.session.plan().analysis(), before);
  auto* const note = f.window.findChild<QWidget*>(QStringLiteral("planning"));
  QVERIFY(!note->isHidden());
  for (QToolButton* button : note->findChildren<QToolButton*>())
    if (!button->isHidden()) button->click();  // "Plan now" is the only one
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(f.session.plan().analysis()->graph().values().front().spec.shape.front(), std::int64_t{48});
  QVERIFY(note->isHidden());
}

void LargePipelinesTest::wiresShowTheTensorsOfTheNewPlan() {
  Fixture f(smallPipeline());
  QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "M", .value = 48}));
  QVERIFY(waitForAnalysis(f.session));
  for (const LinkItem* link : f.window.scene().canvasItems().links()) {
    QVERIFY(link->spec());
    QCOMPARE(link->spec()->shape.front(), std::int64_t{48});
    QVERIFY(link->labelLines().front().startsWith(QStringLiteral("48")));
  }
}

void LargePipelinesTest::movingANodeKeepsThePlan() {
  Fixture f(smallPipeline());
  const auto before = f.session.plan().analysis();
  QVERIFY(f.session.pipeline().apply(MoveNode{.id = "fc", .position = Position{480, 480}}));
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(f.session.plan().analysis(), before);
  f.session.setup().setPass(ExecutionMode::Inference);
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(f.session.plan().analysis()->report.backward.empty());
}

void LargePipelinesTest::aPaneBehindAnotherIsRefreshedWhenItIsSeen() {
  QMainWindow window;
  QDockWidget* docks[2];
  for (QDockWidget*& dock : docks) {
    dock = new QDockWidget(&window);
    dock->setWidget(new QWidget);
    window.addDockWidget(Qt::BottomDockWidgetArea, dock);
  }
  int numRefreshed = 0;
  auto* seen = new SeenRefresh(
      *docks[0]->widget(), [] { return true; }, [&] { ++numRefreshed; });
  seen->request();  // nothing is shown yet, so that nothing is out of sight
  QCOMPARE(numRefreshed, 1);
  window.tabifyDockWidget(docks[0], docks[1]);
  window.resize(400, 300);
  window.show();
  docks[1]->raise();
  QCoreApplication::processEvents();
  seen->request();
  seen->request();
  QCOMPARE(numRefreshed, 1);
  docks[0]->raise();
  QTRY_COMPARE(numRefreshed, 2);
  seen->request();
  QTRY_COMPARE(numRefreshed, 3);  // after a moment
}

void LargePipelinesTest::aCostlyPaneWaitsForThePlanThatIsMade() {
  QWidget pane;
  pane.show();
  int numRefreshed = 0;
  bool isPlanned = true;
  SeenRefresh seen(
      pane, [] { return true; }, [&] { ++numRefreshed; }, [&] { return isPlanned; });
  seen.request();
  QTest::qWait(400);  // longer than the moment after which it would be refreshed
  QCOMPARE(numRefreshed, 0);
  isPlanned = false;
  QTRY_COMPARE(numRefreshed, 1);
}

void LargePipelinesTest::aShortJobHasNoDialog() {
  Fixture f(smallPipeline());
  f.window.show();
  ImpatientUser user(f.window);
  QCOMPARE(resultUnlessCanceled(f.window, QStringLiteral("Reading"), [] { return 7; }), std::optional(7));
  QVERIFY(!user.hasSeenDialog());
}

void LargePipelinesTest::aLongJobShowsItself() {
  Fixture f(smallPipeline());
  f.window.show();
  ImpatientUser user(f.window);
  user.mayCancel = false;
  const auto work = [] {
    QThread::msleep(600);
    return 7;
  };
  QCOMPARE(resultUnlessCanceled(f.window, QStringLiteral("Reading"), work), std::optional(7));
  QVERIFY(user.hasSeenDialog());
}

/// The job ends later than the test asks for it.
void LargePipelinesTest::aLongJobCanBeCanceled() {
  Fixture f(smallPipeline());
  f.window.show();
  ImpatientUser user(f.window);
  auto mayEnd = std::make_shared<QSemaphore>();
  const auto work = [mayEnd] {
    mayEnd->acquire();
    return 7;
  };
  QCOMPARE(resultUnlessCanceled(f.window, QStringLiteral("Reading"), work), std::optional<int>());
  QVERIFY(user.hasSeenDialog());
  mayEnd->release();
  QVERIFY(QThreadPool::globalInstance()->waitForDone(5000));
}

FUSELINE_UI_TEST(LargePipelinesTest)

}  // namespace fuseline::ui::large_pipelines_test

#include "test_ui_large_pipelines.moc"
