// The quantized parameter grids of TransformerEngine's tests, with its recipes, its data
// and its tolerances: the CPU and the reference device under a recipe against the float64 formulas without one, on
// operands that were rounded to values that the recipe can represent.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/quant/apply_recipe.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/compare.h"
#include "tests/support/pipelines.h"
#include "tests/support/recipes.h"
#include "tests/support/run_plan.h"

#include <functional>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

// ---- cases

/// Tolerance of a comparison.
enum class Expected { Exact, Std, Quantized };

/// An op or a chain of them on the shapes of its main input.
struct GridCase {
  std::vector<Link> links;
  std::vector<Shape> shapes;
  Expected expected = Expected::Quantized;
  /// The entries of the fused lists, where the case is about fusions: "ForwardLinearScaleAdd, Quantize".
  std::string forward = {};
  std::string backward = {};
  /// Fused by 16-bit GEMMs only.
  bool is16BitOnly = false;
  /// With 128 rows, for recipes with blocks that fit none of the shapes.
  std::int64_t wideColumns = 128;
  std::vector<RoleOverride> overrides = {};

  bool isFused() const { return !forward.empty() || !backward.empty(); }
};

/// Between Quantize(backward) and Quantize(forward).
std::vector<Link> sandwiched(Link link) {
  return {quantizeLink(false, true), std::move(link), quantizeLink(true, false)};
}

// ---- comparison

std::string entryNames(const Graph& graph, const std::vector<FusedOperation>& entries) {
  std::string names;
  for (const FusedOperation& entry : entries) names += (names.empty() ? "" : ", ") + entry.name(graph);
  return names;
}

/// The matrices of linear ops, which tests call linear or fc.
bool isWeight(const std::string& name) {
  return (name.starts_with("linear") || name.starts_with("fc")) && name.find(".weight") != std::string::npos;
}

bool isActivation(const std::string& name) { return name.find('.') == std::string::npos || name == "grad.y"; }

/// Rounds x, weights and gradients to representable values, with the quantizers of forward.
void roundToCodes(const Recipe& recipe, NamedTensors& data) {
  for (auto& [name, tensor] : data) {
    const bool isRounded = isWeight(name) || (isActivation(name) && !name.ends_with("scales"));
    if (!isRounded || !isFloat(tensor.spec.dtype)) continue;
    const OperandRole role{isWeight(name) ? TensorType::Weight : TensorType::Input, GemmRole::Fprop};
    tensor = Tensor::fromDoubles(tensor.spec, operandValues(recipe, tensor, role, ""));
  }
}

class TeRecipeGrids : public ::testing::TestWithParam<TeRecipe> {
 protected:
  /// Output features that fit the recipe.
  static std::int64_t width() { return GetParam().name == "fp8_block" ? 128 : 32; }

  void expectAll(const std::vector<GridCase>& cases) {
    for (const GridCase& one : cases) {
      m_numRuns = 0;
      for (const Shape& shape : one.shapes) expectInAllDtypes(one, shape);
      if (m_numRuns == 0) expectInAllDtypes(one, {128, one.wideColumns});
      EXPECT_GT(m_numRuns, 0) << "no shape fits " << one.links.front().operation;
    }
  }

 private:
  Tolerance toleranceFor(const GridCase& one, DType dtype) const {
    if (one.expected == Expected::Exact) return {};
    return one.expected == Expected::Std ? toleranceOf(dtype) : GetParam().tolerance;
  }

  void expectInAllDtypes(const GridCase& one, const Shape& shape) {
    for (const DType dtype : GetParam().dtypes())
      if (!one.is16BitOnly || dtype != DType::F32) expectLikeTheFormulas(one, shape, dtype);
  }

