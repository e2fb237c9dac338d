// GroupedLinear under recipes: every group multiplies its rows and its weight as quantized by its own quantizers.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/plan/plan.h"
#include "core/quant/apply_recipe.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "core/tensor/grouped_copy.h"
#include "core/tensor/scaling.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/compare.h"
#include "tests/support/grouped_values.h"
#include "tests/support/pipelines.h"
#include "tests/support/recipes.h"
#include "tests/support/run_plan.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

using List = std::vector<std::int64_t>;

constexpr std::int64_t kSize = 128;

struct Form {
  List sizes = {128, 0, 128};
  DType dtype = DType::BF16;
  bool isSingle = false;
  bool isScaled = false;
  bool isDelayed = false;
  ExecutionMode pass = ExecutionMode::Training;

  std::int64_t rows() const { return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}); }
};

Graph graphOf(const Form& form) {
  Link link = with(testing::link("GroupedLinear", "experts"), "num_groups", std::ssize(form.sizes));
  link.attributes.set("out_features", kSize);
  link.attributes.set("scale_bias", form.isScaled);
  link.attributes.set("single_grouped_weight", form.isSingle);
  link.attributes.set("delay_wgrad_compute", form.isDelayed);
  return chain(form.dtype, {form.rows(), kSize}, {link}, {.pass = form.pass});
}

/// Groups of different magnitude, so that a scale of another group would show.
NamedTensors bindingsOf(const Graph& graph, const Form& form) {
  NamedTensors bindings = *makeBindings(graph, 1);
  for (auto& [name, tensor] : bindings) {
    if (name == "experts_split_sizes")
      tensor = Tensor::fromDoubles(tensor.spec, std::vector<double>(form.sizes.begin(), form.sizes.end()));
    if (name != "x" && name != "grad.y") continue;
    std::vector<double> values = tensor.toDoubles();
    std::size_t at = 0;
    for (std::size_t group = 0; group < form.sizes.size(); ++group)
      for (const std::size_t end = at + static_cast<std::size_t>(form.sizes[group] * kSize); at < end; ++at)
        values[at] *= static_cast<double>(1 + 3 * group);
    tensor = Tensor::fromDoubles(tensor.spec, values);
  }
  return bindings;
}

/// Rows [first, first + count), or the matrix at that index, as a separate tensor.
Tensor rowsOf(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  const std::vector<double> values = tensor.toDoubles();
  const std::int64_t cols = tensor.spec.cols();
  return Tensor::fromDoubles({tensor.spec.dtype, {count, cols}},
                             {values.begin() + first * cols, values.begin() + (first + count) * cols});
}

class Expectation {
 public:
  Expectation(const Recipe& recipe, const Form& form, const NamedTensors& bindings)
      : m_recipe(recipe), m_form(form), m_bindings(bindings) {}

  RunResults results() const {
    RunResults results = {{"y", groupedResults(valuesFor(GemmRole::Fprop)).y}};
    if (m_form.pass == ExecutionMode::Inference) return results;
    results["grad.x"] = groupedResults(valuesFor(GemmRole::Dgrad)).gradX;
    addWeightGradients(results);
    addBiasGradients(results);
    return results;
  }

 private:
  GroupedValues plainValues() const {
    GroupedValues values{.sizes = m_form.sizes, .K = kSize, .N = kSize};
    values.x = find(m_bindings, "x").toDoubles();
    if (m_form.pass == ExecutionMode::Training) values.gradY = find(m_bindings, "grad.y").toDoubles();
    if (m_form.isScaled) values.scales = find(m_bindings, "experts_scales").toDoubles();
    for (std::size_t group = 0; group < m_form.sizes.size(); ++group) {
      values.weights.push_back(weight(group).toDoubles());
      values.biases.push_back(find(m_bindings, fmt::format("experts.bias{}", group)).toDoubles());
    }
    return values;
  }

