// The outline: it lists the pipeline, does what the canvas does, and with the keyboard alone a pipeline is built.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/apply_edit.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/outline/node_search.h"
#include "ui/theme/format.h"

#include <QAccessible>
#include <QApplication>
#include <QLabel>
#include <QLineEdit>
#include <QSignalSpy>
#include <QStatusBar>
#include <QTest>

#include <algorithm>
#include <map>

namespace fuseline::ui::outline_test {

class OutlineTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void listsNodesInTheOrderInWhichTheyRun();
  void saysShapeAndFusions();
  void opsOfAnInstanceStandBelowIt();
  void aRowIsASentence();
  void rowsOfOneNodeAreThoseOfTheWhole_data();
  void rowsOfOneNodeAreThoseOfTheWhole();
  void screenReadersGetTheSentence();
  void nodesAndWiresOfTheCanvasAreChildren();
  void aNodeOfTheCanvasIsWhereItIsDrawn();
  void theSelectedNodeOfTheCanvasHasTheKeyboard();
  void screenReadersFollowTheKeyboardOnTheCanvas();
  void screenReadersPressNodes();
  void aNodeThatIsRemovedIsNoLongerAChild();
  void problemsAreWords();
  void theIconOfAProblemIsSeenInAChosenRow_data();
  void theIconOfAProblemIsSeenInAChosenRow();
  void timesAreThoseOfARunOfThisPipeline();
  void f2RenamesAndAnUndoNamesBack();
  void escGivesTheNameBack();
  void inputsAreRenamedInTheirConsumers();
  void aNameThatIsTakenIsRefusedWithASentence();
  void namesInsideAnInstanceAreFixed();
  void keysRemoveReconnectAndBypass();
  void enterGoesToTheInspector();
  void selectionIsThatOfTheCanvas();
  void anOpOfAnInstanceSelectsTheInstance();
  void filterFindsNamesOpsShapesAndFusions();
  void filterKeepsTheSelection();
  void anEmptyPipelineNamesTheNextStep();
  void whatIsOpenStaysOpen();
  void wDrawsAWireFromHere();
  void aThousandOpsAreListed();
  void editsAreOneChangeForViews();
  void aPipelineIsBuiltByKeys();
  void searchFindsNodesByTheirFacts();
  void searchComparesValues();
};

namespace {

QString cell(const OutlinePanel& outline, const QString& node, int column, int role = Qt::DisplayRole) {
  return outline.indexOf(node).siblingAtColumn(column).data(role).toString();
}

QStringList namesOf(const QAbstractItemModel& model, const QModelIndex& parent = {}) {
  QStringList names;
  for (int row = 0; row < model.rowCount(parent); ++row) names.append(model.index(row, 0, parent).data().toString());
  return names;
}

/// x -> fc -> act -> y with the ops written the wrong way round.
std::string backwardsPipeline() {
  std::string text = smallPipeline();
  const std::string act = R"({"id": "act", "op": "GELU", "attributes": {}})";
  const std::string rest = R"({"id": "norm")";
  text.erase(text.find(act), act.size());
  text.erase(text.rfind(',', text.find("],\n    \"wires\"")), 1);
  return text.insert(text.find(rest), act + ", ");
}

std::string chainOfGelus(int numOps) {
  PipelineDocument document;
  (void)applyEdit(document, AddInput{{.id = "x", .dtype = "bf16", .shape = Json({16, 32})}});
  Endpoint from{"x", {}};
  for (int i = 0; i < numOps; ++i) {
    const std::string id = "op" + std::to_string(i);
    (void)applyEdit(document, AddOp{.op = {.id = id, .operation = "GELU"}});
    (void)applyEdit(document, AddWire{.wire = {from, {id, "x"}}});
    from = {id, "y"};
  }
  (void)applyEdit(document, AddOutput{.output = {.id = "out", .from = from}});
  return serialize(document);
}

std::string stack() {
  std::string text;
  for (const DocumentTemplate& each : documentTemplates())
    if (each.name == "transformer-stack") text = each.text;
  return text;
}

/// Where Qt sends a key: a popup comes before the window.
QWidget* keyboardOwner() {
  QWidget* const popup = QApplication::activePopupWidget();
  return popup && popup->focusWidget() ? popup->focusWidget() : QApplication::focusWidget();
}

void press(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) { QTest::keyClick(keyboardOwner(), key, modifiers); }

void type(const QString& text) { QTest::keyClicks(keyboardOwner(), text); }

/// The keyboard in the outline, with this node selected.
bool goTo(Fixture& f, const char* node) {
  f.window.activateWindow();
  if (!QTest::qWaitForWindowActive(&f.window)) return false;
  f.window.canvas().setFocus();
  press(Qt::Key_O, Qt::ControlModifier | Qt::ShiftModifier);
  f.session.selection().select({QString::fromLatin1(node)});
  return f.window.outline().view()->hasFocus();
}

/// The editor commits behind the key, and the name is asked for behind that.
constexpr int kTurnsOfARename = 3;

/// Types over the name of the selected node.
void renameTo(const QString& name) {
  press(Qt::Key_F2);
  qobject_cast<QLineEdit*>(QApplication::focusWidget())->selectAll();
  type(name);
  press(Qt::Key_Return);
  for (int turn = 0; turn < kTurnsOfARename; ++turn) QCoreApplication::processEvents();
}

bool isWired(const Session& session, const Endpoint& from, const Endpoint& to) {
  return std::ranges::find(session.pipeline().document().wires(), Wire{from, to}) !=
         session.pipeline().document().wires().end();
}

const QString kSentenceOfFc =
    QStringLiteral("fc, Linear, input 16 × 32 bf16, output 16 × 64 bf16, fused forward in ForwardLinearEpilogue");

/// A screen reader at the canvas of the small pipeline.
struct Heard : Fixture {
  Heard() : Fixture(smallPipeline()) {
    current = this;
    QAccessible::installUpdateHandler([](QAccessibleEvent* event) {
      const QAccessibleInterface* about = event->accessibleInterface();
      if (event->type() == QAccessible::Focus && about->parent() == current->canvas)
        current->heard.append(about->text(QAccessible::Name));
    });
    window.activateWindow();
    isShown = QTest::qWaitForWindowActive(&window);
    canvas = QAccessible::queryAccessibleInterface(&window.canvas());
  }
  ~Heard() { QAccessible::installUpdateHandler(nullptr); }

