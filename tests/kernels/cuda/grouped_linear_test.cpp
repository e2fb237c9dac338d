// GroupedLinear on the CUDA kernels against the double-precision reference: groups of all sizes, every form of the
// bias and of the parameters. Compiled twice: for the SIMT harness and for a GPU.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/plan/plan.h"
#include "core/quant/copy_memory.h"
#include "core/quant/recipe.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "tests/support/compare.h"
#include "tests/support/cuda_test_backend.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

using List = std::vector<std::int64_t>;

constexpr double kPrefilled = 0.5;

struct Layer {
  List sizes;
  std::int64_t K = 24;
  std::int64_t N = 40;
  DType dtype = DType::F32;
  bool hasBias = true;
  bool isScaled = false;
  bool isSingle = false;
  bool isAccumulated = false;
  bool isDelayed = false;

  Shape inputShape() const { return {std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}), K}; }
};

void PrintTo(const Layer& layer, std::ostream* out) {
  *out << fmt::format("sizes {}, {} to {}, {}, bias {}, scaled {}, single {}, accumulated {}, delayed {}",
                      toString(layer.sizes), layer.K, layer.N, dtypeName(layer.dtype), layer.hasBias, layer.isScaled,
                      layer.isSingle, layer.isAccumulated, layer.isDelayed);
}

Link linkOf(const Layer& layer) {
  Link link = with(testing::link("GroupedLinear", "experts"), "num_groups", std::ssize(layer.sizes));
  link.attributes.set("out_features", layer.N);
  link.attributes.set("bias", layer.hasBias);
  link.attributes.set("scale_bias", layer.isScaled);
  link.attributes.set("single_grouped_weight", layer.isSingle);
  link.attributes.set("single_grouped_bias", layer.isSingle);
  link.attributes.set("accumulate_into_main_grad", layer.isAccumulated);
  link.attributes.set("delay_wgrad_compute", layer.isDelayed);
  return link;
}

Graph graphOf(const Layer& layer, const ChainOptions& options = {}) {
  return chain(layer.dtype, layer.inputShape(), {linkOf(layer)}, options);
}

Tensor integers(const List& sizes) {
  return Tensor::fromDoubles({DType::I64, {std::ssize(sizes)}}, std::vector<double>(sizes.begin(), sizes.end()));
}

/// Small numbers that differ between neighbors and between slots.
Tensor pattern(const TensorSpec& spec, int slot) {
  std::vector<double> values(static_cast<std::size_t>(spec.numElements()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 0.25 * static_cast<double>((i + static_cast<std::size_t>(slot)) % 7);
  return Tensor::fromDoubles(spec, values);
}

Tensor filled(const TensorSpec& spec, double value) {
  return Tensor::fromDoubles(spec, std::vector<double>(static_cast<std::size_t>(spec.numElements()), value));
}

/// The sizes of the groups; biases, which would start at zero; 0.5 in every buffer of weight gradients.
NamedTensors given(const Layer& layer, const Graph& graph) {
  NamedTensors tensors = {{"experts_split_sizes", integers(layer.sizes)}};
  const Node& node = graph.nodes().front();
  for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot) {
    const auto index = static_cast<std::size_t>(slot);
    const std::string name = node.parameterName(slot);
    if (name.starts_with("experts.bias")) tensors.emplace_back(name, pattern(node.parameters[index], slot));
    if (node.gradientSink(slot) == GradientSink::Accumulate)
      tensors.emplace_back(node.parameterGradientName(slot), filled(node.parameterGradients[index], kPrefilled));
  }
  return tensors;
}

/// Skips where there is no GPU, and this is not the harness.
class CudaGroupedLinear : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto backend = cudaTestBackend(); !backend) GTEST_SKIP() << backend.error().message;
  }

  static RunResults run(const Layer& layer, const Graph& graph) {
    return runPlan(graph, unfused(graph), *cudaTestBackend(), 1, given(layer, graph));
  }

  static void expectLikeReference(const Layer& layer, const ChainOptions& options = {}) {
    const Graph graph = graphOf(layer, options);
    const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend(), 1, given(layer, graph));
    EXPECT_EQ(firstDifference(run(layer, graph), expected, toleranceOf(layer.dtype).relative), "")
        << ::testing::PrintToString(layer);
  }

  /// Every form of the bias and of the parameters, in every dtype.
  static void expectLikeReferenceInAllForms(Layer layer) {
    for (const DType dtype : kFloatTypes)
      for (const auto& [hasBias, isScaled] : {std::pair{false, false}, {true, false}, {true, true}})
        for (const bool isSingle : {false, true})
          for (const bool isAccumulated : {false, true}) {
            layer.dtype = dtype;
            layer.hasBias = hasBias;
            layer.isScaled = isScaled;
            layer.isSingle = isSingle;
            layer.isAccumulated = isAccumulated;
            expectLikeReference(layer);
            expectLikeReference(layer, {.inputRequiresGradient = false});
            if (!isAccumulated) expectLikeReference(layer, {.pass = ExecutionMode::Inference});
          }
  }
};

