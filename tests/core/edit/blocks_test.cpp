// Blocks: read and written like the pipeline, expanded in place, and reported at their place in the file.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/apply_edit.h"
#include "core/edit/block_edits.h"
#include "core/edit/block_section.h"
#include "core/edit/history.h"
#include "core/lowering/connections.h"
#include "core/lowering/document_operation.h"
#include "core/plan/analysis.h"
#include "tests/support/example_texts.h"
#include "tests/support/random_edits.h"

#include <limits>

#include <fmt/format.h>

namespace fuseline::testing {
namespace {

/// x: [8, 16] bf16 -> ops -> y, with blocks.
std::string fileWithBlocks(const std::string& blocks, const std::string& ops, const std::string& wires,
                           const std::string& from) {
  return R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 1},
"symbols": {"M": 8, "H": 16, "F": 32},
"blocks": {)" +
         blocks + R"(},
"pipeline": {"inputs": [{"id": "x", "dtype": "bf16", "shape": ["M", "H"]}],
"ops": [)" +
         ops + "],\n\"wires\": [" + wires + "],\n\"outputs\": [{\"id\": \"y\", \"from\": \"" + from + "\"}]}}";
}

/// A block x -> ops -> y.
std::string block(const std::string& name, const std::string& ops, const std::string& wires, const std::string& from) {
  return fmt::format(
      R"("{}": {{"inputs": [{{"id": "x"}}],
"ops": [{}], "wires": [{}], "outputs": [{{"id": "y", "from": "{}"}}]}})",
      name, ops, wires, from);
}

std::string instance(const std::string& id, const std::string& name) {
  return fmt::format(R"({{"id": "{}", "op": "block:{}", "attributes": {{}}}})", id, name);
}

const std::string kMlp =
    block("Mlp", R"({"id": "fc", "op": "Linear", "attributes": {"in_features": "H", "out_features": "H"}},
{"id": "act", "op": "GELU", "attributes": {}})",
          R"(["x", "fc.x"], ["fc.y", "act.x"])", "act.y");

std::string twoMlps() {
  return fileWithBlocks(kMlp, instance("a", "Mlp") + ", " + instance("b", "Mlp"), R"(["x", "a.x"], ["a.y", "b.x"])",
                        "b.y");
}

LoweredGraph lowered(const std::string& text) {
  const LoadedDocument loaded = parseDocument(text);
  EXPECT_EQ(listed(loaded.diagnostics), "");
  LoweredGraph graph = lower(loaded.document, {}, &loaded.sourceMap);
  EXPECT_EQ(listed(graph.diagnostics), "");
  return graph;
}

std::string problemsOf(const std::string& text) { return listed(problems(text)); }

PipelineDocument example(const std::string& name) {
  return parseDocument(readFile(examplesFolder() / (name + ".fuseline"))).document;
}

std::vector<std::string> nodeIds(const Graph& graph) {
  std::vector<std::string> ids;
  for (const Node& node : graph.nodes()) ids.push_back(node.id);
  return ids;
}

TEST(Blocks, SectionOfABlockHasItsPartsAsTheyAreAmongTheOthers) {
  PipelineDocument document = parseDocument(twoMlps()).document;
  ASSERT_TRUE(applyEdit(
      document,
      SetRecipe{Json::parse(R"({"name": "MXFP8BlockScaling", "overrides": [{"op": "a.fc", "recipe": "None"}]})")}));
  DocumentBlock block = *document.findBlock("Mlp");
  block.ops.push_back(block.ops.front());  // an id twice: no edit would add it
  block.positions = {{"fc", {1, 2}}, {"fc", {1, 2}}};
  const PipelineDocument section = blockSection(document, block);
  EXPECT_EQ(section.pipeline(), block);
  EXPECT_EQ(section.blocks(), document.blocks());
  EXPECT_EQ(section.symbols(), document.symbols());
  EXPECT_EQ(section.recipe()["name"], "MXFP8BlockScaling");
  EXPECT_EQ(section.recipe().dump().find("a.fc"), std::string::npos);
}

/// The graph's computation, independent of its nodes' names.
std::vector<std::string> shapeOf(const Graph& graph) {
  std::vector<std::string> lines;
  for (const Node& node : graph.nodes()) {
    lines.push_back(node.operation->name);
    for (const ValueId input : node.inputs)
      lines.back() += fmt::format(" {}.{}", graph.value(input).producer, graph.value(input).port);
  }
  for (const GraphOutput& output : graph.outputs()) lines.push_back(fmt::format("{} {}", output.name, output.value));
  return lines;
}

// ---- Lowering.

TEST(Blocks, AreExpandedInTheirPlace) {
  const LoweredGraph graph = lowered(twoMlps());
  EXPECT_EQ(toString(graph.graph),
            "input x [8, 16] bf16\n"
            "a.fc.linear = BasicLinear(x) -> a.fc.linear.y [8, 16] bf16\n"
            "a.fc.bias = Bias(a.fc.linear.y) -> a.fc.bias.y [8, 16] bf16\n"
            "a.act = GELU(a.fc.bias.y) -> a.act.y [8, 16] bf16\n"
            "b.fc.linear = BasicLinear(a.act.y) -> b.fc.linear.y [8, 16] bf16\n"
            "b.fc.bias = Bias(b.fc.linear.y) -> b.fc.bias.y [8, 16] bf16\n"
            "b.act = GELU(b.fc.bias.y) -> b.act.y [8, 16] bf16\n"
            "output y = b.act.y\n");
}