  /// TransformerEngine skips shapes that do not fit the blocks.
  void expectLikeTheFormulas(const GridCase& one, const Shape& shape, DType dtype) {
    const Recipe recipe = GetParam().make(one.overrides);
    const Graph plain = chain(dtype, shape, one.links);
    std::vector<Diagnostic> misfits;
    const Graph graph = applyRecipe(chain(dtype, shape, one.links), recipe, misfits);
    if (!misfits.empty()) return;
    NamedTensors data = uniformData(plain);
    roundToCodes(GetParam().make(), data);
    const RunResults expected = runPlan(plain, unfused(plain), makeReferenceBackend(), 1234, data);
    const auto expectOn = [&](const std::shared_ptr<Backend>& backend) {
      expectClose(graph, runPlan(graph, reportOf(one, graph, backend), backend, 1234, data), expected,
                  toleranceFor(one, dtype));
    };
    expectOn(cpu::makeCpuBackend());
    if (dtype == DType::BF16) expectOn(makeReferenceBackend());
    ++m_numRuns;
  }

  static FusionReport reportOf(const GridCase& one, const Graph& graph, const std::shared_ptr<Backend>& backend) {
    if (!one.isFused()) return unfused(graph);
    const FusionReport report = *fuse(graph, {.book = RuleBook::Te, .capabilities = capabilitiesOf(backend)});
    EXPECT_EQ(one.forward.empty() ? "" : entryNames(graph, report.forward), one.forward);
    EXPECT_EQ(one.backward.empty() ? "" : entryNames(graph, report.backward), one.backward);
    return report;
  }

  static void expectClose(const Graph& graph, const RunResults& actual, const RunResults& expected,
                          Tolerance tolerance) {
    EXPECT_EQ(actual.size(), expected.size());
    for (const auto& [name, values] : expected)
      EXPECT_TRUE(allClose(actual.at(name), values, tolerance)) << name << " of\n" << toString(graph);
  }

  int m_numRuns = 0;
};

TEST_P(TeRecipeGrids, HoldForOpsThatMultiplyNothing) {
  expectAll({{{link("Identity")}, {{32, 32}}, Expected::Exact},
             {{with(link("Reshape"), "shape", std::vector<std::int64_t>{-1, 64})}, {{4, 32, 32}}, Expected::Exact},
             {{link("Bias")}, {{32}, {1, 3, 32}, {4, 3, 8, 32}}, Expected::Std},
             {{inPlace(link("AddExtraInput"), false)}, {{32, 32}}, Expected::Std},
             {{inPlace(link("AddExtraInput"), true)}, {{32, 32}}, Expected::Std},
             {{inPlace(link("MakeExtraOutput"), false)}, {{32, 32}}, Expected::Std}});
}

/// As TransformerEngine's test of quantize; values that are rounded already do not change.
TEST_P(TeRecipeGrids, HoldForQuantize) {
  for (const bool forward : {false, true})
    for (const bool backward : {false, true}) expectAll({{{quantizeLink(forward, backward)}, {{32, 32}}}});
}

TEST_P(TeRecipeGrids, HoldForLinears) {
  const std::int64_t N = width();
  expectAll({{{linear(2 * N, "linear")}, {{4, 2, 4, 32}, {128, 32}}},
             {{linear(128, "linear")}, {{4, 2, 4, 128}, {128, 128}}},
             {{linear(N, "linear")}, {{32, 32}}},
             {{linear(N, "linear"), link("Bias")}, {{32, 32}}},
             {{quantizeLink(true, false), linear(N, "linear"), quantizeLink(false, true)}, {{32, 32}}}});
}

/// As TransformerEngine's test of basic_linear_quantized: the GEMM, and each of x, y, dy and dx, quantized or not. Its
/// sixth flag, a parameter that is stored quantized, cannot be requested in a document.
TEST_P(TeRecipeGrids, HoldForEveryMixOfQuantizedTensorsAroundALinear) {
  std::vector<GridCase> cases;
  for (unsigned flags = 0; flags < (1u << 5); ++flags) {
    const auto has = [&](unsigned bit) { return ((flags >> bit) & 1u) != 0; };
    GridCase one{.links = {quantizeLink(has(0), has(1)), linear(width(), "linear"), quantizeLink(has(2), has(3))},
                 .shapes = {{32, 32}}};
    if (!has(4)) one.overrides = {{.op = "linear"}};
    if (flags == 0) one.expected = Expected::Std;
    cases.push_back(std::move(one));
  }
  expectAll(cases);
}

