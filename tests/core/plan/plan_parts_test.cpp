// The parts of making a plan, each by itself: tensors by key, gradients that are summed, memory by lifetime.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/plan/gradient_sums.h"
#include "core/plan/plan.h"
#include "core/plan/storage_layout.h"
#include "core/plan/tensor_index.h"
#include "tests/support/pipelines.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// All that a node may have a tensor for; slots: of each quantized subject.
std::vector<TensorKey> keysOf(const Graph& graph, NodeId id, int slots) {
  const Node& node = graph.node(id);
  std::vector<TensorKey> keys;
  const auto add = [&](PlanTensorSource subject, std::size_t count) {
    for (int slot = 0; slot < static_cast<int>(count); ++slot) keys.push_back({subject, id, slot});
  };
  add(PlanTensorSource::Parameter, node.parameters.size());
  add(PlanTensorSource::ParameterGradient, node.parameters.size());
  add(PlanTensorSource::Residual, node.residuals.size());
  add(PlanTensorSource::PartialGradient, node.inputs.size());
  if (!node.quantizers.any()) return keys;
  for (const PlanTensorSource subject : {PlanTensorSource::RowwiseCopy, PlanTensorSource::ColumnwiseCopy,
                                         PlanTensorSource::QuantizerScale, PlanTensorSource::AmaxHistory})
    add(subject, static_cast<std::size_t>(slots));
  return keys;
}

TEST(TensorIndex, KeepsTheTensorOfEveryKeyApart) {
  const Graph graph = chain(DType::BF16, {32, 64}, {link("LayerNorm"), linear(64), link("GELU"), linear(32)},
                            {.recipe = "DelayedScaling"});
  std::vector<TensorKey> keys;
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values().size()); ++id) {
    keys.push_back({PlanTensorSource::Value, id, 0});
    keys.push_back({PlanTensorSource::ValueGradient, id, 0});
  }
  constexpr int kTensorTypes = 3;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const std::vector<TensorKey> own = keysOf(graph, id, kTensorTypes);
    keys.insert(keys.end(), own.begin(), own.end());
  }
  TensorIndex index(graph);
  for (const TensorKey& key : keys) EXPECT_EQ(index[key], -1);
  for (std::size_t i = 0; i < keys.size(); ++i) index[keys[i]] = static_cast<int>(i);
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(index[keys[i]], static_cast<int>(i)) << i;
}

NodeId nodeOf(const Graph& graph, std::string_view id) {
  const auto found = std::ranges::find(graph.nodes(), id, &Node::id);
  return static_cast<NodeId>(found - graph.nodes().begin());
}

TEST(GradientSums, AddWhenTheLastGradientIsThere) {
  const Graph graph =
      chain(DType::F32, {4, 8}, {link("GELU", "a"), link("GELU", "b"), link("AddExtraInput", "add", "a.y")});
  PlanTensors tensors(graph);
  GradientSums sums(graph, tensors);
  EXPECT_TRUE(sums.addOutputGradients().empty());
  const int ofAdd = tensors.of({nodeOf(graph, "add")}, {0, OperandKind::GradInput, 1});
  EXPECT_TRUE(sums.addInputGradients(nodeOf(graph, "add")).empty());
  const int ofB = tensors.of({nodeOf(graph, "b")}, {0, OperandKind::GradInput, 0});
  const std::vector<Step> steps = sums.addInputGradients(nodeOf(graph, "b"));
  ASSERT_EQ(steps.size(), 1U);
  ASSERT_EQ(steps[0].operands.size(), 3U);
  EXPECT_EQ(steps[0].operands[0].tensor, ofAdd);
  EXPECT_EQ(steps[0].operands[1].tensor, ofB);
  EXPECT_EQ(steps[0].operands[2].access, OperandAccess::Write);
  EXPECT_EQ(tensors[steps[0].operands[2].tensor].name, "grad.a:y");
  EXPECT_EQ(steps[0].flops, 4 * 8);
  EXPECT_EQ(steps[0].bytesRead, 2 * 4 * 8 * 4);
}

/// Three tensors of 64 bytes, each computed from the one before.
Plan threeSteps() {
  Plan plan;
  for (const char* name : {"a", "b", "c"})
    plan.tensors.push_back({.name = name, .spec = {.dtype = DType::F32, .shape = {16}}});
  for (int i = 0; i < 3; ++i) {
    Step step{.name = plan.tensors[static_cast<std::size_t>(i)].name, .kernel = "Softmax"};
    if (i > 0) step.operands.push_back({.key = {0, OperandKind::Input, 0}, .tensor = i - 1});
    step.operands.push_back({.key = {0, OperandKind::Output, 0}, .tensor = i, .access = OperandAccess::Write});
    plan.steps.push_back(std::move(step));
  }
  return plan;
}

