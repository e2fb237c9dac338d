// The CUDA backend itself: its resources, its measurements, and its messages when memory or the device fails.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/machine/discovery.h"
#include "tests/support/cuda_test_backend.h"
#include "tests/support/host_gpu/host_gpu.h"
#include "tests/support/pipelines.h"
#include "tests/support/recipes.h"
#include "tests/support/run_plan.h"
#include "tests/support/temporary_folder.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// Sets a variable for this test; the former value is restored.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : m_name(name) {
    if (const char* const before = std::getenv(name)) m_before = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { m_before ? setenv(m_name, m_before->c_str(), 1) : unsetenv(m_name); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* m_name;
  std::optional<std::string> m_before;
};

std::shared_ptr<Backend> newBackend() { return *cuda::makeCudaBackend(0, cuda::discoverDevices().front().info); }

Graph layer() {
  return chain(DType::BF16, {16, 32}, {link("RMSNorm", "norm"), linear(64, "fc1"), link("GELU", "act"), linear(32)});
}

/// layer(), unfused, ready to run.
struct PreparedLayer {
  explicit PreparedLayer(const std::shared_ptr<Backend>& backend)
      : executor(std::move(*Executor::create(backend, graph, plan, *makeBindings(graph, 1)))) {}
  Graph graph = layer();
  Plan plan = makePlan(graph, unfused(graph));
  std::unique_ptr<Executor> executor;
};

TEST(CudaBackendOnHost, FillsItsCacheAndGivesTheMemoryBack) {
  const std::shared_ptr<Backend> backend = newBackend();
  const host_gpu::Owned before = host_gpu::owned();
  {
    const auto filler = backend->makeCacheFiller();
    ASSERT_TRUE(filler) << filler.error().message;
    EXPECT_GT(host_gpu::owned().allocations, before.allocations);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE((*filler)->fill());
  }
  EXPECT_EQ(host_gpu::owned().allocations, before.allocations);
}

TEST(CudaBackendOnHost, GivesBackWhatItOwned) {
  (void)newBackend();  // resources that the program keeps
  const host_gpu::Owned before = host_gpu::owned();
  {
    const std::shared_ptr<Backend> backend = newBackend();
    const PreparedLayer prepared(backend);
    Executor& executor = *prepared.executor;
    for (int run = 0; run < 3; ++run) ASSERT_TRUE(executor.run());
    EXPECT_EQ(executor.launching(), "captured and replayed");
    EXPECT_GT(host_gpu::owned().graphs, before.graphs);
    const auto clock = backend->makeClock(2);
    EXPECT_GT(host_gpu::owned().events, before.events);
  }
  EXPECT_EQ(host_gpu::owned(), before);
}

/// In older ones such activations come out wrong, which only numbers show.
TEST(CudaBackendOnHost, LeavesActivationsOfBlocksOf128ToAProvenLibrary) {
  if (host_gpu::capability().major != 9) GTEST_SKIP() << "cuBLASLt multiplies blocks of 128 on 9.x only.";
  const Graph graph = under(*Recipe::create(*findRecipe("Float8BlockScaling")),
                            chain(DType::BF16, {128, 256}, {linear(256, "fc"), link("Bias"), link("GELU")}));
  for (const std::size_t version : {std::size_t{130002}, std::size_t{130100}}) {
    const std::size_t before = host_gpu::setCublasLtVersion(version);
    const std::shared_ptr<Backend> backend = newBackend();
    const FusionReport report = *fuse(graph, {.capabilities = capabilitiesOf(backend)});
    const RunResults actual = runPlan(graph, report, backend);
    host_gpu::setCublasLtVersion(before);
    EXPECT_EQ(
        firstDifference(actual, runPlan(graph, report, makeReferenceBackend()), 4 * toleranceOf(DType::BF16).relative),
        "")
        << version;
  }
}

