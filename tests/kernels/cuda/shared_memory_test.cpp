// Steps on GPUs with little shared memory per block: the harness refuses the launches that such a GPU refuses.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "kernels/cuda/norm/norm_shape.h"
#include "tests/support/compare.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"
#include "tests/support/simt/gpu_profiles.h"
#include "tests/support/simt/host_compiler.h"
#include "tests/support/simt/simt.h"
#include "tests/support/simt/simt_backend.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// Ends with the scope.
class SharedMemoryOf {
 public:
  explicit SharedMemoryOf(const simt::GpuProfile& gpu) : m_before(simt::setMaxSharedBytes(gpu.sharedBytes())) {}
  ~SharedMemoryOf() { simt::setMaxSharedBytes(m_before); }
  SharedMemoryOf(const SharedMemoryOf&) = delete;
  SharedMemoryOf& operator=(const SharedMemoryOf&) = delete;

 private:
  std::size_t m_before;
};

/// Backward of norms declares 256 bytes for the exchange between warps.
static_assert(std::ranges::all_of(simt::kGpuProfiles, [](const simt::GpuProfile& gpu) {
  return cuda::kMaxSharedSumBytes + 256 <= gpu.sharedBytes();
}));

/// Both lanes of a gate's gradient wait in shared memory: in float32 more than a block of these GPUs has.
TEST(SharedMemory, IsNotAskedForBeyondWhatABlockHas) {
  const auto compiler = makeHostCompiler();
  const Graph graph =
      chain(DType::F32, {160, 128}, {linear(512), link("SwiGLU"), linear(128)}, {.recipe = "DelayedScaling"});
  const auto resultsOn = [&](const simt::GpuProfile& gpu) {
    const SharedMemoryOf scope(gpu);
    const auto backend = makeSimtBackend(compiler.get(), gpu.capability);
    return runPlan(graph, *fuse(graph, {.capabilities = capabilitiesOf(backend)}), backend);
  };
  const RunResults onHopper = resultsOn({{9, 0}, 227});
  for (const simt::GpuProfile& gpu : {simt::GpuProfile{{8, 0}, 163}, {{8, 9}, 99}, {{12, 0}, 99}})
    EXPECT_EQ(resultsOn(gpu), onHopper) << toString(gpu.capability);
}

TEST(SharedMemory, HoldsTheWidestSumsOfNorms) {
  const Graph graph = chain(DType::BF16, {4, 8192}, {link("LayerNorm")});
  const SharedMemoryOf scope({{8, 6}, 99});
  const RunResults actual = runPlan(graph, unfused(graph), makeSimtBackend(nullptr, {8, 6}));
  EXPECT_EQ(firstDifference(actual, runPlan(graph, unfused(graph), makeReferenceBackend()), 0x1p-6), "");
}

}  // namespace
}  // namespace fuseline
