// Recipes in tests, and core/quant's quantized tensors under them.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/recipes.h"

#include "core/quant/apply_recipe.h"
#include "core/quant/copy_memory.h"

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

namespace fuseline::testing {

Recipe recipe(const std::string& name, const Attributes& fields, std::vector<RoleOverride> overrides) {
  Result<Recipe> made = Recipe::create(*findRecipe(name), fields, std::move(overrides));
  if (!made) throw std::runtime_error(made.error().message);
  return *made;
}

Graph under(const Recipe& recipe, Graph graph) {
  std::vector<Diagnostic> diagnostics;
  Graph quantized = applyRecipe(std::move(graph), recipe, diagnostics);
  EXPECT_TRUE(diagnostics.empty()) << diagnostics.front().message;
  return quantized;
}

const Tensor& find(const NamedTensors& tensors, const std::string& name) {
  return std::ranges::find(tensors, name, &NamedTensors::value_type::first)->second;
}

std::vector<double> operandValues(const Recipe& recipe, const Tensor& x, OperandRole role, const std::string& name) {
  const std::optional<QuantizerSpec> quantizer = recipe.quantizerFor(role);
  if (!quantizer) return x.toDoubles();
  TensorSpec copy = x.spec;
  copy.quantized = formOf(*quantizer, directionOf(role));
  std::vector<std::byte> memory(static_cast<std::size_t>(copy.bytes()));
  QuantizerInputs inputs;
  inputs.name = name;
  if (quantizer->isDelayed) inputs.scale = 1.0F;
  EXPECT_TRUE(quantizeToMemory(x, *quantizer, inputs, copy, memory.data()).hasValue());
  return dequantizedValues(copy, memory.data());
}

std::vector<const RecipeDefinition*> quantizingRecipes() {
  std::vector<const RecipeDefinition*> all;
  for (const RecipeDefinition& definition : builtinRecipes())
    if (definition.quantizer && !definition.isCustom) all.push_back(&definition);
  return all;
}

Recipe TeRecipe::make(std::vector<RoleOverride> overrides) const {
  Attributes attributes;
  for (const auto& [field, value] : fields) attributes.set(field, value);
  return testing::recipe(recipe, attributes, std::move(overrides));
}

std::vector<DType> TeRecipe::dtypes() const {
  return isBf16Only ? std::vector{DType::BF16} : std::vector{DType::F32, DType::F16, DType::BF16};
}

void PrintTo(const TeRecipe& recipe, std::ostream* out) { *out << recipe.name; }

std::vector<TeRecipe> teRecipes() {
  const std::pair<std::string, AttributeValue> e4m3 = {"fp8_format", std::string("E4M3")};
  const std::vector<std::pair<std::string, AttributeValue>> plainFp4 = {{"disable_stochastic_rounding", true},
                                                                        {"disable_2d_quantization", true}};
  auto withoutTransform = plainFp4;
  withoutTransform.emplace_back("disable_rht", true);
  const Tolerance fp4 = toleranceOf(ElementFormat::E2M1);
  return {{"fp8_delayed", "DelayedScaling", {e4m3, {"amax_history_len", std::int64_t{8}}}},
          {"fp8_current", "Float8CurrentScaling", {e4m3}},
          {"mxfp8", "MXFP8BlockScaling", {e4m3}},
          {"fp8_block", "Float8BlockScaling", {}},
          {"nvfp4", "NVFP4BlockScaling", withoutTransform, fp4, true},
          {"nvfp4_rht", "NVFP4BlockScaling", plainFp4, fp4, true}};
}

}  // namespace fuseline::testing
