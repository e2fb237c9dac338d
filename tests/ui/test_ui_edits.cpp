// Composed edits: what they do to a document, and that undo gives the document back.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/block_edits.h"
#include "tests/ui/ui_test_support.h"
#include "ui/canvas/metrics.h"
#include "ui/outline/node_search.h"
#include "ui/session/chain_edits.h"
#include "ui/session/edits.h"
#include "ui/session/fusion_toggle.h"
#include "ui/theme/format.h"

#include <QTest>

#include <algorithm>
#include <set>

namespace fuseline::ui {

class EditsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void insertsBehindAnOpAndTakesOverItsReaders();
  void guessesRequiredAttributesFromTheIncomingWidth();
  void splicesIntoAWire();
  void replacesAWireIntoATakenInput();
  void refusesACycleWithASentence();
  void warnsOfAShapeThatDoesNotFit();
  void replacesAnOpAndKeepsItsWires();
  void replacingSaysWhatWouldBeLost();
  void repeatsAnOpInARow();
  void repeatsABlock();
  void repeatingNeedsOneInputAndOneOutput();
  void removesAndReconnects();
  void removesAnInputWithItsWires();
  void pastesWithFreshIdsAndInnerWires();
  void pastesInstancesWithTheirBlocks();
  void anotherBlockOfTheSameNameComesUnderAFreeOne();
  void insertsAnInstanceOfABlock();
  void refusesToPasteForeignText();
  void pastesAWholePipeline();
  void pastesAWholePipelineBesideAnother();
  void fragmentsBringTheirSymbols();
  void findsNodesByWhatIsKnownOfThem();
  void switchesARuleOffAndOn();
  void switchesAFusionOffAtOnePlace();
  void usesAFusionThatAnotherHasTakenTheOpsFrom();
  void usesAFusionThatHasAPriceAndGivesItsOpsBack();
  void putsAChainIntoAWireAndMakesRoom();
  void refusesWhatIsNoChain_data();
  void refusesWhatIsNoChain();
  void pastesAChainIntoAWire();
  void doesNotPasteIntoAWireWhatDoesNotFit();
};

namespace {

struct Scene {
  History history{parseDocument(smallPipeline()).document};
  Analysis analysis = analyze(history.document());
  const PipelineDocument& document() const { return history.document(); }
};

bool hasLink(const PipelineDocument& document, const char* from, const char* to) {
  for (const Link& link : linksOf(document)) {
    if (toString(link.from) == from && toString(link.to) == to) return true;
  }
  return false;
}

/// Applies, and checks that undo gives back the same bytes.
bool appliesAndUndoes(History& history, const Edit& edit) {
  const std::string before = serialize(history.document());
  if (!history.apply(edit)) return false;
  history.undo();
  const bool isBack = serialize(history.document()) == before;
  history.redo();
  return isBack;
}

}  // namespace

void EditsTest::insertsBehindAnOpAndTakesOverItsReaders() {
  Scene s;
  const NodeEdit added = insertAfter(s.document(), s.analysis.graph(), "Identity", "norm");
  QVERIFY(appliesAndUndoes(s.history, added.edit));
  QVERIFY(hasLink(s.document(), "norm.y", "identity.x"));
  QVERIFY(hasLink(s.document(), "identity.y", "fc.x"));
  QVERIFY(!hasLink(s.document(), "norm.y", "fc.x"));
}

void EditsTest::guessesRequiredAttributesFromTheIncomingWidth() {
  Scene s;
  const NodeEdit added = insertAfter(s.document(), s.analysis.graph(), "LayerNorm", "norm");
  QVERIFY(s.history.apply(added.edit).hasValue());
  const DocumentOp* op = s.document().findOp(added.id);
  QVERIFY(op);
  QCOMPARE(op->attributes.at("normalized_shape").dump(), std::string(R"(["H"])"));
}

void EditsTest::splicesIntoAWire() {
  Scene s;
  const auto wire = linkInto(s.document(), {"act", "x"});
  QVERIFY(wire.has_value());
  const NodeEdit added = splice(s.document(), s.analysis.graph(), "Identity", *wire, Position{8, 8});
  QVERIFY(appliesAndUndoes(s.history, added.edit));
  QVERIFY(hasLink(s.document(), "fc.y", "identity.x"));
  QVERIFY(hasLink(s.document(), "identity.y", "act.x"));
}

