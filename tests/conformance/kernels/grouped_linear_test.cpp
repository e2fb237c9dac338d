// GroupedLinear on the CPU against its formulas in float64: the grid of TransformerEngine's tests, groups of all sizes,
// and the feed-forward layer of a mixture of experts.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/fusion/fuser.h"
#include "core/lowering/lowering.h"
#include "core/numerics/random.h"
#include "core/plan/plan.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/compare.h"
#include "tests/support/grouped_values.h"
#include "tests/support/pipelines.h"
#include "tests/support/result_memory.h"
#include "tests/support/run_plan.h"

#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

using List = std::vector<std::int64_t>;

/// Products of float32 are compared as TransformerEngine compares them, with the tolerance of TF32.
Tolerance productTolerance(DType dtype) { return dtype == DType::F32 ? kToleranceOfProducts : toleranceOf(dtype); }

struct Case {
  List sizes;
  std::int64_t K = 128;
  std::int64_t N = 128;
  DType dtype = DType::F32;
  bool hasBias = true;
  bool isScaled = false;
  bool isSingle = false;
  bool isDelayed = false;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << fmt::format("sizes {}, {} to {}, {}, bias {}, scaled {}, single {}", toString(c.sizes), c.K, c.N,
                      dtypeName(c.dtype), c.hasBias, c.isScaled, c.isSingle);
}

// ---- data

/// Uniform in [low, high), as the dtype can hold it.
std::vector<double> uniform(std::int64_t size, DType dtype, const std::string& name, double low = 0.0,
                            double high = 1.0) {
  std::vector<double> values(static_cast<std::size_t>(size));
  RandomStream(1234, name).uniforms(0, values);
  for (double& value : values) value = low + (high - low) * value;
  return Tensor::fromDoubles({dtype, {size}}, values).toDoubles();
}

GroupedValues valuesOf(const Case& c) {
  GroupedValues values{.sizes = c.sizes, .K = c.K, .N = c.N};
  values.x = uniform(values.rows() * c.K, c.dtype, "x");
  values.gradY = uniform(values.rows() * c.N, c.dtype, "dy");
  if (c.isScaled) values.scales = uniform(values.rows(), c.dtype, "scales");
  for (std::size_t group = 0; group < c.sizes.size(); ++group) {
    values.weights.push_back(uniform(c.N * c.K, c.dtype, fmt::format("weight{}", group)));
    if (c.hasBias) values.biases.push_back(uniform(c.N, c.dtype, fmt::format("bias{}", group)));
  }
  return values;
}

Tensor integers(const List& sizes) {
  return Tensor::fromDoubles({DType::I64, {std::ssize(sizes)}}, std::vector<double>(sizes.begin(), sizes.end()));
}

void bindParts(const std::string& name, const std::vector<std::vector<double>>& parts, Shape shape, const Case& c,
               NamedTensors& bindings) {
  if (parts.empty()) return;
  if (c.isSingle) {
    shape.insert(shape.begin(), std::ssize(parts));
    bindings.emplace_back(name, Tensor::fromDoubles({c.dtype, shape}, joined(parts)));
    return;
  }
  for (std::size_t group = 0; group < parts.size(); ++group)
    bindings.emplace_back(name + std::to_string(group), Tensor::fromDoubles({c.dtype, shape}, parts[group]));
}

NamedTensors bindingsOf(const Case& c, const GroupedValues& values, ExecutionMode pass) {
  NamedTensors bindings = {{"x", Tensor::fromDoubles({c.dtype, {values.rows(), c.K}}, values.x)},
                           {"experts_split_sizes", integers(c.sizes)}};
  if (c.isScaled)
    bindings.emplace_back("experts_scales", Tensor::fromDoubles({c.dtype, {values.rows()}}, values.scales));
  bindParts("experts.weight", values.weights, {c.N, c.K}, c, bindings);
  bindParts("experts.bias", values.biases, {c.N}, c, bindings);
  if (pass == ExecutionMode::Training)
    bindings.emplace_back("grad.y", Tensor::fromDoubles({c.dtype, {values.rows(), c.N}}, values.gradY));
  return bindings;
}

