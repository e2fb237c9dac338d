// Split and Concat without copies: what plans launch, and that strided reads and writes give the same results.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/numerics/random.h"
#include "core/runtime/bindings.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/attention_layers.h"
#include "tests/support/compare.h"
#include "tests/support/run_plan.h"

#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

constexpr std::int64_t kRows = 99 * 2;  // tokens and batch entries
constexpr std::int64_t kQuery = 4 * 8;  // elements in a row of queries
constexpr std::int64_t kKey = 2 * 8;

std::shared_ptr<Backend> cpuWith(int threads) { return cpu::makeCpuBackend({.threads = threads}); }

struct PlannedLayer {
  explicit PlannedLayer(const AttentionLayer& layer, DType dtype = DType::F32)
      : graph(chain(dtype, {99, 2, 16}, layer.links)),
        report(std::move(*fuse(graph, {.capabilities = capabilitiesOf(cpuWith(2))}))),
        plan(makePlan(graph, report)) {}

  Graph graph;
  FusionReport report;
  Plan plan;
};

TEST(ColumnViews, LlamaAttentionIsPlannedWithoutACopy) {
  const PlannedLayer layer(llamaAttention());
  EXPECT_EQ(launchedKernels(layer.plan, Phase::Forward), "BasicLinear split_attention") << toString(layer.plan);
  EXPECT_EQ(launchedKernels(layer.plan, Phase::Backward), "split_attention BasicLinear") << toString(layer.plan);
}

TEST(ColumnViews, Qwen3AttentionIsPlannedWithoutACopy) {
  const PlannedLayer layer(qwen3Attention());
  EXPECT_EQ(launchedKernels(layer.plan, Phase::Forward), "BasicLinear norm_rotary norm_rotary DotProductAttention")
      << toString(layer.plan);
  EXPECT_EQ(launchedKernels(layer.plan, Phase::Backward), "DotProductAttention norm_rotary norm_rotary BasicLinear")
      << toString(layer.plan);
  // Both norms read and write each head once; besides them gamma and 1 / RMS of each head.
  const std::int64_t heads = kRows * (kQuery + kKey);
  EXPECT_EQ(bytesOf(layer.plan, Phase::Forward, "norm_rotary"), 4 * (2 * heads + 2 * 8 + heads / 8));
}

TEST(ColumnViews, Gpt2AttentionIsPlannedWithoutACopy) {
  const PlannedLayer layer(gpt2Attention(), DType::BF16);
  EXPECT_EQ(launchedKernels(layer.plan, Phase::Forward), "linear_epilogue split_attention") << toString(layer.plan);
  EXPECT_EQ(launchedKernels(layer.plan, Phase::Backward), "split_attention linear_backward_bias")
      << toString(layer.plan);
}

/// The gradient of what a split gives to its linears is where they write it; that of what is joined where they read it.
TEST(ColumnViews, LinearsAndNormsReadAndWriteColumns) {
  for (const AttentionLayer& layer : {splitLinears(), joinedLinears(), splitNorms()})
    for (const DType dtype : kFloatTypes) {
      const PlannedLayer planned(layer, dtype);
      for (const Phase phase : {Phase::Forward, Phase::Backward})
        for (const char* copy : {"Split", "Concat"})
          EXPECT_EQ(bytesOf(planned.plan, phase, copy), 0) << toString(planned.plan);
    }
}

/// The packed tensor is kept for backward once, not its parts as well.
TEST(ColumnViews, KeepThePackedTensorOnly) {
  const PlannedLayer layer(qwen3Attention());
  const std::int64_t heads = kRows * (kQuery + kKey);
  const std::int64_t packed = kRows * (kQuery + 2 * kKey);
  const std::int64_t y = kRows * kQuery;
  const std::int64_t statistics = heads / 8 + kRows * 4;  // 1 / RMS, and the log-sum-exp of each query
  EXPECT_EQ(layer.plan.savedForBackwardBytes, 4 * (packed + heads + y + statistics)) << toString(layer.plan);
}

constexpr std::int64_t kLatentHeads = 4 * 8;  // elements of a row in one of the two parts of the heads

