// Comparing pipelines: the list of changes, its marks on the canvas, and taking changes back.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/edit/apply_edit.h"
#include "core/lowering/connections.h"
#include "core/profile/run_file.h"
#include "core/quant/recipe.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/compare/base_canvas.h"
#include "ui/session/baselines.h"

#include <QMenu>
#include <QScrollBar>
#include <QTest>

namespace fuseline::ui::changes_test {

class ChangesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void listsChangesInGroups();
  void theColumnWithTheMostTextHasTheRoom();
  void showsTheEffectOnThePlans();
  void followsEdits();
  void marksTheCanvas();
  void showsRemovedNodesAsGhosts();
  void aGhostMakesRoomForANode();
  void aGhostGoesAsideForAWire();
  void aClickOnAGhostSelectsItsRow();
  void aRowSelectsItsOp();
  void aRowOfABlockSelectsItsInstances();
  void anOpSelectsItsRow();
  void keysGoFromChangeToChange();
  void takesAChangeBackAsOneEdit();
  void afterTakingBackTheNextRowIsTheCurrentOne();
  void whatIsClosedStaysClosed();
  void saysWhyAChangeCannotBeTakenBack();
  void aPlanCannotBeTakenBackByItself();
  void theEndLeavesTheCanvasAsItWas();
  void comparesWithTheSavedVersion();
  void comparesWithTheFilesThatCanBeOpened();
  void endsWithTheDocument();
  void comparesPipelinesWithErrors();
  void aLargePipelineIsComparedBesideTheWindow();
  void twoCanvasesShowOldAndNew();
  void twoCanvasesPanAndZoomTogether();
  void theCompareWorkspaceHasTwoCanvases();
  void timesStandOnBothCanvasesAndTheirChangeOnTheNewOne();
  void comparesWithAnotherRecipe();
};

namespace {

PipelineDocument documentOf(const std::string& text) { return parseDocument(text).document; }

/// The small pipeline, compared with itself as it was opened.
struct Compared : Fixture {
  Compared() : Fixture(smallPipeline()) {
    window.showPane(QStringLiteral("changes"));
    window.comparison().start(session.pipeline().document(), QStringLiteral("before"));
    wait();
  }

  bool wait() {
    return waitForAnalysis(session) && QTest::qWaitFor([this] { return !window.comparison().isComparing(); });
  }
  bool apply(const Edit& edit) { return session.pipeline().apply(edit) && wait(); }

  /// Gives all nodes places, and compares with that.
  bool placeInARow() {
    for (const auto& [id, x] : {std::pair("x", 0), {"norm", 200}, {"fc", 400}, {"act", 600}, {"y", 800}})
      if (!session.pipeline().apply(MoveNode{id, Position{x, 40}})) return false;
    window.comparison().start(session.pipeline().document(), QStringLiteral("with places"));
    return wait();
  }

  const ChangesModel& model() { return window.changes().model(); }
  /// "ops: norm | ~ changed | eps - → 0.1", a line a row.
  QStringList rows() {
    QStringList lines;
    for (const QModelIndex& row : model().changeRows())
      lines.append(QStringLiteral("%1: %2 | %3 | %4")
                       .arg(row.parent().data().toString(), row.data().toString(),
                            row.siblingAtColumn(ChangesModel::KindColumn).data().toString(),
                            row.siblingAtColumn(ChangesModel::DetailsColumn).data().toString()));
    return lines;
  }
  void choose(const QString& what, const QString& group) {
    for (const QModelIndex& row : model().changeRows())
      if (row.data().toString() == what && row.parent().data().toString() == group)
        return window.changes().view()->setCurrentIndex(row);
    QFAIL(qPrintable(what));
  }
  bool isMarked(const char* id, DocumentChange::Kind kind) {
    const NodeMark* mark = window.changeMarks().markOf(id);
    return mark && mark->kind() == kind;
  }
  QAction* command(const QString& text) {
    for (QAction* action : window.findChildren<QAction*>())
      if (action->text().remove(u'&') == text) return action;
    return nullptr;
  }
};

const QString kOps = QStringLiteral("ops");

/// Takes fc out and lets act read norm; adds drop at the end; norm and act change.
Edit manyEdits(const PipelineDocument& document) {
  return EditGroup{"many",
                   {removeOpWithWires(document, "fc", true), SetAttribute{"norm", "eps", 0.5}, RenameOp{"act", "gelu"},
                    AddOp{{.id = "drop", .operation = "Dropout", .attributes = Json{{"p", 0.1}}}},
                    AddWire{{{"gelu", "y"}, {"drop", "x"}}}, ReplaceOutput{"y", {.id = "y", .from = {"drop", "y"}}}}};
}

/// Everything that the canvas shows of the document: what, where, how dim, with which marks.
QStringList canvasText(const GraphScene& scene) {
  QStringList lines;
  for (const QGraphicsItem* item : scene.items())
    lines.append(QStringLiteral("%1 at %2 %3, opacity %4, %5 children, in %6")
                     .arg(item->type())
                     .arg(item->x())
                     .arg(item->y())
                     .arg(item->opacity())
                     .arg(item->childItems().size())
                     .arg(item->boundingRect().width()));
  lines.sort();
  return lines;
}

}  // namespace