TEST(Blocks, GiveEveryInstanceItsOwnParametersAndOneOwner) {
  const Graph graph = lowered(twoMlps()).graph;
  std::vector<std::string> parameters;
  for (const Node& node : graph.nodes()) {
    EXPECT_EQ(node.owner, node.id.substr(0, 1));
    EXPECT_EQ(node.block, "Mlp");
    for (std::size_t slot = 0; slot < node.parameters.size(); ++slot)
      parameters.push_back(node.parameterName(static_cast<int>(slot)));
  }
  EXPECT_EQ(parameters, (std::vector<std::string>{"a.fc.weight", "a.fc.bias", "b.fc.weight", "b.fc.bias"}));
}

TEST(Blocks, NameTheTensorsAtTheirPorts) {
  const Graph graph = lowered(twoMlps()).graph;
  EXPECT_EQ(graph.findValue("a.y"), graph.findValue("a.act.y"));
  EXPECT_EQ(graph.findValue("b.y"), graph.outputs().front().value);
}

TEST(Blocks, AreFoundByThePlacesOfTheirOps) {
  const LoweredGraph graph = lower(example("transformer_stack"));
  const Node& fc1 = graph.graph.node(graph.graph.findNode("layer2.mlp.fc1"));
  for (const char* place : {"layer2.mlp.fc1", "layer2.mlp", "layer2"}) EXPECT_TRUE(fc1.isAt(place)) << place;
  for (const char* place : {"layer1", "layer", "layer2.ml", "mlp", ""}) EXPECT_FALSE(fc1.isAt(place)) << place;
}

TEST(Blocks, HoldGeneralGraphsWithSeveralPorts) {
  const std::string fork = R"("Fork": {"inputs": [{"id": "x"}, {"id": "z"}],
"ops": [{"id": "add", "op": "AddExtraInput"}, {"id": "save", "op": "MakeExtraOutput"}],
"wires": [["x", "add.x"], ["z", "add.extra"], ["add.y", "save.x"]],
"outputs": [{"id": "y", "from": "save.y"}, {"id": "copy", "from": "save.extra"}]})";
  const LoweredGraph graph = lowered(
      fileWithBlocks(fork, instance("f", "Fork") + R"(, {"id": "act", "op": "GELU"}, )" + instance("g", "Fork"),
                     R"(["x", "f.x"], ["x", "f.z"], ["f.copy", "act.x"], ["act.y", "g.x"], ["f.y", "g.z"])", "g.y"));
  EXPECT_EQ(shapeOf(graph.graph),
            (std::vector<std::string>{"AddExtraInput -1.0 -1.0", "MakeExtraOutput 0.0", "GELU 1.1",
                                      "AddExtraInput 2.0 1.0", "MakeExtraOutput 3.0", "y 6"}));
}

TEST(Blocks, MayContainBlocks) {
  EXPECT_EQ(nodeIds(lower(example("transformer_stack")).graph),
            (std::vector<std::string>{"layer1.save", "layer1.mlp.norm", "layer1.mlp.fc1", "layer1.mlp.act",
                                      "layer1.mlp.fc2", "layer1.add", "layer2.save", "layer2.mlp.norm",
                                      "layer2.mlp.fc1", "layer2.mlp.act", "layer2.mlp.fc2", "layer2.add", "norm"}));
}

TEST(Blocks, AreFusedAcrossTheirBorders) {
  const std::string text = fileWithBlocks(
      block("Project", R"({"id": "fc", "op": "BasicLinear", "attributes": {"in_features": 16, "out_features": 16}})",
            R"(["x", "fc.x"])", "fc.y"),
      instance("a", "Project") + R"(, {"id": "bias", "op": "Bias", "attributes": {"size": 16}})",
      R"(["x", "a.x"], ["a.y", "bias.x"])", "bias.y");
  const Analysis analysis = analyze(parseDocument(text).document, {});
  const Graph& graph = analysis.graph();
  const bool isFused = std::ranges::any_of(analysis.report.attempts, [&](const Attempt& attempt) {
    return attempt.outcome == Outcome::Fused && attempt.nodes.size() == 2 &&
           graph.node(attempt.nodes[0]).id == "a.fc" && graph.node(attempt.nodes[1]).id == "bias";
  });
  EXPECT_TRUE(isFused);
}

// ---- Nested Sequentials.

std::string sequentialInstance(const std::string& id, const std::string& name) {
  return fmt::format(R"({{"id": "{}", "op": "block:{}", "attributes": {{"sequential": true}}}})", id, name);
}

const std::string kProject =
    block("Project", R"({"id": "fc", "op": "BasicLinear", "attributes": {"in_features": 16, "out_features": 16}})",
          R"(["x", "fc.x"])", "fc.y");

/// The instance a of a block with one linear, followed by a bias.
std::string linearThenBias(const std::string& instanceText) {
  return fileWithBlocks(kProject, instanceText + R"(, {"id": "bias", "op": "Bias", "attributes": {"size": 16}})",
                        R"(["x", "a.x"], ["a.y", "bias.x"])", "bias.y");
}

/// The list that `fuse` prints, one entry per line.
std::string forwardOf(const PipelineDocument& document) {
  const Analysis analysis = analyze(document);
  return toText(analysis.graph(), analysis.report.forward);
}