/// Only the plain channels of keys, which stand beside values, are copied. Queries are rotated in place.
TEST(ColumnViews, LatentAttentionCopiesOneHalfOfItsKeys) {
  for (const DType dtype : kFloatTypes) {
    const PlannedLayer layer(latentAttention(), dtype);
    const std::int64_t half = kRows * kLatentHeads * sizeBytes(dtype);
    EXPECT_EQ(bytesOf(layer.plan, Phase::Forward, "Concat"), 2 * half) << toString(layer.plan);
    EXPECT_EQ(bytesOf(layer.plan, Phase::Backward, "Concat"), 0) << toString(layer.plan);
    EXPECT_EQ(bytesOf(layer.plan, Phase::Backward, "Split"), 2 * half) << toString(layer.plan);
    // Backward needs the values, but not the plain channels of keys beside them, so a view would keep more memory.
    EXPECT_EQ(bytesOf(layer.plan, Phase::Forward, "Split"), 2 * half) << toString(layer.plan);
  }
  const Graph inference = chain(DType::BF16, {99, 2, 16}, latentAttention().links, {.pass = ExecutionMode::Inference});
  const Plan plan = makePlan(inference, unfused(inference));
  EXPECT_EQ(bytesOf(plan, Phase::Forward, "Split"), 0) << toString(plan);
}

int storageOf(const Plan& plan, const char* name) {
  return plan.tensors.at(static_cast<std::size_t>(plan.findTensor(name))).storage;
}

/// Backward keeps the rotated queries where the projection wrote them.
TEST(ColumnViews, LatentAttentionKeepsQueriesOnce) {
  const PlannedLayer layer(latentAttention());
  const Plan& plan = layer.plan;
  EXPECT_EQ(storageOf(plan, "q:y"), storageOf(plan, "q_b:y")) << toString(plan);
  EXPECT_EQ(storageOf(plan, "rope_q:y"), storageOf(plan, "q_b:y"));
  EXPECT_EQ(storageOf(plan, "k_shared:y"), storageOf(plan, "k:y"));
  EXPECT_EQ(storageOf(plan, "grad.q_b:y"), storageOf(plan, "grad.q:y"));
}

/// Rotated columns that a later step reads unrotated are not rotated in place.
TEST(ColumnViews, CopyTheQueriesThatOthersReadUnrotated) {
  for (const char* unrotated : {"split_q.y1", "q_b.y"}) {
    std::vector<Link> links = latentAttention().links;
    links.push_back(reading(unrotated, link("RMSNorm", "late")));
    const Graph graph = chain(DType::F32, {99, 2, 16}, links, {.extraOutputs = {"proj.y"}});
    const Plan plan = makePlan(graph, unfused(graph));
    EXPECT_NE(storageOf(plan, "q:y"), storageOf(plan, "q_b:y")) << unrotated << '\n' << toString(plan);
    EXPECT_EQ(firstDifference(runPlan(graph, plan, cpuWith(2)), runPlan(graph, plan, makeReferenceBackend()),
                              4.0 * toleranceOf(DType::F32).relative),
              "")
        << unrotated;
  }
}

/// A plan that keeps all intermediates copies every part.
TEST(ColumnViews, GiveTheSameBitsAsCopies) {
  for (const DType dtype : kFloatTypes) {
    const PlannedLayer layer(latentAttention(), dtype);
    for (const FusionReport& report : {layer.report, unfused(layer.graph)})
      for (const auto& backend : {makeReferenceBackend(), cpuWith(1), cpuWith(3)}) {
        const RunResults copied =
            runPlan(layer.graph, makePlan(layer.graph, report, {.keepIntermediates = true}), backend);
        EXPECT_TRUE(runPlan(layer.graph, report, backend) == copied) << dtypeName(dtype) << toString(layer.plan);
      }
  }
}

/// Outputs, weighted by the gradients that they are given.
double lossOf(const RunResults& results, const std::map<std::string, std::vector<double>>& given) {
  double loss = 0.0;
  for (const auto& [name, values] : results)
    if (const auto weights = given.find("grad." + name); weights != given.end())
      loss = std::inner_product(values.begin(), values.end(), weights->second.begin(), loss);
  return loss;
}

std::vector<double> randomDirection(std::size_t count, const std::string& name) {
  std::vector<double> direction(count);
  RandomStream(7, name).uniforms(0, direction);
  for (double& each : direction) each = 2.0 * each - 1.0;
  return direction;
}