void EditsTest::replacesAWireIntoATakenInput() {
  Scene s;
  const Endpoint from{"x", ""};
  const Endpoint to{"fc", "x"};
  QVERIFY(linkVerdict(s.document(), from, to));
  QVERIFY(appliesAndUndoes(s.history, linkEdit(s.document(), from, to)));
  QVERIFY(hasLink(s.document(), "x", "fc.x"));
  QVERIFY(!hasLink(s.document(), "norm.y", "fc.x"));
}

void EditsTest::refusesACycleWithASentence() {
  Scene s;
  const Verdict verdict = linkVerdict(s.document(), {"act", "y"}, {"norm", "x"});
  QVERIFY(!verdict);
  QVERIFY(QString::fromStdString(verdict.reason()).contains(QStringLiteral("cycle"), Qt::CaseInsensitive));
}

void EditsTest::warnsOfAShapeThatDoesNotFit() {
  Scene s;
  QVERIFY(linkWarning(s.document(), {"x", ""}, {"fc", "x"}).empty());
  QVERIFY(
      s.history.apply(SetAttribute{.id = "norm", .name = "normalized_shape", .value = Json::array({7})}).hasValue());
  QVERIFY(s.history.apply(RemoveWire{.wire = {{"x", ""}, {"norm", "x"}}}).hasValue());
  const std::string warning = linkWarning(s.document(), {"x", ""}, {"norm", "x"});
  QVERIFY2(QString::fromStdString(warning).contains(QStringLiteral("32")), warning.c_str());
}

void EditsTest::replacesAnOpAndKeepsItsWires() {
  Scene s;
  const auto edit = replaceOp(s.document(), s.analysis.graph(), "norm", "LayerNorm");
  QVERIFY(edit);
  QVERIFY(appliesAndUndoes(s.history, *edit));
  const DocumentOp& norm = *s.document().findOp("norm");
  QCOMPARE(norm.operation, std::string("LayerNorm"));
  QCOMPARE(norm.attributes["normalized_shape"], s.document().findOp("norm")->attributes["normalized_shape"]);
  QVERIFY(hasLink(s.document(), "x", "norm.x") && hasLink(s.document(), "norm.y", "fc.x"));
  QVERIFY(!hasErrors(lower(s.document()).diagnostics));
  QCOMPARE(s.document().ops().front().id, std::string("norm"));  // its place in the file
}

/// The extra output of MakeExtraOutput is read, and no GELU has one.
void EditsTest::replacingSaysWhatWouldBeLost() {
  const PipelineDocument document = parseDocument(residualPipeline(false)).document;
  const Analysis analysis = analyze(document);
  const auto edit = replaceOp(document, analysis.graph(), "save", "GELU");
  QVERIFY(!edit);
  QCOMPARE(edit.error().message, std::string("GELU has no port for the wire from save.extra to add.extra."));
  QVERIFY(!replaceOp(document, analysis.graph(), "fc", "NoSuchOp"));
  // The main input a would go to x, which has a wire of its own.
  const PipelineDocument two =
      parseDocument(R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 1},
    "blocks": {"Two": {"inputs": [{"id": "a"}, {"id": "x"}],
                       "ops": [{"id": "add", "op": "AddExtraInput", "attributes": {}}],
                       "wires": [["a", "add.x"], ["x", "add.extra"]], "outputs": [{"id": "y", "from": "add.y"}]}},
    "pipeline": {"inputs": [{"id": "in", "dtype": "bf16", "shape": [8, 8]}],
                 "ops": [{"id": "two", "op": "block:Two", "attributes": {}}],
                 "wires": [["in", "two.a"], ["in", "two.x"]], "outputs": [{"id": "y", "from": "two.y"}]}})")
          .document;
  const auto merged = replaceOp(two, analyze(two).graph(), "two", "GELU");
  QVERIFY(!merged);
  QCOMPARE(merged.error().message, std::string("GELU has no port for the wire from in to two.x."));
  QVERIFY(!replaceOp(document, analysis.graph(), "nothing", "GELU"));
}