  QAccessibleInterface* node(const char* id) const {
    for (int index = 0; index < canvas->childCount(); ++index)
      if (canvas->child(index)->text(QAccessible::Name).startsWith(QLatin1String(id) + u','))
        return canvas->child(index);
    return nullptr;
  }
  QStringList names(QAccessible::Role role) const {
    QStringList names;
    for (int index = 0; index < canvas->childCount(); ++index)
      if (canvas->child(index)->role() == role) names.append(canvas->child(index)->text(QAccessible::Name));
    return names;
  }

  QAccessibleInterface* canvas = nullptr;
  QStringList heard;  // what got the keyboard
  bool isShown = false;

 private:
  static inline Heard* current = nullptr;
};

}  // namespace

void OutlineTest::listsNodesInTheOrderInWhichTheyRun() {
  Fixture f(backwardsPipeline());
  QCOMPARE(f.session.pipeline().document().ops().front().id, std::string("act"));
  QCOMPARE(namesOf(f.window.outline().model()), QStringList({"x", "norm", "fc", "act", "y"}));
  QCOMPARE(cell(f.window.outline(), "x", OutlineModel::OperationColumn), QStringLiteral("Input"));
  QCOMPARE(cell(f.window.outline(), "act", OutlineModel::OperationColumn), QStringLiteral("GELU"));
}

void OutlineTest::saysShapeAndFusions() {
  Fixture f(smallPipeline());
  const OutlinePanel& outline = f.window.outline();
  QCOMPARE(cell(outline, "fc", OutlineModel::OutputColumn), QStringLiteral("16 × 64 bf16"));
  QCOMPARE(cell(outline, "fc", OutlineModel::ForwardColumn), QStringLiteral("ForwardLinearEpilogue"));
  QCOMPARE(cell(outline, "act", OutlineModel::ForwardColumn), QStringLiteral("ForwardLinearEpilogue"));
  QCOMPARE(cell(outline, "norm", OutlineModel::ForwardColumn), QString());
  Fixture branched(residualPipeline(true));
  QCOMPARE(cell(branched.window.outline(), "save", OutlineModel::OutputColumn), QStringLiteral("16 × 32 bf16, …"));
  QCOMPARE(cell(branched.window.outline(), "save", OutlineModel::OutputColumn, Qt::ToolTipRole),
           QStringLiteral("16 × 32 bf16, extra: 16 × 32 bf16"));
  QVERIFY(
      f.session.pipeline().apply(SetFusion{Json::parse(R"({"rules": "all", "without": ["ForwardLinearEpilogue"]})")}));
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(cell(outline, "fc", OutlineModel::ForwardColumn), QString());
}

void OutlineTest::opsOfAnInstanceStandBelowIt() {
  Fixture f(stack());
  const OutlineFilter& model = f.window.outline().model();
  const QModelIndex layer = f.window.outline().indexOf(QStringLiteral("layer1"));
  QCOMPARE(layer.siblingAtColumn(OutlineModel::OperationColumn).data().toString(), QStringLiteral("Layer"));
  QCOMPARE(namesOf(model, layer), QStringList({"save", "mlp", "add"}));
  const QModelIndex fc1 = model.index(1, 0, model.index(1, 0, layer));
  QCOMPARE(fc1.data().toString(), QStringLiteral("fc1"));
  QCOMPARE(fc1.data(OutlineModel::PlaceRole).toString(), QStringLiteral("layer1.mlp.fc1"));
  QCOMPARE(fc1.siblingAtColumn(OutlineModel::OutputColumn).data().toString(), QStringLiteral("512 × 5632 bf16"));
}

