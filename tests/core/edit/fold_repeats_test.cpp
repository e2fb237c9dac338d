// Layers that repeat become instances of a block, and the pipeline stays equivalent.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/fold_repeats.h"

#include "core/document/file_format.h"
#include "core/edit/apply_edit.h"
#include "core/lowering/lowering.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace fuseline {
namespace {

using Texts = std::vector<std::string>;

/// Ops of square matrices that are written one after the other.
class Text {
 public:
  std::string from = "x";  // source of the next op

  Text& op(const std::string& id, const std::string& type, const std::string& attributes = "{}") {
    m_ops.push_back(fmt::format(R"({{"id": "{}", "op": "{}", "attributes": {}}})", id, type, attributes));
    wire(from, id + ".x");
    from = id + ".y";
    return *this;
  }
  Text& linear(const std::string& id, bool bias = true) {
    return op(id, "Linear", fmt::format(R"({{"in_features": 8, "out_features": 8, "bias": {}}})", bias));
  }
  Text& wire(const std::string& source, const std::string& port) {
    m_wires.push_back(fmt::format(R"(["{}", "{}"])", source, port));
    return *this;
  }
  /// norm, fc, and a sum with the norm's input.
  Text& layer(const std::string& name) {
    const std::string before = from;
    op(name + "_norm", "RMSNorm", R"({"normalized_shape": [8]})")
        .linear(name + "_fc")
        .op(name + "_add", "AddExtraInput");
    return wire(before, name + "_add.extra");
  }
  Text& output(const std::string& id, const std::string& source) {
    m_outputs.push_back(fmt::format(R"({{"id": "{}", "from": "{}"}})", id, source));
    return *this;
  }

  PipelineDocument document(const std::string& more = "") {
    output("y", from);
    LoadedDocument loaded = parseDocument(fmt::format(
        R"({{"format": "fuseline-pipeline", "formatVersion": {{"major": 1, "minor": 0}}, "pipeline": {{
             "inputs": [{{"id": "x", "dtype": "bf16", "shape": [4, 8]}}, {{"id": "m", "dtype": "bf16", "shape": [4, 8]}}],
             "ops": [{}], "wires": [{}], "outputs": [{}]}}{}}})",
        fmt::join(m_ops, ", "), fmt::join(m_wires, ", "), fmt::join(m_outputs, ", "), more));
    EXPECT_FALSE(hasErrors(loaded.diagnostics));
    return std::move(loaded.document);
  }

 private:
  Texts m_ops, m_wires, m_outputs;
};

Text layers(int count) {
  Text text;
  for (int i = 0; i < count; ++i) text.layer(fmt::format("l{}", i));
  return text;
}

using PlacesById = std::map<std::string, std::string>;

/// "l1_fc.y" is "layer2.fc.y" where the op has moved.
std::string movedName(const std::string& name, const PlacesById& places) {
  const std::size_t dot = name.find('.');
  const auto place = places.find(name.substr(0, dot));
  return place == places.end() ? name : place->second + (dot == std::string::npos ? "" : name.substr(dot));
}

/// The computation of each node and its sources, independent of their order.
std::set<std::string> meaningOf(const PipelineDocument& document, const PlacesById& places = {}) {
  const LoweredGraph lowered = lower(document);
  EXPECT_FALSE(hasErrors(lowered.diagnostics)) << lowered.diagnostics.front().message;
  std::set<std::string> meaning;
  const auto nameOf = [&](ValueId value) { return movedName(lowered.graph.value(value).name, places); };
  for (const Node& node : lowered.graph.nodes()) {
    Texts inputs;
    for (const ValueId input : node.inputs) inputs.push_back(nameOf(input));
    meaning.insert(
        fmt::format("{} = {}({})", movedName(node.id, places), node.operation->name, fmt::join(inputs, ", ")));
  }
  for (const GraphOutput& output : lowered.graph.outputs())
    meaning.insert(fmt::format("{} = {}", output.name, nameOf(output.value)));
  return meaning;
}