void EditsTest::repeatsAnOpInARow() {
  Scene s;
  const auto row = repeatOp(s.document(), "act", 3);
  QVERIFY(row);
  QCOMPARE(row->ids, (std::vector<std::string>{"act", "act2", "act3"}));
  QVERIFY(appliesAndUndoes(s.history, row->edit));
  QVERIFY(hasLink(s.document(), "fc.y", "act.x") && hasLink(s.document(), "act.y", "act2.x") &&
          hasLink(s.document(), "act2.y", "act3.x") && hasLink(s.document(), "act3.y", "y"));
  QVERIFY(!hasLink(s.document(), "act.y", "y"));
  QVERIFY(!hasErrors(lower(s.document()).diagnostics));
}

/// layer2 is taken; its place in the row is behind those that are new.
void EditsTest::repeatsABlock() {
  History history{parseDocument(findTemplate("transformer-stack")->text).document};
  const auto row = repeatOp(history.document(), "layer1", 3);
  QVERIFY(row);
  QCOMPARE(row->ids, (std::vector<std::string>{"layer1", "layer3", "layer4"}));
  QVERIFY(appliesAndUndoes(history, row->edit));
  QVERIFY(hasLink(history.document(), "layer4.y", "layer2.x"));
  QCOMPARE(history.document().findOp("layer4")->operation, std::string("block:Layer"));
  const auto& positions = history.document().positions();
  std::set<std::pair<int, int>> places;
  for (const auto& [id, place] : positions) places.insert({place.x, place.y});
  QVERIFY2(places.size() == positions.size(), "no node lies on another");
  QVERIFY(!hasErrors(lower(history.document()).diagnostics));
}

void EditsTest::repeatingNeedsOneInputAndOneOutput() {
  const PipelineDocument document = parseDocument(residualPipeline(false)).document;
  const auto save = repeatOp(document, "save", 2);
  QVERIFY(!save);
  QCOMPARE(save.error().message, std::string("save.extra is read besides: only what has one output can be repeated."));
  const auto add = repeatOp(document, "add", 2);
  QVERIFY(!add);
  QVERIFY2(add.error().message.starts_with("add reads save.extra besides"), add.error().message.c_str());
  QVERIFY(!repeatOp(document, "x", 2));
}

void EditsTest::removesAndReconnects() {
  Scene s;
  QVERIFY(appliesAndUndoes(s.history, removeNodes(s.document(), {QStringLiteral("fc")}, {}, Reconnect::Yes)));
  QVERIFY(!s.document().findOp("fc"));
  QVERIFY(hasLink(s.document(), "norm.y", "act.x"));
}

void EditsTest::removesAnInputWithItsWires() {
  Scene s;
  QVERIFY(appliesAndUndoes(s.history, removeNodes(s.document(), {QStringLiteral("x")}, {}, Reconnect::No)));
  QVERIFY(s.document().inputs().empty());
  QVERIFY(!linkInto(s.document(), {"norm", "x"}));
}

void EditsTest::pastesWithFreshIdsAndInnerWires() {
  Scene s;
  const QString text = copyFragment(s.document(), {QStringLiteral("norm"), QStringLiteral("fc")});
  const auto pasted = pasteFragment(s.document(), text, {10, 10});
  QVERIFY(pasted.hasValue());
  QVERIFY(appliesAndUndoes(s.history, pasted->edit));
  QCOMPARE(pasted->ids.size(), 2);
  QVERIFY(hasLink(s.document(), "norm2.y", "fc2.x"));
  QVERIFY(s.document().findOp("fc2")->attributes == s.document().findOp("fc")->attributes);
}

