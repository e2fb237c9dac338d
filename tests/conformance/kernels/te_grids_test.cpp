// The parameter grids of TransformerEngine's basic-op tests, with its data, uniform in [0, 1), and its
// tolerances: the CPU's kernels against the float64 formulas.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/compare.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// One row of the table: an op with its parameters, on the shapes of its main input.
struct OpGrid {
  std::string name;
  std::vector<Link> links;
  std::vector<Shape> shapes;
  bool isExact = false;
};

void PrintTo(const OpGrid& grid, std::ostream* out) { *out << grid.name; }

RunResults runOf(const Graph& graph, const std::shared_ptr<Backend>& backend, const NamedTensors& data) {
  return runPlan(graph, unfused(graph), backend, 1234, data);
}

Tolerance toleranceFor(const OpGrid& grid, const Link& link, DType dtype) {
  if (grid.isExact) return {};
  const bool isGemm = link.operation == "BasicLinear";
  return isGemm && dtype == DType::F32 ? kToleranceOfProducts : toleranceOf(dtype);
}

class TeGrids : public ::testing::TestWithParam<OpGrid> {};

TEST_P(TeGrids, HoldWithTheirTolerances) {
  for (const Link& link : GetParam().links)
    for (const Shape& shape : GetParam().shapes)
      for (const DType dtype : kFloatTypes) {
        const Graph graph = chain(dtype, shape, {link});
        const NamedTensors data = uniformData(graph);
        const RunResults actual = runOf(graph, cpu::makeCpuBackend(), data);
        const RunResults expected = runOf(graph, makeReferenceBackend(), data);
        for (const auto& [name, values] : expected)
          EXPECT_TRUE(allClose(actual.at(name), values, toleranceFor(GetParam(), link, dtype)))
              << name << " of " << toString(graph) << dtypeName(dtype);
      }
}

Shape joined(Shape leading, const Shape& trailing) {
  leading.insert(leading.end(), trailing.begin(), trailing.end());
  return leading;
}

std::vector<Shape> joined(const std::vector<Shape>& leading, const Shape& trailing) {
  std::vector<Shape> shapes;
  for (const Shape& shape : leading) shapes.push_back(joined(shape, trailing));
  return shapes;
}

std::vector<Link> bothWays(const Link& link, const std::string& attribute) {
  return {with(link, attribute, false), with(link, attribute, true)};
}

Link norm(const std::string& operation, const Shape& weight) {
  return with(with(link(operation), "normalized_shape", weight), "eps", 0.3);
}

std::vector<Link> links(const std::vector<std::string>& operations) {
  std::vector<Link> all;
  for (const std::string& operation : operations) all.push_back(link(operation));
  return all;
}

/// Interleaved or not.
std::vector<Link> interleaved(const std::vector<Link>& gates) {
  std::vector<Link> all = gates;
  for (const Link& gate : gates) all.push_back(with(gate, "glu_interleave_size", std::int64_t{32}));
  return all;
}

Link situ(const std::string& operation, double beta1, double beta2) {
  return with(with(link(operation), "beta1", beta1), "beta2", beta2);
}

Link clamped(const std::string& operation, double limit, double offset) {
  return with(with(with(link(operation), "limit", limit), "alpha", 1.702), "glu_linear_offset", offset);
}

Link reshape(const Shape& to) { return with(link("Reshape"), "shape", to); }

std::vector<OpGrid> structureGrids() {
  std::vector<Link> scales;
  for (const double scale : {1.0, 0.0, -2.5, 3.5}) scales.push_back(with(link("ConstantScale"), "scale", scale));
  return {{"identity", {link("Identity")}, {{32, 32}}, true},
          {"reshape_4d", {reshape({2, 12})}, {{1, 2, 3, 4}}, true},
          {"reshape_3d", {reshape({-1, 6})}, {{5, 4, 3, 2}}, true},
          {"reshape_1d", {reshape({2, 3, -1})}, {{30}}, true},
          {"reshape_2d", {reshape({3, -1, 7})}, {{6, 7}}, true},
          {"add_extra_input", bothWays(link("AddExtraInput"), "in_place"), {{32, 32}}},
          {"make_extra_output", bothWays(link("MakeExtraOutput"), "in_place"), {{32, 32}}},
          {"constant_scale", scales, {{}, {1, 13}, {4, 4, 2}}}};
}

std::vector<OpGrid> linearGrids() {
  std::vector<OpGrid> grids;
  for (const std::int64_t size : {1, 7, 32})
    grids.push_back({"bias_" + std::to_string(size), {link("Bias")}, joined({{}, {1, 3}, {4, 3, 8}}, {size})});
  for (const auto& [N, K] : {std::pair{64, 32}, {3, 5}, {128, 128}})
    grids.push_back({"basic_linear_" + std::to_string(N), {linear(N)}, joined({{}, {5, 1}, {4, 2, 4}, {128}}, {K})});
  return grids;
}

