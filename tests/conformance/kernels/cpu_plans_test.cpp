// Whole plans on the CPU backend against the double-precision reference: every basic op and every rule's pipelines,
// every dtype, odd sizes, one row and none.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/ops/catalog.h"
#include "core/quant/attention_quantizers.h"
#include "kernels/cpu/catalog.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/attention_layers.h"
#include "tests/support/compare.h"
#include "tests/support/op_samples.h"
#include "tests/support/pipelines.h"
#include "tests/support/rule_samples.h"
#include "tests/support/run_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

std::shared_ptr<Backend> nativeBackend() { return cpu::makeCpuBackend(); }
std::shared_ptr<Backend> throughF32Backend() {
  return cpu::makeCpuBackend({.bf16Gemm = cpu::CpuOptions::Bf16Gemm::ThroughF32});
}

/// The tolerance of bf16 is eight roundings wide, that of f16 only two, which a chain of several ops exceeds: fused
/// plans round less often than the unfused reference. So f16 gets eight roundings in chains as well.
double chainTolerance(DType dtype) { return dtype == DType::F16 ? 8 * 0x1p-11 : toleranceOf(dtype).relative; }

/// Expected values: the reference's for the unfused plan, rounded between steps.
void expectLikeReference(const Graph& graph, const FusionReport& report, DType dtype,
                         const std::shared_ptr<Backend>& backend, const std::string& label, double relative) {
  const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
  const RunResults actual = runPlan(graph, report, backend);
  EXPECT_EQ(differenceFromReference(graph, actual, expected, relative), "")
      << label << " in " << dtypeName(dtype) << "\n"
      << toString(graph);
}

/// x of a chain's graph: finite except for one element in the middle.
NamedTensors mainInputWith(double value, const Graph& graph) {
  const Value& x = graph.value(graph.inputs().front());
  std::vector<double> values;
  for (std::int64_t i = 0; i < x.spec.numElements(); ++i) values.push_back(0.125 * static_cast<double>(i % 13) - 0.75);
  values[values.size() / 2] = value;
  return {{x.name, Tensor::fromDoubles(x.spec, values)}};
}

/// NaN and infinities arrive where the unfused reference has them, and nowhere else. FP8 attention may round a gradient
/// to 0 in one of both, and 0 times infinity is NaN: only NaN is compared there.
void expectNonFiniteLikeReference(const Graph& graph, const FusionReport& report, const std::string& label) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool hasFp8Attention = std::ranges::any_of(graph.nodes(), isQuantizedAttention);
  for (const double value : {std::nan(""), kInfinity, -kInfinity}) {
    if (hasFp8Attention && std::isinf(value)) continue;
    const NamedTensors x = mainInputWith(value, graph);
    const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend(), 1, x);
    EXPECT_EQ(firstNonFiniteDifference(runPlan(graph, report, nativeBackend(), 1, x), expected), "")
        << label << " with " << value << "\n"
        << toString(graph);
  }
}

/// Extents with an even last axis, so that gated ops accept them.
const std::vector<Shape> kShapes = {{0, 16}, {1, 2}, {1, 514}, {6, 16}, {7, 62}, {3, 2, 34}, {130, 1026}, {600}};

class BasicOps : public ::testing::TestWithParam<const FusibleOperation*> {
 protected:
  void expectLikeReferenceEverywhere(const std::shared_ptr<Backend>& backend, ExecutionMode pass) {
    const std::string& name = GetParam()->name;
    for (const DType dtype : kFloatTypes)
      for (const Shape& shape : kShapes) {
        const Graph graph = chain(dtype, shape, {sampleLink(name)}, {.pass = pass});
        expectLikeReference(graph, unfused(graph), dtype, backend, name + " of " + toString(shape),
                            toleranceOf(dtype).relative);
      }
  }
};

TEST_P(BasicOps, TrainLikeTheReference) { expectLikeReferenceEverywhere(nativeBackend(), ExecutionMode::Training); }

