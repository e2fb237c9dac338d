// Builds the problems in the way in which the kernels of linear layers do.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/machine/recipe_probe.h"

#include "core/tensor/scaling.h"
#include "kernels/cuda/gemm/cublaslt_product.h"
#include "kernels/cuda/gemm/factor.h"
#include "kernels/cuda/gemm/gemm_layout.h"
#include "kernels/cuda/gemm/linear_parts.h"
#include "kernels/cuda/machine/library_versions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cuda {

namespace {

/// A multiple required by every scaling.
constexpr std::int64_t kLayerExtent = 4096;

Binding matrix(const std::optional<QuantizerSpec>& quantizer = {}, Usage direction = Usage::Rowwise) {
  Binding binding{.index = 0, .spec = {DType::BF16, {kLayerExtent, kLayerExtent}}};
  if (quantizer) binding.spec.quantized = formOf(*quantizer, direction);
  return binding;
}

GemmProblem problemOf(const Recipe& recipe, GemmRole role) {
  const auto operand = [&](TensorType tensor) {
    const OperandRole place{tensor, role};
    return matrix(recipe.quantizerFor(place), directionOf(place));
  };
  const LinearSize size{.m = kLayerExtent, .n = kLayerExtent, .k = kLayerExtent};
  switch (role) {
    case GemmRole::Fprop:
      return forwardProblem(size, operand(TensorType::Input), operand(TensorType::Weight), matrix().spec);
    case GemmRole::Dgrad:
      return inputGradProblem(size, operand(TensorType::GradOutput), operand(TensorType::Weight), matrix().spec);
    case GemmRole::Wgrad: break;
  }
  return weightGradProblem(size, operand(TensorType::GradOutput), operand(TensorType::Input), matrix());
}

/// The first GEMM that the library does not support. A description that it refuses is an answer, too.
std::optional<RecipeProduct> refusedProduct(const CublasLtSession& session, const Recipe& recipe,
                                            ComputeCapability gpu) {
  for (RecipeProduct& product : productsOf(recipe, gpu)) {
    const auto described = describeProduct(session, product.problem, termsOf(product.problem));
    if (!described || !(*described)->isOffered()) return std::move(product);
  }
  return std::nullopt;
}

/// "dgrad (e4m3 in mx_1x32 and e4m3 in mx_1x32, layout NN)", in the library's terms, whose matrices are column-major.
std::string textOf(const RecipeProduct& product) {
  const auto codes = [](const FactorCodes& factor) {
    return fmt::format("{} in {}", formatName(factor.format), traitsOf(factor.scaling).name);
  };
  const CublasLayout layout = layoutOf(product.problem);
  return fmt::format("{} ({} and {}, layout {}{})", roleName(product.role), codes(*product.problem.aCodes),
                     codes(*product.problem.bCodes), layout.isATransposed ? 'T' : 'N',
                     layout.isBTransposed ? 'T' : 'N');
}

std::vector<std::string> multipliedRecipes(const CublasLtSession& session, ComputeCapability gpu) {
  std::vector<std::string> names;
  for (const RecipeDefinition& definition : builtinRecipes())
    if (const Result<Recipe> recipe = Recipe::create(definition);
        recipe && !definition.isCustom && fieldsFit(*recipe, gpu) && !refusedProduct(session, *recipe, gpu))
      names.push_back(definition.name);
  return names;
}

}  // namespace

std::vector<RecipeProduct> productsOf(const Recipe& recipe, ComputeCapability gpu) {
  std::vector<RecipeProduct> products;
  for (const GemmRole role : {GemmRole::Fprop, GemmRole::Dgrad, GemmRole::Wgrad}) {
    const GemmProblem problem = problemOf(recipe, role);
    const FactorWay way = factorWayOf(problem, gpu);
    if (problem.aCodes && way != FactorWay::Decoded) products.push_back({role, inWay(problem, way)});
  }
  return products;
}

Verdict probeRecipe(const CublasLtSession& session, const Recipe& recipe, ComputeCapability gpu) {
  if (const Verdict fields = fieldsFit(recipe, gpu); !fields) return fields;
  const std::optional<RecipeProduct> refused = refusedProduct(session, recipe, gpu);
  if (!refused) return Verdict::yes();
  return Verdict::no(
      fmt::format("{}: cuBLASLt {} has no algorithm for {} on this GPU, {}. Install a newer cuBLASLt, or choose "
                  "another recipe. Valid values: {}.",
                  recipe.name(), formatCublasVersion(session.library().version()), textOf(*refused), toString(gpu),
                  fmt::join(multipliedRecipes(session, gpu), ", ")));
}

}  // namespace fuseline::cuda