TEST_F(CudaGroupedLinear, RunsUnevenGroups) { expectLikeReferenceInAllForms({.sizes = {5, 0, 33, 2}}); }

TEST_F(CudaGroupedLinear, RunsAllRowsInOneGroup) { expectLikeReferenceInAllForms({.sizes = {0, 50, 0}}); }

TEST_F(CudaGroupedLinear, RunsOneGroup) { expectLikeReferenceInAllForms({.sizes = {37}}); }

TEST_F(CudaGroupedLinear, RunsWithoutRows) { expectLikeReferenceInAllForms({.sizes = {0, 0}}); }

/// Rows of a group then begin at any address.
TEST_F(CudaGroupedLinear, RunsSingleRowsAndOddWidths) {
  expectLikeReferenceInAllForms({.sizes = {1, 1, 3, 0, 1}, .K = 7, .N = 5});
}

TEST_F(CudaGroupedLinear, RunsGroupsOfManyBlocks) {
  for (const DType dtype : kFloatTypes)
    expectLikeReference({.sizes = {513, 3, 300}, .K = 16, .N = 33, .dtype = dtype, .isScaled = true});
}

TEST_F(CudaGroupedLinear, LetsWeightGradientsWait) {
  for (const DType dtype : kFloatTypes)
    for (const bool isAccumulated : {false, true})
      expectLikeReference(
          {.sizes = {9, 0, 4}, .dtype = dtype, .isScaled = true, .isAccumulated = isAccumulated, .isDelayed = true});
}

TEST_F(CudaGroupedLinear, LeavesTheBufferOfAGroupWithoutRowsAsItWas) {
  const Layer layer{.sizes = {3, 0}, .dtype = DType::BF16, .isAccumulated = true};
  const RunResults results = run(layer, graphOf(layer));
  for (const double value : results.at("main_grad.experts.weight1")) ASSERT_EQ(value, kPrefilled);
}

TEST_F(CudaGroupedLinear, RefusesSizesThatDoNotDivideTheRows) {
  const Graph graph = graphOf({.sizes = {3, 4}});
  const auto messageWith = [&](const List& sizes) -> std::string {
    try {
      runPlan(graph, unfused(graph), *cudaTestBackend(), 1, {{"experts_split_sizes", integers(sizes)}});
    } catch (const std::runtime_error& problem) {
      return problem.what();
    }
    return "no error";
  };
  EXPECT_EQ(messageWith({3, 5}),
            "experts (GroupedLinear, forward): split_sizes is [3, 5], but x has 7 rows; the sizes must add up to 7.");
  EXPECT_NE(messageWith({8, -1}).find("cannot have -1 rows"), std::string::npos) << messageWith({8, -1});
}