std::vector<OpGrid> normGrids() {
  std::vector<OpGrid> grids;
  const auto add = [&](const char* operation, const Shape& weight) {
    grids.push_back({operation + std::to_string(weight.front()),
                     bothWays(norm(operation, weight), "zero_centered_gamma"), joined({{}, {6, 16}}, weight)});
  };
  for (const Shape& weight : {Shape{7, 2}, {32}}) add("LayerNorm", weight);
  for (const Shape& weight : {Shape{19}, {64}}) add("RMSNorm", weight);
  grids.push_back({"l2normalization", {link("L2Normalization")}, {{32}, {6, 16, 64}, {32, 64}}});
  return grids;
}

std::vector<OpGrid> activationGrids() {
  const Link exactGelu = with(link("GELU"), "approximate", std::string("none"));
  const Link exactGeglu = with(link("GEGLU"), "approximate", std::string("none"));
  return {{"unary", links({"GELU", "QGELU", "ReLU", "SReLU", "SiLU"}), {{37}, {2, 13}, {32, 1, 32}}},
          {"exact_gelu", {exactGelu}, {{37}, {2, 13}, {32, 1, 32}}},
          {"exact_geglu", {exactGeglu}, {{74}, {2, 26}, {32, 1, 64}}},
          {"gated", links({"GEGLU", "QGEGLU", "ReGLU", "GLU", "SReGLU", "SwiGLU"}), {{74}, {2, 26}, {32, 1, 64}}},
          {"swiglu", {link("SwiGLU")}, {{32, 64}}},
          {"swiglu_interleaved", interleaved({link("SwiGLU")}), {{32, 384}}},
          {"situglu", interleaved({situ("SiTUGLU", 4, 25), situ("SiTUGLU", 3, 12)}), {{17, 384}}},
          {"clamped_swiglu", {clamped("ClampedSwiGLU", 0.75, 1), clamped("ClampedSwiGLU", 0.75, 0)}, {{32, 64}}},
          {"clamped_swiglu_interleaved", interleaved({clamped("ClampedSwiGLU", 0.75, 1)}), {{32, 384}}},
          {"scaled_swiglu", interleaved({link("ScaledSwiGLU")}), {{71, 384}, {5, 7, 256}, {32, 384}}},
          {"scaled_srelu", {link("ScaledSReLU")}, {{71, 192}, {5, 7, 128}}},
          {"scaled_tanh_srelu", {link("ScaledTanhSReLU")}, {{71, 192}, {5, 7, 128}}},
          {"scaled_clamped_qgeglu",
           interleaved({clamped("ScaledClampedQGeGLU", 7, 1), clamped("ScaledClampedQGeGLU", 7, 0)}),
           {{71, 384}, {5, 7, 256}, {32, 384}}},
          {"scaled_situglu", interleaved({situ("ScaledSiTUGLU", 4, 25)}), {{17, 384}}}};
}

std::vector<OpGrid> allGrids() {
  std::vector<OpGrid> grids;
  for (const auto& part : {structureGrids(), linearGrids(), normGrids(), activationGrids()})
    grids.insert(grids.end(), part.begin(), part.end());
  return grids;
}

INSTANTIATE_TEST_SUITE_P(BasicOps, TeGrids, ::testing::ValuesIn(allGrids()),
                         [](const auto& test) { return test.param.name; });

/// y and dx are x and dy times the mask that y shows, and the share of zeros is within its 99 % interval.
void expectDropped(const RunResults& results, const NamedTensors& data, double p, DType dtype) {
  const auto given = [&](const char* name) {
    return std::ranges::find(data, name, &NamedTensors::value_type::first)->second.toDoubles();
  };
  const std::vector<double> x = given("x");
  const std::vector<double> dy = given("grad.y");
  const std::vector<double>& y = results.at("y");
  std::vector<double> expectedY;
  std::vector<double> expectedDx;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double mask = y[i] != 0.0 ? 1 / (1 - p) : 0.0;
    expectedY.push_back(x[i] * mask);
    expectedDx.push_back(dy[i] * mask);
  }
  EXPECT_TRUE(allClose(y, expectedY, toleranceOf(dtype)));
  EXPECT_TRUE(allClose(results.at("grad.x"), expectedDx, toleranceOf(dtype)));
  const auto n = static_cast<double>(y.size());
  const double observed = static_cast<double>(std::ranges::count(y, 0.0)) / n;
  EXPECT_LT(std::abs(observed - p) / std::sqrt(p * (1 - p) / n), 2.5758) << p << " of " << n;
}

TEST(TeGridsOfDropout, HoldInTraining) {
  for (const double p : {0.0625, 0.5, 0.75})
    for (const Shape& shape : {Shape{101}, {2, 4, 16}, {128, 128}})
      for (const DType dtype : kFloatTypes) {
        const Graph graph = chain(dtype, shape, {with(link("Dropout", "drop"), "p", p)});
        const NamedTensors data = uniformData(graph, 1.0);  // zeros must be those of the dropout
        expectDropped(runOf(graph, cpu::makeCpuBackend(), data), data, p, dtype);
      }
}

TEST(TeGridsOfDropout, AreExactInEvaluation) {
  const Graph graph = chain(DType::BF16, {128, 128}, {link("Dropout")}, {.pass = ExecutionMode::Inference});
  const NamedTensors data = uniformData(graph, 1.0);
  EXPECT_EQ(runOf(graph, cpu::makeCpuBackend(), data).at("y"), data.front().second.toDoubles());
}

}  // namespace
}  // namespace fuseline