Graph graphOf(const Case& c, const ChainOptions& options) {
  Link link = with(testing::link("GroupedLinear", "experts"), "num_groups", std::ssize(c.sizes));
  link.attributes.set("out_features", c.N);
  link.attributes.set("bias", c.hasBias);
  link.attributes.set("scale_bias", c.isScaled);
  link.attributes.set("single_grouped_weight", c.isSingle);
  link.attributes.set("single_grouped_bias", c.isSingle);
  link.attributes.set("delay_wgrad_compute", c.isDelayed);
  std::int64_t rows = 0;
  for (const std::int64_t size : c.sizes) rows += size;
  return chain(c.dtype, {rows, c.K}, {link}, options);
}

// ---- comparison

RunResults expectedOf(const Case& c, const GroupedValues& values, const ChainOptions& options) {
  const GroupedResults results = groupedResults(values);
  RunResults expected = {{"y", results.y}};
  if (options.pass == ExecutionMode::Inference) return expected;
  const auto addParts = [&](const std::string& name, const std::vector<std::vector<double>>& parts) {
    if (c.isSingle && !parts.empty()) expected["grad.experts." + name] = joined(parts);
    for (std::size_t group = 0; group < parts.size() && !c.isSingle; ++group)
      expected[fmt::format("grad.experts.{}{}", name, group)] = parts[group];
  };
  if (options.inputRequiresGradient) expected["grad.x"] = results.gradX;
  if (c.isScaled) expected["grad.experts_scales"] = results.gradScales;
  addParts("weight", results.gradWeights);
  addParts("bias", results.gradBiases);
  return expected;
}

void expectLikeTheFormulas(const Case& c, const ChainOptions& options = {},
                           const std::shared_ptr<Backend>& backend = cpu::makeCpuBackend()) {
  const GroupedValues values = valuesOf(c);
  const Graph graph = graphOf(c, options);
  const RunResults actual = runPlan(graph, unfused(graph), backend, 1, bindingsOf(c, values, options.pass));
  const RunResults expected = expectedOf(c, values, options);
  EXPECT_EQ(actual.size(), expected.size());
  for (const auto& [name, numbers] : expected) {
    ASSERT_TRUE(actual.contains(name)) << name;
    EXPECT_TRUE(allClose(actual.at(name), numbers, productTolerance(c.dtype)))
        << name << " with " << ::testing::PrintToString(c);
  }
}

// ---- the grid of TransformerEngine's test grouped_linear: 4 groups, 128 to 128, sizes {0, 128, 256, 384} shuffled

class Grid : public ::testing::TestWithParam<Case> {};

std::vector<Case> grid() {
  std::vector<Case> cases;
  for (const DType dtype : kFloatTypes)
    for (const bool hasBias : {false, true})
      for (const bool isSingle : {false, true})
        cases.push_back({.sizes = {256, 0, 384, 128}, .dtype = dtype, .hasBias = hasBias, .isSingle = isSingle});
  for (const DType dtype : kFloatTypes)
    cases.push_back({.sizes = {0, 384, 128, 256}, .dtype = dtype, .isScaled = true});
  return cases;
}

TEST_P(Grid, TrainsLikeTheFormulas) { expectLikeTheFormulas(GetParam()); }

TEST_P(Grid, RunsForwardLikeTheFormulas) { expectLikeTheFormulas(GetParam(), {.pass = ExecutionMode::Inference}); }

TEST_P(Grid, TrainsWithoutTheGradientOfItsInput) {
  expectLikeTheFormulas(GetParam(), {.inputRequiresGradient = false});
}

TEST_P(Grid, TrainsLikeTheFormulasWithoutBf16Instructions) {
  expectLikeTheFormulas(GetParam(), {}, cpu::makeCpuBackend({.bf16Gemm = cpu::CpuOptions::Bf16Gemm::ThroughF32}));
}

TEST_P(Grid, TrainsLikeTheFormulasWhenWeightGradientsWait) {
  Case c = GetParam();
  c.isDelayed = true;
  for (const bool isInputTrained : {true, false})
    for (const auto& backend : {cpu::makeCpuBackend(), makeReferenceBackend()})
      expectLikeTheFormulas(c, {.inputRequiresGradient = isInputTrained}, backend);
}