  /// With the operands of one GEMM as the recipe makes them, each group by itself.
  GroupedValues valuesFor(GemmRole gemm) const {
    GroupedValues values = plainValues();
    if (gemm != GemmRole::Dgrad) values.x = byGroups("x", {TensorType::Input, gemm});
    if (gemm != GemmRole::Fprop) values.gradY = byGroups("grad.y", {TensorType::GradOutput, gemm});
    if (gemm == GemmRole::Wgrad) return values;
    for (std::size_t group = 0; group < values.weights.size(); ++group)
      values.weights[group] =
          operandValues(m_recipe, weight(group), {TensorType::Weight, gemm}, fmt::format("experts.weight{}", group));
    return values;
  }

  Tensor weight(std::size_t group) const {
    if (!m_form.isSingle) return find(m_bindings, fmt::format("experts.weight{}", group));
    return rowsOf(find(m_bindings, "experts.weight"), static_cast<std::int64_t>(group) * kSize, kSize);
  }

  std::vector<double> byGroups(const char* tensor, OperandRole role) const {
    std::vector<double> all;
    std::int64_t first = 0;
    for (std::size_t group = 0; group < m_form.sizes.size(); first += m_form.sizes[group++]) {
      const Tensor rows = rowsOf(find(m_bindings, tensor), first, m_form.sizes[group]);
      const std::vector<double> values =
          operandValues(m_recipe, rows, role, fmt::format("experts.{}{}", roleName(role.tensor), group));
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  void addWeightGradients(RunResults& results) const {
    const auto gradients = groupedResults(valuesFor(GemmRole::Wgrad)).gradWeights;
    if (m_form.isSingle) results["grad.experts.weight"] = joined(gradients);
    for (std::size_t group = 0; group < gradients.size() && !m_form.isSingle; ++group)
      results[fmt::format("grad.experts.weight{}", group)] = gradients[group];
  }

  /// The sums of biases are no GEMM: they take the gradient as it is.
  void addBiasGradients(RunResults& results) const {
    const GroupedResults plain = groupedResults(plainValues());
    for (std::size_t group = 0; group < plain.gradBiases.size(); ++group)
      results[fmt::format("grad.experts.bias{}", group)] = plain.gradBiases[group];
    if (m_form.isScaled) results["grad.experts_scales"] = plain.gradScales;
  }

  const Recipe& m_recipe;
  const Form& m_form;
  const NamedTensors& m_bindings;
};

void expectLikeTheFormulas(const Recipe& recipe, const Form& form,
                           const std::vector<std::shared_ptr<Backend>>& backends = {makeReferenceBackend(),
                                                                                    cpu::makeCpuBackend()}) {
  const Graph graph = under(recipe, graphOf(form));
  const NamedTensors bindings = bindingsOf(graph, form);
  const RunResults expected = Expectation(recipe, form, bindings).results();
  for (const auto& backend : backends)
    EXPECT_EQ(firstDifference(runPlan(graph, unfused(graph), backend, 1, bindings), expected,
                              toleranceOf(form.dtype).relative),
              "")
        << backend->device().id;
}

class GroupedRecipe : public ::testing::TestWithParam<const RecipeDefinition*> {
 protected:
  Recipe tested() const { return recipe(GetParam()->name); }
};

TEST_P(GroupedRecipe, MultipliesWhatTheQuantizersOfEachGroupMake) { expectLikeTheFormulas(tested(), {}); }

TEST_P(GroupedRecipe, MultipliesTheWeightsOfOneParameter) {
  expectLikeTheFormulas(tested(), {.isSingle = true, .isScaled = true});
}

TEST_P(GroupedRecipe, MultipliesInEveryDtype) {
  for (const DType dtype : {DType::F32, DType::F16})
    expectLikeTheFormulas(tested(), {.sizes = {128, 128}, .dtype = dtype}, {cpu::makeCpuBackend()});
}

TEST_P(GroupedRecipe, WorksWithoutNativeBf16Products) {
  expectLikeTheFormulas(tested(), {.sizes = {128, 128}},
                        {cpu::makeCpuBackend({.bf16Gemm = cpu::CpuOptions::Bf16Gemm::ThroughF32})});
}

TEST_P(GroupedRecipe, RunsInInference) { expectLikeTheFormulas(tested(), {.pass = ExecutionMode::Inference}); }

/// The least multiple of rows that the GEMMs of a group take in this direction.
std::int64_t rowsOf(const RecipeDefinition& definition, Usage direction) {
  return gemmMultiples(under(recipe(definition.name), graphOf({})).node(0).quantizers.input.rowwise->scaling, direction)
      .rows;
}

/// Groups end within blocks of 128, and some are larger than one.
TEST_P(GroupedRecipe, MultipliesGroupsOfTheFewestRows) {
  const std::int64_t rows = rowsOf(*GetParam(), Usage::Columnwise);
  for (const bool isSingle : {false, true})
    expectLikeTheFormulas(tested(), {.sizes = {rows, 0, 9 * rows, 3 * rows, 3 * rows}, .isSingle = isSingle});
}

TEST_P(GroupedRecipe, InfersOnGroupsOfTheFewestRows) {
  const std::int64_t rows = rowsOf(*GetParam(), Usage::Rowwise);
  expectLikeTheFormulas(tested(), {.sizes = {rows, 17 * rows, 0, 6 * rows}, .pass = ExecutionMode::Inference});
}

TEST_P(GroupedRecipe, StoresWeightsQuantizedIfAsked) {
  Attributes fields;
  fields.set(kQuantizedModelInit, true);
  for (const bool isSingle : {false, true}) {
    const Form form{.isSingle = isSingle};
    const Graph stored = under(recipe(GetParam()->name, fields), graphOf(form));
    const Graph plain = under(tested(), graphOf(form));
    const NamedTensors bindings = bindingsOf(plain, form);
    EXPECT_EQ(runPlan(stored, unfused(stored), cpu::makeCpuBackend(), 1, bindings),
              runPlan(plain, unfused(plain), cpu::makeCpuBackend(), 1, bindings));
    EXPECT_LT(makePlan(stored, unfused(stored)).peakBytes(), makePlan(plain, unfused(plain)).peakBytes());
  }
}

TEST_P(GroupedRecipe, GivesTheSameBitsWhenWeightGradientsWait) {
  for (const bool isScaled : {false, true}) {
    const Graph prompt = under(tested(), graphOf({.isScaled = isScaled}));
    const Graph delayed = under(tested(), graphOf({.isScaled = isScaled, .isDelayed = true}));
    const NamedTensors bindings = bindingsOf(prompt, {.isScaled = isScaled});
    for (const auto& backend : {makeReferenceBackend(), cpu::makeCpuBackend()})
      EXPECT_EQ(runPlan(delayed, unfused(delayed), backend, 1, bindings),
                runPlan(prompt, unfused(prompt), backend, 1, bindings));
  }
}

TEST_P(GroupedRecipe, RunsOnGroupsThatAreDrawn) {
  const Graph graph = under(tested(), graphOf({}));
  EXPECT_NO_THROW(runPlan(graph, unfused(graph), cpu::makeCpuBackend()));
}

TEST_P(GroupedRecipe, RefusesGroupsThatDoNotFit) {
  const Form form{.sizes = {128, 120, 136}};
  const Graph graph = under(tested(), graphOf(form));
  const Scaling scaling = graph.node(0).quantizers.input.rowwise->scaling;
  const std::int64_t alignment = gemmMultiples(scaling, Usage::Columnwise).rows;
  for (const auto& backend : {makeReferenceBackend(), cpu::makeCpuBackend()}) {
    const Plan plan = makePlan(graph, unfused(graph));
    const auto executor = *Executor::create(backend, graph, plan, bindingsOf(graph, form));
    const auto outcome = executor->run();
    ASSERT_FALSE(outcome.hasValue());
    EXPECT_EQ(
        outcome.error().message,
        fmt::format("experts.quantize_input (quantize, forward): experts: group 1 has 120 rows, but scaling {} "
                    "needs multiples of {}. Pad it to 128 rows with align_size of MoEPermute, or choose other sizes.",
                    traitsOf(scaling).name, alignment));
  }
}

TEST_P(GroupedRecipe, KeepsCodesForBackward) {
  const auto saved = [](const Graph& graph) { return makePlan(graph, unfused(graph)).savedForBackwardBytes; };
  const std::vector<Link> links = {link("GELU"), with(link("GroupedLinear"), "out_features", kSize)};
  const Graph plain = chain(DType::BF16, {512, kSize}, links);
  const Graph quantized = under(tested(), chain(DType::BF16, {512, kSize}, links));
  const std::int64_t codesOfWeights = 3 * kSize * kSize;
  EXPECT_EQ(saved(plain), 512 * kSize * 2);
  EXPECT_LT(saved(quantized) - codesOfWeights, 512 * kSize * 5 / 4);
}

INSTANTIATE_TEST_SUITE_P(Builtin, GroupedRecipe, ::testing::ValuesIn(quantizingRecipes()),
                         [](const auto& test) { return test.param->name; });

/// TransformerEngine 2.20: get_align_size_for_quantization() is 32 for MXFP8; other GEMMs contract multiples of 16.
TEST(GroupedRecipes, TakeTheRowsThatTransformerEngineTakes) {
  for (const RecipeDefinition* definition : quantizingRecipes())
    EXPECT_EQ(rowsOf(*definition, Usage::Columnwise), definition->name == "MXFP8BlockScaling" ? 32 : 16)
        << definition->name;
  EXPECT_EQ(rowsOf(*findRecipe("Float8BlockScaling"), Usage::Rowwise), 8);
}

/// Every quantized tensor of a group lies within the memory that is planned for all of them.
TEST(GroupedCopies, FitTheirMemory) {
  for (const RecipeDefinition* definition : quantizingRecipes())
    for (const OperandRole role : operandRoles()) {
      const std::optional<QuantizerSpec> quantizer = recipe(definition->name).quantizerFor(role);
      if (!quantizer) continue;
      const Usage direction = directionOf(role);
      const std::int64_t rows = gemmMultiples(quantizer->scaling, direction).rows;
      for (const List& sizes : {List{rows}, {rows, rows, rows}, {9 * rows, 0, rows}, {0, 0}, {7 * rows, 17 * rows}}) {
        TensorSpec copy{DType::BF16,
                        {std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}), 144},
                        formOf(*quantizer, direction)};
        copy.quantized->numGroups = std::ssize(sizes);
        const GroupCopy last = groupCopies(copy, sizes).back();
        EXPECT_LE(last.offset + last.spec.bytes(), copy.bytes()) << definition->name << ' ' << toString(sizes);
      }
    }
}