void ChangesTest::theColumnWithTheMostTextHasTheRoom() {
  Compared f;
  QVERIFY(f.apply(manyEdits(f.session.pipeline().document())));
  const QTreeView& view = *f.window.changes().view();
  resizePane(f.window.changes(), {460, 300});
  QVERIFY(view.columnWidth(ChangesModel::WhatColumn) + view.columnWidth(ChangesModel::KindColumn) < 460 * 3 / 4);
  for (const int column : {ChangesModel::WhatColumn, ChangesModel::KindColumn})
    for (const QModelIndex& row : f.model().changeRows())
      QVERIFY(view.columnWidth(column) >=
              std::min(view.fontMetrics().horizontalAdvance(row.siblingAtColumn(column).data().toString()), 200));
}

void ChangesTest::listsChangesInGroups() {
  Compared f;
  QCOMPARE(f.window.changes().title(), QStringLiteral("before → test"));
  QCOMPARE(f.window.changes().summary(), QStringLiteral("No differences: both pipelines are equivalent."));
  QVERIFY(f.rows().isEmpty());
  QVERIFY(f.apply(manyEdits(f.session.pipeline().document())));
  const QStringList rows = f.rows();
  for (const char* row : {"ops: fc | − removed | op \"Linear\", in_features \"H\", out_features \"2*H\", bias false",
                          "ops: norm | ~ changed | eps - → 0.5", "ops: act | > renamed | → gelu",
                          "ops: drop | + added | op \"Dropout\", p 0.1", "wires: fc.x | − removed | from \"norm.y\"",
                          "wires: gelu.x | ~ changed | from \"fc.y\" → \"norm.y\"",
                          "outputs: y | ~ changed | from \"gelu.y\" → \"drop.y\""})
    QVERIFY2(rows.contains(QString::fromUtf8(row)), qPrintable(rows.join(u'\n')));
  QVERIFY2(f.window.changes().summary().startsWith(
               QStringLiteral("1 op added, 1 removed, 1 changed, 1 renamed; 4 other changes; ")),
           qPrintable(f.window.changes().summary()));
  QCOMPARE(f.window.findChild<QDockWidget*>(QStringLiteral("changes"))->windowTitle(), QStringLiteral("Changes (8)"));
}

void ChangesTest::showsTheEffectOnThePlans() {
  Compared f;
  const auto numLaunches = [&] { return f.session.plan().analysis()->fusedPlan->numLaunches(); };
  const auto before = numLaunches();
  QVERIFY(f.apply(SetFusion{Json{{"rules", "te"}}}));
  QVERIFY(numLaunches() != before);
  const QString expected = QStringLiteral("fused: %2 → %1 steps").arg(numLaunches()).arg(before);
  QVERIFY2(f.window.changes().summary().contains(expected), qPrintable(f.window.changes().summary()));
  const QStringList fused = f.rows().filter(QStringLiteral("fused plan, forward: "));
  QVERIFY2(!fused.filter(QStringLiteral("− removed")).isEmpty(), qPrintable(f.rows().join(u'\n')));
  QVERIFY2(!fused.filter(QStringLiteral("+ added")).isEmpty(), qPrintable(f.rows().join(u'\n')));
}

