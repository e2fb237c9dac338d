// Sums with parts from the number of blocks that a large GPU runs at once.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/backend.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"
#include "tests/support/simt/simt_backend.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// Multiprocessors of an H100: most sums then have more than 16 parts, which threads process one after the other.
constexpr int kMultiprocessors = 132;

TEST(ManyMultiprocessors, GiveWhatTheReferenceGives) {
  const auto backend = makeSimtBackend(nullptr, {}, kMultiprocessors);
  for (const std::vector<Link>& links :
       {std::vector<Link>{link("Bias"), link("GELU")}, {link("RMSNorm")}, {link("LayerNorm")}, {link("ScaledSwiGLU")}})
    for (const Shape& shape : {Shape{700, 34}, Shape{40, 2048}}) {
      const Graph graph = chain(DType::F32, shape, links);
      EXPECT_EQ(firstDifference(runPlan(graph, unfused(graph), backend),
                                runPlan(graph, unfused(graph), makeReferenceBackend()), 1e-5),
                "")
          << toString(graph);
    }
}

}  // namespace
}  // namespace fuseline
