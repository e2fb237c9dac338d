// A fault of the GPU in the middle of a run: it is named by its step, and it is the end of that process only.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "tests/support/cuda_test_backend.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

constexpr const char* kWanted = "FUSELINE_FORCE_FAULT";

Graph forwardChain() {
  return chain(DType::F32, {64, 256}, {link("GELU", "act"), link("ConstantScale", "scale")},
               {.pass = ExecutionMode::Inference});
}

/// The last step writes to unmapped memory. Returns an empty text, or the unexpected result.
std::string forceFault() {
  const std::shared_ptr<Backend> backend = *cudaTestBackend();
  const Graph graph = forwardChain();
  const Plan plan = makePlan(graph, unfused(graph));
  const auto output = std::ranges::find(plan.tensors, TensorRole::Output, &PlanTensor::role);
  const ResultBuffer nowhere{output->name, output->spec, reinterpret_cast<std::byte*>(std::uintptr_t{64})};
  const auto executor = Executor::create(backend, graph, plan, *makeBindings(graph, 1), std::span(&nowhere, 1));
  if (!executor) return executor.error().message;
  const Result<RunOutcome> outcome = (*executor)->run();
  if (outcome) return "the run went on";
  const std::string& message = outcome.error().message;
  if (!message.starts_with("scale (") || message.find("reported a fault") == std::string::npos) return message;
  if (!backend->isLost()) return "the device is not lost";
  return (*executor)->run() ? "a lost device ran" : "";
}

[[noreturn]] void exitWithFault() {
  const std::string problem = forceFault();
  std::cerr << problem << std::endl;
  std::_Exit(problem.empty() ? EXIT_SUCCESS : EXIT_FAILURE);  // the libraries of a lost device may not end
}

/// Runs in a separate process; afterwards this one has the device to itself again.
TEST(ForcedFault, IsNamedByItsStepAndLeavesOtherProcessesTheDevice) {
  if (const auto backend = cudaTestBackend(); !backend) GTEST_SKIP() << backend.error().message;
  if (!std::getenv(kWanted)) GTEST_SKIP() << kWanted << "=1 asks for it; under a sanitizer it would be an error";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(exitWithFault(), ::testing::ExitedWithCode(EXIT_SUCCESS), "");
  const Graph graph = forwardChain();
  EXPECT_FALSE((*cudaTestBackend())->isLost());
  runPlan(graph, unfused(graph), *cudaTestBackend());
}

}  // namespace
}  // namespace fuseline