void EditsTest::pastesInstancesWithTheirBlocks() {
  Scene s;
  QVERIFY(s.history.apply(makeBlock(s.document(), std::vector<std::string>{"fc", "act"}, "Mlp")->edit).hasValue());
  const QString text = copyFragment(s.document(), {QStringLiteral("mlp")});
  Scene other;
  const auto pasted = pasteFragment(other.document(), text, {});
  QVERIFY(pasted.hasValue());
  QVERIFY(appliesAndUndoes(other.history, pasted->edit));
  QVERIFY(*other.document().findBlock("Mlp") == *s.document().findBlock("Mlp"));
  QVERIFY(other.document().findOp("mlp"));
  const auto again = pasteFragment(other.document(), text, {});
  QVERIFY(appliesAndUndoes(other.history, again->edit));
  QCOMPARE(other.document().blocks().size(), std::size_t{1});
}

void EditsTest::anotherBlockOfTheSameNameComesUnderAFreeOne() {
  Scene s;
  QVERIFY(s.history.apply(makeBlock(s.document(), std::vector<std::string>{"act"}, "Inner")->edit).hasValue());
  QVERIFY(s.history.apply(makeBlock(s.document(), std::vector<std::string>{"fc", "inner"}, "Mlp")->edit).hasValue());
  const QString text = copyFragment(s.document(), {QStringLiteral("mlp")});
  Scene other;
  QVERIFY(other.history.apply(makeBlock(other.document(), std::vector<std::string>{"norm"}, "Inner")->edit).hasValue());
  const auto pasted = pasteFragment(other.document(), text, {});
  QVERIFY(appliesAndUndoes(other.history, pasted->edit));
  QVERIFY(*other.document().findBlock("Inner2") == *s.document().findBlock("Inner"));
  const DocumentBlock& mlp = *other.document().findBlock("Mlp");
  QVERIFY(std::ranges::any_of(mlp.ops, [](const DocumentOp& op) { return op.operation == "block:Inner2"; }));
  QCOMPARE(other.document().findOp("mlp")->operation, std::string("block:Mlp"));
  // What holds a block under another name is another one itself.
  const auto again = pasteFragment(other.document(), text, {});
  QVERIFY(appliesAndUndoes(other.history, again->edit));
  QCOMPARE(other.document().findOp("mlp2")->operation, std::string("block:Mlp2"));
}

void EditsTest::insertsAnInstanceOfABlock() {
  Scene s;
  QVERIFY(s.history.apply(makeBlock(s.document(), std::vector<std::string>{"act"}, "Act")->edit).hasValue());
  const NodeEdit added = insertAfter(s.document(), analyze(s.document()).graph(), "block:Act", "act");
  QCOMPARE(added.id, std::string("act2"));
  QVERIFY(appliesAndUndoes(s.history, added.edit));
  QVERIFY(hasLink(s.document(), "act.y", "act2.x"));
  QVERIFY(hasLink(s.document(), "act2.y", "y"));
}

void EditsTest::refusesToPasteForeignText() {
  Scene s;
  const auto pasted = pasteFragment(s.document(), QStringLiteral("hello"), {});
  QVERIFY(!pasted.hasValue());
}

void EditsTest::pastesAWholePipeline() {
  History empty{PipelineDocument()};
  const auto pasted = pasteFragment(empty.document(), QString::fromStdString(smallPipeline()), {});
  QVERIFY(pasted.hasValue());
  QVERIFY(appliesAndUndoes(empty, pasted->edit));
  QCOMPARE(serialize(empty.document()), serialize(parseDocument(smallPipeline()).document));
}

void EditsTest::pastesAWholePipelineBesideAnother() {
  Scene s;
  QVERIFY(s.history.apply(MoveNode{.id = "norm", .position = Position{0, 500}}).hasValue());
  QVERIFY(s.history.apply(SetSymbol{.name = "H", .value = 64}).hasValue());
  std::string text = smallPipeline();
  text.insert(1, R"("view": {"positions": {"norm": [0, 80]}}, "recipe": {"name": "DelayedScaling"}, )");
  const auto pasted = pasteFragment(s.document(), QString::fromStdString(text), {});
  QVERIFY(pasted.hasValue());
  QVERIFY(appliesAndUndoes(s.history, pasted->edit));
  QVERIFY(hasLink(s.document(), "x2", "norm2.x"));
  QVERIFY(hasLink(s.document(), "act2.y", "y2"));
  QVERIFY(s.document().symbols()["H"] == Json(64));  // what is there stays as it is
  QVERIFY(s.document().recipe().is_null());
  for (const auto& [id, position] : s.document().positions()) QVERIFY(id != "norm2" || position.y > 500);
}