INSTANTIATE_TEST_SUITE_P(GroupedLinear, Grid, ::testing::ValuesIn(grid()));

// ---- groups of all sizes

/// Every form of the bias, in every dtype.
void expectLikeTheFormulasInAllForms(const List& sizes, std::int64_t K, std::int64_t N) {
  for (const DType dtype : kFloatTypes)
    for (const bool isScaled : {false, true}) {
      const Case c{.sizes = sizes, .K = K, .N = N, .dtype = dtype, .isScaled = isScaled, .isSingle = isScaled};
      expectLikeTheFormulas(c);
      expectLikeTheFormulas(c, {.pass = ExecutionMode::Inference});
    }
}

TEST(GroupedLinearKernel, RunsOneGroup) { expectLikeTheFormulasInAllForms({37}, 24, 40); }

TEST(GroupedLinearKernel, RunsAllRowsInOneGroup) { expectLikeTheFormulasInAllForms({0, 50, 0}, 24, 40); }

TEST(GroupedLinearKernel, RunsWithoutRows) { expectLikeTheFormulasInAllForms({0, 0}, 24, 40); }

TEST(GroupedLinearKernel, RunsSingleRowsAndOddWidths) { expectLikeTheFormulasInAllForms({1, 1, 3, 0, 1}, 7, 5); }

// A panel has 512 rows.
TEST(GroupedLinearKernel, RunsGroupsOfSeveralPanels) { expectLikeTheFormulasInAllForms({513, 3, 1100}, 16, 33); }

RC_GTEST_PROP(GroupedLinearKernel, EqualsTheFormulasForAnySizes, ()) {
  Case c{
      .sizes = *rc::gen::nonEmpty(rc::gen::resize(6, rc::gen::container<List>(rc::gen::inRange<std::int64_t>(0, 40)))),
      .K = *rc::gen::inRange<std::int64_t>(1, 20),
      .N = *rc::gen::inRange<std::int64_t>(1, 20),
      .isScaled = *rc::gen::arbitrary<bool>(),
      .isSingle = *rc::gen::arbitrary<bool>()};
  const GroupedValues values = valuesOf(c);
  const Graph graph = graphOf(c, {});
  const RunResults actual =
      runPlan(graph, unfused(graph), cpu::makeCpuBackend(), 1, bindingsOf(c, values, ExecutionMode::Training));
  for (const auto& [name, numbers] : expectedOf(c, values, {}))
    RC_ASSERT(bool(allClose(actual.at(name), numbers, productTolerance(c.dtype))));
}

// ---- weight gradients that wait

/// fc1, ScaledSwiGLU, fc2, with the given attributes of both layers.
RunResults trained(const std::vector<std::pair<std::string, AttributeValue>>& attributes) {
  std::vector<Link> links = {with(link("GroupedLinear", "fc1"), "out_features", std::int64_t{48}),
                             link("ScaledSwiGLU", "act"),
                             with(link("GroupedLinear", "fc2"), "out_features", std::int64_t{16})};
  for (Link& item : links)
    for (const auto& [name, value] : attributes)
      if (item.operation == "GroupedLinear") item.attributes.set(name, value);
  const Graph graph = chain(DType::BF16, {40, 16}, links);
  return runPlan(graph, unfused(graph), cpu::makeCpuBackend());
}

TEST(DelayedWeightGradients, AreTheSameBits) {
  const std::vector<std::vector<std::pair<std::string, AttributeValue>>> forms = {
      {},
      {{"scale_bias", true}},
      {{"bias", false}},
      {{"accumulate_into_main_grad", true}},
      {{"accumulate_into_main_grad", true}, {"overwrite_main_grad", true}},
      {{"bias_requires_grad", false}},
      {{"weight_requires_grad", false}}};
  for (auto form : forms) {
    const RunResults expected = trained(form);
    form.emplace_back("delay_wgrad_compute", true);
    const RunResults actual = trained(form);
    EXPECT_EQ(actual.size(), expected.size());
    for (const auto& [name, values] : expected) EXPECT_EQ(actual.at(name), values) << name << " " << form.front().first;
  }
}

// ---- the buffers output and grad_input of TransformerEngine

