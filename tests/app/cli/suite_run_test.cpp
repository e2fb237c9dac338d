// Benchmarks keep their measurements, however they end.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/suite_run.h"

#include <gtest/gtest.h>

namespace fuseline::cli {
namespace {

/// Five cases on a device that breaks in one of them and stays broken; names are numbers.
struct Scene {
  int fault = -1;    // the case that breaks the device
  int refusal = -1;  // one that does not run, on a device that goes on
  std::stop_source cancel = {};
  bool isLost = false;
  std::vector<std::string> kept = {};

  SuiteRun<std::string> run() {
    const SuiteSteps<int, std::string> steps{
        .name = [](const int& each) { return std::to_string(each); },
        .measure = [this](const int& each) { return measure(each); },
        .refuse = [](const int& each, const std::string& reason) { return std::to_string(each) + ": " + reason; },
        .keep = [this](const std::string& outcome) { return keep(outcome); },
        .isDeviceLost = [this] { return isLost; }};
    return runSuite({0, 1, 2, 3, 4}, steps, cancel.get_token());
  }

  Result<std::string> measure(int each) {
    isLost = isLost || each == fault;
    if (isLost) return Error{"a fault"};
    if (each == refusal) return Error{"no memory"};
    return "measured " + std::to_string(each);
  }

  Result<void> keep(const std::string& outcome) {
    if (outcome == fullAt) return Error{"The disk is full."};
    kept.push_back(outcome);
    return {};
  }
  std::string fullAt = "never";
};

TEST(SuiteRun, GoesOnAfterACaseThatDoesNotRun) {
  Scene scene{.refusal = 1};
  const SuiteRun<std::string> run = scene.run();
  EXPECT_EQ(run.outcomes,
            (std::vector<std::string>{"measured 0", "1: no memory", "measured 2", "measured 3", "measured 4"}));
  EXPECT_EQ(run.ended, "");
  EXPECT_EQ(*run.exitCode(), 0);
}

TEST(SuiteRun, EndsWithALostDeviceAndKeepsWhatWasMeasured) {
  Scene scene{.fault = 2};
  const SuiteRun<std::string> run = scene.run();
  EXPECT_EQ(run.outcomes, (std::vector<std::string>{"measured 0", "measured 1", "2: a fault"}));
  EXPECT_EQ(scene.kept, run.outcomes);
  ASSERT_FALSE(run.exitCode());
  EXPECT_EQ(run.exitCode().error().kind, ErrorKind::RunFailed);
  EXPECT_EQ(run.ended,
            "The device was lost in 2: start the benchmark again for what is missing. 2 of 5 cases were not measured.");
}

TEST(SuiteRun, EndsWhereItIsCancelledWithoutTheCaseThatWasCut) {
  Scene scene;
  scene.cancel.request_stop();
  const SuiteRun<std::string> run = scene.run();
  EXPECT_TRUE(run.outcomes.empty());
  EXPECT_EQ(run.ended, "The benchmark was cancelled in 0. 5 of 5 cases were not measured.");
}

TEST(SuiteRun, EndsWhereNothingCanBeKeptAnyMore) {
  Scene scene;
  scene.fullAt = "measured 3";
  const SuiteRun<std::string> run = scene.run();
  EXPECT_EQ(run.outcomes.size(), 4u);
  EXPECT_EQ(scene.kept.size(), 3u);
  EXPECT_EQ(run.ended, "The disk is full. 1 of 5 cases were not measured.");
}

}  // namespace
}  // namespace fuseline::cli