TEST_P(BasicOps, RunForwardLikeTheReference) {
  expectLikeReferenceEverywhere(nativeBackend(), ExecutionMode::Inference);
}

TEST_P(BasicOps, TrainLikeTheReferenceWithoutBf16Instructions) {
  expectLikeReferenceEverywhere(throughF32Backend(), ExecutionMode::Training);
}

TEST_P(BasicOps, PropagateNanAndInfinityLikeTheReference) {
  for (const DType dtype : kFloatTypes)
    for (const Shape& shape : {Shape{1, 2}, Shape{7, 62}}) {
      const Graph graph = chain(dtype, shape, {sampleLink(GetParam()->name)});
      expectNonFiniteLikeReference(graph, unfused(graph), GetParam()->name + " of " + toString(shape));
    }
}

INSTANTIATE_TEST_SUITE_P(Catalog, BasicOps, ::testing::ValuesIn(basicOperations()),
                         [](const auto& test) { return test.param->name; });

/// The kernels that the steps of a report run on.
std::set<std::string> kernelsOf(const Graph& graph, const FusionReport& report) {
  std::set<std::string> kernels;
  for (const Step& step : makePlan(graph, report).steps) kernels.insert(step.kernel);
  return kernels;
}

RuleCatalog only(const FusionRule& rule) {
  RuleCatalog catalog;
  EXPECT_TRUE(catalog.registerFusion(rule));
  return catalog;
}

FusionReport fuseWith(const RuleCatalog& catalog, const Graph& graph, const std::shared_ptr<Backend>& backend) {
  return std::move(
      *fuse(graph, {.switches = everythingAsked(catalog), .capabilities = capabilitiesOf(backend), .rules = &catalog}));
}

/// Unfused plans have a further rounding, of gradients of rotated queries and keys, before these are added up over
/// many tokens with different signs.
double toleranceOfLinks(const RuleSample& sample) {
  return std::ranges::count(sample.links, "DotProductAttention", &Link::operation) > 0 ? 2.0 : 1.0;
}

class Rules : public ::testing::TestWithParam<const FusionRule*> {
 protected:
  void expectLikeReferenceEverywhere(const std::shared_ptr<Backend>& backend, const std::vector<Shape>& shapes) {
    for (const RuleSample& sample : ruleSamples(GetParam()->name))
      for (const DType dtype : kFloatTypes)
        for (const Shape& shape : shapes) {
          const Graph graph = chain(dtype, shape, sample.links, sample.options);
          const RuleCatalog catalog = only(*GetParam());
          const FusionReport report = fuseWith(catalog, graph, backend);
          expectLikeReference(graph, report, dtype, backend, sample.label + " of " + toString(shape),
                              chainTolerance(dtype) * toleranceOfLinks(sample));
        }
  }
};

TEST_P(Rules, RunFusedLikeTheReference) {
  expectLikeReferenceEverywhere(nativeBackend(), {{6, 16}, {1, 16}, {0, 16}, {700, 16}});
}

/// As 41 sequences, which attention computes faster than one.
TEST_P(Rules, RunFusedLikeTheReferenceOverSeveralPanelsOfRows) {
  expectLikeReferenceEverywhere(nativeBackend(), {{50, 41, 16}});
}

TEST_P(Rules, RunFusedLikeTheReferenceWithoutBf16Instructions) {
  expectLikeReferenceEverywhere(throughF32Backend(), {{6, 16}, {700, 16}});
}

TEST_P(Rules, PropagateNanAndInfinityLikeTheReference) {
  for (const RuleSample& sample : ruleSamples(GetParam()->name))
    for (const DType dtype : kFloatTypes) {
      const Graph graph = chain(dtype, {6, 16}, sample.links, sample.options);
      const RuleCatalog catalog = only(*GetParam());
      expectNonFiniteLikeReference(graph, fuseWith(catalog, graph, nativeBackend()), sample.label);
    }
}