TEST(GroupedLinearKernel, WritesItsResultsIntoMemoryOfTheCallers) {
  for (const DType dtype : kFloatTypes) {
    const Case c{.sizes = {5, 0, 33}, .K = 24, .N = 40, .dtype = dtype};
    const GroupedValues values = valuesOf(c);
    const Graph graph = graphOf(c, {});
    const Plan plan = makePlan(graph, unfused(graph));
    ResultMemory y({dtype, {38, c.N}});
    ResultMemory gradX({dtype, {38, c.K}});
    const std::vector<ResultBuffer> buffers = {y.forTensor("y"), gradX.forTensor("grad.x")};
    const auto executor =
        Executor::create(cpu::makeCpuBackend(), graph, plan,
                         *makeBindings(graph, 1, bindingsOf(c, values, ExecutionMode::Training)), buffers);
    ASSERT_TRUE(executor) << executor.error().message;
    ASSERT_TRUE((*executor)->run());
    const GroupedResults expected = groupedResults(values);
    EXPECT_TRUE(allClose(y.values(), expected.y, productTolerance(dtype)));
    EXPECT_TRUE(allClose(gradX.values(), expected.gradX, productTolerance(dtype)));
  }
}

// ---- requests of a step

/// The gradients by name that a backward without some of its operands gives.
Result<Tensor> gradientWithout(const std::function<bool(const OperandKey&)>& isLeftOut, const Case& c,
                               const std::string& name) {
  const GroupedValues values = valuesOf(c);
  const Graph graph = graphOf(c, {});
  Plan plan = makePlan(graph, unfused(graph));
  std::erase_if(plan.steps.back().operands, [&](const StepOperand& operand) { return isLeftOut(operand.key); });
  const auto executor = Executor::create(cpu::makeCpuBackend(), graph, plan,
                                         *makeBindings(graph, 1, bindingsOf(c, values, ExecutionMode::Training)));
  if (!executor) return executor.error();
  if (const auto outcome = (*executor)->run(); !outcome) return outcome.error();
  return (*executor)->read(name);
}

TEST(GroupedLinearKernel, GivesOnlyTheInputsGradient) {
  const Case c{.sizes = {3, 4}, .K = 6, .N = 5};
  const auto gradient = gradientWithout(
      [](const OperandKey& key) {
        return key.kind == OperandKind::GradParameter || key == OperandKey{0, OperandKind::Input, 0};
      },
      c, "grad.x");
  ASSERT_TRUE(gradient) << gradient.error().message;
  EXPECT_TRUE(allClose(gradient->toDoubles(), groupedResults(valuesOf(c)).gradX, productTolerance(c.dtype)));
}

TEST(GroupedLinearKernel, GivesTheGradientsOfSomeGroups) {
  const Case c{.sizes = {3, 4}, .K = 6, .N = 5, .isScaled = true};
  const auto isLeftOut = [](const OperandKey& key) {  // weight0 and bias0
    return key.kind == OperandKind::GradParameter && key.slot % 2 == 0;
  };
  const GroupedResults expected = groupedResults(valuesOf(c));
  for (const auto& [name, values] : {std::pair{"grad.experts.weight1", expected.gradWeights[1]},
                                     std::pair{"grad.experts.bias1", expected.gradBiases[1]},
                                     std::pair{"grad.experts_scales", expected.gradScales}}) {
    const auto gradient = gradientWithout(isLeftOut, c, name);
    ASSERT_TRUE(gradient) << gradient.error().message;
    EXPECT_TRUE(allClose(gradient->toDoubles(), values, productTolerance(c.dtype))) << name;
  }
}

TEST(GroupedLinearKernel, RefusesSizesThatDoNotDivideTheRows) {
  const Case c{.sizes = {3, 4}, .K = 6, .N = 5};
  const Graph graph = graphOf(c, {});
  const auto messageWith = [&](const List& sizes) -> std::string {
    try {
      runPlan(graph, unfused(graph), cpu::makeCpuBackend(), 1, {{"experts_split_sizes", integers(sizes)}});
    } catch (const std::runtime_error& problem) {
      return problem.what();
    }
    return "no error";
  };
  EXPECT_EQ(messageWith({3, 5}),
            "experts (GroupedLinear, forward): split_sizes is [3, 5], but x has 7 rows; the sizes must add up to 7.");
  EXPECT_EQ(
      messageWith({8, -1}),
      "experts (GroupedLinear, forward): split_sizes is [8, -1], but a group cannot have -1 rows; x has 7 rows to "
      "divide.");
}

