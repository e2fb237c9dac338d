// Messages that hold in every instance of a block are reported once, and large graphs have few boxes.
// SPDX-License-Identifier: Apache-2.0
#include "core/graph/instances.h"

#include "core/lowering/folded_diagnostics.h"
#include "core/lowering/lowering.h"

#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

/// This number of instances of a block with a norm and a Linear with a bias, "layer0" and on, in a row.
Graph layers(int count) {
  std::string ops, wires;
  std::string from = "x";
  for (int i = 0; i < count; ++i) {
    ops += fmt::format(R"({}{{"id": "layer{}", "op": "block:Layer"}})", i > 0 ? ", " : "", i);
    wires += fmt::format(R"({}["{}", "layer{}.x"])", i > 0 ? ", " : "", from, i);
    from = fmt::format("layer{}.y", i);
  }
  const LoadedDocument loaded = parseDocument(fmt::format(
      R"({{"format": "fuseline-pipeline", "formatVersion": {{"major": 1, "minor": 1}},
           "blocks": {{"Layer": {{"inputs": [{{"id": "x"}}],
             "ops": [{{"id": "norm", "op": "RMSNorm", "attributes": {{"normalized_shape": [8]}}}},
                     {{"id": "fc", "op": "Linear", "attributes": {{"in_features": 8, "out_features": 8}}}}],
             "wires": [["x", "norm.x"], ["norm.y", "fc.x"]], "outputs": [{{"id": "y", "from": "fc.y"}}]}}}},
           "pipeline": {{"inputs": [{{"id": "x", "dtype": "f32", "shape": [4, 8]}}], "ops": [{}], "wires": [{}],
                         "outputs": [{{"id": "y", "from": "{}"}}]}}}})",
      ops, wires, from));
  LoweredGraph lowered = lower(loaded.document);
  EXPECT_FALSE(hasErrors(lowered.diagnostics));
  return std::move(lowered.graph);
}

TEST(InstanceNames, AreThoseOfTheBlock) {
  const InstanceNames names(layers(2));
  const InstanceNames::Text text = names.shared("After layer1.fc.linear (BasicLinear) comes layer0.norm; x stays.");
  EXPECT_EQ(text.text, "After Layer/fc.linear (BasicLinear) comes Layer/norm; x stays.");
  EXPECT_EQ(text.place, "layer1.fc.linear");
  EXPECT_EQ(text.block, "Layer");
  EXPECT_EQ(names.shared("layer2.fc is another.").place, "");
}

TEST(FoldInstances, KeepsWhatDiffersAndNamesTheOthers) {
  const Graph graph = layers(3);
  std::vector<Diagnostic> all;
  for (const char* text :
       {"layer0.fc is 3 wide.", "layer1.fc is 3 wide.", "layer2.fc is 4 wide.", "x is wide.", "x is wide."})
    all.push_back({.severity = Severity::Warning, .code = "wide", .message = text});
  const std::vector<Diagnostic> folded = foldInstances(graph, all);
  ASSERT_EQ(folded.size(), 4U);
  EXPECT_EQ(folded[0].message, "layer0.fc is 3 wide. The same holds in 1 more instance of block Layer.");
  EXPECT_EQ(folded[0].instances, (std::vector<std::string>{"layer0.fc", "layer1.fc"}));
  EXPECT_EQ(folded[1].message, "layer2.fc is 4 wide.");
  EXPECT_TRUE(folded[1].instances.empty());
}

TEST(ClosedInstances, AreAsFewAsThereIsRoomFor) {
  const Graph graph = layers(5);  // 15 ops: norm, fc.linear and fc.bias each
  const std::vector<std::string> open = closedInstances(graph, 15);
  EXPECT_EQ(std::set<std::string>(open.begin(), open.end()), std::set<std::string>{""});
  const std::vector<std::string> closed = closedInstances(graph, 14);
  EXPECT_EQ(std::set<std::string>(closed.begin(), closed.end()),
            (std::set<std::string>{"layer0", "layer1", "layer2", "layer3", "layer4"}));
}

}  // namespace
}  // namespace fuseline