const Attempt* brokenAt(const Analysis& analysis, const std::string& id) {
  for (const Attempt& attempt : analysis.report.attempts)
    if (attempt.outcome == Outcome::BrokenChain && !attempt.repairs.empty() &&
        analysis.graph().node(attempt.nodes.back()).id == id)
      return &attempt;
  return nullptr;
}

TEST(SequentialInstances, LetNoFusionCrossTheirBorder) {
  EXPECT_EQ(forwardOf(parseDocument(linearThenBias(instance("a", "Project"))).document),
            "[a.fc + bias]  ForwardLinearBiasActivation (forward, te)\n");
  EXPECT_EQ(forwardOf(parseDocument(linearThenBias(sequentialInstance("a", "Project"))).document),
            "a.fc (BasicLinear)\nbias (Bias)\n");
}

TEST(SequentialInstances, NameTheBorderAndOfferToTakeItAway) {
  PipelineDocument document = parseDocument(linearThenBias(sequentialInstance("a", "Project"))).document;
  const Analysis analysis = analyze(document);
  const Attempt* attempt = brokenAt(analysis, "a.fc");
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->explanation,
            "Between a.fc (BasicLinear) and bias (Bias) is the boundary of a, which is a nested te.ops.Sequential; no "
            "fusion crosses it.");
  ASSERT_EQ(attempt->repairs.size(), 1U);
  EXPECT_EQ(attempt->repairs[0].label, "Switch sequential off for a");
  const std::string before = serialize(document);
  const Result<Edit> inverse = applyEdit(document, attempt->repairs[0].edit);
  ASSERT_TRUE(inverse) << inverse.error().message;
  EXPECT_EQ(forwardOf(document), "[a.fc + bias]  ForwardLinearBiasActivation (forward, te)\n");
  ASSERT_TRUE(applyEdit(document, *inverse));
  EXPECT_EQ(serialize(document), before);
}

TEST(SequentialInstances, InsideABlockAreRepairedThere) {
  const std::string outer =
      block("Outer", sequentialInstance("p", "Project") + R"(, {"id": "b", "op": "Bias", "attributes": {"size": 16}})",
            R"(["x", "p.x"], ["p.y", "b.x"])", "b.y");
  PipelineDocument document =
      parseDocument(fileWithBlocks(kProject + "," + outer, instance("o", "Outer"), R"(["x", "o.x"])", "o.y")).document;
  const Analysis analysis = analyze(document);
  ASSERT_EQ(analysis.graph().sequentials().size(), 1U);
  EXPECT_EQ(analysis.graph().sequentials()[0].path, "o.p");
  EXPECT_EQ(analysis.graph().sequentials()[0].block, "Outer");
  const Attempt* attempt = brokenAt(analysis, "o.p.fc");
  ASSERT_TRUE(attempt);
  ASSERT_TRUE(applyEdit(document, attempt->repairs.at(0).edit));
  EXPECT_EQ(document.findBlock("Outer")->ops[0].attributes, Json::object());
  EXPECT_EQ(forwardOf(document), "[o.p.fc + o.b]  ForwardLinearBiasActivation (forward, te)\n");
}

TEST(SequentialInstances, MayBeNestedAndFuseInside) {
  const std::string two = block("Two", R"({"id": "act", "op": "GELU"}, {"id": "again", "op": "SiLU"})",
                                R"(["x", "act.x"], ["act.y", "again.x"])", "again.y");
  const std::string outer = block("Outer", sequentialInstance("i", "Two") + R"(, {"id": "after", "op": "ReLU"})",
                                  R"(["x", "i.x"], ["i.y", "after.x"])", "after.y");
  const PipelineDocument document =
      parseDocument(fileWithBlocks(two + "," + outer,
                                   sequentialInstance("o", "Outer") + R"(, {"id": "end", "op": "GELU"})",
                                   R"(["x", "o.x"], ["o.y", "end.x"])", "end.y"))
          .document;
  const Graph graph = lower(document).graph;
  ASSERT_EQ(graph.sequentials().size(), 2U);
  EXPECT_EQ(graph.sequentials()[1].path, "o.i");
  EXPECT_EQ(graph.sequentials()[1].parent, 0);
  std::vector<int> places;
  for (const Node& node : graph.nodes()) places.push_back(node.sequential);
  EXPECT_EQ(places, (std::vector<int>{1, 1, 0, -1}));
  EXPECT_EQ(forwardOf(document),
            "[o.i.act + o.i.again]  ForwardElementwiseChain (forward, fuseline)\no.after (ReLU)\nend (GELU)\n");
}

TEST(SequentialInstances, AreReadAndWrittenBack) {
  const LoadedDocument loaded = parseDocument(linearThenBias(sequentialInstance("a", "Project")));
  const std::string written = serialize(loaded.document);
  EXPECT_NE(written.find(R"("op": "block:Project", "attributes": {"sequential": true})"), std::string::npos) << written;
  EXPECT_NE(written.find(R"("minor": 1)"), std::string::npos);
  EXPECT_EQ(parseDocument(written).document, loaded.document);
}

TEST(SequentialInstances, KnowNoOtherAttribute) {
  const std::string wrong = R"({"id": "a", "op": "block:Project", "attributes": {"sequental": true}})";
  EXPECT_NE(
      problemsOf(linearThenBias(wrong))
          .find("a: block:Project has no attribute sequental (it has sequential, layer); did you mean sequential?"),
      std::string::npos);
  const std::string text = R"({"id": "a", "op": "block:Project", "attributes": {"sequential": "yes"}})";
  EXPECT_NE(problemsOf(linearThenBias(text)).find("a: sequential is \"yes\"; expected true or false."),
            std::string::npos);
}