void OutlineTest::aRowIsASentence() {
  Fixture f(smallPipeline());
  QCOMPARE(
      cell(f.window.outline(), "act", OutlineModel::NameColumn, Qt::AccessibleTextRole),
      QStringLiteral("act, GELU, input 16 × 64 bf16, output 16 × 64 bf16, fused forward in ForwardLinearEpilogue"));
  QVERIFY(f.session.pipeline().apply(SetBypassed{.id = "norm", .bypassed = true}));
  QVERIFY(waitForAnalysis(f.session));
  const QString bypassed = cell(f.window.outline(), "norm", OutlineModel::NameColumn, Qt::AccessibleTextRole);
  QVERIFY2(bypassed.startsWith(QStringLiteral("norm, RMSNorm, bypassed")), qPrintable(bypassed));
}

void OutlineTest::rowsOfOneNodeAreThoseOfTheWhole_data() {
  QTest::addColumn<QString>("pipeline");
  QTest::newRow("blocks in blocks") << toQt(stack());
  QTest::newRow("two outputs") << toQt(residualPipeline(true));
  QTest::newRow("fused, wrong way round") << toQt(backwardsPipeline());
}

/// The canvas describes the selected node without a look at all the others.
void OutlineTest::rowsOfOneNodeAreThoseOfTheWhole() {
  QFETCH(const QString, pipeline);
  Fixture f(pipeline.toStdString());
  const auto linesOf = [](const std::vector<OutlineRow>& rows) {
    std::map<std::string, QStringList> lines;  // by node of the pipeline
    for (const OutlineRow& row : rows) lines[row.node].append(toQt(row.place) + QStringLiteral(": ") + sentenceOf(row));
    return lines;
  };
  const auto whole = linesOf(outlineOf(f.session));
  QVERIFY(whole.size() > 3);
  for (const auto& [node, lines] : whole) {
    const auto own = linesOf(outlineOf(f.session, node));
    QCOMPARE(own.size(), 1U);
    QCOMPARE(own.begin()->second, lines);
  }
}

void OutlineTest::screenReadersGetTheSentence() {
  Fixture f(smallPipeline());
  QVERIFY(f.window.showPane(QStringLiteral("outline")));
  QAccessibleInterface* outline = QAccessible::queryAccessibleInterface(f.window.outline().view());
  QVERIFY(outline && outline->tableInterface());
  QCOMPARE(outline->text(QAccessible::Name), QStringLiteral("Outline of the pipeline"));
  QAccessibleInterface* fc = outline->tableInterface()->cellAt(2, OutlineModel::NameColumn);
  QVERIFY(fc);
  QCOMPARE(fc->text(QAccessible::Name), kSentenceOfFc);
}

void OutlineTest::nodesAndWiresOfTheCanvasAreChildren() {
  Heard f;
  QCOMPARE(f.names(QAccessible::ListItem),
           QStringList({"x, Input, output 16 × 32 bf16", "norm, RMSNorm, input 16 × 32 bf16, output 16 × 32 bf16",
                        kSentenceOfFc,
                        "act, GELU, input 16 × 64 bf16, output 16 × 64 bf16, fused forward in "
                        "ForwardLinearEpilogue",
                        "y, Output, output 16 × 64 bf16"}));
  QCOMPARE(f.names(QAccessible::Graphic).front(), QStringLiteral("From x to norm.x, 16 × 32 bf16"));
  for (int index = 0; index < f.canvas->childCount(); ++index)
    QCOMPARE(f.canvas->indexOfChild(f.canvas->child(index)), index);
}

void OutlineTest::aNodeOfTheCanvasIsWhereItIsDrawn() {
  Heard f;
  const GraphView& view = f.window.canvas();
  const QPoint middle =
      view.viewport()->mapToGlobal(view.mapFromScene(f.window.scene().node("fc")->sceneBox().center()));
  QVERIFY(f.node("fc")->rect().contains(middle));
  QCOMPARE(f.canvas->childAt(middle.x(), middle.y()), f.node("fc"));
  QVERIFY(!f.node("fc")->state().offscreen);
  f.window.canvas().camera().showPlace(QPointF(1e4, 1e4), 1);
  QVERIFY(f.node("fc")->state().offscreen);
}

void OutlineTest::theSelectedNodeOfTheCanvasHasTheKeyboard() {
  Heard f;
  f.window.canvas().goTo(QStringLiteral("norm"));
  press(Qt::Key_Right);
  QVERIFY(f.node("fc")->state().focused && f.node("fc")->state().selected);
  QCOMPARE(f.canvas->focusChild(), f.node("fc"));
  QVERIFY(!f.node("norm")->state().selected);
  f.session.selection().select({QStringLiteral("norm"), QStringLiteral("fc")});
  QVERIFY(f.node("norm")->state().selected && !f.node("norm")->state().focused);
  QCOMPARE(f.canvas->focusChild(), f.canvas);
}