void EditsTest::fragmentsBringTheirSymbols() {
  Scene s;
  const QString text = copyFragment(s.document(), {QStringLiteral("fc")});
  History other{PipelineDocument()};
  QVERIFY(other.apply(pasteFragment(other.document(), text, {})->edit).hasValue());
  QVERIFY(other.document().symbols() == Json({{"H", 32}}));  // M is not named in it
}

void EditsTest::findsNodesByWhatIsKnownOfThem() {
  Scene s;
  const auto found = [&](const char* query) {
    QStringList ids;
    for (const FoundNode& node : findNodes(s.document(), s.analysis, QString::fromUtf8(query)))
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

void EditsTest::switchesARuleOffAndOn() {
  Scene s;
  const FusionRule plain{.name = "Plain"};
  QVERIFY(isRuleEnabled(s.document(), plain));
  QVERIFY(s.history.apply(setRuleEnabled(s.document(), plain, false)).hasValue());
  QVERIFY(!isRuleEnabled(s.document(), plain));
  QVERIFY(s.history.apply(setRuleEnabled(s.document(), plain, true)).hasValue());
  QVERIFY(isRuleEnabled(s.document(), plain));

  const FusionRule priced{.name = "Priced", .price = "It takes time."};
  QVERIFY(!isRuleEnabled(s.document(), priced));
  QVERIFY(s.history.apply(setRuleEnabled(s.document(), priced, true)).hasValue());
  QVERIFY(isRuleEnabled(s.document(), priced));
  QVERIFY(s.document().fusion()["with"] == Json({"Priced"}));
  QVERIFY(s.history.apply(removeRuleSwitch(s.document(), "with", "Priced")).hasValue());
  QVERIFY(!isRuleEnabled(s.document(), priced));
}

namespace {

/// Two linear layers with an activation each, so that one rule has two places.
std::string twoLayers() {
  return R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "pipeline": {
    "inputs": [{"id": "x", "dtype": "bf16", "shape": [16, 32]}],
    "ops": [{"id": "fc1", "op": "Linear", "attributes": {"in_features": 32, "out_features": 32, "bias": false}},
            {"id": "act1", "op": "GELU"},
            {"id": "fc2", "op": "Linear", "attributes": {"in_features": 32, "out_features": 32, "bias": false}},
            {"id": "act2", "op": "GELU"}],
    "wires": [["x", "fc1.x"], ["fc1.y", "act1.x"], ["act1.y", "fc2.x"], ["fc2.y", "act2.x"]],
    "outputs": [{"id": "y", "from": "act2.y"}]}})";
}

/// A document whose fusions are planned again after every edit.
struct Planned {
  explicit Planned(const std::string& text) : history(parseDocument(text).document) {}
  History history;
  Analysis analysis = analyze(history.document());
  const PipelineDocument& document() const { return history.document(); }

  const Attempt& attempt(const char* rule, const char* op) const {
    const auto& attempts = analysis.report.attempts;
    return *std::ranges::find_if(attempts, [&](const Attempt& one) {
      return one.rule->name == rule && one.stepsMatched > 1 &&
             std::ranges::any_of(one.nodes, [&](NodeId id) { return analysis.graph().node(id).isAt(op); });
    });
  }
  Outcome outcome(const char* rule, const char* op) const { return attempt(rule, op).outcome; }
  bool apply(const Edit& edit) {
    const bool isUndone = appliesAndUndoes(history, edit);
    analysis = analyze(history.document());
    return isUndone;
  }
};

constexpr const char* kEpilogue = "ForwardLinearEpilogue";
constexpr const char* kJoint = "ForwardBackwardSwiGLULinear";

}  // namespace