TEST(CudaBackendOnHost, SaysWhatMemoryIsMissing) {
  const std::shared_ptr<Backend> backend = newBackend();
  const std::size_t used = host_gpu::owned().bytes;
  const std::size_t before = host_gpu::setMemoryBytes(used + (std::size_t{1} << 20U));
  const Result<std::unique_ptr<DeviceMemory>> memory = backend->allocate(std::size_t{2} << 20U);
  const auto free = backend->freeBytes();
  host_gpu::setMemoryBytes(before);
  ASSERT_FALSE(memory);
  EXPECT_NE(memory.error().message.find("cuda:0: the plan needs 2 MiB of GPU memory, but only 1 MiB"),
            std::string::npos)
      << memory.error().message;
  EXPECT_EQ(free, std::int64_t{1} << 20);
  EXPECT_TRUE(backend->allocate(16));  // the refusal broke nothing
}

/// Runs in a separate process, which loses the device.
TEST(CudaBackendOnHost, NamesTheStepOfAFaultAndIsLost) {
  const auto fault = [] {
    const std::shared_ptr<Backend> backend = newBackend();
    const PreparedLayer prepared(backend);
    Executor& executor = *prepared.executor;
    host_gpu::faultInNextWork();
    const Result<RunOutcome> outcome = executor.run();
    const std::string message = outcome ? "" : outcome.error().message;
    const bool isNamed = message.find(
                             "cuda:0 reported a fault: an illegal memory access was encountered "
                             "(cudaErrorIllegalAddress)") != std::string::npos;
    std::fputs(message.c_str(), stderr);
    std::_Exit(isNamed && backend->isLost() && !executor.run() && !backend->allocate(16) ? 0 : 1);
  };
  EXPECT_EXIT(fault(), ::testing::ExitedWithCode(0), "in the step ");
}

/// A user with an empty cache, who requests that algorithms be timed.
struct EmptyCache {
  TemporaryFolder folder;
  Variable place{"XDG_CACHE_HOME", folder.path().string()};
  Variable tuning{"FUSELINE_TUNE", "on"};

  std::ptrdiff_t numFiles() const {
    const auto entries = std::filesystem::recursive_directory_iterator(folder.path());
    return std::count_if(begin(entries), end(entries), [](const auto& entry) { return entry.is_regular_file(); });
  }
};

TEST(CudaBackendOnHost, TimesAlgorithmsOnceAndKeepsTheFastest) {
  const EmptyCache cache;
  const Graph graph = chain(DType::F32, {8, 16}, {linear(8)}, {.pass = ExecutionMode::Inference});
  const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
  for (int process = 0; process < 2; ++process) {
    const RunResults actual = runPlan(graph, unfused(graph), newBackend());
    EXPECT_EQ(firstDifference(actual, expected, 1e-5), "");
    EXPECT_EQ(cache.numFiles(), 1);
  }
}

TEST(CudaBackendOnHost, ProbesProductsAndTellsItsCapability) {
  const std::shared_ptr<Backend> backend = newBackend();
  EXPECT_EQ(backend->device().architecture,
            fmt::format("sm_{}{}", host_gpu::capability().major, host_gpu::capability().minor));
  const Result<std::vector<ProductSupport>> products = backend->probeProducts();
  ASSERT_TRUE(products) << products.error().message;
  const auto isOffered = [&](const std::string& epilogue, bool isSupported) {
    return std::ranges::any_of(*products, [&](const ProductSupport& product) {
      return product.epilogue == epilogue && static_cast<bool>(product.isSupported) == isSupported;
    });
  };
  EXPECT_TRUE(isOffered("GELU_AUX_BIAS", true));
  EXPECT_TRUE(isOffered("RELU_AUX", false));
  EXPECT_TRUE(isOffered("DEFAULT", false));  // of formats of another capability
}

/// Recipes that each GPU's library multiplies, by NVIDIA's documentation of cuBLASLt's narrow precisions. The library
/// here behaves as that of CUDA 13.1, which on 12.x supports MXFP8 in one layout only.
const std::map<std::string, std::vector<std::string>> kNativeRecipes = {
    {"sm_80", {"None"}},
    {"sm_89", {"None", "DelayedScaling", "Float8CurrentScaling"}},
    {"sm_90", {"None", "DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling"}},
    {"sm_100",
     {"None", "DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling", "MXFP8BlockScaling",
      "NVFP4BlockScaling"}},
    {"sm_120", {"None", "DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling", "NVFP4BlockScaling"}}};

