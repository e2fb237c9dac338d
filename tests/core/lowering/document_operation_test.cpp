// Ops in documents with ports that depend on their attributes: Formula, and one with ports that depend on a number.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/document_operation.h"

#include "core/lowering/connections.h"
#include "tests/support/example_texts.h"

namespace fuseline::testing {
namespace {

std::string formulaOp(const std::string& attributes) {
  return "\n"
         R"({"id": "act", "op": "Formula", "attributes": {)" +
         attributes + "}}";
}

PipelineDocument documentOf(const std::string& ops) {
  return parseDocument(pipelineText(ops, R"(["x", "act.x"])", "act.y")).document;
}

std::vector<std::string> inputsOf(const PipelineDocument& document) {
  const OperationPointer operation = operationOf(document, document.ops().front());
  std::vector<std::string> names;
  for (const Port& port : operation->inputs) names.push_back(port.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(OperationOf, HasThePortsThatTheAttributesName) {
  EXPECT_EQ(inputsOf(documentOf(formulaOp(R"("inputs": "b, c", "y": "x * b + c")"))), (Names{"x", "b", "c"}));
}

TEST(OperationOf, IsTheDefaultFormWhereAnAttributeIsWrong) {
  for (const char* attributes : {R"("inputs": "b, ,c")", R"("inputs": "b", "y": "x +")", R"("inputs": 3)"})
    EXPECT_EQ(inputsOf(documentOf(formulaOp(attributes))), Names{"x"}) << attributes;
}

TEST(OperationOf, IsNullForAnUnknownOp) {
  const PipelineDocument document = documentOf(R"({"id": "act", "op": "Mystery"})");
  EXPECT_EQ(operationOf(document, document.ops().front()), nullptr);
}

TEST(OperationOf, IsTheOpItselfWhereAttributesDoNotMatter) {
  const PipelineDocument document = documentOf(R"({"id": "act", "op": "GELU"})");
  EXPECT_EQ(operationOf(document, document.ops().front()).get(), builtinOperations().find("GELU"));
}

std::string connection(const PipelineDocument& document, const char* to) {
  return canConnect(document, {parseEndpoint("x"), parseEndpoint(to)}).reason();
}

TEST(OperationOf, DecidesWhetherPortsConnect) {
  const PipelineDocument document = documentOf(formulaOp(R"("inputs": "b", "y": "x * b")"));
  EXPECT_EQ(connection(document, "act.b"), "");
  EXPECT_EQ(connection(document, "act.c"), "act (Formula) has no input \"c\"; it has x, b.");
}

TEST(Lowering, ReportsOnlyTheAttributeThatMakesPortsUnknown) {
  const std::string text =
      pipelineText(formulaOp(R"("inputs": "b", "y": "x * c")"), R"(["x", "act.x"], ["x", "act.b"])", "act.y");
  EXPECT_EQ(listed(problems(text)),
            "file:5:67: error: act: y, column 5: unknown name c; the names are x, b. [bad-attribute at "
            "/pipeline/ops/0/attributes/y]\n");
}

TEST(Lowering, KeepsNoRepairsOfAnOpThatSharesItsId) {
  const std::string text =
      pipelineText(R"({"id": "act", "op": "GELU"},)" + formulaOp(R"("dtype": "f64")"), R"(["x", "act.x"])", "act.y");
  const std::vector<Diagnostic> found = problems(text);
  const auto choice = std::ranges::find(found, "bad-choice", &Diagnostic::code);
  ASSERT_NE(choice, found.end());
  EXPECT_TRUE(choice->repairs.empty());
}

/// Adds `count` tensors: an op with ports that depend on a number, and so on symbols.
FusibleOperation sumOf(std::int64_t count) {
  FusibleOperation sum = *builtinOperations().find("AddExtraInput");
  sum.name = "Sum";
  sum.attributes = {{.name = "count", .defaultValue = std::int64_t{2}, .minimum = 1}};
  sum.inputs.resize(1);
  for (std::int64_t i = 1; i < count; ++i) sum.inputs.push_back({.name = "x" + std::to_string(i)});
  sum.infer = [](const Attributes&, std::span<const TensorSpec> inputs) -> Result<OperationSpecs> {
    return OperationSpecs{.outputs = {inputs.front()}};
  };
  return sum;
}

OperationCatalog withSum() {
  FusibleOperation sum = sumOf(2);
  sum.specialise = [](const FusibleOperation&, const Attributes& attributes) -> Result<FusibleOperation> {
    const std::int64_t count = attributes.integer("count");
    if (count > 8) return Error{.message = "Sum: count is more than 8.", .subject = "count"};
    return sumOf(count);
  };
  auto catalog = OperationCatalog::withBuiltins({sum});
  if (!catalog) throw std::logic_error(catalog.error().message);
  return std::move(*catalog);
}

std::string sumText(const std::string& count) {
  return pipelineText(R"({"id": "act", "op": "Sum", "attributes": {"count": )" + count + "}}",
                      R"(["x", "act.x"], ["x", "act.x1"], ["x", "act.x2"])", "act.y");
}

TEST(OperationOf, ResolvesSymbols) {
  const OperationCatalog catalog = withSum();
  const PipelineDocument document = parseDocument(sumText("\"H / M + 1\"")).document;
  EXPECT_EQ(operationOf(document, document.ops().front(), catalog)->inputs.size(), 3U);
}

TEST(Lowering, ResolvesSymbolsBeforePorts) {
  const OperationCatalog catalog = withSum();
  const LoadedDocument loaded = parseDocument(sumText("\"H / M + 1\""));
  EXPECT_EQ(listed(lower(loaded.document, {.catalog = &catalog}, &loaded.sourceMap).diagnostics), "");
  // With other values of the symbols the op has another number of ports.
  const LoweredGraph lowered = lower(loaded.document, {.symbols = {{"H", 8}}, .catalog = &catalog});
  EXPECT_EQ(codes(lowered.diagnostics), std::vector<std::string>{"unknown-port"});
}

TEST(Lowering, GraphsKeepTheirSpecialisedOps) {
  const OperationCatalog catalog = withSum();
  std::optional<Graph> graph;
  {
    const LoadedDocument loaded = parseDocument(sumText("3"));
    graph = lower(loaded.document, {.catalog = &catalog}).graph;
  }
  ASSERT_EQ(graph->nodes().size(), 1U);
  EXPECT_EQ(graph->nodes().front().operation->inputs[2].name, "x2");
}

TEST(Lowering, NamesTheAttributeThatAnOpRefuses) {
  const OperationCatalog catalog = withSum();
  const LoweredGraph lowered = lower(parseDocument(sumText("9")).document, {.catalog = &catalog});
  ASSERT_EQ(codes(lowered.diagnostics), std::vector<std::string>{"bad-attribute"});
  EXPECT_EQ(lowered.diagnostics.front().message, "act: count is more than 8.");
  EXPECT_EQ(lowered.diagnostics.front().pointer, "/pipeline/ops/0/attributes/count");
}

}  // namespace
}  // namespace fuseline::testing