void ChangesTest::followsEdits() {
  Compared f;
  QVERIFY(f.apply(SetAttribute{"norm", "eps", 0.5}));
  QCOMPARE(f.rows().size(), 1);
  f.choose(QStringLiteral("norm"), kOps);
  QVERIFY(f.apply(SetSymbol{"M", 32}));
  QVERIFY(f.rows().contains(QStringLiteral("symbols: M | ~ changed | 16 → 32")));
  // The row that was chosen is still the one.
  QCOMPARE(f.window.changes().view()->currentIndex().siblingAtColumn(0).data().toString(), QStringLiteral("norm"));
  f.session.pipeline().undo();
  f.session.pipeline().undo();
  QVERIFY(f.wait());
  QVERIFY(f.rows().isEmpty());
}

void ChangesTest::marksTheCanvas() {
  Compared f;
  QVERIFY(f.apply(manyEdits(f.session.pipeline().document())));
  QVERIFY(f.isMarked("norm", DocumentChange::Kind::Changed));
  QVERIFY(f.isMarked("gelu", DocumentChange::Kind::Renamed));
  QVERIFY(f.isMarked("drop", DocumentChange::Kind::Added));
  QVERIFY(f.isMarked("y", DocumentChange::Kind::Changed));
  QVERIFY(!f.window.changeMarks().markOf("x"));
  QVERIFY(f.window.scene().node("x")->opacity() < 1.0);
  QCOMPARE(f.window.scene().node("norm")->opacity(), 1.0);
  for (const LinkItem* link : f.window.scene().links()) {
    const bool isOld = link->link().to.node == "norm";
    QCOMPARE(link->childItems().isEmpty(), isOld);
    QCOMPARE(link->opacity() < 1.0, isOld);
  }
}

void ChangesTest::showsRemovedNodesAsGhosts() {
  Compared f;
  QVERIFY(f.placeInARow());
  QVERIFY(f.apply(removeOpWithWires(f.session.pipeline().document(), "fc")));
  QCOMPARE(f.window.changeMarks().ghosts().size(), std::size_t{1});
  const GhostItem* ghost = f.window.changeMarks().ghosts().at("fc");
  QCOMPARE(ghost->pos(), QPointF(400, 40));
  QVERIFY(!f.window.scene().node("fc"));
  QCOMPARE(f.window.changeMarks().numGoneLinks(), std::size_t{2});
  QVERIFY(f.window.scene().contentRect().contains(ghost->sceneBox()));
  // It goes where its neighbor goes.
  QVERIFY(f.apply(MoveNode{"norm", Position{200, 400}}));
  QCOMPARE(f.window.changeMarks().ghosts().at("fc")->pos(), QPointF(400, 400));
  f.window.scene().node("norm")->setPos(200, 300);  // as a hand would, before it lets go
  QTRY_COMPARE(f.window.changeMarks().ghosts().at("fc")->pos(), QPointF(400, 300));
  // It is none of the document: it cannot be selected.
  f.window.scene().clearSelection();
  f.window.changeMarks().ghosts().at("fc")->setSelected(true);
  QVERIFY(f.session.selection().ids().isEmpty());
}

void ChangesTest::aGhostMakesRoomForANode() {
  Compared f;
  QVERIFY(
      f.apply(removeOpWithWires(f.session.pipeline().document(), "fc", true)));  // what follows moves up to its place
  const GhostItem* ghost = f.window.changeMarks().ghosts().at("fc");
  for (const auto& [id, node] : f.window.scene().nodes()) QVERIFY(!node->sceneBox().intersects(ghost->sceneBox()));
}

void ChangesTest::aGhostGoesAsideForAWire() {
  Compared f;
  QVERIFY(f.placeInARow());
  QVERIFY(f.apply(removeOpWithWires(f.session.pipeline().document(), "fc", true)));  // the wire runs where it stood
  const GhostItem* ghost = f.window.changeMarks().ghosts().at("fc");
  QCOMPARE(ghost->x(), 400.0);
  for (const LinkItem* link : f.window.scene().links()) QVERIFY(!link->shape().intersects(ghost->sceneBox()));
}

