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
  const Result<AdamW> given =
      adamWFrom({{"lr", "3e-4"}, {"beta1", "0"}, {"beta2", "0.95"}, {"eps", "1e-6"}, {"weight_decay", "0.1"}});
  EXPECT_EQ(*given, (AdamW{.lr = 3e-4, .beta1 = 0.0, .beta2 = 0.95, .eps = 1e-6, .weightDecay = 0.1}));
}

TEST(AdamWOptions, OutsideTheirRangeAreRefusedWithTheOption) {
  const auto problemOf = [](const std::string& name, const std::string& value) {
    return adamWFrom({{name, value}}).error().message;
  };
  EXPECT_EQ(problemOf("momentum", "1"),
            "--optimizer-set momentum=1: valid names: lr, beta1, beta2, eps, weight_decay.");
  EXPECT_EQ(problemOf("beta1", "1"), "--optimizer-set beta1=1: expected a number from 0 to below 1.");
  for (const char* value : {"-1", "", "nan", "inf", "1e-3x"})
    EXPECT_NE(problemOf("lr", value).find("expected a number of 0 or more"), std::string::npos) << value;
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