TEST_P(Rules, AreSupported) {
  for (const RuleSample& sample : ruleSamples(GetParam()->name))
    for (const DType dtype : {DType::BF16, DType::F16}) {
      const Graph graph = chain(dtype, sample.shape, sample.links, sample.options);
      const RuleCatalog catalog = only(*GetParam());
      const FusionReport report = fuseWith(catalog, graph, nativeBackend());
      EXPECT_TRUE(kernelsOf(graph, report).contains(GetParam()->becomes)) << sample.label << " " << dtypeName(dtype);
    }
}

/// Gains nothing on a CPU, which says so.
constexpr const char* kNotOnCpu = "BackwardActivationLinear";

std::vector<const FusionRule*> rulesOfCpu() {
  std::vector<const FusionRule*> rules = builtinRules().all();
  std::erase_if(rules, [](const FusionRule* rule) { return rule->hardware || rule->name == kNotOnCpu; });
  return rules;
}

INSTANTIATE_TEST_SUITE_P(RuleBook, Rules, ::testing::ValuesIn(rulesOfCpu()),
                         [](const auto& test) { return test.param->name; });

TEST(CpuKernels, GiveReasonsForTheRulesThatTheyLeaveToOtherDevices) {
  const RuleCatalog catalog = only(*builtinRules().find(kNotOnCpu));
  for (const RuleSample& sample : ruleSamples(kNotOnCpu)) {
    const Graph graph = chain(DType::BF16, sample.shape, sample.links, sample.options);
    const FusionReport report = fuseWith(catalog, graph, nativeBackend());
    const auto refused = std::ranges::find(report.attempts, Outcome::NoKernel, &Attempt::outcome);
    ASSERT_NE(refused, report.attempts.end()) << sample.label;
    EXPECT_TRUE(refused->explanation.starts_with("No gain on the CPU: ")) << refused->explanation;
  }
}

TEST(CpuKernels, AreAllReachedByAnOpOrARule) {
  // The plan's own, at branches; that of a form that only an attribute requests (cached_input_test.cpp); and those of
  // recipes (recipes_test.cpp), also of several ranks (core/sharding/ranks_test.cpp), and of the optimizer
  // (adamw_test.cpp).
  std::set<std::string> reached = {
      "accumulate",     "cached_activation", "quantize", "Quantize", "delayed_scaling_update",
      "gathered_codes", "gathered_columns",  "adamw",    "grad_norm"};
  for (const FusibleOperation* op : allBasicOperations())
    if (!op->isView) reached.insert(op->kernelName());
  for (const FusionRule* rule : builtinRules().all()) reached.insert(rule->becomes);
  for (const cpu::KernelDef& kernel : cpu::kernelCatalog())
    EXPECT_TRUE(reached.contains(kernel.name)) << "no sample runs kernel " << kernel.name;
}

TEST(CpuKernels, AddTheGradientsOfABranch) {
  for (const DType dtype : kFloatTypes) {
    const Graph graph =
        chain(dtype, {5, 16}, {link("GELU", "a"), link("GELU", "b"), link("AddExtraInput", "c", "a.y")});
    ASSERT_TRUE(kernelsOf(graph, unfused(graph)).contains("accumulate"));
    expectLikeReference(graph, unfused(graph), dtype, nativeBackend(), "a branch", chainTolerance(dtype));
  }
}

TEST(CpuKernels, AddTheGradientsOfLinearsOfOneInputInTheirGemms) {
  for (const DType dtype : kFloatTypes) {
    const Graph graph = chain(dtype, {5, 16}, linearsOfOneInput().links);
    for (const auto& backend : {nativeBackend(), throughF32Backend()})
      for (const FusionReport& report : {unfused(graph), fuseWith(builtinRules(), graph, backend)}) {
        EXPECT_FALSE(kernelsOf(graph, report).contains("accumulate"));
        expectLikeReference(graph, report, dtype, backend, "linears of one input", chainTolerance(dtype));
      }
  }
}