void ChangesTest::aClickOnAGhostSelectsItsRow() {
  Compared f;
  QVERIFY(f.apply(removeOpWithWires(f.session.pipeline().document(), "fc")));
  f.window.canvas().fit();
  f.session.selection().select({QStringLiteral("norm")});
  const QPointF centre = f.window.changeMarks().ghosts().at("fc")->sceneBox().center();
  QTest::mouseClick(f.window.canvas().viewport(), Qt::LeftButton, {}, f.window.canvas().mapFromScene(centre));
  const QModelIndex current = f.window.changes().view()->currentIndex().siblingAtColumn(0);
  QCOMPARE(current.data().toString(), QStringLiteral("fc"));
  QCOMPARE(current.parent().data().toString(), kOps);
  QVERIFY(f.session.selection().ids().isEmpty());
}

void ChangesTest::aRowSelectsItsOp() {
  Compared f;
  QVERIFY(f.apply(manyEdits(f.session.pipeline().document())));
  f.choose(QStringLiteral("act"), kOps);
  QCOMPARE(f.session.selection().ids(), QSet<QString>{QStringLiteral("gelu")});
  f.choose(QStringLiteral("drop.x"), QStringLiteral("wires"));
  QCOMPARE(f.session.selection().ids(), QSet<QString>{QStringLiteral("drop")});
  f.choose(QStringLiteral("fc"), kOps);
  QVERIFY(f.session.selection().ids().isEmpty());
  // A hidden change is scrolled into view.
  f.window.canvas().zoomTo(2.0);
  f.window.canvas().centerOn(f.window.scene().node("x"));
  const QRectF far = f.window.scene().node("drop")->sceneBox();
  const auto isInSight = [&] {
    return f.window.canvas().mapToScene(f.window.canvas().viewport()->rect()).boundingRect().contains(far);
  };
  QVERIFY(!isInSight());
  f.choose(QStringLiteral("drop"), kOps);
  QVERIFY(isInSight());
}

void ChangesTest::aRowOfABlockSelectsItsInstances() {
  std::string text;
  for (const DocumentTemplate& entry : documentTemplates())
    if (entry.name == "transformer-stack") text = entry.text;
  Fixture f(text);
  f.window.comparison().start(f.session.pipeline().document(), QStringLiteral("before"));
  // Two Layers hold one FeedForward each, which has the op "act".
  QVERIFY(f.session.pipeline().apply(EditInBlock{"FeedForward", {SetBypassed{"act", true}}}));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(QTest::qWaitFor([&] { return !f.window.comparison().isComparing(); }));
  f.window.changes().selectNext(1);
  QCOMPARE(f.session.selection().ids(), (QSet<QString>{QStringLiteral("layer1"), QStringLiteral("layer2")}));
  QVERIFY(f.window.changeMarks().markOf("layer1"));
}

void ChangesTest::anOpSelectsItsRow() {
  Compared f;
  QVERIFY(f.apply(manyEdits(f.session.pipeline().document())));
  const auto current = [&] { return f.window.changes().view()->currentIndex().siblingAtColumn(0); };
  f.session.selection().select({QStringLiteral("gelu")});
  QCOMPARE(current().data().toString(), QStringLiteral("act"));
  QVERIFY(f.window.changes().takeBackAction().isEnabled());
  // A row that is about the op already stays the current one.
  f.choose(QStringLiteral("gelu.x"), QStringLiteral("wires"));
  f.session.selection().select({});
  f.session.selection().select({QStringLiteral("gelu")});
  QCOMPARE(current().data().toString(), QStringLiteral("gelu.x"));
  f.session.selection().select({QStringLiteral("x")});  // nothing changed there
  QCOMPARE(current().data().toString(), QStringLiteral("gelu.x"));
  QVERIFY(f.window.canvas().actions().contains(&f.window.changes().takeBackAction()));
  f.window.comparison().end();
  QVERIFY(!f.window.canvas().actions().contains(&f.window.changes().takeBackAction()));
}