/// As TransformerEngine's test of basic_linear with a buffer of float32 that the gradient is added to.
TEST_P(TeRecipeGrids, HoldForLinearsWithAMainGrad) {
  const Link product = with(linear(width(), "linear"), "accumulate_into_main_grad", true);
  expectAll({{{product}, {{32, 32}, {4, 2, 4, 32}}}});
}

/// As TransformerEngine's test of dropout: the mask belongs to the op, independent of x.
TEST_P(TeRecipeGrids, HoldForDropout) {
  std::vector<GridCase> cases;
  for (const double p : {0.0625, 0.5, 0.75})
    cases.push_back({{quantizeLink(true, false), with(link("Dropout", "drop"), "p", p)}, {{2, 4, 16}, {128, 128}}});
  expectAll(cases);
}

TEST_P(TeRecipeGrids, HoldForNorms) {
  std::vector<GridCase> cases;
  for (const char* operation : {"LayerNorm", "RMSNorm"})
    for (const bool isZeroCentered : {false, true}) {
      const Link norm = with(with(link(operation), "eps", 0.3), "zero_centered_gamma", isZeroCentered);
      cases.push_back({{norm, quantizeLink(true, false)}, {{6, 16, 32}, {6, 16, 64}}});
    }
  expectAll(cases);
}

TEST_P(TeRecipeGrids, HoldForActivations) {
  std::vector<GridCase> cases;
  for (const char* operation : {"GELU", "QGELU", "ReLU", "SReLU", "SiLU"})
    cases.push_back({sandwiched(link(operation)), {{32, 1, 32}}});
  for (const char* operation : {"GEGLU", "QGEGLU", "ReGLU", "GLU", "SReGLU", "SwiGLU"})
    cases.push_back({.links = sandwiched(link(operation)), .shapes = {{32, 1, 64}}, .wideColumns = 256});
  expectAll(cases);
}

TEST_P(TeRecipeGrids, HoldForGates) {
  const Link gate = with(with(link("ClampedSwiGLU"), "limit", 0.75), "alpha", 1.702);
  const Link situ = with(with(link("SiTUGLU"), "beta1", 4.0), "beta2", 25.0);
  std::vector<GridCase> cases = {{sandwiched(situ), {{256, 512}}}};
  for (const double offset : {0.0, 1.0})
    cases.push_back(
        {.links = sandwiched(with(gate, "glu_linear_offset", offset)), .shapes = {{32, 64}}, .wideColumns = 256});
  expectAll(cases);
}

// ---- fusions

TEST_P(TeRecipeGrids, HoldForForwardFusions) {
  const Link product = linear(width(), "linear");
  const Link add = inPlace(link("AddExtraInput"));
  const std::vector<Shape> shapes = {{32, 32}};
  std::vector<GridCase> cases = {
      {.links = {product, link("Bias")},
       .shapes = {{8, 2, 10, 64}},
       .forward = "ForwardLinearBiasActivation",
       .is16BitOnly = true},
      {.links = {product, link("Bias"), add}, .shapes = shapes, .forward = "ForwardLinearBiasAdd"},
      {.links = {product, add}, .shapes = shapes, .forward = "ForwardLinearBiasAdd"}};
  for (const double scale : {1.0, 0.0, -2.5, 3.5})
    cases.push_back({.links = {product, with(link("ConstantScale"), "scale", scale), add, quantizeLink(true, false)},
                     .shapes = shapes,
                     .forward = "ForwardLinearScaleAdd, Quantize"});
  expectAll(cases);
}

