// Recipes in tests, and core/quant's quantized tensors under them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/quant/recipe.h"
#include "core/tensor/tensor.h"
#include "tests/support/compare.h"

#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace fuseline::testing {

/// Throws std::runtime_error with the sentence where it is refused.
Recipe recipe(const std::string& name, const Attributes& fields = {}, std::vector<RoleOverride> overrides = {});

/// Fails with the first warning, if there is one.
Graph under(const Recipe& recipe, Graph graph);

const Tensor& find(const NamedTensors& tensors, const std::string& name);

/// The values of x that a GEMM reads: dequantized from the tensor that core/quant quantizes, or x itself. name: the
/// stream of random bits. Delayed scales are 1, as in the first step.
std::vector<double> operandValues(const Recipe& recipe, const Tensor& x, OperandRole role, const std::string& name);

/// The five recipes that quantize without overrides, for INSTANTIATE_TEST_SUITE_P.
std::vector<const RecipeDefinition*> quantizingRecipes();

/// A recipe as TransformerEngine's tests set it up.
struct TeRecipe {
  std::string name;
  std::string recipe;
  std::vector<std::pair<std::string, AttributeValue>> fields;
  /// Tolerance of any quantized compute.
  Tolerance tolerance = toleranceOf(ElementFormat::E4M3);
  /// The combinations that the tests skip: other dtypes, and shapes that are no multiples.
  bool isBf16Only = false;

  Recipe make(std::vector<RoleOverride> overrides = {}) const;
  std::vector<DType> dtypes() const;
};

void PrintTo(const TeRecipe& recipe, std::ostream* out);

std::vector<TeRecipe> teRecipes();

}  // namespace fuseline::testing