// ---- TransformerEngine's test grouped_mlp: 4 groups, hidden size 128, sizes {0, 256, 512, 768} shuffled

constexpr std::int64_t kHidden = 128;

Graph mlpGraph(const std::string& dtype, bool hasBias) {
  const std::string text = fmt::format(
      R"({{"format": "fuseline-pipeline", "formatVersion": {{"major": 1, "minor": 0}}, "symbols": {{"M": 1536, "H": 128}},
"pipeline": {{"inputs": [{{"id": "x", "dtype": "{0}", "shape": ["M", "H"]}}, {{"id": "splits", "dtype": "i64", "shape": [4]}},
  {{"id": "probs", "dtype": "{0}", "shape": ["M"]}}],
"ops": [{{"id": "fc1", "op": "GroupedLinear", "attributes":
    {{"num_groups": 4, "in_features": "H", "out_features": "2 * H", "bias": {1}}}}},
  {{"id": "act", "op": "ScaledSwiGLU", "attributes": {{}}}},
  {{"id": "fc2", "op": "GroupedLinear", "attributes":
    {{"num_groups": 4, "in_features": "H", "out_features": "H", "bias": {1}, "scale_bias": {1}}}}}],
"wires": [["x", "fc1.x"], ["splits", "fc1.split_sizes"], ["fc1.y", "act.x"], ["probs", "act.scales"], ["act.y", "fc2.x"],
  ["splits", "fc2.split_sizes"]{2}],
"outputs": [{{"id": "y", "from": "fc2.y"}}]}}}})",
      dtype, hasBias, hasBias ? R"(, ["probs", "fc2.scales"])" : "");
  return lower(parseDocument(text).document).graph;
}

/// The values of one of the two layers; x and gradY are not yet known.
GroupedValues layerValues(const std::string& name, std::int64_t N, DType dtype, bool hasBias) {
  GroupedValues values{.sizes = {512, 0, 768, 256}, .K = kHidden, .N = N};
  for (int group = 0; group < 4; ++group) {
    values.weights.push_back(uniform(N * kHidden, dtype, fmt::format("{}.weight{}", name, group), -0.25, 0.25));
    if (hasBias) values.biases.push_back(uniform(N, dtype, fmt::format("{}.bias{}", name, group), -0.5, 0.5));
  }
  return values;
}

void bindLayer(const std::string& name, const GroupedValues& values, DType dtype, NamedTensors& bindings) {
  for (std::size_t group = 0; group < values.weights.size(); ++group) {
    bindings.emplace_back(fmt::format("{}.weight{}", name, group),
                          Tensor::fromDoubles({dtype, {values.N, values.K}}, values.weights[group]));
    if (!values.biases.empty())
      bindings.emplace_back(fmt::format("{}.bias{}", name, group),
                            Tensor::fromDoubles({dtype, {values.N}}, values.biases[group]));
  }
}

void expectLayer(const std::string& name, const GroupedResults& results, RunResults& expected) {
  for (std::size_t group = 0; group < results.gradWeights.size(); ++group)
    expected[fmt::format("grad.{}.weight{}", name, group)] = results.gradWeights[group];
  for (std::size_t group = 0; group < results.gradBiases.size(); ++group)
    expected[fmt::format("grad.{}.bias{}", name, group)] = results.gradBiases[group];
}

/// y = probs silu(a) b for x = [a, b], and its gradients.
struct ScaledSwiglu {
  std::vector<double> y, gradX, gradScales;
};