/// Its gradient is no view of the sum's then, whichever of the two inputs it is.
TEST(CpuKernels, MakeTheGradientOfAResidualOfAnotherDType) {
  const RuleCatalog catalog = only(*builtinRules().find("ForwardBackwardSwiGLULinear"));
  const Link add = link("AddExtraInput", "add", "save.extra");
  for (const Link& sum : {add, swapped(add)}) {
    const Graph graph =
        chain(DType::BF16, {6, 16},
              {link("MakeExtraOutput", "save"), link("SwiGLU"), with(linear(16), "dtype", std::string("f32")), sum});
    const FusionReport report = fuseWith(catalog, graph, nativeBackend());
    ASSERT_TRUE(kernelsOf(graph, report).contains("swiglu_linear")) << toTree(graph, report);
    expectLikeReference(graph, report, DType::BF16, nativeBackend(), "f32 sum", chainTolerance(DType::BF16));
  }
}

/// Linear ops and norms of te.ops cast their input to the weight's dtype before they compute: an input of that dtype
/// gives the same results.
TEST(CpuKernels, RoundAnInputToTheDTypeOfTheWeightFirst) {
  const auto with16Bits = [](Link link) { return with(std::move(link), "dtype", std::string("bf16")); };
  const Link experts = with(link("GroupedLinear", "op"), "out_features", std::int64_t{24});
  for (const Link& op : {linear(24, "op"), link("RMSNorm", "op"), link("LayerNorm", "op"), experts}) {
    const Graph wide = chain(DType::F32, {6, 16}, {with16Bits(op)});
    const Graph narrow = chain(DType::BF16, {6, 16}, {with16Bits(op)});
    std::vector<double> values;
    for (int i = 0; i < 6 * 16; ++i) values.push_back(std::sin(1.0 + i));
    const NamedTensors wideX = {{"x", Tensor::fromDoubles({DType::F32, {6, 16}}, values)}};
    const NamedTensors narrowX = {{"x", Tensor::fromDoubles({DType::BF16, {6, 16}}, values)}};
    for (const auto& backend : {makeReferenceBackend(), nativeBackend(), throughF32Backend()}) {
      RunResults actual = runPlan(wide, unfused(wide), backend, 1, wideX);
      RunResults expected = runPlan(narrow, unfused(narrow), backend, 1, narrowX);
      EXPECT_EQ(firstDifference({{"", actual.at("grad.x")}}, {{"", expected.at("grad.x")}}, 0x1p-7), "")
          << op.operation << " on " << backend->device().id;
      for (RunResults* results : {&actual, &expected}) results->erase("grad.x");  // in the dtype of x
      EXPECT_EQ(actual, expected) << op.operation << " on " << backend->device().id;
    }
  }
}

TEST(CpuBackend, RefusesAnUnknownKernelWithTheNearestName) {
  const Graph graph = chain(DType::F32, {2, 4}, {link("GELU")});
  const NodeId members[] = {0};
  const Verdict verdict = nativeBackend()->supports({.graph = graph, .kernel = "elementwize", .members = members});
  EXPECT_FALSE(verdict);
  EXPECT_NE(verdict.reason().find("elementwise"), std::string::npos) << verdict.reason();
}

TEST(CpuBackend, RefusesAPassThatAKernelDoesNotHave) {
  const Graph graph = chain(DType::F32, {2, 4}, {linear(3)});
  const NodeId members[] = {0};
  const Verdict verdict = nativeBackend()->supports(
      {.graph = graph, .kernel = "linear_epilogue", .phase = Phase::Backward, .members = members});
  EXPECT_NE(verdict.reason().find("backward"), std::string::npos) << verdict.reason();
}

TEST(CpuBackend, KnowsItsDevice) {
  const auto backend = nativeBackend();
  const DeviceInfo& device = backend->device();
  EXPECT_EQ(device.id, "cpu");
  EXPECT_FALSE(device.name.empty());
  EXPECT_GT(device.memoryBytes, 0);
}

}  // namespace
}  // namespace fuseline