double amaxOf(const std::vector<double>& values, std::int64_t first, std::int64_t count) {
  double amax = 0.0;
  for (std::int64_t i = first; i < first + count; ++i)
    amax = std::max(amax, std::abs(values[static_cast<std::size_t>(i)]));
  return amax;
}

TEST(GroupedDelayedScaling, HasAScaleForEachGroup) {
  const Form form;
  const Graph graph = under(recipe("DelayedScaling"), graphOf(form));
  const Plan plan = makePlan(graph, unfused(graph));
  const NamedTensors bindings = bindingsOf(graph, form);
  const std::vector<double> x = find(bindings, "x").toDoubles();
  for (const auto& backend : {makeReferenceBackend(), cpu::makeCpuBackend()}) {
    const auto executor = *Executor::create(backend, graph, plan, bindings);
    ASSERT_TRUE(executor->run().hasValue());
    std::int64_t first = 0;
    for (std::size_t group = 0; group < form.sizes.size(); ++group) {
      const double amax = amaxOf(x, first * kSize, form.sizes[group] * kSize);
      const double expected = amax == 0.0 ? 1.0 : 448.0 / amax;
      const std::string name = fmt::format("DelayedScaling-HYBRID/experts/forward/input{}.scale", group);
      EXPECT_NEAR(executor->read(name)->toDoubles().front(), expected, 1e-6 * expected) << name;
      first += form.sizes[group];
    }
  }
}

TEST(GroupedRecipes, SayWhichSizeDoesNotFit) {
  std::vector<Diagnostic> diagnostics;
  const Graph graph = applyRecipe(graphOf({.sizes = {64, 36}}), recipe("MXFP8BlockScaling"), diagnostics);
  ASSERT_EQ(diagnostics.size(), 1U);
  EXPECT_EQ(diagnostics.front().message,
            "experts stays in bf16: its input is 100 x 128, but MXFP8BlockScaling needs multiples of 32. Pad it to "
            "[128, 128] to quantize it.");
  EXPECT_FALSE(graph.nodes().front().quantizers.any());
}

}  // namespace
}  // namespace fuseline