TEST(SequentialInstances, WithExtraPortsSayThatTransformerEngineHasNone) {
  const std::string sum =
      R"("Sum": {"inputs": [{"id": "x"}, {"id": "z"}], "ops": [{"id": "add", "op": "AddExtraInput"}],
"wires": [["x", "add.x"], ["z", "add.extra"]], "outputs": [{"id": "y", "from": "add.y"}]})";
  const std::vector<Diagnostic> found =
      problems(fileWithBlocks(sum, sequentialInstance("s", "Sum"), R"(["x", "s.x"], ["x", "s.z"])", "s.y"));
  ASSERT_EQ(listed(found),
            "file:6:69: warning: s: sequential is on, but block Sum has 2 inputs and 1 output. TransformerEngine's "
            "nested Sequential has one input and one output, so this runs only in Fuseline. [sequential-ports at "
            "/pipeline/ops/0/attributes/sequential]\n");
  ASSERT_EQ(found[0].repairs.size(), 1U);
  EXPECT_EQ(found[0].repairs[0].label, "Switch sequential off");
}

TEST(SequentialInstances, LoseTheirBorderWhenTheyAreExpanded) {
  PipelineDocument document = parseDocument(linearThenBias(sequentialInstance("a", "Project"))).document;
  ASSERT_TRUE(applyEdit(document, expandBlock(document, "a")->edit));
  EXPECT_EQ(forwardOf(document), "[fc + bias]  ForwardLinearBiasActivation (forward, te)\n");
}

// ---- What can be wrong.

TEST(BlockProblems, NameTheInstanceAndPointToTheBlock) {
  const std::string text = fileWithBlocks(
      block("Mlp", R"({"id": "fc", "op": "Linear", "attributes": {"in_features": "F", "out_features": 8}})",
            R"(["x", "fc.x"])", "fc.y"),
      instance("a", "Mlp"), R"(["x", "a.x"])", "a.y");
  const std::vector<Diagnostic> found = problems(text);
  ASSERT_EQ(listed(found),
            "file:4:68: error: In a (block Mlp): fc: in_features is 32, but the last axis of x has 16 elements. "
            "[shape-mismatch at /blocks/Mlp/ops/0/attributes/in_features]\n");
  EXPECT_EQ(found[0].node, "a");
  ASSERT_EQ(found[0].repairs.size(), 1U);
  EXPECT_EQ(found[0].repairs[0].label, "Set in_features to 16");
  PipelineDocument document = parseDocument(text).document;
  ASSERT_TRUE(applyEdit(document, found[0].repairs[0].edit));
  EXPECT_EQ(listed(lower(document).diagnostics), "");
}

TEST(BlockProblems, OfTheBlockItselfAreSaidOnce) {
  const std::string bad = block("Mlp", R"({"id": "fc", "op": "Liner"})", R"(["x", "fc.x"])", "fc.y");
  EXPECT_EQ(problemsOf(fileWithBlocks(bad, instance("a", "Mlp") + ", " + instance("b", "Mlp"),
                                      R"(["x", "a.x"], ["a.y", "b.x"])", "b.y")),
            "file:4:28: error: In a (block Mlp): fc: there is no op \"Liner\"; did you mean Linear? The file keeps the "
            "op, but it cannot run. [unknown-op at /blocks/Mlp/ops/0/op]\n");
}

TEST(BlockProblems, AreFoundInUnusedBlocks) {
  const std::string bad = block("Mlp", R"({"id": "fc", "op": "Linear", "attributes": {"in_features": 16}})",
                                R"(["x", "fc.x"], ["fc.z", "fc.y"])", "fc.y");
  const std::string found =
      problemsOf(fileWithBlocks(bad, R"({"id": "act", "op": "GELU"})", R"(["x", "act.x"])", "act.y"));
  EXPECT_NE(found.find("In block Mlp: fc: Linear needs the attribute out_features"), std::string::npos) << found;
  EXPECT_NE(found.find("In block Mlp: fc (Linear) has no output \"z\""), std::string::npos) << found;
}

TEST(BlockProblems, ShowTheCycleOfBlocksThatContainThemselves) {
  const std::string outer = block("A", instance("b", "B"), R"(["x", "b.x"])", "b.y");
  const std::string inner = block("B", instance("a", "A"), R"(["x", "a.x"])", "a.y");
  EXPECT_EQ(problemsOf(fileWithBlocks(outer + "," + inner, instance("i", "A"), R"(["x", "i.x"])", "i.y")),
            "file:5:27: error: Block A contains itself: A -> B -> A. Remove a from block B. [block-cycle at "
            "/blocks/B/ops/0/op]\n");
  const std::string self = block("A", instance("a", "A"), R"(["x", "a.x"])", "a.y");
  EXPECT_EQ(problemsOf(fileWithBlocks(self, instance("i", "A"), R"(["x", "i.x"])", "i.y")),
            "file:4:27: error: Block A contains itself: A -> A. Remove a from block A. [block-cycle at "
            "/blocks/A/ops/0/op]\n");
}