void OutlineTest::screenReadersFollowTheKeyboardOnTheCanvas() {
  Heard f;
  // Without a display nobody ever listens; elsewhere the bus of screen readers takes a moment.
  const int patienceMs = QGuiApplication::platformName() == QStringLiteral("offscreen") ? 0 : 3000;
  if (!QTest::qWaitFor([] { return QAccessible::isActive(); }, patienceMs))
    QSKIP("No screen reader can listen; under xcb with QT_LINUX_ACCESSIBILITY_ALWAYS_ON=1 one can.");
  const auto isHeard = [&] { return !f.heard.isEmpty() && f.heard.back() == kSentenceOfFc; };
  f.window.canvas().goTo(QStringLiteral("norm"));
  press(Qt::Key_Right);
  QTRY_VERIFY(isHeard());
  f.window.outline().view()->setFocus();
  QCoreApplication::processEvents();
  f.heard.clear();
  f.window.canvas().setFocus();
  QTRY_VERIFY(isHeard());
}

void OutlineTest::screenReadersPressNodes() {
  Heard f;
  QSignalSpy wanted(&f.window.canvas(), &GraphView::propertiesRequested);
  QAccessibleActionInterface* actions = f.node("act")->actionInterface();
  QVERIFY(actions);
  actions->doAction(QAccessibleActionInterface::setFocusAction());
  QCOMPARE(f.session.selection().single(), QStringLiteral("act"));
  QVERIFY(f.window.canvas().hasFocus());
  QCOMPARE(wanted.count(), 0);
  actions->doAction(QAccessibleActionInterface::pressAction());
  QCOMPARE(wanted.count(), 1);
}

void OutlineTest::aNodeThatIsRemovedIsNoLongerAChild() {
  Heard f;
  QVERIFY(f.node("act"));
  const QAccessible::Id id = QAccessible::uniqueId(f.node("act"));
  f.session.selection().select({QStringLiteral("act")});
  f.window.scene().commands().removeSelected(Reconnect::Yes);
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(!f.node("act"));
  QVERIFY(!QAccessible::accessibleInterface(id));
  QVERIFY(f.node("fc") && f.node("fc")->isValid());
  QVERIFY(f.names(QAccessible::Graphic).contains(QStringLiteral("From fc.y to y, 16 × 64 bf16")));
}

void OutlineTest::problemsAreWords() {
  Fixture f(smallPipeline());
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "fc", .name = "in_features", .value = 7}));
  QVERIFY(waitForAnalysis(f.session));
  const QModelIndex problems = f.window.outline().indexOf(QStringLiteral("fc")).siblingAtColumn(6);
  QCOMPARE(problems.data().toString(), QStringLiteral("1 error"));
  QVERIFY(!problems.data(Qt::DecorationRole).value<QIcon>().isNull());
  QVERIFY2(problems.data(Qt::ToolTipRole).toString().contains(QStringLiteral("7")),
           qPrintable(problems.data(Qt::ToolTipRole).toString()));
  QVERIFY(cell(f.window.outline(), "fc", 0, Qt::AccessibleTextRole).contains(QStringLiteral("error: ")));
  QCOMPARE(cell(f.window.outline(), "norm", OutlineModel::ProblemsColumn), QString());
}

void OutlineTest::theIconOfAProblemIsSeenInAChosenRow_data() {
  QTest::addColumn<int>("theme");
  QTest::newRow("light") << static_cast<int>(ThemeChoice::Light);
  QTest::newRow("dark") << static_cast<int>(ThemeChoice::Dark);
}

void OutlineTest::theIconOfAProblemIsSeenInAChosenRow() {
  QFETCH(const int, theme);
  Fixture f(smallPipeline());
  f.theme.apply(static_cast<ThemeChoice>(theme));
  QVERIFY(f.session.pipeline().apply(SetBypassed{.id = "act", .bypassed = true}));
  QVERIFY(waitForAnalysis(f.session));
  const QModelIndex act = f.window.outline().indexOf(QStringLiteral("act"));
  const QVariant icon = act.siblingAtColumn(OutlineModel::ProblemsColumn).data(Qt::DecorationRole);
  const QImage image = icon.value<QIcon>().pixmap(32, QIcon::Selected).toImage();
  double contrast = 0;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x)
      if (const QColor color = image.pixelColor(x, y); color.alpha() > 200)
        contrast = std::max(contrast, contrastRatio(color, f.theme.colors().accent));
  QVERIFY2(contrast > 4.5, qPrintable(QString::number(contrast)));
}

