// The options of AdamW, and the parameters that a graph trains.
// SPDX-License-Identifier: Apache-2.0
#include "core/graph/optimizer.h"

#include "tests/support/pipelines.h"

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

std::vector<std::string> namesOf(const Graph& graph) {
  std::vector<std::string> names;
  for (const TrainedParameter& parameter : trainedParameters(graph)) names.push_back(parameter.name);
  return names;
}

TEST(AdamWOptions, HaveTheDefaultsOfPyTorch) {
  EXPECT_EQ(*adamWFrom({}), (AdamW{.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weightDecay = 1e-2}));
  EXPECT_FALSE(adamWFrom({})->clipsGradients());
  const Result<AdamW> given =
      adamWFrom({{"lr", "3e-4"}, {"beta1", "0"}, {"beta2", "0.95"}, {"eps", "1e-6"}, {"weight_decay", "0.1"}});
  EXPECT_EQ(*given, (AdamW{.lr = 3e-4, .beta1 = 0.0, .beta2 = 0.95, .eps = 1e-6, .weightDecay = 0.1}));
}

TEST(AdamWOptions, OutsideTheirRangeAreRefusedWithTheOption) {
  const auto problemOf = [](const std::string& name, const std::string& value) {
    return adamWFrom({{name, value}}).error().message;
  };
  EXPECT_EQ(problemOf("momentum", "1"),
            "--optimizer-set momentum=1: valid names: lr, beta1, beta2, eps, weight_decay, max_grad_norm, "
            "schedule, warmup_steps, training_steps.");
  EXPECT_EQ(problemOf("beta1", "1"), "--optimizer-set beta1=1: expected a number from 0 to below 1.");
  for (const char* value : {"-1", "", "nan", "inf", "1e-3x"})
    EXPECT_NE(problemOf("lr", value).find("expected a number of 0 or more"), std::string::npos) << value;
}

TEST(AdamWOptions, HaveASchedule) {
  const Result<AdamW> given =
      adamWFrom({{"schedule", "cosine"}, {"warmup_steps", "2"}, {"training_steps", "10"}, {"max_grad_norm", "1"}});
  EXPECT_EQ(
      *given,
      (AdamW{.maxGradNorm = 1.0, .schedule = LearningRateSchedule::Cosine, .warmupSteps = 2, .trainingSteps = 10}));
  EXPECT_EQ(adamWFrom({{"schedule", "step"}}).error().message,
            "--optimizer-set schedule=step: expected constant, linear, cosine.");
  EXPECT_EQ(adamWFrom({{"warmup_steps", "1.5"}}).error().message,
            "--optimizer-set warmup_steps=1.5: expected a whole number of 0 or more.");
  EXPECT_EQ(adamWFrom({{"schedule", "linear"}, {"warmup_steps", "3"}}).error().message,
            "--optimizer-set schedule=linear: training_steps is 0, but must be greater than warmup_steps, which is 3.");
  EXPECT_EQ(adamWFrom({{"training_steps", "9"}}).error().message,
            "--optimizer-set training_steps=9: a constant schedule has no end. Add --optimizer-set schedule=linear or "
            "schedule=cosine.");
}

/// Factors of transformers.get_scheduler 4.57; 0 after the end, where its cosine would rise again.
TEST(AdamWOptions, ChangeTheLearningRateAsTransformersDoes) {
  const auto factors = [](LearningRateSchedule schedule) {
    const AdamW options{.lr = 1.0, .schedule = schedule, .warmupSteps = 2, .trainingSteps = 6};
    std::vector<double> values;
    for (int update = 1; update <= 8; ++update) values.push_back(learningRateAt(options, update));
    return values;
  };
  EXPECT_EQ(factors(LearningRateSchedule::Constant), (std::vector<double>{0, 0.5, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(factors(LearningRateSchedule::Linear), (std::vector<double>{0, 0.5, 1, 0.75, 0.5, 0.25, 0, 0}));
  const std::vector<double> cosine = factors(LearningRateSchedule::Cosine);
  const std::vector<double> expected = {0, 0.5, 1, 0.85355339059327378, 0.5, 0.14644660940672627, 0, 0};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(cosine[i], expected[i], 1e-15) << i;
}

TEST(TrainedParameters, AreThoseWithGradients) {
  const std::vector<Link> links = {with(linear(4, "fc"), "weight_requires_grad", false), link("Bias", "bias")};
  const auto graphOf = [&](ExecutionMode pass) {
    return chain(DType::BF16, {2, 3}, links, {.pass = pass}).withOptimizer(AdamW());
  };
  const Graph training = graphOf(ExecutionMode::Training);
  EXPECT_EQ(namesOf(training), std::vector<std::string>{"bias.bias"});
  EXPECT_EQ(trainedParameters(training).front().stateNames(),
            (std::vector<std::string>{"bias.bias.exp_avg", "bias.bias.exp_avg_sq", "bias.bias.master_param"}));
  EXPECT_EQ(namesOf(graphOf(ExecutionMode::Inference)), std::vector<std::string>());
  EXPECT_EQ(namesOf(chain(DType::BF16, {2, 3}, links)), std::vector<std::string>());
}

}  // namespace
}  // namespace fuseline::testing