void ChangesTest::keysGoFromChangeToChange() {
  Compared f;
  QVERIFY(f.apply(EditGroup{"", {SetAttribute{"norm", "eps", 0.5}, SetSymbol{"M", 8}}}));
  QVERIFY(f.rows().size() >= 2);
  f.window.activateWindow();
  f.window.canvas().setFocus();
  const auto current = [&] { return f.window.changes().view()->currentIndex().siblingAtColumn(0).data().toString(); };
  QTest::keyClick(&f.window.canvas(), Qt::Key_F7);
  QCOMPARE(current(), QStringLiteral("M"));
  QTest::keyClick(&f.window.canvas(), Qt::Key_F7);
  QCOMPARE(current(), QStringLiteral("norm"));
  QTest::keyClick(&f.window.canvas(), Qt::Key_F7, Qt::ShiftModifier);
  QTest::keyClick(&f.window.canvas(), Qt::Key_F7, Qt::ShiftModifier);
  QCOMPARE(current(), f.model().changeRows().last().data().toString());
}

void ChangesTest::takesAChangeBackAsOneEdit() {
  Compared f;
  const std::string base = serialize(f.session.pipeline().document());
  QVERIFY(f.apply(removeOpWithWires(f.session.pipeline().document(), "fc", true)));
  const std::string next = serialize(f.session.pipeline().document());
  f.choose(QStringLiteral("fc"), kOps);
  QVERIFY(named<QPushButton>(f.window.changes(), "Revert this change")->isEnabled());
  QTest::mouseClick(named<QPushButton>(f.window.changes(), "Revert this change"), Qt::LeftButton);
  QCOMPARE(serialize(f.session.pipeline().document()), base);
  QVERIFY(f.wait());
  QVERIFY(f.rows().isEmpty());
  QVERIFY(f.window.changeMarks().ghosts().empty());
  f.session.pipeline().undo();
  QCOMPARE(serialize(f.session.pipeline().document()), next);
}

/// So that one key reverts one after the other.
void ChangesTest::afterTakingBackTheNextRowIsTheCurrentOne() {
  Compared f;
  QVERIFY(f.apply(
      EditGroup{"", {SetAttribute{"norm", "eps", 0.5}, SetBypassed{"act", true}, SetAttribute{"fc", "bias", true}}}));
  const QStringList rows = f.rows().filter(QStringLiteral("ops: "));
  QCOMPARE(rows.size(), 3);
  f.choose(QStringLiteral("fc"), kOps);
  f.window.changes().takeBackAction().trigger();
  QVERIFY(f.wait());
  QCOMPARE(f.window.changes().view()->currentIndex().siblingAtColumn(0).data().toString(), QStringLiteral("act"));
  f.window.changes().takeBackAction().trigger();
  QVERIFY(f.wait());
  f.window.changes().takeBackAction().trigger();  // the last one there is
  QVERIFY(f.wait());
  f.window.changes().selectNext(1);
  f.window.changes().takeBackAction().trigger();
  QVERIFY(f.wait());
  QCOMPARE(serialize(f.session.pipeline().document()), serialize(documentOf(smallPipeline())));
}

void ChangesTest::whatIsClosedStaysClosed() {
  Compared f;
  QVERIFY(f.apply(EditGroup{"", {SetAttribute{"norm", "eps", 0.5}, SetSymbol{"M", 8}}}));
  QTreeView& view = *f.window.changes().view();
  view.collapse(f.model().index(0, 0));
  QVERIFY(f.apply(SetAttribute{"act", "mark", 1}));
  QVERIFY(!view.isExpanded(f.model().index(0, 0)));
  QVERIFY(view.isExpanded(f.model().index(1, 0)));
}

void ChangesTest::saysWhyAChangeCannotBeTakenBack() {
  Compared f;
  QPushButton& button = *named<QPushButton>(f.window.changes(), "Revert this change");
  QCOMPARE(button.toolTip(), QStringLiteral("No change is selected. Choose a change first."));
  QVERIFY(f.apply(removeOpWithWires(f.session.pipeline().document(), "fc")));
  f.choose(QStringLiteral("act.x"), QStringLiteral("wires"));
  QVERIFY(!button.isEnabled());
  QCOMPARE(button.toolTip(), QStringLiteral("fc was an input of act.x and has been removed. Restore fc first."));
}