TEST(BlockProblems, NameTheNearestBlock) {
  const std::string text = fileWithBlocks(kMlp, instance("a", "Mpl"), R"(["x", "a.x"])", "a.y");
  const std::vector<Diagnostic> found = problems(text);
  ASSERT_EQ(listed(found),
            "file:7:27: error: a: there is no block \"Mpl\"; did you mean block:Mlp? The file keeps the op, but it "
            "cannot run. [unknown-block at /pipeline/ops/0/op]\n");
  PipelineDocument document = parseDocument(text).document;
  ASSERT_TRUE(applyEdit(document, found[0].repairs.at(0).edit));
  EXPECT_EQ(listed(lower(document).diagnostics), "");
}

TEST(BlockProblems, InTheWiresOfAnInstance) {
  const auto with = [](const char* wires, const char* from) {
    return problemsOf(fileWithBlocks(kMlp, instance("a", "Mlp"), wires, from));
  };
  EXPECT_NE(with(R"(["x", "a.z"])", "a.y").find("a (block:Mlp) has no input \"z\"; it has x. Did you mean a.x?"),
            std::string::npos);
  EXPECT_NE(with("", "a.y").find("a.x is not connected"), std::string::npos);
  EXPECT_NE(with(R"(["x", "a.x"])", "a.out").find("a (block:Mlp) has no output \"out\"; it has y."), std::string::npos);
}

TEST(BlockProblems, ADeclaredInputRestrictsItsInstances) {
  const std::string typed = R"("Act": {"inputs": [{"id": "x", "dtype": "f32", "shape": ["M", "F"]}],
"ops": [{"id": "act", "op": "GELU"}], "wires": [["x", "act.x"]], "outputs": [{"id": "y", "from": "act.y"}]})";
  EXPECT_EQ(problemsOf(fileWithBlocks(typed, instance("a", "Act"), R"(["x", "a.x"])", "a.y")),
            "file:6:9: error: a: x is [8, 16] bf16, but block Act declares it as [8, 32] f32. Change the connected "
            "tensor or the declaration. [shape-mismatch at /pipeline/ops/0]\n");
}

TEST(BlockProblems, WhyNotRepairsGoToTheBlock) {
  PipelineDocument document = example("transformer_stack");
  ASSERT_TRUE(applyEdit(document, EditInBlock{"Layer", {SetAttribute{"add", "in_place", false}}}));
  const Analysis analysis = analyze(document);
  const auto refused =
      std::ranges::find_if(analysis.report.attempts, [](const Attempt& a) { return !a.repairs.empty(); });
  ASSERT_NE(refused, analysis.report.attempts.end());
  EXPECT_EQ(refused->repairs[0].label, "Set layer1.add.in_place to true");
  ASSERT_TRUE(applyEdit(document, refused->repairs[0].edit));
  EXPECT_EQ(document.findBlock("Layer")->ops[2].attributes["in_place"], Json(true));
}

TEST(BlockProblems, ABlockNeedsInputsAndOutputs) {
  const std::string empty = R"("E": {"inputs": [], "ops": [], "wires": [], "outputs": []})";
  const std::string found = problemsOf(fileWithBlocks(empty, instance("a", "E"), R"(["x", "a.x"])", "a.y"));
  EXPECT_NE(found.find("In a (block E): The block has no inputs"), std::string::npos) << found;
  EXPECT_NE(found.find("In a (block E): The block has no output yet"), std::string::npos) << found;
}

TEST(BlockProblems, NamesFollowTheRulesOfIds) {
  const std::string found =
      problemsOf(fileWithBlocks(block("a b", R"({"id": "act", "op": "GELU"})", R"(["x", "act.x"])", "act.y") + "," +
                                    block("", R"({"id": "act", "op": "GELU"})", R"(["x", "act.x"])", "act.y"),
                                R"({"id": "act", "op": "GELU"})", R"(["x", "act.x"])", "act.y"));
  EXPECT_NE(found.find("Invalid block name. The id \"a b\" contains a space"), std::string::npos) << found;
  EXPECT_NE(found.find("Invalid block name. An id must not be empty."), std::string::npos) << found;
}

/// Blocks L0 ... L(depth - 1); each holds `width` instances of the next one in a row, the last one a GELU.
std::string nested(int depth, int width) {
  std::string blocks =
      block(fmt::format("L{}", depth - 1), R"({"id": "act", "op": "GELU"})", R"(["x", "act.x"])", "act.y");
  for (int level = depth - 2; level >= 0; --level) {
    std::string ops;
    std::string wires;
    for (int i = 0; i < width; ++i) {
      ops += (i == 0 ? "" : ", ") + instance(fmt::format("i{}", i), fmt::format("L{}", level + 1));
      wires += i == 0 ? R"(["x", "i0.x"])" : fmt::format(", [\"i{}.y\", \"i{}.x\"]", i - 1, i);
    }
    blocks += "," + block(fmt::format("L{}", level), ops, wires, fmt::format("i{}.y", width - 1));
  }
  return fileWithBlocks(blocks, instance("a", "L0"), R"(["x", "a.x"])", "a.y");
}

TEST(BlockProblems, NestingIsBounded) {
  EXPECT_EQ(problemsOf(nested(64, 1)), "");
  const std::vector<Diagnostic> found = problems(nested(66, 1));
  ASSERT_EQ(codes(found), std::vector<std::string>{"too-deep"});
  EXPECT_EQ(
      found[0].message,
      "Blocks are nested 65 levels deep in block L1; at most 64 levels are expanded. Expand some of the inner blocks.");
}

