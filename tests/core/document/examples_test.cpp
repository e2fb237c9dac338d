// The shipped examples and templates: clean, canonical, and lowered to the documented ops.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/example_texts.h"

namespace fuseline::testing {
namespace {

TEST(Examples, AreWrittenBackByteForByte) {
  ASSERT_GE(exampleFiles().size(), 6U);
  for (const auto& path : exampleFiles()) {
    const std::string text = readFile(path);
    EXPECT_EQ(serialize(parseDocument(text).document), text) << path;
  }
}

TEST(Examples, HaveNoProblems) {
  for (const auto& path : exampleFiles()) {
    std::vector<Diagnostic> found = problems(readFile(path));
    std::erase_if(found, [](const Diagnostic& diagnostic) { return diagnostic.code == "external"; });
    EXPECT_EQ(listed(found), "") << path;
  }
}

TEST(Examples, PlaceEveryNode) {
  for (const auto& path : exampleFiles()) {
    const PipelineDocument document = parseDocument(readFile(path)).document;
    EXPECT_EQ(document.positions().size(), document.inputs().size() + document.ops().size() + document.outputs().size())
        << path;
  }
}

TEST(Templates, AreTheExampleFiles) {
  for (const DocumentTemplate& entry : documentTemplates()) {
    std::string file = entry.name + ".fuseline";
    std::ranges::replace(file, '-', '_');
    EXPECT_EQ(entry.text, readFile(examplesFolder() / file)) << entry.name;
    EXPECT_FALSE(entry.summary.empty());
  }
}

TEST(Examples, LlamaMlpHasTheOpsOfTheIssue) {
  const LoadedDocument loaded = parseDocument(readFile(examplesFolder() / "llama_mlp.fuseline"));
  const LoweredGraph lowered = lower(loaded.document);
  std::vector<std::string> nodes;
  for (const Node& node : lowered.graph.nodes()) nodes.push_back(node.id + " " + node.operation->name);
  EXPECT_EQ(nodes, (std::vector<std::string>{"save MakeExtraOutput", "norm RMSNorm", "fc1 BasicLinear", "act SwiGLU",
                                             "fc2 BasicLinear", "add AddExtraInput"}));
  EXPECT_EQ(toString(lowered.graph.value(lowered.graph.findValue("fc1.y")).spec), "[512, 5632] bf16");
  EXPECT_EQ(toString(lowered.graph.value(lowered.graph.outputs().front().value).spec), "[512, 1024] bf16");
}

TEST(Examples, GptMlpExpandsItsLinears) {
  const LoweredGraph lowered = lower(parseDocument(readFile(examplesFolder() / "gpt_mlp.fuseline")).document);
  std::vector<std::string> nodes;
  for (const Node& node : lowered.graph.nodes()) nodes.push_back(node.id + " of " + node.owner);
  EXPECT_EQ(nodes, (std::vector<std::string>{"save of save", "norm of norm", "fc1.linear of fc1", "fc1.bias of fc1",
                                             "act of act", "fc2.linear of fc2", "fc2.bias of fc2", "add of add"}));
  const Graph& graph = lowered.graph;
  EXPECT_EQ(graph.node(graph.findNode("fc1.linear")).parameterName(0), "fc1.weight");
  EXPECT_EQ(graph.node(graph.findNode("fc1.bias")).parameterName(0), "fc1.bias");
}

}  // namespace
}  // namespace fuseline::testing