void ChangesTest::aPlanCannotBeTakenBackByItself() {
  Compared f;
  QVERIFY(f.apply(SetFusion{Json{{"rules", "te"}}}));
  f.window.changes().view()->setCurrentIndex(f.model().changeRows().last());
  QVERIFY(f.window.changes().view()->currentIndex().parent().data().toString().startsWith("fused plan"));
  QVERIFY(!f.window.changes().takeBackAction().isEnabled());
  QVERIFY(f.window.changes().takeBackAction().toolTip().startsWith(QStringLiteral("Plans are derived")));
}

void ChangesTest::theEndLeavesTheCanvasAsItWas() {
  Fixture f(smallPipeline());
  const PipelineDocument base = f.session.pipeline().document();
  QVERIFY(f.session.pipeline().apply(manyEdits(base)) && waitForAnalysis(f.session));
  const QStringList before = canvasText(f.window.scene());
  const QRectF content = f.window.scene().contentRect();
  f.window.comparison().start(base, QStringLiteral("before"));
  QVERIFY(QTest::qWaitFor([&] { return !f.window.comparison().isComparing(); }));
  QVERIFY(canvasText(f.window.scene()) != before);
  f.window.comparison().end();
  QCOMPARE(canvasText(f.window.scene()), before);
  QCOMPARE(f.window.scene().contentRect(), content);
  QVERIFY(f.window.changes().model().changeRows().isEmpty());
}

void ChangesTest::comparesWithTheSavedVersion() {
  const testing::TemporaryFolder folder;
  Compared f;
  f.window.comparison().end();
  QAction* command = f.command(QStringLiteral("Compare with saved version"));
  QVERIFY(command && !command->isEnabled());
  const QString path = QString::fromStdString((folder / "small.fuseline").string());
  QVERIFY(static_cast<bool>(f.session.pipeline().save(path)));
  QVERIFY(!command->isEnabled());  // nothing was changed since
  QVERIFY(f.apply(SetAttribute{"norm", "eps", 0.5}));
  QVERIFY(command->isEnabled());
  command->trigger();
  QVERIFY(f.wait());
  QCOMPARE(f.rows(), QStringList{QStringLiteral("ops: norm | ~ changed | eps - → 0.5")});
  QCOMPARE(f.window.changes().title(), QStringLiteral("small.fuseline as saved → small.fuseline"));
}

void ChangesTest::comparesWithTheFilesThatCanBeOpened() {
  const testing::TemporaryFolder folder;
  Compared f;
  QVERIFY(f.apply(SetAttribute{"norm", "eps", 0.5}));
  const QStringList expected = {QStringLiteral("ops: norm | ~ changed | eps - → 0.5")};
  QVERIFY(static_cast<bool>(saveDocument(documentOf(smallPipeline()), folder / "old.fuseline")));
  QVERIFY(static_cast<bool>(saveRunRecord(measuredRun(), folder / "old.fuserun")));
  for (const char* name : {"old.fuseline", "old.fuserun"}) {
    f.window.comparison().end();
    QVERIFY(f.window.compareWith(QString::fromStdString((folder / name).string())));
    QVERIFY(f.wait());
    QVERIFY2(f.rows().contains(expected.front()), qPrintable(f.rows().join(u'\n')));
  }
  QVERIFY(!f.window.compareWith(QStringLiteral("/no/such/file.fuseline")));
  QVERIFY(f.window.message().contains(QStringLiteral("/no/such/file.fuseline")));
  QVERIFY(f.window.comparison().isOn());  // as before
}

void ChangesTest::endsWithTheDocument() {
  Compared f;
  QVERIFY(f.apply(removeOpWithWires(f.session.pipeline().document(), "fc")));
  QVERIFY(!f.window.changeMarks().ghosts().empty());
  f.session.openText(residualPipeline(true), QStringLiteral("another"));
  QVERIFY(!f.window.comparison().isOn());
  QVERIFY(f.window.changeMarks().ghosts().empty());
  QVERIFY(f.wait());
  QCOMPARE(f.window.scene().node("fc")->opacity(), 1.0);
}

