// GEMMs of groups that are tuned.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "kernels/cuda/catalog.h"
#include "tests/support/pipelines.h"
#include "tests/support/simt/host_gemm.h"
#include "tests/support/wrapped_backend.h"

#include <cstring>
#include <map>
#include <stdexcept>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

/// The host's GEMMs; records the requests.
class WritingDown final : public cuda::GemmLibrary {
 public:
  Result<std::unique_ptr<cuda::Gemm>> prepare(const cuda::GemmProblem& problem) override {
    EXPECT_TRUE(isTuned.emplace(problem.m, problem.hasTimeToTune).second) << problem.m << " rows were asked for twice";
    return m_library->prepare(problem);
  }
  std::size_t maxWorkspaceBytes() const override { return m_library->maxWorkspaceBytes(); }

  std::map<std::int64_t, bool> isTuned;  // by the number of rows

 private:
  std::unique_ptr<cuda::GemmLibrary> m_library = makeHostGemms();
};

/// The kernels of the CUDA backend for groups, with the test's GEMMs.
class GroupBackend final : public WrappedBackend {
 public:
  explicit GroupBackend(cuda::GemmLibrary& gemms) : WrappedBackend([](const Step&) {}) {
    m_context = {.numMultiprocessors = 2, .gemms = &gemms, .readBack = std::memcpy};
  }
  Result<std::unique_ptr<Kernel>> compile(const Graph& graph, const Plan& plan, const Step& step,
                                          const CompileOptions& options) override {
    return cuda::compileStep({{graph, plan, step, options}, m_context});
  }

 private:
  cuda::DeviceContext m_context;
};

std::map<std::int64_t, bool> tunedSizes(const std::vector<double>& sizes, std::int64_t rows) {
  const auto numGroups = static_cast<std::int64_t>(sizes.size());
  const Link experts =
      with(with(link("GroupedLinear", "experts"), "out_features", std::int64_t{4}), "num_groups", numGroups);
  const Graph graph = chain(DType::F32, {rows, 4}, {experts}, {.pass = ExecutionMode::Inference});
  const Plan plan = makePlan(graph, unfused(graph));
  const auto bindings =
      makeBindings(graph, 1, {{"experts_split_sizes", Tensor::fromDoubles({DType::I64, {numGroups}}, sizes)}});
  if (!bindings) throw std::runtime_error(bindings.error().message);
  WritingDown library;
  const auto executor = Executor::create(std::make_shared<GroupBackend>(library), graph, plan, *bindings);
  if (!executor) throw std::runtime_error(executor.error().message);
  for (int run = 0; run < 2; ++run) {
    const Result<RunOutcome> ran = (*executor)->run();
    EXPECT_TRUE(ran) << ran.error().message;
  }
  return library.isTuned;
}

TEST(GroupProducts, AreTriedOutWhenTheirSizesAreKnown) {
  EXPECT_EQ(tunedSizes({1, 0, 3, 1}, 5), (std::map<std::int64_t, bool>{{5, false}, {1, true}, {3, true}}));
}

TEST(GroupProducts, AreNotAllTriedOutWhereThereAreMany) {
  std::vector<double> sizes;
  for (int size = 1; size <= 12; ++size) sizes.push_back(size);
  const std::map<std::int64_t, bool> tuned = tunedSizes(sizes, 78);
  ASSERT_EQ(tuned.size(), 13U);
  EXPECT_EQ(std::ranges::count(tuned, true, &std::pair<const std::int64_t, bool>::second), 8);
}

}  // namespace
}  // namespace fuseline::testing
