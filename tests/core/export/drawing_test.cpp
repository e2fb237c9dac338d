// Drawings: their contents, independent of the layout, and their messages if there is no layout.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/document/json_text.h"
#include "core/export/drawing/drawn_pass.h"
#include "core/export/drawing/svg_exporter.h"
#include "core/export/drawing/svg_graph.h"
#include "core/export/drawing/text_width.h"
#include "tests/core/export/sample_layout.h"
#include "tests/support/random_pipelines.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace fuseline {
namespace {

using testing::chain;

RC_GTEST_PROP(DrawingText, IsCutBetweenCharacters, (const std::vector<std::uint16_t>& choices)) {
  static const std::vector<std::string> kCharacters = {"a", "W", "ö", "→", "字", "😀"};
  std::string text;
  for (const std::uint16_t choice : choices) text += kCharacters[choice % kCharacters.size()];
  const auto most = *rc::gen::inRange<std::size_t>(1, 40);
  const std::string cut = shortened(text, most);
  RC_ASSERT(isUtf8(cut));
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; };
  RC_ASSERT(static_cast<std::size_t>(std::ranges::count_if(cut, begins)) == std::min(most, choices.size()));
  RC_ASSERT((cut == text) == (choices.size() <= most));
  RC_ASSERT(textWidthPx(text, 10.0) >= 4.0 * static_cast<double>(choices.size()));
}

int count(const DrawnPass& pass, NodeId node) {
  return static_cast<int>(std::ranges::count(pass.boxes, node, &DrawnBox::node));
}

/// No box is in two frames, and frames around others come first.
void checkFrames(const DrawnPass& pass) {
  std::set<int> framed;
  for (std::size_t i = 0; i < pass.frames.size(); ++i) {
    RC_ASSERT(pass.frames[i].outer < static_cast<int>(i));
    for (const int box : pass.frames[i].boxes) RC_ASSERT(framed.insert(box).second);
  }
}

RC_GTEST_PROP(DrawnPass, HasEveryOpAndEveryWire, ()) {
  const testing::RandomPipeline pipeline = testing::randomPipeline();
  const Graph graph = chain(DType::BF16, {32, 16}, pipeline.links, pipeline.options);
  const FusionReport report = *fuse(graph, {.switches = pipeline.switches});
  const DrawnPass forward = drawnPass(graph, fusionsOf(graph, report.forward, Phase::Forward), Phase::Forward);
  const DrawnPass backward = drawnPass(graph, fusionsOf(graph, report.backward, Phase::Backward), Phase::Backward);
  std::size_t numWires = graph.outputs().size();
  for (const Value& value : graph.values()) numWires += value.uses.size();
  RC_ASSERT(forward.wires.size() == numWires);
  for (NodeId node = 0; node < static_cast<NodeId>(graph.nodes().size()); ++node) {
    RC_ASSERT(count(forward, node) == 1);
    RC_ASSERT(count(backward, node) == (graph.node(node).takesPartInBackward() ? 1 : 0));
  }
  for (const DrawnPass* pass : {&forward, &backward}) checkFrames(*pass);
}

TEST(DrawnPass, GradientsFlowBack) {
  const Graph graph = chain(DType::BF16, {8, 16}, {testing::link("GELU", "a"), testing::link("ReLU", "b")});
  const DrawnPass pass = drawnPass(graph, {}, Phase::Backward);
  std::set<std::pair<std::string, std::string>> wires;
  for (const DrawnWire& wire : pass.wires) {
    EXPECT_EQ(wire.label, "[8, 16] bf16");
    wires.emplace(pass.boxes[static_cast<std::size_t>(wire.from)].name,
                  pass.boxes[static_cast<std::size_t>(wire.to)].name);
  }
  EXPECT_EQ(wires, (std::set<std::pair<std::string, std::string>>{
                       {"gradient of y", "b"}, {"b", "a"}, {"a", "gradient of x"}}));
}

TEST(DrawnPass, OfNoOpIsEmpty) {
  const Graph graph = chain(DType::BF16, {8, 16}, {testing::link("GELU", "a")}, {.inputRequiresGradient = false});
  EXPECT_TRUE(drawnPass(graph, {}, Phase::Backward).boxes.empty());
}

