// Activations that keep their input in E4M3: forward is exact, backward is that of the rounded input.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cached_input.h"
#include "core/fusion/fuser.h"
#include "core/ops/catalog.h"
#include "core/plan/plan.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/compare.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

constexpr const char* kAttribute = "cache_quantized_input";

Link cached(Link link) { return with(std::move(link), kAttribute, true); }

Graph one(DType dtype, const Shape& shape, const Link& link, ExecutionMode pass = ExecutionMode::Training) {
  return chain(dtype, shape, {link}, {.pass = pass});
}

RunResults run(const Graph& graph, const std::shared_ptr<Backend>& backend, const NamedTensors& given = {}) {
  return runPlan(graph, unfused(graph), backend, 1, given);
}

class CachedInput : public ::testing::TestWithParam<const FusibleOperation*> {};

TEST_P(CachedInput, ChangesTheGradientByARoundingOfTheInputOnly) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
    for (const Shape& shape : {Shape{74}, {2, 26}, {32, 1, 64}, {130, 1026}, {0, 16}}) {
      const Link plain = link(GetParam()->name, "act");
      const Graph graph = one(dtype, shape, plain);
      const NamedTensors data = uniformData(graph);
      const RunResults exact = run(graph, makeReferenceBackend(), data);
      const RunResults actual = run(one(dtype, shape, cached(plain)), cpu::makeCpuBackend(), data);
      EXPECT_TRUE(allClose(actual.at("y"), exact.at("y"), toleranceOf(dtype)));
      EXPECT_TRUE(allClose(actual.at("grad.x"), exact.at("grad.x"), toleranceOf(DType::E4M3)));
    }
}

/// The same quantized input gives the same gradients up to the rounding of dtype.
TEST_P(CachedInput, RunsLikeTheReference) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
    for (const Shape& shape : {Shape{1, 2}, {7, 62}, {600, 34}}) {
      const Graph graph = one(dtype, shape, cached(link(GetParam()->name, "act")));
      EXPECT_EQ(firstDifference(run(graph, cpu::makeCpuBackend()), run(graph, makeReferenceBackend()),
                                toleranceOf(dtype).relative),
                "")
          << toString(graph);
    }
}

TEST_P(CachedInput, PropagatesNanAndInfinityToTheSamePlaces) {
  const TensorSpec spec{.dtype = DType::F32, .shape = {4, 8}};
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()})
    for (const std::size_t place : {1U, 5U}) {
      std::vector<double> values(32, 0.5);
      values[place] = value;
      const NamedTensors x = {{"x", Tensor::fromDoubles(spec, values)}};
      const Graph graph = one(spec.dtype, spec.shape, cached(link(GetParam()->name, "act")));
      EXPECT_EQ(firstNonFiniteDifference(run(graph, cpu::makeCpuBackend(), x), run(graph, makeReferenceBackend(), x)),
                "")
          << value;
    }
}

TEST_P(CachedInput, KeepsAByteAnElementAndInInferenceNothing) {
  const Shape shape = {16, 64};
  const auto savedBytes = [&](const Link& link, ExecutionMode pass) {
    const Graph graph = chain(DType::BF16, shape, {testing::link("ConstantScale"), link}, {.pass = pass});
    return makePlan(graph, unfused(graph)).savedForBackwardBytes;
  };
  const Link plain = link(GetParam()->name, "act");
  EXPECT_EQ(savedBytes(plain, ExecutionMode::Training), 16 * 64 * 2);
  EXPECT_EQ(savedBytes(cached(plain), ExecutionMode::Training), 16 * 64 + 4);
  EXPECT_EQ(savedBytes(cached(plain), ExecutionMode::Inference), 0);
}

std::vector<const FusibleOperation*> activations() {
  std::vector<const FusibleOperation*> found;
  for (const auto& op : builtinOperations().operations())
    if (op->attribute(kAttribute)) found.push_back(op.get());
  return found;
}

INSTANTIATE_TEST_SUITE_P(Catalog, CachedInput, ::testing::ValuesIn(activations()),
                         [](const auto& test) { return test.param->name; });

// The plain activations, SwiGLU, ClampedSwiGLU and SiTUGLU.
TEST(CachedInputAttribute, IsThatOfThePlainActivations) {
  std::vector<std::string> names;
  for (const FusibleOperation* op : activations()) names.push_back(op->name);
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"ClampedSwiGLU", "GEGLU", "GELU", "GLU", "QGEGLU", "QGELU", "ReGLU",
                                             "ReLU", "SReGLU", "SReLU", "SiLU", "SiTUGLU", "SwiGLU"}));
}

// A scale of 1 keeps zeros and infinities.
TEST(CurrentScale, IsOneWhereTheLargestMagnitudeIsZeroOrNotFinite) {
  EXPECT_EQ(currentScale(0.0F), 1.0F);
  EXPECT_EQ(currentScale(std::numeric_limits<float>::infinity()), 1.0F);
  EXPECT_EQ(currentScale(std::numeric_limits<float>::quiet_NaN()), 1.0F);
  EXPECT_EQ(currentScale(448.0F), 1.0F);
  EXPECT_EQ(currentScale(3.5F), 128.0F);
  EXPECT_EQ(currentScale(1e-38F), std::numeric_limits<float>::max());
}

}  // namespace
}  // namespace fuseline
