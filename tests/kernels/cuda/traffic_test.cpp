// Bytes that the CUDA kernels move between memory and the chip. They bound a kernel's time, and counting needs no GPU.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/plan/plan.h"
#include "core/plan/savings/planned_savings.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "tests/support/cuda_test_backend.h"
#include "tests/support/pipelines.h"
#include "tests/support/simt/simt.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// Is it a GEMM of cuBLASLt?
bool isProduct(const Step& step) { return step.kernel == "BasicLinear" || step.kernel.starts_with("linear_"); }

/// Bytes that a step moves, by the costs with which fusions are compared.
std::int64_t predictedBytes(const Backend& backend, const Plan& plan, const Step& step) {
  return costOf(step).bytes + backend.extraCost(plan, step).bytes;
}

/// Ratio of the bytes that a run's kernels move to the minimum.
double trafficOf(const Graph& graph) {
  const auto backend = *compilingCudaTestBackend();
  const Plan plan = makePlan(graph, *fuse(graph, {.capabilities = capabilitiesOf(backend)}));
  const auto executor = std::move(*Executor::create(backend, graph, plan, *makeBindings(graph, 1)));
  EXPECT_TRUE(executor->run());  // steps that run once
  std::int64_t least = 0;
  for (const Step& step : plan.steps)
    if (step.isWork() && !isProduct(step)) least += predictedBytes(*backend, plan, step);
  const simt::CountedTraffic counted;
  EXPECT_TRUE(executor->run());
  return static_cast<double>(counted.bytes()) / static_cast<double>(least);
}

/// Parts of sums are not counted, and scales of blocks are no packets: a little less than all is right, too.
void expectTheLeast(const Graph& graph) { EXPECT_NEAR(trafficOf(graph), 1.0, 0.03) << toString(graph); }

class CudaTraffic : public ::testing::TestWithParam<const char*> {};

/// Warps and blocks that have a row, and rows that are too long to be held.
TEST_P(CudaTraffic, OfANormReadsEveryRowOnce) {
  for (const Shape& shape : {Shape{64, 256}, Shape{16, 2048}, Shape{4, 16640}})
    for (const DType dtype : {DType::BF16, DType::F32}) expectTheLeast(chain(dtype, shape, {link(GetParam())}));
}

/// Single elements are not counted: almost all are in packets, though no row but the first begins with one.
TEST_P(CudaTraffic, OfRowsThatAreNoWholePacketsIsInPackets) {
  for (const Shape& shape : {Shape{64, 1001}, Shape{16, 4099}})
    EXPECT_NEAR(trafficOf(chain(DType::BF16, shape, {link(GetParam()), link("Bias"), link("GELU")})), 1.0, 0.1)
        << toString(shape);
}

/// The sum is written, and its gradients are added, on the way.
TEST_P(CudaTraffic, OfANormTakesTheResidualAlong) {
  const Graph graph = chain(DType::BF16, {64, 1024},
                            {link("MakeExtraOutput", "save"), link("GELU"), link("AddExtraInput", "add", "save.extra"),
                             link("MakeExtraOutput", "keep"), link(GetParam())},
                            {.extraOutputs = {"keep.extra"}});
  expectTheLeast(graph);
}

INSTANTIATE_TEST_SUITE_P(Norms, CudaTraffic, ::testing::Values("RMSNorm", "LayerNorm", "L2Normalization"),
                         [](const auto& test) { return std::string(test.param); });

/// The activation finds the amax of the input that is kept, so that only its quantization reads it
/// again.
TEST(CudaTrafficOfKeptInputs, ReadsThemTwice) {
  for (const char* const activation : {"GELU", "SwiGLU"})
    expectTheLeast(chain(DType::BF16, {64, 1024}, {with(link(activation), "cache_quantized_input", true)}));
}

class CudaCodeTraffic : public ::testing::TestWithParam<const char*> {
 protected:
  static Graph graphOf(const std::vector<Link>& links, ExecutionMode pass = ExecutionMode::Training) {
    ChainOptions options{.pass = pass, .recipe = GetParam()};
    if (options.recipe == "DelayedScaling") options.recipeFields.set("amax_history_len", std::int64_t{2});
    return chain(DType::BF16, {256, 256}, links, options);
  }
};

TEST_P(CudaCodeTraffic, OfQuantizersAndActivationsIsTheLeast) {
  expectTheLeast(graphOf({linear(256), link("GELU"), linear(256)}));
  expectTheLeast(graphOf({linear(512), link("Bias"), link("SwiGLU"), linear(256)}));
}

TEST_P(CudaCodeTraffic, OfNormsIsTheLeastButForColumns) {
  expectTheLeast(graphOf({link("RMSNorm"), linear(256)}));
  expectTheLeast(graphOf({linear(256), link("RMSNorm"), linear(256)}));
  expectTheLeast(graphOf({link("AddExtraInput"), link("LayerNorm"), linear(256)}));
  expectTheLeast(graphOf({linear(256), link("MakeExtraOutput", "save"), link("LayerNorm"), linear(256),
                          link("AddExtraInput", "add", "save.extra")}));
}

/// The GEMMs of forward read rowwise quantized tensors only.
TEST_P(CudaCodeTraffic, OfNormsIsTheLeastWithoutBackward) {
  for (const char* norm : {"RMSNorm", "LayerNorm", "L2Normalization"}) {
    expectTheLeast(graphOf({link(norm), linear(256)}, ExecutionMode::Inference));
    expectTheLeast(graphOf({link("AddExtraInput"), link(norm), linear(256)}, ExecutionMode::Inference));
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, CudaCodeTraffic,
                         ::testing::Values("DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling",
                                           "MXFP8BlockScaling"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace fuseline