TEST(BlockProblems, ExpansionIsBounded) {
  const std::vector<Diagnostic> found = problems(nested(60, 10));
  ASSERT_EQ(codes(found), std::vector<std::string>{"too-many-ops"});
  EXPECT_EQ(found[0].message,
            "Block L53 expands to more than 1000000 ops, the maximum of a pipeline. Use fewer instances.");
}

TEST(BlockProblems, VeryManyBlocksInARingAreHandled) {
  constexpr int kMany = 20000;
  std::string blocks;
  for (int i = 0; i < kMany; ++i)
    blocks += (i == 0 ? "" : ",") + block(fmt::format("B{}", i), instance("a", fmt::format("B{}", (i + 1) % kMany)),
                                          R"(["x", "a.x"])", "a.y");
  const std::vector<Diagnostic> found = problems(fileWithBlocks(blocks, instance("a", "B0"), R"(["x", "a.x"])", "a.y"));
  EXPECT_EQ(codes(found), std::vector<std::string>{"block-cycle"});
}

// ---- The file.

TEST(BlockFile, IsWrittenBackWithAllThatIsUnknown) {
  const std::string text = R"({
  "$schema": "fuseline-pipeline-1.json",
  "format": "fuseline-pipeline",
  "formatVersion": {"major": 1, "minor": 1},
  "blocks": {
    "Act": {
      "inputs": [{"id": "x", "note": "kept"}],
      "ops": [
        {"id": "act", "op": "GELU", "attributes": {}}
      ],
      "wires": [["x", "act.x"]],
      "outputs": [{"id": "y", "from": "act.y"}],
      "view": {"positions": {"act": [1, 2]}, "zoom": 3},
      "author": "me"
    },
    "odd": 7
  },
  "pipeline": {
    "inputs": [],
    "ops": [],
    "wires": [],
    "outputs": []
  }
}
)";
  const LoadedDocument loaded = parseDocument(text);
  EXPECT_EQ(codes(loaded.diagnostics), std::vector<std::string>{"wrong-type"});
  EXPECT_EQ(serialize(loaded.document), text);
}

TEST(BlockFile, SaysTheVersionThatBlocksNeed) {
  PipelineDocument document = example("linear_bias");
  const std::string before = serialize(document);
  EXPECT_NE(before.find("\"minor\": 0"), std::string::npos);
  const Result<Edit> inverse = applyEdit(document, AddBlock{"B", {}});
  ASSERT_TRUE(inverse);
  EXPECT_NE(serialize(document).find("\"minor\": 1"), std::string::npos);
  ASSERT_TRUE(applyEdit(document, *inverse));
  EXPECT_EQ(serialize(document), before);
}

TEST(BlockFile, KeepsASectionOfAnotherMeaning) {
  const std::string text = R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0},
"pipeline": {"inputs": [], "ops": [], "wires": [], "outputs": []}, "blocks": [1, 2]})";
  EXPECT_NE(serialize(parseDocument(text).document).find("\"blocks\": [1, 2]"), std::string::npos);
}

// ---- Edits.

/// The last op of a block makes its output, which instances are read by.
TEST(Blocks, RemoveAnOpInsideAndReconnectItsInput) {
  PipelineDocument document = parseDocument(findTemplate("transformer-stack")->text).document;
  const std::string before = serialize(document);
  const Edit removal = removeOpWithWires(document, *document.findBlock("FeedForward"), "fc2", true);
  const Result<Edit> undo = applyEdit(document, EditInBlock{"FeedForward", std::get<EditGroup>(removal).edits});
  ASSERT_TRUE(undo) << undo.error().message;
  const DocumentBlock& block = *document.findBlock("FeedForward");
  EXPECT_EQ(block.ops.size(), 3u);
  ASSERT_EQ(block.outputs.size(), 1u);
  EXPECT_EQ(toString(block.outputs.front().from), "act.y");
  ASSERT_TRUE(applyEdit(document, *undo));
  EXPECT_EQ(serialize(document), before);
}

TEST(BlockEdit, RefusalsSayWhy) {
  const PipelineDocument stack = example("transformer_stack");
  EXPECT_EQ(refusal(stack, AddBlock{"Layer", {}}), "A block named Layer already exists.");
  EXPECT_EQ(refusal(stack, AddBlock{"a b", {}}),
            "The id \"a b\" contains a space; expected an id without spaces and . / : @ \".");
  EXPECT_EQ(refusal(stack, RemoveBlock{"Layer"}),
            "Block Layer is used by layer1; expand or remove its instances first.");
  EXPECT_EQ(refusal(stack, RemoveBlock{"FeedForward"}),
            "Block FeedForward is used by mlp of block Layer; expand or remove its instances first.");
  EXPECT_EQ(refusal(stack, ReplaceBlock{"Layr", {}}), "There is no block Layr; did you mean Layer?");
  EXPECT_EQ(refusal(stack, EditInBlock{"Layer", {RemoveOp{"ad"}}}), "There is no op ad; did you mean add?");
  EXPECT_EQ(refusal(stack, EditInBlock{"Layer", {RemoveBlock{"FeedForward"}}}),
            "Block FeedForward cannot be edited from inside another block.");
}

TEST(BlockEdit, ChangesTheInsideOfABlockForAllInstances) {
  PipelineDocument document = example("transformer_stack");
  ASSERT_TRUE(applyEdit(document, EditInBlock{"FeedForward", {SetAttribute{"fc1", "bias", true}}}));
  const std::vector<std::string> ids = nodeIds(lower(document).graph);
  for (const char* id : {"layer1.mlp.fc1.bias", "layer2.mlp.fc1.bias"})
    EXPECT_NE(std::ranges::find(ids, id), ids.end()) << id;
}