void OutlineTest::timesAreThoseOfARunOfThisPipeline() {
  OpenedRun f(measuredRun(), QStringLiteral("outline"));
  QVERIFY(f.isOpen);
  const QString time = cell(f.window.outline(), "fc", OutlineModel::TimeColumn);
  QVERIFY2(time.toDouble() > 0.0, qPrintable(time));  // of the unit in the head, as in all rows
  const QString head =
      f.window.outline().view()->model()->headerData(OutlineModel::TimeColumn, Qt::Horizontal).toString();
  QVERIFY2(head == QStringLiteral("Unfused (µs)") || head == QStringLiteral("Unfused (ms)"), qPrintable(head));
  QCOMPARE(cell(f.window.outline(), "x", OutlineModel::TimeColumn), QString());
  const QString sentence = cell(f.window.outline(), "fc", 0, Qt::AccessibleTextRole);
  QVERIFY2(sentence.endsWith(QStringLiteral("s unfused")), qPrintable(sentence));
  QVERIFY(!f.window.outline().view()->isColumnHidden(OutlineModel::TimeColumn));
  QVERIFY(f.session.pipeline().apply(SetSymbol{.name = "M", .value = 8}));
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(cell(f.window.outline(), "fc", OutlineModel::TimeColumn), QString());
  QVERIFY(f.window.outline().view()->isColumnHidden(OutlineModel::TimeColumn));
}

void OutlineTest::f2RenamesAndAnUndoNamesBack() {
  Fixture f(smallPipeline());
  const std::string before = serialize(f.session.pipeline().document());
  QVERIFY(goTo(f, "fc"));
  renameTo(QStringLiteral("up"));
  QVERIFY(f.session.pipeline().document().findOp("up"));
  QCOMPARE(f.session.selection().single(), QStringLiteral("up"));
  QCOMPARE(f.window.outline().view()->currentIndex().data().toString(), QStringLiteral("up"));
  QVERIFY(f.window.outline().view()->hasFocus());
  press(Qt::Key_Z, Qt::ControlModifier);
  QCOMPARE(serialize(f.session.pipeline().document()), before);
}

void OutlineTest::escGivesTheNameBack() {
  Fixture f(smallPipeline());
  QVERIFY(goTo(f, "fc"));
  press(Qt::Key_F2);
  type(QStringLiteral("up"));
  press(Qt::Key_Escape);
  QCoreApplication::processEvents();
  QVERIFY(f.window.outline().view()->hasFocus() && f.op("fc").operation == "Linear");
  QCOMPARE(f.session.selection().single(), QStringLiteral("fc"));
  QVERIFY(!f.session.pipeline().history().canUndo());
}

void OutlineTest::inputsAreRenamedInTheirConsumers() {
  Fixture f(smallPipeline());
  QVERIFY(goTo(f, "x"));
  renameTo(QStringLiteral("tokens"));
  QVERIFY(isWired(f.session, {"tokens", {}}, {"norm", "x"}));
  f.session.selection().select({QStringLiteral("y")});
  renameTo(QStringLiteral("result"));
  QVERIFY(f.session.pipeline().document().findOutput("result"));
}

void OutlineTest::aNameThatIsTakenIsRefusedWithASentence() {
  Fixture f(smallPipeline());
  QVERIFY(goTo(f, "fc"));
  const QSignalSpy refusals(&f.session.pipeline(), &OpenPipeline::editRefused);
  renameTo(QStringLiteral("act"));
  QCOMPARE(refusals.size(), 1);
  QVERIFY2(refusals.front().front().toString().contains(QStringLiteral("act")),
           qPrintable(refusals.front().front().toString()));
  QCOMPARE(f.window.statusBar()->currentMessage(), refusals.front().front().toString());
  QCOMPARE(namesOf(f.window.outline().model()), QStringList({"x", "norm", "fc", "act", "y"}));
  QVERIFY(!f.session.pipeline().history().canUndo());
}

void OutlineTest::namesInsideAnInstanceAreFixed() {
  Fixture f(stack());
  QVERIFY(goTo(f, "layer1"));
  press(Qt::Key_Right);  // opens it
  press(Qt::Key_Down);
  QCOMPARE(f.window.outline().view()->currentIndex().data().toString(), QStringLiteral("save"));
  press(Qt::Key_F2);
  QVERIFY(f.window.outline().view()->hasFocus());
  QVERIFY(f.window.statusBar()->currentMessage().startsWith(QStringLiteral("This op is inside a block")));
}

void OutlineTest::keysRemoveReconnectAndBypass() {
  Fixture f(smallPipeline());
  const std::string before = serialize(f.session.pipeline().document());
  QVERIFY(goTo(f, "act"));
  press(Qt::Key_D);
  QVERIFY(f.op("act").isBypassed());
  QCOMPARE(cell(f.window.outline(), "act", OutlineModel::OperationColumn), QStringLiteral("GELU (bypassed)"));
  press(Qt::Key_Z, Qt::ControlModifier);
  f.session.selection().select({QStringLiteral("fc")});
  press(Qt::Key_Delete, Qt::ControlModifier);
  QVERIFY(isWired(f.session, {"norm", "y"}, {"act", "x"}));
  press(Qt::Key_Z, Qt::ControlModifier);
  f.session.selection().select({QStringLiteral("fc")});
  press(Qt::Key_Delete);
  QCOMPARE(namesOf(f.window.outline().model()), QStringList({"x", "norm", "act", "y"}));
  QVERIFY(!isWired(f.session, {"norm", "y"}, {"act", "x"}));
  QCOMPARE(f.window.outline().view()->currentIndex().data().toString(), QStringLiteral("act"));
  press(Qt::Key_Z, Qt::ControlModifier);
  QCOMPARE(serialize(f.session.pipeline().document()), before);
}

