// Captured tensors against hand computations, and against a run that keeps every tensor.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/tensor_capture.h"

#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "tests/support/attention_layers.h"
#include "tests/support/pipelines.h"
#include "tests/support/wrapped_backend.h"

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// A graph with one of its plans and its bindings.
struct CaptureScene {
  Graph graph;
  Plan plan;
  NamedTensors bindings;
};

enum class Fusing { Off, On };

CaptureScene sceneOf(Graph graph, Fusing fusing, const NamedTensors& given = {}) {
  const FusionReport report = fusing == Fusing::On ? *fuse(graph) : unfused(graph);
  Plan plan = makePlan(graph, report, {.joinsInPlace = false});
  NamedTensors bindings = *makeBindings(graph, 1, given);
  return {std::move(graph), std::move(plan), std::move(bindings)};
}

Result<NamedTensors> capture(const CaptureScene& scene, const std::vector<std::string>& tensors, int warmup = 0,
                             std::shared_ptr<Backend> backend = makeReferenceBackend(),
                             const std::stop_token& cancel = {}) {
  return captureTensors({.backend = std::move(backend),
                         .graph = scene.graph,
                         .plan = scene.plan,
                         .bindings = scene.bindings,
                         .tensors = tensors,
                         .warmup = warmup},
                        cancel);
}

std::vector<double> valuesOf(const CaptureScene& scene, const std::string& tensor, int warmup = 0) {
  Result<NamedTensors> captured = capture(scene, {tensor}, warmup);
  if (!captured) throw std::runtime_error(captured.error().message);
  return captured->front().second.toDoubles();
}

Tensor numbers(Shape shape, double first, double step) {
  TensorSpec spec{DType::F32, std::move(shape)};
  std::vector<double> values;
  for (std::int64_t i = 0; i < spec.numElements(); ++i) values.push_back(first + step * static_cast<double>(i));
  return Tensor::fromDoubles(spec, values);
}