TEST(CudaBackendOnHost, MultipliesTheRecipesThatItsLibraryHas) {
  const std::shared_ptr<Backend> backend = newBackend();
  std::vector<std::string> native;
  for (const RecipeDefinition& definition : builtinRecipes()) {
    if (definition.isCustom) continue;  // its overrides determine the quantized tensors
    const Verdict verdict = backend->multiplies(*Recipe::create(definition));
    if (verdict) native.push_back(definition.name);
    EXPECT_EQ(verdict.reason().find("Valid values: None") == std::string::npos, bool(verdict)) << verdict.reason();
  }
  EXPECT_EQ(native, kNativeRecipes.at(backend->device().architecture));
}

/// GEMMs without native support are dequantized and multiplied in high precision: the numbers are the recipe's.
class EmulationOnHost : public ::testing::TestWithParam<const char*> {
 protected:
  static void expectEmulated(const Graph& graph, const NamedTensors& bindings) {
    const std::shared_ptr<Backend> backend = newBackend();
    if (backend->multiplies(*Recipe::create(*findRecipe(GetParam())))) GTEST_SKIP() << "It is multiplied natively.";
    const Plan plan = makePlan(graph, unfused(graph));
    const auto executor = Executor::create(backend, graph, plan, bindings);
    ASSERT_TRUE(executor) << executor.error().message;
    std::size_t numDecoded = 0;
    for (std::size_t step = 0; step < plan.steps.size(); ++step)
      for (const std::string& way : (*executor)->ways(step)) numDecoded += way.find("decoded") != std::string::npos;
    EXPECT_GT(numDecoded, 0u);
    // Factors are rounded to bfloat16 if scales are no powers of two. Nothing is quantized after a GEMM, so that this
    // rounding cannot change a quantized value.
    EXPECT_EQ(firstDifferenceInNorm(runPlan(graph, unfused(graph), backend, 1, bindings),
                                    runPlan(graph, unfused(graph), makeReferenceBackend(), 1, bindings), 1e-2),
              "");
  }
};

TEST_P(EmulationOnHost, GivesTheNumbersOfTheRecipe) {
  const Graph graph = chain(DType::BF16, {128, 256}, {linear(128, "fc")}, {.recipe = GetParam()});
  expectEmulated(graph, *makeBindings(graph, 1));
}

TEST_P(EmulationOnHost, GivesTheNumbersOfTheRecipeInGroups) {
  Link experts = with(link("GroupedLinear", "experts"), "num_groups", 3);
  experts.attributes.set("out_features", 256);
  const Graph graph = chain(DType::BF16, {384, 128}, {experts}, {.recipe = GetParam()});
  const NamedTensors sizes = {{"experts_split_sizes", Tensor::fromDoubles({DType::I64, {3}}, {{128, 0, 256}})}};
  expectEmulated(graph, *makeBindings(graph, 1, sizes));
}

INSTANTIATE_TEST_SUITE_P(Recipes, EmulationOnHost,
                         ::testing::Values("DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling",
                                           "MXFP8BlockScaling", "NVFP4BlockScaling"),
                         [](const auto& test) { return std::string(test.param); });

TEST(CudaBackendOnHost, ClocksReadTheTimeBetweenMarks) {
  const std::shared_ptr<Backend> backend = newBackend();
  const auto clock = backend->makeClock(2);
  const auto memory = std::move(*backend->allocate(std::size_t{4} << 20U));
  const std::vector<std::byte> bytes(memory->sizeBytes());
  clock->mark(0);
  backend->upload(memory->data(), bytes);
  clock->mark(1);
  backend->synchronize();
  const double copied = clock->nanosecondsBetween(0, 1);
  EXPECT_GT(copied, 1000.0);  // 4 MiB at 4 TB/s
  EXPECT_EQ(clock->nanosecondsBetween(1, 0), -copied);
  clock->markTransfers(1);  // on a separate stream
  backend->synchronize();
  EXPECT_GE(clock->nanosecondsBetween(0, 1), copied);
}

}  // namespace
}  // namespace fuseline