void EditsTest::switchesAFusionOffAtOnePlace() {
  Planned p(twoLayers());
  QCOMPARE(p.outcome(kEpilogue, "fc1"), Outcome::Fused);
  const auto off = fusionToggle(p.document(), p.analysis, {QStringLiteral("fc1")}, toQt(kEpilogue));
  QVERIFY(off && p.apply(off->edit));
  QVERIFY(p.document().fusion()["without"] == Json({"ForwardLinearEpilogue@fc1"}));
  QCOMPARE(p.outcome(kEpilogue, "fc1"), Outcome::SwitchedOff);
  QCOMPARE(p.outcome(kEpilogue, "fc2"), Outcome::Fused);
  QVERIFY(isOffHere(p.document(), p.analysis.graph(), p.attempt(kEpilogue, "fc1")));
  const auto on = fusionToggle(p.document(), p.analysis, {QStringLiteral("fc1")}, toQt(kEpilogue));
  QVERIFY(on && p.apply(on->edit));
  QVERIFY(!p.document().fusion().contains("without"));
  QCOMPARE(p.outcome(kEpilogue, "fc1"), Outcome::Fused);

  QVERIFY(p.apply(setRuleEnabled(p.document(), *p.attempt(kEpilogue, "fc1").rule, false)));
  QVERIFY(!isOffHere(p.document(), p.analysis.graph(), p.attempt(kEpilogue, "fc1")));
}

void EditsTest::usesAFusionThatAnotherHasTakenTheOpsFrom() {
  Planned p(R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "pipeline": {
    "inputs": [{"id": "x", "dtype": "bf16", "shape": [8, 16]}, {"id": "r", "dtype": "bf16", "shape": [8, 16]}],
    "ops": [{"id": "act", "op": "GELU"}, {"id": "add", "op": "AddExtraInput"},
            {"id": "norm", "op": "RMSNorm", "attributes": {"normalized_shape": [16]}}],
    "wires": [["x", "act.x"], ["act.y", "add.x"], ["r", "add.extra"], ["add.y", "norm.x"]],
    "outputs": [{"id": "y", "from": "norm.y"}]}})");
  QCOMPARE(p.outcome("ForwardAddNorm", "add"), Outcome::TakenByAnother);
  const auto use = useHere(p.document(), p.analysis, p.attempt("ForwardAddNorm", "add"));
  QVERIFY(use && p.apply(*use));
  QCOMPARE(p.outcome("ForwardAddNorm", "add"), Outcome::Fused);
  // And back: what is asked for gives way to what is asked for later.
  const auto back = useHere(p.document(), p.analysis, p.attempt("ForwardElementwiseChain", "act"));
  QVERIFY(back && p.apply(*back));
  QCOMPARE(p.outcome("ForwardElementwiseChain", "act"), Outcome::Fused);
  QVERIFY(p.document().fusion()["with"] == Json({"ForwardElementwiseChain@act"}));
}

void EditsTest::usesAFusionThatHasAPriceAndGivesItsOpsBack() {
  const std::vector<DocumentTemplate>& templates = documentTemplates();
  const auto mlp = std::ranges::find(templates, "llama-mlp", &DocumentTemplate::name);
  QVERIFY(mlp != templates.end());
  Planned p(mlp->text);
  QCOMPARE(p.outcome(kJoint, "act"), Outcome::OnRequest);
  const auto use = useHere(p.document(), p.analysis, p.attempt(kJoint, "act"));
  QVERIFY(use && p.apply(*use));
  QCOMPARE(p.outcome(kJoint, "act"), Outcome::Fused);
  const auto off = fusionToggle(p.document(), p.analysis, {QStringLiteral("act")}, toQt(kJoint));
  QVERIFY(off && p.apply(off->edit));
  QCOMPARE(p.outcome(kJoint, "act"), Outcome::OnRequest);
  QVERIFY(!p.document().fusion().contains("with") && !p.document().fusion().contains("without"));
}

namespace {

/// The small pipeline in a row, and below it id (Identity) -> silu (SiLU), which nothing else is wired to.
struct SceneWithChain : Scene {
  SceneWithChain() {
    int x = 0;
    for (const char* id : {"x", "norm", "fc", "act", "y"})
      (void)history.apply(MoveNode{.id = id, .position = Position{kNodePitchPx * x++, 0}});
    (void)history.apply(AddOp{.op = {.id = "id", .operation = "Identity"}});
    (void)history.apply(AddOp{.op = {.id = "silu", .operation = "SiLU"}});
    (void)history.apply(AddWire{{{"id", "y"}, {"silu", "x"}}});
  }
  const Places places = {{"id", {0, 400}}, {"silu", {kNodePitchPx, 408}}};
  Position at(const std::string& id) const {
    const auto& all = document().positions();
    return std::ranges::find(all, id, [](const auto& entry) { return entry.first; })->second;
  }
};

}  // namespace