/// y = x W^T with [2, 3] and [2, 3]; the gradient of W is grad.y^T x, that of x is grad.y W.
TEST(TensorCapture, OfALinearIsWhatMatricesGive) {
  const CaptureScene scene = sceneOf(chain(DType::F32, {2, 3}, {linear(2, "fc")}), Fusing::On,
                                     {{"x", numbers({2, 3}, 1.0, 1.0)},          // [[1 2 3] [4 5 6]]
                                      {"fc.weight", numbers({2, 3}, 0.0, 1.0)},  // [[0 1 2] [3 4 5]]
                                      {"grad.y", numbers({2, 2}, 1.0, 1.0)}});   // [[1 2] [3 4]]
  EXPECT_EQ(valuesOf(scene, "x"), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(valuesOf(scene, "y"), (std::vector<double>{8, 26, 17, 62}));
  EXPECT_EQ(valuesOf(scene, "grad.fc.weight"), (std::vector<double>{13, 17, 21, 18, 24, 30}));
  EXPECT_EQ(valuesOf(scene, "grad.x"), (std::vector<double>{6, 9, 12, 12, 19, 26}));
}

/// Each op doubles the output of the previous one, all in the same few pieces of memory.
TEST(TensorCapture, ReadsBeforeTheMemoryIsUsedAgain) {
  std::vector<Link> links;
  std::vector<std::string> names;
  for (int i = 0; i < 6; ++i) {
    links.push_back(with(link("ConstantScale", "s" + std::to_string(i)), "scale", 2.0));
    if (i < 5) names.push_back("s" + std::to_string(i) + ":y");
  }
  const CaptureScene scene = sceneOf(chain(DType::F32, {1, 4}, links, {.pass = ExecutionMode::Inference}), Fusing::Off,
                                     {{"x", numbers({1, 4}, 1.0, 0.0)}});
  ASSERT_LT(scene.plan.arenaBytes, 5 * 64) << "else nothing is used again";
  const Result<NamedTensors> captured = capture(scene, names);
  ASSERT_TRUE(captured) << captured.error().message;
  double expected = 1.0;
  for (const auto& [name, tensor] : *captured)
    EXPECT_EQ(tensor.toDoubles(), std::vector<double>(4, expected *= 2.0)) << name;
}

/// A run that keeps every tensor has its own memory for each.
void expectWhatIsKept(const Graph& graph, Fusing fusing) {
  const CaptureScene scene = sceneOf(graph, fusing);
  const FusionReport report = fusing == Fusing::On ? *fuse(graph) : unfused(graph);
  const Plan keeping = makePlan(graph, report, {.keepIntermediates = true});
  const auto executor = Executor::create(makeReferenceBackend(), graph, keeping, scene.bindings);
  ASSERT_TRUE(executor) << executor.error().message;
  ASSERT_TRUE((*executor)->run());
  std::vector<std::string> names;
  for (const PlanTensor& tensor : scene.plan.tensors) names.push_back(tensor.name);
  const Result<NamedTensors> captured = capture(scene, names);
  ASSERT_TRUE(captured) << captured.error().message;
  for (const auto& [name, tensor] : *captured) {
    const Result<Tensor> kept = (*executor)->read(name);
    ASSERT_TRUE(kept) << kept.error().message;
    EXPECT_EQ(tensor.data, kept->data) << name;
  }
}

TEST(TensorCapture, IsWhatARunThatKeepsEverythingHolds) {
  const Graph graph = chain(DType::BF16, {128, 64},
                            {link("MakeExtraOutput", "save"), link("RMSNorm", "norm"), linear(128, "fc1"),
                             link("SwiGLU", "act"), linear(64, "fc2"), link("AddExtraInput", "add", "save.extra")});
  for (const Fusing fusing : {Fusing::Off, Fusing::On}) expectWhatIsKept(graph, fusing);
}

TEST(TensorCapture, OfColumnsThatAreRotatedAndJoinedIsFromBeforeAndAfter) {
  const Graph graph = chain(DType::F32, {6, 2, 16}, latentAttention().links);
  for (const Fusing fusing : {Fusing::Off, Fusing::On}) expectWhatIsKept(graph, fusing);
}

/// One scale per tensor: 448 / 7 = 64, so that 7 becomes the largest value, and 0.5 is exact, too. The nearest value to
/// 0.3 * 64 = 19.2 with 3 mantissa bits is 20.
TEST(TensorCapture, OfAQuantizedCopyAreTheNumbersOfItsCodes) {
  Tensor x = Tensor::zeros({DType::F32, {16, 16}});
  encode(std::vector{7.0, 0.5, 0.3}, DType::F32, x.data.data());
  const ChainOptions options{.pass = ExecutionMode::Inference, .recipe = "Float8CurrentScaling", .recipeFields = {}};
  const CaptureScene scene = sceneOf(chain(DType::F32, {16, 16}, {linear(16, "fc")}, options), Fusing::On, {{"x", x}});
  const std::vector<double> values = valuesOf(scene, "fc.input@rowwise");
  EXPECT_EQ(values[0], 7.0);
  EXPECT_EQ(values[1], 0.5);
  EXPECT_EQ(values[2], 20.0 / 64.0);
  EXPECT_EQ(values[3], 0.0);
}

/// The buffer is added to in every run.
TEST(TensorCapture, ComesAfterTheWarmUp) {
  const CaptureScene scene =
      sceneOf(chain(DType::F32, {1, 1}, {with(linear(1, "fc"), "accumulate_into_main_grad", true)}), Fusing::On,
              {{"x", numbers({1, 1}, 3.0, 0.0)}, {"grad.y", numbers({1, 1}, 2.0, 0.0)}});
  EXPECT_EQ(valuesOf(scene, "main_grad.fc.weight"), std::vector<double>{6.0});
  EXPECT_EQ(valuesOf(scene, "main_grad.fc.weight", 2), std::vector<double>{18.0});
}

TEST(TensorCapture, SaysThatItWasCancelled) {
  const CaptureScene scene = sceneOf(chain(DType::F32, {2, 3}, {linear(2, "fc")}), Fusing::On);
  std::stop_source stop;
  stop.request_stop();
  const auto captured = capture(scene, {"y"}, 0, makeReferenceBackend(), stop.get_token());
  ASSERT_FALSE(captured);
  EXPECT_EQ(captured.error().message, "The capture was cancelled.");
}

TEST(TensorCapture, NamesTheStepThatFailed) {
  const CaptureScene scene = sceneOf(chain(DType::F32, {2, 3}, {linear(2, "fc")}), Fusing::On);
  const auto failing = std::make_shared<WrappedBackend>([](const Step&) { throw std::runtime_error("no power."); });
  const auto captured = capture(scene, {"y"}, 0, failing);
  ASSERT_FALSE(captured);
  EXPECT_EQ(captured.error().kind, ErrorKind::RunFailed);
  EXPECT_NE(captured.error().message.find("fc (BasicLinear, forward): no power."), std::string::npos)
      << captured.error().message;
}

}  // namespace
}  // namespace fuseline