void OutlineTest::enterGoesToTheInspector() {
  Fixture f(smallPipeline());
  QVERIFY(goTo(f, "fc"));
  press(Qt::Key_Return);
  QVERIFY(f.window.inspector().isAncestorOf(QApplication::focusWidget()));
  QCOMPARE(qobject_cast<QLineEdit*>(QApplication::focusWidget())->text(), QStringLiteral("fc"));
}

void OutlineTest::selectionIsThatOfTheCanvas() {
  Fixture f(smallPipeline());
  QVERIFY(goTo(f, "norm"));
  press(Qt::Key_Down);
  QCOMPARE(f.session.selection().single(), QStringLiteral("fc"));
  QVERIFY(f.window.scene().node("fc")->isSelected() && !f.window.scene().node("norm")->isSelected());
  press(Qt::Key_Down, Qt::ShiftModifier);
  QCOMPARE(f.session.selection().ids(), QSet<QString>({"fc", "act"}));
  f.session.selection().select({QStringLiteral("x"), QStringLiteral("act")});
  const auto* chosen = f.window.outline().view()->selectionModel();
  QCOMPARE(chosen->selectedRows().size(), 2);
  QVERIFY(chosen->isRowSelected(0) && chosen->isRowSelected(3));
  f.session.selection().select({});
  QVERIFY(!chosen->hasSelection());
}

void OutlineTest::anOpOfAnInstanceSelectsTheInstance() {
  Fixture f(stack());
  QVERIFY(goTo(f, "layer2"));
  press(Qt::Key_Right);
  press(Qt::Key_Down);
  QCOMPARE(f.window.outline().view()->currentIndex().data().toString(), QStringLiteral("save"));
  QCOMPARE(f.session.selection().single(), QStringLiteral("layer2"));
  QCOMPARE(f.window.outline().view()->selectionModel()->selectedRows(),
           QModelIndexList({f.window.outline().indexOf(QStringLiteral("layer2"))}));
  press(Qt::Key_Down);
  QCOMPARE(f.window.outline().view()->currentIndex().data().toString(), QStringLiteral("mlp"));
}

void OutlineTest::filterFindsNamesOpsShapesAndFusions() {
  Fixture f(smallPipeline());
  QLineEdit* filter = f.window.outline().filterEdit();
  const OutlineFilter& model = f.window.outline().model();
  filter->setText(QStringLiteral("gelu"));
  QCOMPARE(namesOf(model), QStringList({"act"}));
  filter->setText(QStringLiteral("16x64"));
  QCOMPARE(namesOf(model), QStringList({"fc", "act", "y"}));
  filter->setText(QStringLiteral("linearepi 64"));
  QCOMPARE(namesOf(model), QStringList({"fc", "act"}));
  filter->setText(QStringLiteral("nothing"));
  QVERIFY(namesOf(model).isEmpty());
  filter->clear();
  QCOMPARE(model.rowCount(), 5);
  Fixture nested(stack());
  nested.window.outline().filterEdit()->setText(QStringLiteral("fc2"));
  QCOMPARE(namesOf(nested.window.outline().model()), QStringList({"layer1", "layer2"}));
  QVERIFY(nested.window.outline().view()->isExpanded(nested.window.outline().indexOf(QStringLiteral("layer2"))));
}

void OutlineTest::filterKeepsTheSelection() {
  Fixture f(smallPipeline());
  f.session.selection().select({QStringLiteral("fc")});
  f.window.outline().filterEdit()->setText(QStringLiteral("norm"));
  QCOMPARE(f.session.selection().single(), QStringLiteral("fc"));
  f.window.outline().filterEdit()->clear();
  QVERIFY(f.window.outline().view()->selectionModel()->isRowSelected(2));
}

void OutlineTest::anEmptyPipelineNamesTheNextStep() {
  Fixture f(serialize(PipelineDocument()));
  QVERIFY(f.window.showPane(QStringLiteral("outline")));
  const auto* sentence = f.window.outline().findChild<QLabel*>();
  QVERIFY(sentence->isVisibleTo(&f.window.outline()) && !f.window.outline().view()->isVisibleTo(&f.window.outline()));
  QVERIFY(sentence->text().contains(QStringLiteral("Ctrl+Space")));
  QVERIFY(f.session.pipeline().apply(AddOp{.op = {.id = "act", .operation = "GELU"}}));
  QVERIFY(!sentence->isVisibleTo(&f.window.outline()) && f.window.outline().view()->isVisibleTo(&f.window.outline()));
}