std::unique_ptr<Executor> executorFor(const Graph& graph, const Plan& plan, const NamedTensors& tensors,
                                      bool replaysLaunches) {
  auto executor = Executor::create(*cudaTestBackend(), graph, plan, *makeBindings(graph, 1, tensors), {},
                                   {.replaysLaunches = replaysLaunches});
  if (!executor) throw std::runtime_error(executor.error().message);
  return std::move(*executor);
}

/// Sizes are read in the first run; the second one is recorded. Buffers accumulate the gradients of both runs.
TEST_F(CudaGroupedLinear, IsReplayed) {
  const Layer layer{.sizes = {9, 0, 4}, .dtype = DType::BF16, .isAccumulated = true};
  const Graph graph =
      chain(layer.dtype, layer.inputShape(), {link("ReLU"), linkOf(layer), link("GELU"), link("Dropout")});
  const Plan plan = makePlan(graph, unfused(graph));
  const NamedTensors sizes = {{"experts_split_sizes", integers(layer.sizes)}};
  const auto recording = executorFor(graph, plan, sizes, true);
  const auto launched = executorFor(graph, plan, sizes, false);
  for (int run = 0; run < 3; ++run) {
    for (Executor* const executor : {recording.get(), launched.get()}) {
      const auto outcome = executor->run();
      ASSERT_TRUE(outcome) << outcome.error().message;
    }
    for (const PlanTensor& tensor : plan.tensors) {
      if (!isResult(tensor.role)) continue;
      EXPECT_EQ(recording->read(tensor.name)->data, launched->read(tensor.name)->data) << tensor.name;
    }
  }
  EXPECT_EQ(recording->launching(), "captured and replayed");
  EXPECT_EQ(launched->launching(), "");
}

/// Values of every quantized tensor and of every result, after the number of runs until a delayed scale differs from 1.
std::map<std::string, std::vector<double>> valuesAfterTwoRuns(const Layer& layer, const Graph& graph,
                                                              const std::shared_ptr<Backend>& backend,
                                                              bool wantsCopies) {
  const Plan plan = makePlan(graph, unfused(graph), {.keepIntermediates = true});
  const auto executor = Executor::create(backend, graph, plan, *makeBindings(graph, 1, given(layer, graph)));
  if (!executor) throw std::runtime_error(executor.error().message);
  for (int run = 0; run < 2; ++run)
    if (const auto outcome = (*executor)->run(); !outcome) throw std::runtime_error(outcome.error().message);
  std::map<std::string, std::vector<double>> values;
  for (const PlanTensor& tensor : plan.tensors) {
    if (tensor.spec.quantized.has_value() != wantsCopies || (!wantsCopies && !isResult(tensor.role))) continue;
    const Tensor read = *(*executor)->read(tensor.name);
    values[tensor.name] = wantsCopies ? dequantizedValues(tensor.spec, read.data.data()) : read.toDoubles();
  }
  return values;
}

class CudaGroupedRecipes : public CudaGroupedLinear, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (const Verdict runs = runsRecipe(GetParam()); !runs) GTEST_SKIP() << runs.reason();
  }
  /// Sizes that every scaling takes.
  static Layer layerOf() { return {.sizes = {128, 0, 256}, .K = 256, .N = 128, .dtype = DType::BF16}; }
  static Graph quantizedGraph(const Layer& layer, ChainOptions options = {}) {
    options.recipe = GetParam();
    const Graph graph = graphOf(layer, options);
    EXPECT_TRUE(graph.nodes().front().quantizers.any());
    return graph;
  }

  static void expectLikeReferenceAfterTwoRuns(const Layer& layer, const Graph& graph) {
    const auto expected = valuesAfterTwoRuns(layer, graph, makeReferenceBackend(), false);
    EXPECT_EQ(differenceOfCodes(valuesAfterTwoRuns(layer, graph, *cudaTestBackend(), false), expected,
                                4 * toleranceOf(layer.dtype).relative),
              "")
        << ::testing::PrintToString(layer);
  }
};

