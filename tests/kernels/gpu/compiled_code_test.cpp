// On a GPU generated code is compiled: it would be interpreted without a word, with the same results, but slowly.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "tests/support/cuda_test_backend.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

std::string elementwiseCodeOf(const Backend& backend) {
  for (const auto& [name, value] : backend.device().details)
    if (name == "elementwise code") return value;
  return "not named";
}

TEST(CompiledCode, IsWhatRunsWhereNvrtcIsThere) {
  const Result<std::shared_ptr<Backend>> backend = cudaTestBackend();
  if (!backend) GTEST_SKIP() << backend.error().message;
  if (elementwiseCodeOf(**backend).find("does not load") != std::string::npos)
    GTEST_SKIP() << elementwiseCodeOf(**backend);
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (const char* const activation : {"GELU", "SwiGLU", "Formula"}) {
      const Graph graph = chain(dtype, {64, 256}, {link("Bias"), link(activation), link("Dropout")});
      runPlan(graph, unfused(graph), *backend);
    }
  EXPECT_EQ(elementwiseCodeOf(**backend), "compiled by NVRTC");
}

}  // namespace
}  // namespace fuseline