/// The document after it; the same as before where nothing is folded.
PipelineDocument folded(const PipelineDocument& document, int numInstances) {
  const std::optional<FoldedRepeats> fold = foldRepeats(document);
  EXPECT_EQ(fold ? fold->numInstances : 0, numInstances);
  PipelineDocument after = document;
  if (!fold) return after;
  const Result<Edit> undo = applyEdit(after, fold->edit);
  EXPECT_TRUE(undo);
  EXPECT_EQ(meaningOf(after), meaningOf(document, fold->places));
  PipelineDocument before = after;
  EXPECT_TRUE(applyEdit(before, *undo));
  EXPECT_EQ(serialize(before), serialize(document));
  return after;
}

Texts idsOf(const DocumentBlock& block) {
  Texts ids;
  for (const DocumentOp& op : block.ops) ids.push_back(op.id);
  return ids;
}

TEST(FoldRepeats, MakesLayersInstancesOfABlock) {
  const PipelineDocument document =
      folded(layers(4).op("norm", "RMSNorm", R"({"normalized_shape": [8]})").document(), 4);
  EXPECT_EQ(idsOf(document.pipeline()), (Texts{"layer", "layer2", "layer3", "layer4", "norm"}));
  ASSERT_TRUE(document.findBlock("Layer"));
  EXPECT_EQ(idsOf(*document.findBlock("Layer")), (Texts{"norm", "fc", "add"}));
  EXPECT_EQ(document.findBlock("Layer")->inputs.size(), 1u);
  EXPECT_EQ(document.findBlock("Layer")->outputs.size(), 1u);
}

// The row of kinds begins with the sum before the layers, and its units would have two inputs.
TEST(FoldRepeats, BeginsWhereFewTensorsGoInAndOut) {
  Text text;
  text.op("first", "AddExtraInput").wire("m", "first.extra");
  for (int i = 0; i < 3; ++i) text.layer(fmt::format("l{}", i));
  const PipelineDocument document = folded(text.document(), 3);
  EXPECT_EQ(idsOf(document.pipeline()), (Texts{"first", "layer", "layer2", "layer3"}));
}

TEST(FoldRepeats, KeepSharedInputsOutside) {
  Text text;
  for (int i = 0; i < 3; ++i)
    text.linear(fmt::format("fc{}", i))
        .op(fmt::format("mask{}", i), "AddExtraInput")
        .wire("m", fmt::format("mask{}.extra", i))
        .op(fmt::format("act{}", i), "GELU");
  const PipelineDocument document = folded(text.document(), 3);
  EXPECT_EQ(document.findBlock("Layer")->inputs.size(), 2u);
  EXPECT_EQ(std::ranges::count(document.wires(), Endpoint{"m", ""}, &Wire::from), 3);
}

TEST(FoldRepeats, TakeTheBlockNameThatIsFree) {
  const PipelineDocument once = folded(layers(3).document(), 3);
  EXPECT_FALSE(foldRepeats(once)) << "three instances and nothing else";
  PipelineDocument other = layers(3).document();
  ASSERT_TRUE(applyEdit(other, AddBlock{"Layer", {}}));
  EXPECT_EQ(foldRepeats(other)->block, "Layer2");
}

TEST(FoldRepeats, LeaveDifferentLayersAlone) {
  EXPECT_FALSE(foldRepeats(layers(1).document()));
  Text other = layers(1);
  other.op("l1_norm", "RMSNorm", R"({"normalized_shape": [8], "eps": 0.5})")
      .linear("l1_fc")
      .op("l1_add", "AddExtraInput")
      .wire("l0_add.y", "l1_add.extra");
  EXPECT_FALSE(foldRepeats(other.document())) << "another eps";
  Text crossed;  // the second sum adds the input of the first layer
  crossed.layer("l0")
      .op("l1_norm", "RMSNorm", R"({"normalized_shape": [8]})")
      .linear("l1_fc")
      .op("l1_add", "AddExtraInput")
      .wire("x", "l1_add.extra");
  EXPECT_FALSE(foldRepeats(crossed.document())) << "the first has one input, and the second two";
  EXPECT_FALSE(foldRepeats(layers(2).output("inner", "l1_fc.y").document())) << "the first has no such output";
}