TEST(MakeBlock, KeepsTheResultOfThePipeline) {
  const PipelineDocument before = example("gpt_mlp");
  PipelineDocument document = before;
  const std::vector<std::string> ids = {"act", "norm", "fc2", "fc1"};
  const Result<NewBlock> made = makeBlock(document, ids, "Mlp");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->instance, "mlp");
  const Result<Edit> inverse = applyEdit(document, made->edit);
  ASSERT_TRUE(inverse) << inverse.error().message;
  EXPECT_EQ(listed(lower(document).diagnostics), "");
  EXPECT_EQ(shapeOf(lower(document).graph), shapeOf(lower(before).graph));
  EXPECT_EQ(document.wires(), (std::vector<Wire>{{{"x", ""}, {"save", "x"}},
                                                 {{"save", "y"}, {"mlp", "x"}},
                                                 {{"mlp", "y"}, {"add", "x"}},
                                                 {{"save", "extra"}, {"add", "extra"}}}));
  ASSERT_TRUE(applyEdit(document, *inverse));
  EXPECT_EQ(document, before);
}

TEST(MakeBlock, NamesPortsAfterThoseThatReadAndGiveThem) {
  PipelineDocument document = example("gpt_mlp");
  const Result<NewBlock> made = makeBlock(document, std::vector<std::string>{"fc2", "add", "save"}, "Odd");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message,
            "act is not selected, but is between selected ops: it consumes the output of one, and fc2 consumes the "
            "output of act. Select act too.");
  const Result<NewBlock> tail = makeBlock(document, std::vector<std::string>{"fc2", "add"}, "Tail");
  ASSERT_TRUE(tail);
  ASSERT_TRUE(applyEdit(document, tail->edit));
  const auto type = operationOf(document, *document.findOp("tail"));
  ASSERT_EQ(type->inputs.size(), 2U);
  EXPECT_EQ(type->inputs[0].name, "x");
  EXPECT_EQ(type->inputs[1].name, "extra");
  ASSERT_EQ(type->outputs.size(), 1U);
  EXPECT_EQ(type->outputs[0].name, "y");
}

TEST(MakeBlock, WorksOnOpsThatAreNotWiredYet) {
  PipelineDocument document;
  ASSERT_TRUE(applyEdit(document, AddOp{{.id = "add", .operation = "AddExtraInput"}}));
  const Result<NewBlock> made = makeBlock(document, std::vector<std::string>{"add"}, "Sum");
  ASSERT_TRUE(made);
  ASSERT_TRUE(applyEdit(document, made->edit));
  const auto type = operationOf(document, *document.findOp("sum"));
  EXPECT_EQ(type->inputs.size(), 2U);
  EXPECT_EQ(type->outputs.size(), 1U);
}

TEST(MakeBlock, NamesTheObstacle) {
  const PipelineDocument document = example("transformer_stack");
  const auto message = [&](std::vector<std::string> ids, const std::string& name) {
    return makeBlock(document, ids, name).error().message;
  };
  EXPECT_EQ(message({"norm"}, "Layer"), "A block named Layer already exists.");
  EXPECT_EQ(message({}, "New"), "No ops are selected. A block needs at least one.");
  EXPECT_EQ(message({"x"}, "New"), "There is no op x; a block must consist of ops.");
}

TEST(MakeBlock, TakesRuleSwitchesAlong) {
  PipelineDocument document = example("gpt_mlp");
  ASSERT_TRUE(applyEdit(document, SetFusion{Json{{"without", {"R@fc1", "R@add", "Q"}}}}));
  ASSERT_TRUE(applyEdit(document, makeBlock(document, std::vector<std::string>{"fc1", "act"}, "B")->edit));
  EXPECT_EQ(document.fusion()["without"], Json({"R@b.fc1", "R@add", "Q"}));
  ASSERT_TRUE(applyEdit(document, expandBlock(document, "b")->edit));
  EXPECT_EQ(document.fusion()["without"], Json({"R@fc1", "R@add", "Q"}));
}

/// Also overrides for parts of ops, and those for an op itself.
TEST(MakeBlock, TakesOverridesOfTheRecipeAlong) {
  PipelineDocument document = example("gpt_mlp");
  const auto recipeOf = [](const char* place) {
    return Json{{"name", "MXFP8BlockScaling"}, {"overrides", {{{"op", place}, {"format", "high_precision"}}}}};
  };
  ASSERT_TRUE(applyEdit(document, SetRecipe{recipeOf("fc1")}));
  ASSERT_TRUE(applyEdit(document, SetFusion{Json{{"without", {"R@fc1.linear", "R@fc12"}}}}));
  ASSERT_TRUE(applyEdit(document, makeBlock(document, std::vector<std::string>{"fc1", "act"}, "B")->edit));
  EXPECT_EQ(document.recipe(), recipeOf("b.fc1"));
  EXPECT_EQ(document.fusion()["without"], Json({"R@b.fc1.linear", "R@fc12"}));
  ASSERT_TRUE(applyEdit(document, expandBlock(document, "b")->edit));
  EXPECT_EQ(document.recipe(), recipeOf("fc1"));
  EXPECT_EQ(document.fusion()["without"], Json({"R@fc1.linear", "R@fc12"}));
}