void ChangesTest::comparesPipelinesWithErrors() {
  Compared f;
  QVERIFY(f.apply(SetAttribute{"fc", "in_features", 7}));
  QVERIFY(f.rows().contains(QStringLiteral("ops: fc | ~ changed | in_features \"H\" → 7")));
  QVERIFY2(f.window.changes().summary().endsWith(QStringLiteral("Plans cannot be compared: this pipeline has errors.")),
           qPrintable(f.window.changes().summary()));
}

/// The window takes edits while the pool compares, and shows what came of the last one.
void ChangesTest::aLargePipelineIsComparedBesideTheWindow() {
  PipelineDocument document = documentOf(smallPipeline());
  Endpoint last{"act", "y"};
  for (int i = 0; i < 300; ++i) {
    const std::string id = "g" + std::to_string(i);
    QVERIFY(static_cast<bool>(applyEdit(document, AddOp{{.id = id, .operation = "GELU"}})));
    QVERIFY(static_cast<bool>(applyEdit(document, AddWire{{last, {id, "x"}}})));
    QVERIFY(static_cast<bool>(applyEdit(document, MoveNode{id, Position{(i % 40) * 240, 200 + (i / 40) * 120}})));
    last = {id, "y"};
  }
  QVERIFY(static_cast<bool>(applyEdit(document, ReplaceOutput{"y", {.id = "y", .from = last}})));
  for (const auto& [id, x] : {std::pair("x", 0), {"norm", 200}, {"fc", 400}, {"act", 600}, {"y", 800}})
    QVERIFY(static_cast<bool>(applyEdit(document, MoveNode{id, Position{x, 0}})));
  Fixture f(serialize(document));
  f.window.comparison().start(f.session.pipeline().document(), QStringLiteral("before"));
  for (int i = 0; i < 5; ++i) QVERIFY(f.session.pipeline().apply(SetSymbol{"M", 32 + i}));
  QVERIFY(waitForAnalysis(f.session));
  QVERIFY(QTest::qWaitFor([&] { return !f.window.comparison().isComparing(); }));
  QCOMPARE(f.window.comparison().changes().size(), std::size_t{1});
  QCOMPARE(f.window.comparison().changes().front().fields.front().next, std::string("36"));
}

/// Removed ops are marked at the left and ghosts at the right; new ops the reverse.
void ChangesTest::twoCanvasesShowOldAndNew() {
  Compared f;
  QVERIFY(f.apply(manyEdits(f.session.pipeline().document())));
  auto* base = f.window.findChild<BaseCanvas*>();
  QVERIFY(base && !base->isVisible() && !base->scene());
  base->toggle().trigger();
  QVERIFY(base->isVisible());
  const auto isMarked = [&](const char* id, DocumentChange::Kind kind) {
    const NodeMark* mark = base->marks()->markOf(id);
    return mark && mark->kind() == kind;
  };
  QVERIFY(QTest::qWaitFor([&] { return isMarked("fc", DocumentChange::Kind::Removed); }));
  QVERIFY(isMarked("norm", DocumentChange::Kind::Changed));
  QVERIFY(base->marks()->ghosts().contains("drop") && !base->scene()->node("drop"));
  QVERIFY(f.window.changeMarks().ghosts().contains("fc") && f.isMarked("drop", DocumentChange::Kind::Added));
  f.window.comparison().end();
  QVERIFY(!base->isVisible());
}

void ChangesTest::twoCanvasesPanAndZoomTogether() {
  Compared f;
  QVERIFY(f.placeInARow());
  QVERIFY(f.apply(SetAttribute{"norm", "eps", 0.5}));
  auto* base = f.window.findChild<BaseCanvas*>();
  base->toggle().trigger();
  QVERIFY(QTest::qWaitFor([&] { return base->scene()->node("norm") != nullptr; }));
  const auto middleOfBase = [&] { return base->canvas().mapToScene(base->canvas().viewport()->rect().center()); };
  const auto areTogether = [&] {
    return QLineF(middleOfBase(), f.window.canvas().camera().middle()).length() < 2.0 &&
           qFuzzyCompare(base->canvas().transform().m11(), f.window.canvas().zoom());
  };
  f.window.canvas().zoomTo(0.8);
  QTRY_VERIFY(areTogether());
  f.window.canvas().camera().panBy({-60, 20});
  QVERIFY(areTogether());
  QScrollBar& bar = *base->canvas().horizontalScrollBar();
  bar.setValue(bar.value() + 90);
  QVERIFY(areTogether());
}