/// The loss changes along a random direction of each tensor as its gradient says.
std::string firstWrongGradient(const Graph& graph, const Plan& plan, const std::shared_ptr<Backend>& backend) {
  constexpr double kStep = 1.0 / 64.0, kTolerance = 0.02;
  const NamedTensors drawn = *makeBindings(graph, 1);
  std::map<std::string, std::vector<double>> given;
  for (const auto& [name, tensor] : drawn) given[name] = tensor.toDoubles();
  const RunResults results = runPlan(graph, plan, backend);
  for (const auto& [name, values] : given) {
    const auto gradient = results.find("grad." + name);
    if (gradient == results.end()) continue;
    const std::vector<double> direction = randomDirection(values.size(), name);
    const auto lossAt = [&](double distance) {
      NamedTensors moved = drawn;
      for (auto& [other, tensor] : moved) {
        if (other != name) continue;
        std::vector<double> at = values;
        for (std::size_t i = 0; i < at.size(); ++i) at[i] += distance * direction[i];
        tensor = Tensor::fromDoubles(tensor.spec, at);
      }
      return lossOf(runPlan(graph, plan, backend, 1, moved), given);
    };
    const double measured = (lossAt(kStep) - lossAt(-kStep)) / (2.0 * kStep);
    const std::vector<double>& g = gradient->second;
    const double expected = std::inner_product(g.begin(), g.end(), direction.begin(), 0.0);
    const double size = std::sqrt(std::inner_product(g.begin(), g.end(), g.begin(), 0.0));
    if (!(std::abs(measured - expected) <= kTolerance * size))
      return fmt::format("{}: {} along the direction, {} by the gradient of norm {}", name, measured, expected, size);
  }
  return "";
}

TEST(ColumnViews, HaveTheGradientsOfFiniteDifferences) {
  for (const AttentionLayer& layer :
       {llamaAttention(), qwen3Attention(), gpt2Attention(), joinedLinears(), splitNorms(), latentAttention()}) {
    const Graph graph = chain(DType::F32, {9, 2, 16}, layer.links);
    const FusionReport fused = std::move(*fuse(graph, {.capabilities = capabilitiesOf(cpuWith(2))}));
    for (const FusionReport& report : {fused, unfused(graph)})
      for (const auto& backend : {makeReferenceBackend(), cpuWith(2)})
        EXPECT_EQ(firstWrongGradient(graph, makePlan(graph, report), backend), "") << layer.name;
  }
}

/// Unfused plans, too. Fused norms do not round what they rotate, so each plan is compared with its own reference.
TEST(ColumnViews, GiveTheReferencesResults) {
  for (const AttentionLayer& layer : {llamaAttention(), qwen3Attention(), gpt2Attention(), splitLinears(),
                                      joinedLinears(), splitNorms(), latentAttention()})
    for (const DType dtype : kFloatTypes) {
      const PlannedLayer planned(layer, dtype);
      const RunResults plain = runPlan(planned.graph, unfused(planned.graph), makeReferenceBackend());
      for (const FusionReport& report : {planned.report, unfused(planned.graph)}) {
        const RunResults expected = runPlan(planned.graph, report, makeReferenceBackend());
        if (dtype == DType::F32) {
          EXPECT_EQ(firstDifference(expected, plain, toleranceOf(dtype).relative), "");
        }
        for (const int threads : {1, 5})
          EXPECT_EQ(firstDifference(runPlan(planned.graph, report, cpuWith(threads)), expected,
                                    (dtype == DType::F16 ? 8.0 : 4.0) * toleranceOf(dtype).relative),
                    "")
              << layer.name << " in " << dtypeName(dtype) << " on " << threads << " threads";
      }
    }
}

/// A part that leaves the pipeline, or that another op reads, is a copy.
TEST(ColumnViews, CopyThePartsThatOthersRead) {
  std::vector<Link> links = llamaAttention().links;
  const Graph graph = chain(DType::F32, {99, 2, 16}, links, {.extraOutputs = {"split.y2"}});
  const Plan plan = makePlan(graph, unfused(graph));
  const std::string forward = launchedKernels(plan, Phase::Forward);
  EXPECT_NE(forward.find("Split"), std::string::npos) << toString(plan);
  EXPECT_EQ(bytesOf(plan, Phase::Forward, "Split"), 4 * 2 * kRows * kKey) << toString(plan);
}

}  // namespace
}  // namespace fuseline::testing