TEST(FoldRepeats, TakesInThoseThatAreTheSame) {
  PipelineDocument last = folded(layers(4).output("inner", "l3_fc.y").document(), 3);
  EXPECT_EQ(idsOf(last.pipeline()), (Texts{"layer", "layer2", "layer3", "l3_norm", "l3_fc", "l3_add"}));
  folded(layers(4).output("inner", "l0_fc.y").document(), 4);  // an additional output, which is not read in the others
}

TEST(FoldRepeats, LeaveOutAFirstThatIsAnother) {
  Text text;  // all sums add x, which is the norm's input in the first layer alone
  for (int i = 0; i < 4; ++i)
    text.op(fmt::format("l{}_norm", i), "RMSNorm", R"({"normalized_shape": [8]})")
        .linear(fmt::format("l{}_fc", i))
        .op(fmt::format("l{}_add", i), "AddExtraInput")
        .wire("x", fmt::format("l{}_add.extra", i));
  const PipelineDocument document = folded(text.document(), 3);
  EXPECT_EQ(idsOf(document.pipeline()), (Texts{"l0_norm", "l0_fc", "l0_add", "layer", "layer2", "layer3"}));
}

TEST(FoldRepeats, LeaveOpsNamedBySwitchesAlone) {
  EXPECT_FALSE(foldRepeats(layers(3).document(R"(, "fusion": {"without": ["ForwardLinearBiasAdd@l1_add"]})")));
  folded(layers(3).document(R"(, "fusion": {"without": ["ForwardLinearBiasAdd"]})"), 3);
}

/// Some layers of one kind between others, each op reading the one before and, if it sums, one before that.
RC_GTEST_PROP(FoldRepeats, MeanTheSame, ()) {
  const auto types = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 4));
  const auto numLayers = *rc::gen::inRange(1, 5);
  Text text;
  const int numBefore = *rc::gen::inRange(0, 3);
  for (int i = 0; i < numBefore; ++i) text.op(fmt::format("before{}", i), "GELU");
  const auto reach = *rc::gen::inRange<std::size_t>(1, 4);
  Texts made = {text.from};
  for (int layer = 0; layer < numLayers; ++layer)
    for (std::size_t i = 0; i < types.size(); ++i) {
      const std::string id = fmt::format("l{}_{}", layer, i);
      if (types[i] == 0) text.op(id, "GELU");
      if (types[i] == 1) text.linear(id, *rc::gen::weightedElement<bool>({{9, true}, {1, false}}));
      if (types[i] == 2)
        text.op(id, "AddExtraInput").wire(made[made.size() - std::min(reach, made.size())], id + ".extra");
      if (types[i] == 3) text.op(id, "ReLU");
      made.push_back(text.from);
    }
  if (text.from == "x") text.op("only", "GELU");
  const PipelineDocument document = text.document();
  const std::optional<FoldedRepeats> fold = foldRepeats(document);
  if (!fold) return;
  PipelineDocument after = document;
  RC_ASSERT(static_cast<bool>(applyEdit(after, fold->edit)));
  RC_ASSERT(meaningOf(after) == meaningOf(document, fold->places));
}

TEST(FoldRepeats, ComeToAnEndInCircles) {
  Text text = layers(3);
  PipelineDocument document = text.document();
  ASSERT_TRUE(applyEdit(document, RemoveWire{{{"x", ""}, {"l0_norm", "x"}}}));
  ASSERT_TRUE(applyEdit(document, AddWire{{{"l2_add", "y"}, {"l0_norm", "x"}}, 0}));
  EXPECT_FALSE(foldRepeats(document));
}

}  // namespace
}  // namespace fuseline