void OutlineTest::whatIsOpenStaysOpen() {
  Fixture f(stack());
  QVERIFY(goTo(f, "layer1"));
  press(Qt::Key_Right);
  QVERIFY(f.session.pipeline().apply(AddOp{.op = {.id = "act", .operation = "GELU"}}));
  QVERIFY(waitForAnalysis(f.session));
  OutlinePanel& outline = f.window.outline();
  QVERIFY(outline.view()->isExpanded(outline.indexOf(QStringLiteral("layer1"))));
  QVERIFY(!outline.view()->isExpanded(outline.indexOf(QStringLiteral("layer2"))));
  outline.filterEdit()->setText(QStringLiteral("fc1"));
  outline.filterEdit()->clear();
  QVERIFY(!outline.view()->isExpanded(outline.indexOf(QStringLiteral("layer2"))));
}

void OutlineTest::wDrawsAWireFromHere() {
  Fixture f(smallPipeline());
  QVERIFY(f.session.pipeline().apply(RemoveWire{.wire = {{"fc", "y"}, {"act", "x"}}}));
  QVERIFY(goTo(f, "fc"));
  press(Qt::Key_W);
  QVERIFY(f.window.scene().wires().isDrawing() && f.window.canvas().hasFocus());
  QVERIFY2(f.window.canvas().accessibleDescription().startsWith(QStringLiteral("fc.y → act.x")),
           qPrintable(f.window.canvas().accessibleDescription()));
  press(Qt::Key_Return);
  QVERIFY(isWired(f.session, {"fc", "y"}, {"act", "x"}));
  QVERIFY(f.window.outline().view()->hasFocus());
  press(Qt::Key_W);
  press(Qt::Key_Escape);
  QVERIFY(!f.window.scene().wires().isDrawing() && f.window.outline().view()->hasFocus());
  QCOMPARE(f.session.selection().single(), QStringLiteral("fc"));
}

/// The limit is far above what it takes, and far below what one waits for.
void OutlineTest::aThousandOpsAreListed() {
  Fixture f(chainOfGelus(1000));
  OutlinePanel outline(f.session, f.theme);
  outline.resize(900, 300);
  outline.show();
  QCOMPARE(outline.model().rowCount(), 1002);
  outline.filterEdit()->setText(QStringLiteral("op99"));
  QCOMPARE(outline.model().rowCount(), 11);
  outline.filterEdit()->clear();
  outline.view()->selectAll();
  QCOMPARE(f.session.selection().ids().size(), 1002);
}

/// Views keep their place where only values change, and are told once where rows do.
void OutlineTest::editsAreOneChangeForViews() {
  Fixture f(chainOfGelus(100));
  const OutlineFilter& model = f.window.outline().model();
  const QSignalSpy resets(&model, &QAbstractItemModel::modelReset);
  QVERIFY(f.session.pipeline().apply(SetBypassed{.id = "op7", .bypassed = true}));
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(cell(f.window.outline(), "op7", OutlineModel::OperationColumn), QStringLiteral("GELU (bypassed)"));
  QCOMPARE(resets.size(), 0);
  QVERIFY(f.session.rename(QStringLiteral("op50"), QStringLiteral("middle")));
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(resets.size(), 1);
  QCOMPARE(f.window.outline().view()->currentIndex().data().toString(), QStringLiteral("middle"));
}

namespace {

/// Chooses what the search finds first. A display gives the keyboard back to the window when a popup closes; where
/// there is none, the test does.
bool insertBySearch(Fixture& f, const QString& query) {
  press(Qt::Key_Space, Qt::ControlModifier);
  type(query);
  press(Qt::Key_Return);
  f.window.activateWindow();
  return QTest::qWaitForWindowActive(&f.window) && f.window.canvas().hasFocus() && waitForAnalysis(f.session);
}

std::string problemsOf(const Session& session) {
  std::string text;
  for (const Diagnostic& problem : session.plan().analysis()->lowered.diagnostics)
    text += toString(problem, "test") + "\n";
  return text;
}

bool isFusedForward(const Session& session, const char* rule, const QStringList& owners) {
  return std::ranges::any_of(session.plan().analysis()->report.forward, [&](const FusedOperation& entry) {
    QStringList ids;
    for (const NodeId node : entry.nodes) ids.append(toQt(session.plan().analysis()->graph().node(node).owner));
    ids.removeDuplicates();
    return entry.isFused() && entry.rule->name == rule && ids == owners;
  });
}

}  // namespace

