// Initial tensors of a run.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/bindings.h"

#include "core/quant/apply_recipe.h"
#include "tests/support/pipelines.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

Graph delayed(std::int64_t historyLength) {
  Attributes fields;
  fields.set("amax_history_len", historyLength);
  std::vector<Diagnostic> diagnostics;
  return applyRecipe(chain(DType::BF16, {16, 16}, {linear(16, "fc")}),
                     *Recipe::create(*findRecipe("DelayedScaling"), fields), diagnostics);
}

std::vector<double> historyIn(const Graph& graph, const NamedTensors& given) {
  const std::string name = quantizerStates(graph).front().historyName;
  const NamedTensors bindings = *makeBindings(graph, 1, given);
  return std::ranges::find(bindings, name, &NamedTensors::value_type::first)->second.toDoubles();
}

TEST(Bindings, GiveAHistoryTheLengthThatTheRecipeAsksFor) {
  const std::string name = quantizerStates(delayed(3)).front().historyName;
  const NamedTensors given = {{name, Tensor::fromDoubles({DType::F32, {3, 1}}, std::vector<double>{0, 5, 7})}};
  EXPECT_EQ(historyIn(delayed(3), given), (std::vector<double>{0, 5, 7}));
  EXPECT_EQ(historyIn(delayed(2), given), (std::vector<double>{0, 5}));
  EXPECT_EQ(historyIn(delayed(5), given), (std::vector<double>{0, 5, 7, 0, 0}));
}

TEST(Bindings, OfAnotherPipelineStayWhereTheyFit) {
  const Graph graph = chain(DType::BF16, {16, 16}, {linear(16, "fc")});
  const NamedTensors given = {{"x", Tensor::zeros({DType::BF16, {16, 16}})},
                              {"fc.weight", Tensor::zeros({DType::BF16, {16, 8}})},
                              {"gone.weight", Tensor::zeros({DType::BF16, {16, 16}})}};
  ASSERT_FALSE(makeBindings(graph, 1, given));
  const NamedTensors fitting = thoseThatFit(graph, given);
  ASSERT_EQ(fitting.size(), 1u);
  EXPECT_EQ(fitting[0].first, "x");
  EXPECT_TRUE(makeBindings(graph, 1, fitting));
}

TEST(Bindings, RefuseAHistoryOfAnotherKind) {
  const Graph graph = delayed(3);
  const std::string name = quantizerStates(graph).front().historyName;
  const Result<NamedTensors> bindings = makeBindings(graph, 1, {{name, Tensor::zeros({DType::F32, {3, 2}})}});
  ASSERT_FALSE(bindings);
  EXPECT_EQ(bindings.error().message, name + ": the given tensor is [3, 2] f32, but the pipeline needs [3, 1] f32.");
}

}  // namespace
}  // namespace fuseline