/// More ops than a picture has boxes for, in instances "layer0" and on of a block.
PipelineDocument manyLayers(int count) {
  Json file = {{"format", "fuseline-pipeline"}, {"formatVersion", {{"major", 1}, {"minor", 1}}}};
  file["blocks"]["Layer"] = {{"inputs", {{{"id", "x"}}}},
                             {"ops",
                              {{{"id", "act"}, {"op", "GELU"}},
                               {{"id", "scale"}, {"op", "ConstantScale"}, {"attributes", {{"scale", 0.5}}}},
                               {{"id", "drop"}, {"op", "Dropout"}, {"attributes", {{"p", 0.1}}}}}},
                             {"outputs", {{{"id", "y"}, {"from", "drop.y"}}}}};
  for (const auto& [from, to] : {std::pair("x", "act.x"), {"act.y", "scale.x"}, {"scale.y", "drop.x"}})
    file["blocks"]["Layer"]["wires"].push_back(Json::array({from, to}));
  Json& pipeline = file["pipeline"];
  pipeline["inputs"] = {{{"id", "x"}, {"dtype", "bf16"}, {"shape", {8, 16}}}};
  std::string last = "x";
  for (int i = 0; i < count; ++i) {
    const std::string id = "layer" + std::to_string(i);
    pipeline["ops"].push_back({{"id", id}, {"op", "block:Layer"}});
    pipeline["wires"].push_back(Json::array({last, id + ".x"}));
    last = id + ".y";
  }
  pipeline["outputs"] = {{{"id", "y"}, {"from", last}}};
  return parseDocument(file.dump()).document;
}

TEST(DrawnPass, ShowsInstancesOfLargeGraphsAsBoxes) {
  const Analysis large = analyze(manyLayers(400));
  ASSERT_TRUE(large.isRunnable());
  ASSERT_EQ(large.graph().nodes().size(), 1200U);
  for (const Phase phase : {Phase::Forward, Phase::Backward}) {
    const auto& entries = phase == Phase::Forward ? large.report.forward : large.report.backward;
    const DrawnPass pass = drawnPass(large.graph(), fusionsOf(large.graph(), entries, phase), phase);
    EXPECT_EQ(pass.boxes.size(), 400U + 2U);  // and both ends
    EXPECT_EQ(pass.wires.size(), 401U);
    EXPECT_TRUE(pass.frames.empty());
    const DrawnBox* const box = pass.boxOf(large.graph().findNode("layer7.scale"));
    ASSERT_TRUE(box);
    EXPECT_EQ(box, pass.boxOf(large.graph().findNode("layer7.act")));
    EXPECT_EQ(box->name, "layer7");
    EXPECT_EQ(box->type, "Layer, 3 ops");
  }
  const Analysis small = analyze(manyLayers(4));
  EXPECT_EQ(drawnPass(small.graph(), {}, Phase::Forward).boxes.size(), 12U + 2U);
}

Result<PipelineText> svgOfTemplate(const LayOutGraph& layOut) {
  const std::string name = "linear-bias";
  const Analysis analysis = analysisOf(name);
  const PipelineDocument document =
      parseDocument(std::ranges::find(documentTemplates(), name, &DocumentTemplate::name)->text).document;
  return svgDrawing({.name = name, .document = document, .options = {}, .analysis = analysis, .layOut = layOut});
}

TEST(SvgDrawing, SaysWhatItWouldNeed) {
  const Result<PipelineText> without = svgOfTemplate(nullptr);
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().message,
            "--to svg: this build has no Graphviz, which lays out the graph (Debian: libgraphviz-dev). `fuseline "
            "export --to dot` writes the graph for other programs.");
  const Result<PipelineText> failed = svgOfTemplate([](const LayoutProblem&) { return Error{"it is tired"}; });
  ASSERT_FALSE(failed);
  EXPECT_TRUE(failed.error().message.starts_with("--to svg: it is tired. ")) << failed.error().message;
}

TEST(SvgDrawing, NamesItsProgramsNowhereThatChanges) {
  const Result<PipelineText> svg = svgOfTemplate(inAColumn);
  ASSERT_TRUE(svg) << svg.error().message;
  EXPECT_EQ(svg->text.find("0.1.0"), std::string::npos);
  EXPECT_EQ(svg->text, svgOfTemplate(inAColumn)->text);
}

}  // namespace
}  // namespace fuseline