/// LayerNorm -> Linear -> GELU -> Linear: the search joins what it puts behind the selection, W joins the rest.
void OutlineTest::aPipelineIsBuiltByKeys() {
  Fixture f(serialize(PipelineDocument()));
  const std::string before = serialize(f.session.pipeline().document());
  f.window.activateWindow();
  QVERIFY(QTest::qWaitForWindowActive(&f.window));
  f.window.canvas().setFocus();
  for (const char* query : {"input", "layernorm", "linear"})
    QVERIFY2(insertBySearch(f, QString::fromLatin1(query)), query);
  QCOMPARE(f.session.pipeline().document().wires().size(), std::size_t{2});
  f.window.scene().drops().drop("GELU", QPointF(0, 900));  // beside nothing: it stands alone
  QVERIFY(waitForAnalysis(f.session));
  QCOMPARE(f.session.pipeline().document().wires().size(), std::size_t{2});

  press(Qt::Key_O, Qt::ControlModifier | Qt::ShiftModifier);
  QVERIFY(f.window.outline().view()->hasFocus());
  press(Qt::Key_Home);
  const auto currentOp = [&] {
    return f.window.outline().view()->currentIndex().siblingAtColumn(OutlineModel::OperationColumn).data().toString();
  };
  for (int i = 0; i < 5 && currentOp() != QStringLiteral("Linear"); ++i) press(Qt::Key_Down);
  renameTo(QStringLiteral("fc1"));
  QCOMPARE(f.session.selection().single(), QStringLiteral("fc1"));
  press(Qt::Key_W);
  press(Qt::Key_Return);
  QCOMPARE(f.session.pipeline().document().wires().size(), std::size_t{3});
  QVERIFY(waitForAnalysis(f.session));  // which says how wide the next op is

  press(Qt::Key_Down);
  QCOMPARE(f.session.selection().single(), QStringLiteral("gelu"));
  for (const char* query : {"linear", "output"}) QVERIFY2(insertBySearch(f, QString::fromLatin1(query)), query);
  QVERIFY2(f.session.plan().analysis()->isRunnable(), problemsOf(f.session).c_str());
  const OutlineFilter& model = f.window.outline().model();
  QStringList operations;
  for (int row = 0; row < model.rowCount(); ++row)
    operations.append(model.index(row, OutlineModel::OperationColumn).data().toString());
  QCOMPARE(operations, QStringList({"Input", "LayerNorm", "Linear", "GELU", "Linear", "Output"}));
  QVERIFY(isFusedForward(f.session, "ForwardLinearEpilogue", {"fc1", "gelu"}));

  int numUndone = 0;
  for (; f.session.pipeline().history().canUndo() && numUndone < 20; ++numUndone) press(Qt::Key_Z, Qt::ControlModifier);
  QCOMPARE(numUndone, 8);  // six nodes, a name, a wire
  QCOMPARE(serialize(f.session.pipeline().document()), before);
}

void OutlineTest::searchFindsNodesByTheirFacts() {
  Fixture f(smallPipeline());
  const auto found = [&](const char* query) {
    QStringList ids;
    for (const FoundNode& node :
         findNodes(f.session.pipeline().document(), *f.session.plan().analysis(), QString::fromUtf8(query)))
      ids.append(toQt(node.id));
    return ids.join(u' ');
  };
  QCOMPARE(found("LINEAR"), QStringLiteral("fc act"));  // act is part of ForwardLinearEpilogue
  QCOMPARE(found("fc linear"), QStringLiteral("fc"));
  QCOMPARE(found("32x"), QString());
  QCOMPARE(found("16 × 32"), QStringLiteral("x norm"));
  QCOMPARE(found("nothing"), QString());
  QCOMPARE(found(""), QStringLiteral("x norm fc act y"));
}

void OutlineTest::searchComparesValues() {
  Fixture f(smallPipeline());
  const MeasuredOps times = measuredOps(measuredRun());
  const auto found = [&](const char* query) {
    QStringList ids;
    for (const FoundNode& node :
         findNodes(f.session.pipeline().document(), *f.session.plan().analysis(), QString::fromUtf8(query), &times))
      ids.append(toQt(node.id));
    return ids.join(u' ');
  };
  QCOMPARE(found("out_features>63"), QStringLiteral("fc"));  // 2*H is 64
  QCOMPARE(found("out_features > 64"), QString());
  QCOMPARE(found("out_features=64 linear"), QStringLiteral("fc"));
  QCOMPARE(found("bias=false"), QStringLiteral("fc"));
  QCOMPARE(found("bias!=false"), QString());
  QCOMPARE(found("dtype:bf16"), QStringLiteral("norm fc act"));
  QCOMPARE(found("dtype:f32"), QString());
  QCOMPARE(found("op=gelu"), QStringLiteral("act"));
  QCOMPARE(found("time>0"), QStringLiteral("norm fc act"));
  QCOMPARE(found("time>1000s"), QString());
  QCOMPARE(found("time<1000s op:Lin"), QStringLiteral("fc"));
}

FUSELINE_UI_TEST(OutlineTest)

}  // namespace fuseline::ui::outline_test

#include "test_ui_outline.moc"