TEST(ExpandBlock, RevertsMakeBlock) {
  for (const char* name : {"gpt_mlp", "llama_mlp", "residual_norm", "elementwise_chain"}) {
    const PipelineDocument before = example(name);
    std::vector<std::string> ids;
    for (const DocumentOp& op : before.ops()) ids.push_back(op.id);
    PipelineDocument document = before;
    ASSERT_TRUE(applyEdit(document, makeBlock(document, ids, "All")->edit));
    ASSERT_EQ(document.ops().size(), 1U);
    const Result<ExpandedBlock> expanded = expandBlock(document, "all");
    ASSERT_TRUE(expanded);
    EXPECT_EQ(expanded->ids.size(), ids.size());
    ASSERT_TRUE(applyEdit(document, expanded->edit));
    EXPECT_EQ(document.ops(), before.ops()) << name;
    EXPECT_EQ(toString(lower(document).graph), toString(lower(before).graph)) << name;
    for (const auto& [id, position] : before.positions())
      EXPECT_EQ(std::ranges::count(document.positions(), std::pair(id, position)), 1) << name << " " << id;
  }
}

TEST(ExpandBlock, GivesFreshIdsAndKeepsInnerBlocks) {
  PipelineDocument document = example("transformer_stack");
  ASSERT_TRUE(applyEdit(document, expandBlock(document, "layer1")->edit));
  ASSERT_TRUE(applyEdit(document, expandBlock(document, "layer2")->edit));
  std::vector<std::string> ids;
  for (const DocumentOp& op : document.ops()) ids.push_back(op.id + " " + op.operation);
  EXPECT_EQ(ids, (std::vector<std::string>{"save MakeExtraOutput", "mlp block:FeedForward", "add AddExtraInput",
                                           "save2 MakeExtraOutput", "mlp2 block:FeedForward", "add2 AddExtraInput",
                                           "norm RMSNorm"}));
  EXPECT_EQ(shapeOf(lower(document).graph), shapeOf(lower(example("transformer_stack")).graph));
}

/// Settings of the instance then apply to its ops; overrides of the recipe to those with a GEMM.
TEST(ExpandBlock, MovesSettingsOfTheInstanceToItsOps) {
  PipelineDocument document = example("gpt_mlp");
  ASSERT_TRUE(applyEdit(document, makeBlock(document, std::vector<std::string>{"fc1", "act", "fc2"}, "B")->edit));
  const auto overridesOf = [](const std::vector<std::string>& places) {
    Json overrides = Json::array();
    for (const std::string& place : places) overrides.push_back({{"op", place}, {"format", "high_precision"}});
    return Json{{"name", "MXFP8BlockScaling"}, {"overrides", overrides}};
  };
  ASSERT_TRUE(applyEdit(document, SetRecipe{overridesOf({"norm", "b", "add"})}));
  ASSERT_TRUE(applyEdit(document, SetFusion{Json{{"without", {"Q", "R@b", "R@add"}}, {"with", {"S@b"}}}}));
  const std::string before = serialize(document);
  History history(document);
  ASSERT_TRUE(history.apply(expandBlock(document, "b")->edit));
  EXPECT_EQ(history.document().recipe(), overridesOf({"norm", "fc1", "fc2", "add"}));
  EXPECT_EQ(history.document().fusion()["without"], Json({"Q", "R@fc1", "R@act", "R@fc2", "R@add"}));
  EXPECT_EQ(history.document().fusion()["with"], Json({"S@fc1", "S@act", "S@fc2"}));
  history.undo();
  EXPECT_EQ(serialize(history.document()), before);
}

/// The largest and the smallest place are further apart than a place can say.
TEST(MakeBlock, LeavesOutPlacesThatAreTooFarApart) {
  PipelineDocument document = example("gpt_mlp");
  ASSERT_TRUE(applyEdit(document, MoveNode{"fc1", Position{std::numeric_limits<int>::max(), 0}}));
  ASSERT_TRUE(applyEdit(document, MoveNode{"act", Position{std::numeric_limits<int>::min(), 0}}));
  ASSERT_TRUE(applyEdit(document, makeBlock(document, std::vector<std::string>{"fc1", "act"}, "B")->edit));
  ASSERT_EQ(document.findBlock("B")->positions.size(), 1U);
  EXPECT_EQ(document.findBlock("B")->positions.front().first, "fc1");
  for (const auto& [id, position] : document.positions()) EXPECT_NE(id, "act");
}

TEST(ExpandBlock, RefusesOtherOps) {
  const PipelineDocument document = example("transformer_stack");
  EXPECT_EQ(expandBlock(document, "norm").error().message, "norm is a RMSNorm, not an instance of a block.");
  EXPECT_EQ(expandBlock(document, "nope").error().message, "There is no op nope.");
}

TEST(NumInstances, CountsThoseInsideAsOftenAsTheyStandThere) {
  const PipelineDocument document = example("transformer_stack");
  EXPECT_EQ(numInstances(document, "Layer"), 2);
  EXPECT_EQ(numInstances(document, "FeedForward"), 2);
  EXPECT_EQ(numInstances(document, "Nothing"), 0);
}

TEST(BlocksUsedBy, FollowsInnerBlocks) {
  const PipelineDocument document = example("transformer_stack");
  EXPECT_EQ(blocksUsedBy(document, document.ops()), (std::vector<std::string>{"FeedForward", "Layer"}));
}

}  // namespace
}  // namespace fuseline::testing