TEST_P(TeRecipeGrids, HoldForBackwardFusions) {
  const Link product = linear(width(), "linear");
  const std::vector<Shape> shapes = {{32, 32}};
  std::vector<GridCase> cases = {{.links = {inPlace(link("MakeExtraOutput", "save")), product},
                                  .shapes = shapes,
                                  .backward = "BackwardLinearAdd"}};
  for (const char* operation : {"ReLU", "GELU"})
    cases.push_back({.links = {quantizeLink(false, true), link("Bias"), link(operation)},
                     .shapes = {{32, 32}, {32, 1, 32}, {8, 2, 2, 32}},
                     .backward = "Quantize, BackwardActivationBias"});
  for (const double scale : {1.0, 0.0, -2.5, 3.5})
    cases.push_back({.links = {product, with(link("ConstantScale"), "scale", scale)},
                     .shapes = shapes,
                     .backward = "BackwardLinearScale"});
  expectAll(cases);
}

// ---- whole layers

/// low + (high - low) u, with u uniform.
void moveTo(double low, double high, Tensor& tensor) {
  std::vector<double> values = tensor.toDoubles();
  for (double& value : values) value = low + (high - low) * value;
  tensor = Tensor::fromDoubles(tensor.spec, values);
}

/// In one dtype, bf16: a layer takes as long as a whole grid.
void expectLayer(const Recipe& recipe, const std::vector<Link>& links, const Shape& shape, Tolerance tolerance,
                 const std::function<void(const std::string&, Tensor&)>& setData) {
  const Graph plain = chain(DType::BF16, shape, links);
  NamedTensors data = uniformData(plain);
  for (auto& [name, tensor] : data) setData(name, tensor);
  roundToCodes(recipe, data);
  const RunResults expected = runPlan(plain, unfused(plain), makeReferenceBackend(), 1, data);
  const Graph graph = under(recipe, chain(DType::BF16, shape, links));
  const auto backend = cpu::makeCpuBackend();
  for (const FusionReport& report : {unfused(graph), *fuse(graph, {.capabilities = capabilitiesOf(backend)})}) {
    const RunResults actual = runPlan(graph, report, backend, 1, data);
    for (const auto& [name, values] : expected) EXPECT_TRUE(allClose(actual.at(name), values, tolerance)) << name;
  }
}

/// Hidden size 256, 64 x 4 tokens, 384 features inside; weights in [0, 1/64), all else but x in [-0.5, 0.5).
TEST_P(TeRecipeGrids, HoldForALayerNormMlp) {
  const std::vector<Link> links = {link("LayerNorm"), linear(768, "linear1"), link("Bias"),
                                   link("SwiGLU"),    linear(256, "linear2"), link("Bias")};
  const auto setData = [](const std::string& name, Tensor& tensor) {
    if (name != "x") moveTo(isWeight(name) ? 0.0 : -0.5, isWeight(name) ? 1.0 / 64 : 0.5, tensor);
  };
  expectLayer(GetParam().make(), links, {64, 4, 256}, {.relative = 0.25, .absolute = 0.5}, setData);
}

/// 4 groups, hidden size 128; data and weights in [-0.25, 0.25), biases in [-0.5, 0.5), probabilities in [0, 1).
TEST_P(TeRecipeGrids, HoldForAGroupedMlp) {
  const auto experts = [](const char* id, std::int64_t N) {
    return with(with(link("GroupedLinear", id), "num_groups", std::int64_t{4}), "out_features", N);
  };
  const std::vector<Link> links = {experts("fc1", 256), link("ScaledSwiGLU", "act"),
                                   with(experts("fc2", 128), "scale_bias", true)};
  const auto setData = [](const std::string& name, Tensor& tensor) {
    const double bound = name.find("bias") != std::string::npos ? 0.5 : 0.25;
    if (name.ends_with("split_sizes"))
      tensor = Tensor::fromDoubles(tensor.spec, std::vector<double>{256, 0, 384, 128});
    else if (!name.ends_with("scales"))
      moveTo(-bound, bound, tensor);
  };
  expectLayer(GetParam().make(), links, {768, 128}, {.relative = 0.125, .absolute = 0.25}, setData);
}

INSTANTIATE_TEST_SUITE_P(Te, TeRecipeGrids, ::testing::ValuesIn(teRecipes()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace fuseline