void EditsTest::putsAChainIntoAWireAndMakesRoom() {
  SceneWithChain s;
  const Link wire = *linkInto(s.document(), {"fc", "x"});
  const Result<Edit> edit = spliceChain(s.document(), {"id", "silu"}, wire, s.places, Room::IsMade);
  QVERIFY2(edit.hasValue(), edit ? "" : edit.error().message.c_str());
  QVERIFY(appliesAndUndoes(s.history, *edit));
  QVERIFY(hasLink(s.document(), "norm.y", "id.x") && hasLink(s.document(), "silu.y", "fc.x"));
  QVERIFY(!hasLink(s.document(), "norm.y", "fc.x"));
  QVERIFY(s.at("norm") == (Position{kNodePitchPx, 0}));
  QVERIFY(s.at("id") == (Position{2 * kNodePitchPx, 0}));
  QVERIFY(s.at("silu") == (Position{3 * kNodePitchPx, 8}));
  QVERIFY(s.at("fc") == (Position{4 * kNodePitchPx, 0}));
  QVERIFY(s.at("y") == (Position{6 * kNodePitchPx, 0}));
}

void EditsTest::refusesWhatIsNoChain_data() {
  QTest::addColumn<QStringList>("ids");
  QTest::addColumn<QString>("reason");
  QTest::newRow("two ops apart") << QStringList{"id", "loose"} << "id.x, loose.x";
  QTest::newRow("an op with wires") << QStringList{"norm"} << "one free input";
  QTest::newRow("an input") << QStringList{"x"} << "x is no op";
}

void EditsTest::refusesWhatIsNoChain() {
  QFETCH(const QStringList, ids);
  QFETCH(const QString, reason);
  SceneWithChain s;
  QVERIFY(s.history.apply(AddOp{.op = {.id = "loose", .operation = "SiLU"}}).hasValue());
  std::set<std::string> chosen;
  for (const QString& id : ids) chosen.insert(id.toStdString());
  const Result<ChainEnds> ends = chainEnds(s.document(), chosen);
  QVERIFY(!ends);
  QVERIFY2(toQt(ends.error().message).contains(reason), ends.error().message.c_str());
}

void EditsTest::pastesAChainIntoAWire() {
  SceneWithChain s;
  const QString text = copyFragment(s.document(), {"id", "silu"});
  const auto pasted = pasteIntoWire(s.document(), text, *linkInto(s.document(), {"act", "x"}));
  QVERIFY2(pasted.hasValue(), pasted ? "" : pasted.error().message.c_str());
  QVERIFY(appliesAndUndoes(s.history, pasted->edit));
  QCOMPARE(pasted->ids, (QSet<QString>{"id2", "silu2"}));
  QVERIFY(hasLink(s.document(), "fc.y", "id2.x") && hasLink(s.document(), "silu2.y", "act.x"));
  QVERIFY(s.at("id2") == (Position{3 * kNodePitchPx, 0}));
  QVERIFY(s.at("act") == (Position{5 * kNodePitchPx, 0}));
}

/// RMSNorm over 32 columns does not read the 64 that fc makes.
void EditsTest::doesNotPasteIntoAWireWhatDoesNotFit() {
  SceneWithChain s;
  const QString text = copyFragment(s.document(), {"norm"});
  QVERIFY(pasteIntoWire(s.document(), text, *linkInto(s.document(), {"norm", "x"})).hasValue());
  const auto pasted = pasteIntoWire(s.document(), text, *linkInto(s.document(), {"act", "x"}));
  QVERIFY(!pasted);
  QVERIFY2(toQt(pasted.error().message).contains("64"), pasted.error().message.c_str());
}

}  // namespace fuseline::ui

QTEST_MAIN(fuseline::ui::EditsTest)
#include "test_ui_edits.moc"