TEST(StorageLayout, SharesMemoryBetweenTensorsThatDoNotLiveTogether) {
  Plan plan = threeSteps();
  layOutStorages(plan, {0, 1, 2}, {});
  EXPECT_EQ(plan.arenaBytes, 2 * 64);
  EXPECT_EQ(plan.persistentBytes, 0);
  EXPECT_EQ(plan.storages[0].offset, plan.storages[2].offset);
  EXPECT_NE(plan.storages[0].offset, plan.storages[1].offset);
}

TEST(StorageLayout, GivesEveryTensorItsOwnMemoryWhereAllAreKept) {
  Plan plan = threeSteps();
  layOutStorages(plan, {0, 1, 2}, {.keepIntermediates = true});
  EXPECT_EQ(plan.arenaBytes, 0);
  EXPECT_EQ(plan.persistentBytes, 3 * 64);
}

TEST(StorageLayout, GivesAViewTheMemoryOfItsSource) {
  Plan plan = threeSteps();
  plan.steps[1].isView = true;
  layOutStorages(plan, {0, 0, 2}, {});
  EXPECT_EQ(plan.tensors[1].storage, plan.tensors[0].storage);
  EXPECT_EQ(plan.storages[static_cast<std::size_t>(plan.tensors[0].storage)].lastStep, 2);
}

std::vector<std::string> quantizingSteps(const Plan& plan) {
  std::vector<std::string> names;
  for (const Step& step : plan.steps)
    if (step.isQuantize()) names.push_back(step.name);
  return names;
}

/// Two linear ops in a row.
std::vector<std::string> quantizingSteps(const std::string& recipe, ExecutionMode pass = ExecutionMode::Training) {
  const Graph graph =
      chain(DType::BF16, {128, 128}, {linear(256, "a"), linear(128, "b")}, {.pass = pass, .recipe = recipe});
  return quantizingSteps(makePlan(graph, unfused(graph)));
}

TEST(QuantizeSteps, QuantizeTheWeightsOfTrainingTogether) {
  const std::vector<std::string> together = {"a.quantize_input", "quantize(a.weight, b.weight)", "b.quantize_input",
                                             "b.quantize_grad_output", "a.quantize_grad_output"};
  for (const char* recipe : {"DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling", "MXFP8BlockScaling"})
    EXPECT_EQ(quantizingSteps(recipe), together) << recipe;
}

TEST(QuantizeSteps, LeaveWeightsOfNvfp4AndOfInferenceApart) {
  for (const auto& steps :
       {quantizingSteps("NVFP4BlockScaling"), quantizingSteps("Float8CurrentScaling", ExecutionMode::Inference)}) {
    EXPECT_EQ(std::ranges::count(steps, "a.quantize_weight"), 1);
    EXPECT_EQ(std::ranges::count(steps, "b.quantize_weight"), 1);
  }
}

TEST(QuantizeSteps, QuantizeAsManyWeightsTogetherAsAKernelTakes) {
  std::vector<Link> links;
  for (int i = 0; i < 9; ++i) links.push_back(linear(128, fmt::format("fc{}", i)));
  const Graph graph = chain(DType::BF16, {128, 128}, links, {.recipe = "Float8BlockScaling"});
  const Plan plan = makePlan(graph, unfused(graph));
  std::vector<std::size_t> weights;
  for (const Step& step : plan.steps)
    if (step.isQuantize() && step.copies.front().type == TensorType::Weight) weights.push_back(step.copies.size());
  EXPECT_EQ(weights, (std::vector<std::size_t>{8, 1}));
}

/// Only scales that a tensor's reader remembers differ.
TEST(QuantizeSteps, QuantizeATensorOnceForAllThatReadIt) {
  const auto stepsOf = [](const char* recipe) {
    const Graph graph = chain(DType::BF16, {128, 128},
                              {link("RMSNorm", "norm"), linear(128, "q"), reading("norm.y", linear(128, "k")),
                               link("AddExtraInput", "add", "q.y")},
                              {.recipe = recipe});
    const auto steps = quantizingSteps(makePlan(graph, unfused(graph)));
    return std::ranges::count_if(steps, [](const std::string& name) { return name.ends_with("quantize_input"); });
  };
  EXPECT_EQ(stepsOf("DelayedScaling"), 2);
  for (const char* recipe : {"Float8CurrentScaling", "Float8BlockScaling", "MXFP8BlockScaling", "NVFP4BlockScaling"})
    EXPECT_EQ(stepsOf(recipe), 1) << recipe;
}

}  // namespace
}  // namespace fuseline
