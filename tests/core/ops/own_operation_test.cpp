// An op from outside the library: README's example compiles, fuses and runs like a built-in op.
// SPDX-License-Identifier: Apache-2.0

// Before the example, which uses namespace fuseline: there is a fuseline::testing, too.
#include <gtest/gtest.h>

// The text between the two marks is README's.
// README: begin
#include "core/ops/activation.h"
#include "core/ops/catalog.h"

#include <cmath>

using namespace fuseline;

BasicOperation softsign() {
  const auto below = [](ElementwiseBuilder& e, ValueIndex x) {
    return e.add(e.constant(1), e.binary(Opcode::Max, x, e.unary(Opcode::Neg, x)));
  };
  return unaryActivation({
      .name = "Softsign",
      .formula = "y = x / (1 + |x|)",
      .function = always({.value = [](double x) { return x / (1 + std::abs(x)); },
                          .slope = [](double x) { return 1 / std::pow(1 + std::abs(x), 2); },
                          .valueExpression = [=](auto& e, auto x) { return e.binary(Opcode::Div, x, below(e, x)); },
                          .slopeExpression =
                              [=](auto& e, auto x) {
                                const auto root = e.unary(Opcode::Rsqrt, below(e, x));
                                return e.mul(e.mul(root, root), e.mul(root, root));
                              }}),
  });
}

Result<OperationCatalog> ownCatalog() { return OperationCatalog::withBuiltins({softsign()}); }
// README: end

#include "core/fusion/fuser.h"
#include "core/lowering/lowering.h"
#include "core/runtime/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/run_plan.h"

#include <fstream>
#include <iterator>

namespace fuseline {
namespace {

std::string readFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// x -> ConstantScale -> Softsign -> y.
LoweredGraph lowered(const OperationCatalog& catalog) {
  const LoadedDocument loaded = parseDocument(R"({"format": "fuseline-pipeline",
    "formatVersion": {"major": 1, "minor": 0},
    "pipeline": {"inputs": [{"id": "x", "dtype": "f32", "shape": [6, 16]}],
                 "ops": [{"id": "half", "op": "ConstantScale", "attributes": {"scale": 0.5}},
                         {"id": "act", "op": "Softsign", "attributes": {}}],
                 "wires": [["x", "half.x"], ["half.y", "act.x"]],
                 "outputs": [{"id": "y", "from": "act.y"}]}})");
  return lower(loaded.document, {.catalog = &catalog});
}

TEST(OwnOperation, IsWhatReadmeShows) {
  const std::string source = readFile(FUSELINE_SOURCE_DIR "/tests/core/ops/own_operation_test.cpp");
  const std::string begin = "// README: begin\n";
  const std::size_t first = source.find(begin) + begin.size();
  const std::string snippet = source.substr(first, source.find("// README: end") - first);
  EXPECT_NE(readFile(FUSELINE_SOURCE_DIR "/README.md").find(snippet), std::string::npos);
}

TEST(OwnOperation, StandsBesideTheBuiltinOps) {
  const auto catalog = ownCatalog();
  ASSERT_TRUE(catalog);
  EXPECT_NE(catalog->find("Softsign"), nullptr);
  EXPECT_EQ(catalog->operations().size(), builtinOperations().operations().size() + 1);
  EXPECT_EQ(builtinOperations().find("Softsign"), nullptr);
}

TEST(OwnOperation, MayNotTakeTheNameOfABuiltin) {
  FusibleOperation gelu = softsign();
  gelu.name = "GELU";
  EXPECT_EQ(OperationCatalog::withBuiltins({gelu}).error().message, "GELU: two ops have this name.");
}

TEST(OwnOperation, MustNotBeHalfAnOp) {
  FusibleOperation half = softsign();
  half.saveContext = nullptr;
  EXPECT_EQ(OperationCatalog::withBuiltins({half}).error().message,
            "Softsign: forwardCompute is defined without saveContext; define both.");
}

/// The sentence with which a graph of this op, or its run on the reference, fails.
std::string failureOf(const FusibleOperation& operation) {
  GraphBuilder builder;
  const ValueId x = builder.addInput("x", {.dtype = DType::F32, .shape = {2, 3}});
  const Result<NodeId> node = builder.addNode("act", "act", operation, {}, {x});
  if (!node) return node.error().message;
  builder.addOutput("y", builder.partial().node(*node).outputs.front());
  const Graph graph = std::move(builder).finish(ExecutionMode::Training);
  try {
    testing::runPlan(graph, unfused(graph), makeReferenceBackend());
  } catch (const std::runtime_error& problem) {
    return problem.what();
  }
  return "";
}

TEST(OwnOperation, MustGiveAsManyTensorsAsItDeclares) {
  EXPECT_EQ(failureOf(softsign()), "");
  FusibleOperation inference = softsign();
  inference.infer = [](const Attributes&, auto inputs) -> Result<OperationSpecs> {
    return OperationSpecs{.outputs = {inputs[0], inputs[0]}};
  };
  EXPECT_EQ(failureOf(inference), "Softsign: infer gives 2 outputs, but the op declares 1.");
  FusibleOperation forward = softsign();
  forward.forwardCompute = [](const Attributes&, auto, auto) { return ReferenceForward{}; };
  EXPECT_EQ(failureOf(forward),
            "act (elementwise, forward): Softsign: forwardCompute gives 0 outputs, but the op declares 1.");
  FusibleOperation backward = softsign();
  backward.backwardCompute = [](const Attributes&, const SavedValues&, auto) { return ReferenceBackward{}; };
  EXPECT_EQ(failureOf(backward),
            "act (elementwise, backward): Softsign: backwardCompute gives 0 input gradients, but the op declares 1.");
}

TEST(OwnOperation, FusesAndRunsOnBothBackends) {
  const auto catalog = ownCatalog();
  ASSERT_TRUE(catalog);
  const LoweredGraph graph = lowered(*catalog);
  ASSERT_TRUE(graph.diagnostics.empty()) << graph.diagnostics.front().message;
  const auto report = fuse(graph.graph, {.capabilities = capabilitiesOf(cpu::makeCpuBackend())});
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->forward.size(), 1U);
  EXPECT_EQ(report->forward[0].rule->name, "ForwardElementwiseChain");
  ASSERT_EQ(report->backward.size(), 1U);

  const auto reference = testing::runPlan(graph.graph, unfused(graph.graph), makeReferenceBackend());
  const auto fused = testing::runPlan(graph.graph, *report, cpu::makeCpuBackend());
  EXPECT_EQ(testing::firstDifference(fused, reference, 1e-6), "");
  for (const double y : fused.at("y")) EXPECT_LT(std::abs(y), 1.0);
}

}  // namespace
}  // namespace fuseline