TEST_P(CudaGroupedRecipes, MultipliesLikeTheReferenceInAllForms) {
  for (const auto& [hasBias, isScaled] : {std::pair{false, false}, {true, false}, {true, true}})
    for (const bool isSingle : {false, true})
      for (const bool isAccumulated : {false, true}) {
        Layer layer = layerOf();
        layer.hasBias = hasBias;
        layer.isScaled = isScaled;
        layer.isSingle = isSingle;
        layer.isAccumulated = isAccumulated;
        expectLikeReferenceAfterTwoRuns(layer, quantizedGraph(layer));
      }
}

TEST_P(CudaGroupedRecipes, MultipliesWithoutAGradientOfTheInputAndForwardAlone) {
  expectLikeReferenceAfterTwoRuns(layerOf(), quantizedGraph(layerOf(), {.inputRequiresGradient = false}));
  expectLikeReferenceAfterTwoRuns(layerOf(), quantizedGraph(layerOf(), {.pass = ExecutionMode::Inference}));
}

TEST_P(CudaGroupedRecipes, MultipliesInBackwardWhatTheOverrideSays) {
  for (const char* const override : {"dequantized", "high_precision"}) {
    Attributes fields;
    fields.set("backward_override", std::string(override));
    if (!Recipe::create(*findRecipe(GetParam()), fields)) continue;  // not every recipe can have it
    expectLikeReferenceAfterTwoRuns(layerOf(), quantizedGraph(layerOf(), {.recipeFields = fields}));
  }
}

/// Groups with 16 and 48 rows are dequantized in a GEMM over rows, the others are multiplied in quantized form.
TEST_P(CudaGroupedRecipes, MultipliesGroupsOfNVFP4AsTheirRowsAllow) {
  if (GetParam() != std::string("NVFP4BlockScaling")) GTEST_SKIP() << "Other codes are multiplied in all groups.";
  Layer layer = layerOf();
  layer.sizes = {32, 16, 0, 96, 48};
  expectLikeReferenceAfterTwoRuns(layer, quantizedGraph(layer));
}

/// Groups end within blocks of 128.
TEST_P(CudaGroupedRecipes, MultipliesGroupsOfFewRows) {
  Layer layer = layerOf();
  layer.sizes = {32, 160, 0, 64};
  expectLikeReferenceAfterTwoRuns(layer, quantizedGraph(layer));
  if (GetParam() == std::string("MXFP8BlockScaling")) return;
  layer.sizes = {16, 144, 0, 48};
  expectLikeReferenceAfterTwoRuns(layer, quantizedGraph(layer));
}

TEST_P(CudaGroupedRecipes, QuantizesEachGroupByItself) {
  for (const bool isSingle : {false, true}) {
    Layer layer = layerOf();
    layer.isSingle = isSingle;
    const Graph graph = quantizedGraph(layer);
    const auto expected = valuesAfterTwoRuns(layer, graph, makeReferenceBackend(), true);
    EXPECT_GE(expected.size(), 6u);
    EXPECT_EQ(valuesAfterTwoRuns(layer, graph, *cudaTestBackend(), true), expected);
  }
}

TEST_P(CudaGroupedRecipes, RefusesSizesThatDoNotFitTheScaling) {
  Layer layer = layerOf();
  layer.sizes = {127, 1, 256};
  const Graph graph = quantizedGraph(layer);
  try {
    run(layer, graph);
    FAIL() << "no error";
  } catch (const std::runtime_error& problem) {
    EXPECT_NE(std::string(problem.what()).find("group 0 has 127 rows, but scaling"), std::string::npos)
        << problem.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, CudaGroupedRecipes,
                         ::testing::Values("DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling",
                                           "MXFP8BlockScaling", "NVFP4BlockScaling"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace fuseline