ScaledSwiglu scaledSwiglu(const std::vector<double>& x, const std::vector<double>& scales,
                          const std::vector<double>& gradY) {
  ScaledSwiglu result{.y = std::vector<double>(scales.size() * kHidden),
                      .gradX = std::vector<double>(x.size()),
                      .gradScales = std::vector<double>(scales.size())};
  for (std::size_t i = 0; i < result.y.size(); ++i) {
    const std::size_t row = i / kHidden;
    const std::size_t at = row * 2 * kHidden + i % kHidden;
    const double a = x[at];
    const double b = x[at + kHidden];
    const double sigmoid = 1.0 / (1.0 + std::exp(-a));
    const double dy = gradY.empty() ? 0.0 : gradY[i];
    result.y[i] = scales[row] * a * sigmoid * b;
    result.gradX[at] = dy * scales[row] * b * (sigmoid + a * sigmoid * (1.0 - sigmoid));
    result.gradX[at + kHidden] = dy * scales[row] * a * sigmoid;
    result.gradScales[row] += dy * a * sigmoid * b;
  }
  return result;
}

/// All that goes in; the inner tensors are not yet known.
struct MlpValues {
  GroupedValues fc1, fc2;
  std::vector<double> probs;
};

MlpValues mlpValues(DType dtype, bool hasBias) {
  MlpValues values{.fc1 = layerValues("fc1", 2 * kHidden, dtype, hasBias),
                   .fc2 = layerValues("fc2", kHidden, dtype, hasBias)};
  const std::int64_t rows = values.fc1.rows();
  values.fc1.x = uniform(rows * kHidden, dtype, "x", -0.25, 0.25);
  values.fc2.gradY = uniform(rows * kHidden, dtype, "dy", -0.25, 0.25);
  values.probs = uniform(rows, dtype, "probs");
  if (hasBias) values.fc2.scales = values.probs;
  return values;
}

RunResults expectedOf(MlpValues values) {
  const std::vector<double> hidden = groupedResults(values.fc1).y;
  values.fc2.x = scaledSwiglu(hidden, values.probs, {}).y;
  const GroupedResults second = groupedResults(values.fc2);
  const ScaledSwiglu activated = scaledSwiglu(hidden, values.probs, second.gradX);
  values.fc1.gradY = activated.gradX;
  const GroupedResults first = groupedResults(values.fc1);
  RunResults expected = {{"y", second.y}, {"grad.x", first.gradX}, {"grad.probs", activated.gradScales}};
  for (std::size_t row = 0; row < values.fc2.scales.size(); ++row)
    expected["grad.probs"][row] += second.gradScales[row];
  expectLayer("fc1", first, expected);
  expectLayer("fc2", second, expected);
  return expected;
}

NamedTensors bindingsOf(const MlpValues& values, DType dtype) {
  const std::int64_t rows = values.fc1.rows();
  NamedTensors bindings = {{"x", Tensor::fromDoubles({dtype, {rows, kHidden}}, values.fc1.x)},
                           {"splits", integers(values.fc1.sizes)},
                           {"probs", Tensor::fromDoubles({dtype, {rows}}, values.probs)},
                           {"grad.y", Tensor::fromDoubles({dtype, {rows, kHidden}}, values.fc2.gradY)}};
  bindLayer("fc1", values.fc1, dtype, bindings);
  bindLayer("fc2", values.fc2, dtype, bindings);
  return bindings;
}

class GroupedMlp : public ::testing::TestWithParam<std::tuple<DType, bool>> {};

TEST_P(GroupedMlp, TrainsLikeTheFormulas) {
  const auto [dtype, hasBias] = GetParam();
  const MlpValues values = mlpValues(dtype, hasBias);
  const RunResults expected = expectedOf(values);
  const NamedTensors bindings = bindingsOf(values, dtype);
  const Graph graph = mlpGraph(std::string(dtypeName(dtype)), hasBias);
  const auto backend = cpu::makeCpuBackend();
  const auto fused = fuse(graph, {.capabilities = capabilitiesOf(backend)});
  ASSERT_TRUE(fused) << fused.error().message;
  for (const FusionReport& report : {unfused(graph), *fused}) {
    const RunResults actual = runPlan(graph, report, backend, 1, bindings);
    EXPECT_EQ(actual.size(), expected.size());
    for (const auto& [name, numbers] : expected)
      EXPECT_TRUE(allClose(actual.at(name), numbers, {.relative = 0.125, .absolute = 0.25})) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(GroupedLinear, GroupedMlp,
                         ::testing::Combine(::testing::ValuesIn(kFloatTypes), ::testing::Bool()));

}  // namespace
}  // namespace fuseline