void ChangesTest::theCompareWorkspaceHasTwoCanvases() {
  Compared f;
  QVERIFY(f.apply(SetAttribute{"norm", "eps", 0.5}));
  QVERIFY(f.window.workspaces().show(QStringLiteral("compare")));
  QVERIFY(f.window.findChild<BaseCanvas*>()->isVisible());
  QVERIFY(f.window.workspaces().show(QStringLiteral("design")));
  QVERIFY(!f.window.findChild<BaseCanvas*>()->isVisible());
}

RunRecord withRounds(RunRecord record, int rounds) {
  for (VariantRecord& variant : record.variants)
    for (StepRecord& step : variant.steps) step.samplesNs.resize(static_cast<std::size_t>(rounds));
  return record;
}

void ChangesTest::timesStandOnBothCanvasesAndTheirChangeOnTheNewOne() {
  RunRecord now = withRounds(measuredRun(), 8);
  RunRecord before = now;
  for (const auto& [record, ns] : {std::pair(&now, 1e6), {&before, 2e6}})
    for (VariantRecord& variant : record->variants)
      for (StepRecord& step : variant.steps)
        for (std::size_t round = 0; round < step.samplesNs.size(); ++round)
          step.samplesNs[round] = step.phase == "forward" ? ns * (1.0 + 1e-4 * static_cast<double>(round)) : 1e6;
  OpenedRun f(now, QStringLiteral("changes"));
  QVERIFY(f.isOpen);
  f.window.comparison().start(f.session.pipeline().document(), QStringLiteral("before"));
  QVERIFY(f.session.pipeline().apply(MoveNode{"fc", Position{0, 80}}) && waitForAnalysis(f.session));
  auto* base = f.window.findChild<BaseCanvas*>();
  base->toggle().trigger();
  QVERIFY(QTest::qWaitFor([&] { return base->scene() && base->scene()->node("fc"); }));
  f.window.scene().measured().overlay().choose(HeatMode::Change);
  QVERIFY(!f.window.scene().measured().overlay().scale() && !base->scene()->node("fc")->look().hasHeat());

  QVERIFY(f.session.baselines().pin(before));
  QVERIFY2(!f.window.scene().measured().overlay().description().contains(QStringLiteral("none of these ops")),
           "while the change is computed");
  QVERIFY(QTest::qWaitFor([&] { return base->scene()->node("fc")->look().hasHeat(); }));
  QVERIFY(!base->scene()->node("fc")->look().forwardHeat->isChange);
  QVERIFY(QTest::qWaitFor([&] { return f.window.scene().node("fc")->look().hasHeat(); }));
  const NodeLook& look = f.window.scene().node("fc")->look();
  QVERIFY(look.forwardHeat->isChange);
  QCOMPARE(look.forwardHeat->heat, -1.0);
  QCOMPARE(look.forwardHeat->text, QStringLiteral("-50.0 %"));
  QCOMPARE(look.backwardHeat->heat, 0.0);
  QVERIFY(f.window.scene().measured().overlay().scale()->isOfChanges);
}

void ChangesTest::comparesWithAnotherRecipe() {
  Fixture f(smallPipeline());
  QVERIFY(waitForAnalysis(f.session));
  const QMenu& recipes = *named<QAction>(f.window, "Compare with recipe")->menu();
  QCOMPARE(recipes.actions().size(), static_cast<qsizetype>(builtinRecipes().size()));
  named<QAction>(recipes, "DelayedScaling")->trigger();
  QVERIFY(QTest::qWaitFor([&] { return !f.window.comparison().isComparing(); }));
  QCOMPARE(f.window.comparison().changes().size(), std::size_t{1});
  QCOMPARE(f.window.comparison().changes().front().section, DocumentChange::Section::Recipe);
  QVERIFY(f.window.comparison().baseName().endsWith(QStringLiteral("DelayedScaling")));
  QVERIFY(!f.session.pipeline().isModified());
}

FUSELINE_UI_TEST(ChangesTest)

}  // namespace fuseline::ui::changes_test

#include "test_ui_changes.moc"
