// Recipes in tests, and what core/quant makes of tensors under them.
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
  if (recipe.definition().hasState) inputs.scale = 1.0F;
  EXPECT_TRUE(quantizeToMemory(x, *quantizer, inputs, copy, memory.data()).hasValue());
  return dequantizedValues(copy, memory.data());
}

std::vector<const RecipeDefinition*> quantizingRecipes() {
  std::vector<const RecipeDefinition*> all;
  for (const RecipeDefinition& definition : builtinRecipes())
    if (definition.quantizer) all.push_back(&definition);
  return all;
}

}  // namespace fuseline::testing
