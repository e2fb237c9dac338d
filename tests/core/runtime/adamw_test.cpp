// AdamW on the reference device against torch.optim.AdamW in float64, and what several runs begin with.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/bindings.h"
#include "core/runtime/tensor_capture.h"
#include "tests/support/trained_chain.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

Tensor row(DType dtype, const std::vector<double>& values) {
  return Tensor::fromDoubles({dtype, {1, std::ssize(values)}}, values);
}

Tensor vectorOf(DType dtype, const std::vector<double>& values) {
  return Tensor::fromDoubles({dtype, {std::ssize(values)}}, values);
}

Graph trainedBias(DType dtype, std::int64_t width, const AdamW& options) {
  return chain(dtype, {1, width}, {link("Bias", "b")}).withOptimizer(options);
}

std::vector<double> valuesOf(const NamedTensors& tensors, std::string_view name) {
  return std::ranges::find(tensors, name, &NamedTensors::value_type::first)->second.toDoubles();
}

/// Parameters 1, -0.5 and 2 after steps with the gradients g, -2g, g, ..., each a run that goes on from the one before.
std::vector<double> afterSteps(const AdamW& options, int steps) {
  const Graph graph = trainedBias(DType::F32, 3, options);
  NamedTensors state = {{"b.bias", vectorOf(DType::F32, {1.0, -0.5, 2.0})}};
  for (int step = 0; step < steps; ++step) {
    const double factor = step % 2 == 0 ? 1.0 : -2.0;
    state.emplace_back("grad.y", row(DType::F32, {0.1 * factor, -0.2 * factor, 1e-3 * factor}));
    state = trainedState(graph, makeReferenceBackend(), 1, state);
  }
  EXPECT_EQ(valuesOf(state, "optimizer.step"), std::vector<double>{static_cast<double>(steps)});
  return valuesOf(state, "b.bias");
}

void expectNear(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 3e-7) << i;
}

// Expected: torch.optim.AdamW of PyTorch 2.15 on float64 parameters.
TEST(AdamWReference, TakesTheStepsOfPyTorch) {
  expectNear(afterSteps({}, 1), {0.998990000100, -0.498995000050, 1.998980010000});
  expectNear(afterSteps({}, 2), {0.999346113704, -0.499356113615, 1.999326121412});
  expectNear(afterSteps({}, 4), {0.999689621161, -0.499709620834, 1.999649627095});
  const AdamW other{.lr = 0.05, .beta1 = 0.5, .beta2 = 0.9, .eps = 1e-3, .weightDecay = 0.1};
  expectNear(afterSteps(other, 1), {0.945495049505, -0.447748756219, 1.965000000000});
  expectNear(afterSteps(other, 3), {0.961831439806, -0.469128023672, 1.961530074819});
}

// Expected: the same after torch.nn.utils.clip_grad_norm_, with transformers.get_scheduler.
TEST(AdamWReference, ClipsGradientsAndFollowsTheScheduleAsPyTorchDoes) {
  expectNear(afterSteps({.lr = 0.05, .maxGradNorm = 0.1}, 3), {0.934391452487, -0.435141070382, 1.932893621543});
  const AdamW cosine{.lr = 0.05, .schedule = LearningRateSchedule::Cosine, .warmupSteps = 1, .trainingSteps = 6};
  expectNear(afterSteps(cosine, 4), {1.028874864927, -0.529514351287, 2.027595705427});
  const AdamW linear{
      .lr = 0.05, .maxGradNorm = 0.3, .schedule = LearningRateSchedule::Linear, .warmupSteps = 2, .trainingSteps = 5};
  expectNear(afterSteps(linear, 4), {1.000496942078, -0.501038421311, 1.999413974730});
  expectNear(afterSteps({.lr = 0.05, .warmupSteps = 4}, 3), {1.004134949721, -0.504322434239, 2.003759952786});
}

/// A step of 1e-4 is lost in bf16 near 1, but not in the float32 copy, which begins as the given parameter.
TEST(AdamWReference, KeepsSmallUpdatesOfNarrowParametersInACopy) {
  const Graph graph = trainedBias(DType::BF16, 1, {.lr = 1e-4, .weightDecay = 0.0});
  const NamedTensors given = {{"b.bias", vectorOf(DType::BF16, {1.0})}, {"grad.y", row(DType::BF16, {0.5})}};
  const NamedTensors once = trainedState(graph, makeReferenceBackend(), 1, given);
  EXPECT_EQ(valuesOf(once, "b.bias"), std::vector<double>{1.0});
  EXPECT_NEAR(valuesOf(once, "b.bias.master_param").front(), 1.0 - 1e-4, 1e-7);
  const NamedTensors often = trainedState(graph, makeReferenceBackend(), 100, given);
  EXPECT_NEAR(valuesOf(often, "b.bias").front(), 0.99, 1.0 / 256);
}

TEST(AdamWReference, SetsMainGradBuffersToZero) {
  const RunResults results = trainedResults(trainedChain(DType::BF16, 3, {}), makeReferenceBackend(), 2);
  for (const double gradient : results.at("main_grad.fc.weight")) EXPECT_EQ(gradient, 0.0);
  for (const double moment : results.at("fc.weight.exp_avg_sq")) EXPECT_GT(moment, 0.0);
}

/// Warm-up runs update them, too.
TEST(AdamWReference, IsCapturedFromTheInitialParameters) {
  const Graph graph = trainedChain(DType::F32, 3, {.lr = 0.1});
  const Plan plan = makePlan(graph, unfused(graph));
  const NamedTensors bindings = *makeBindings(graph, 1);
  const std::vector<std::string> names = {"y", "grad.x", "fc.weight", "fc.weight.exp_avg"};
  const auto capturedAfter = [&](int warmup) {
    return *captureTensors({.backend = makeReferenceBackend(),
                            .graph = graph,
                            .plan = plan,
                            .bindings = bindings,
                            .tensors = names,
                            .warmup = warmup});
  };
  const NamedTensors first = capturedAfter(0);
  const NamedTensors later = capturedAfter(3);
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(later[i].second.data, first[i].second.data) << names[i];
}

/// Files of a training with an optimizer also serve runs without one.
TEST(AdamWReference, LeavesStateThatOtherRunsIgnore) {
  const Graph graph = trainedBias(DType::BF16, 4, {});
  const NamedTensors state = trainedState(graph, makeReferenceBackend(), 1);
  EXPECT_EQ(state.size(), 5U);
  EXPECT_TRUE(makeBindings(chain(DType::BF16, {1, 4}, {link("Bias", "b")}), 1, state).hasValue());
}

}  // namespace
}  // namespace fuseline::testing
