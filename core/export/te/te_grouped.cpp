// The conditions of is_op_fuser_grouped_tensor_path_supported in ops/basic/grouped_linear.py, and the checks of the
// kernels that it selects (cast/core/grouped_layout.cuh, fp8_blockwise/group_quantize_fp8_blockwise.cuh).
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/te_grouped.h"

#include "core/export/te/te_operation.h"
#include "core/quant/apply_recipe.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr ComputeCapability kHopper = {9, 0};
constexpr ComputeCapability kBlackwell = {10, 0};
constexpr ComputeCapability kNewest = {11, 0};
constexpr int kRowsOfGroup = 128;

bool isNamed(const std::optional<Recipe>& recipe, const char* name) { return recipe && recipe->name() == name; }

/// NVFP4's grouped kernels always transform, and scale whole tensors.
bool hasGroupedKernels(const Recipe& recipe) {
  if (recipe.definition().isCustom || recipe.definition().hasState) return false;
  if (recipe.name() != "NVFP4BlockScaling") return true;
  return !recipe.fields().boolean("disable_rht") && !recipe.fields().boolean("row_scaled_activation");
}

/// The oldest cuBLASLt whose grouped GEMM TransformerEngine uses on such a GPU with kernels for whole blocks of 128
/// rows; nullptr: it uses other kernels there.
const char* cublasOfWholeBlocks(const Recipe& recipe, ComputeCapability capability) {
  if (!hasGroupedKernels(recipe) || kNewest < capability) return nullptr;
  if (recipe.name() == "Float8BlockScaling") return kHopper <= capability && capability < kBlackwell ? "13.6" : nullptr;
  const bool isOfBlocks = recipe.name() == "MXFP8BlockScaling" || recipe.name() == "NVFP4BlockScaling";
  return isOfBlocks && kBlackwell <= capability ? "13.3" : nullptr;
}

}  // namespace

const char* singleParameterOf(const Node& node) {
  for (const char* attribute : {"single_grouped_weight", "single_grouped_bias"})
    if (node.attributes.has(attribute) && node.attributes.boolean(attribute)) return attribute;
  return nullptr;
}

Verdict takesSingleParameter(const Node& node, const std::optional<Recipe>& recipe) {
  const char* const attribute = singleParameterOf(node);
  if (!attribute || isWrittenApart(node)) return Verdict::yes();
  const bool isQuantized = node.quantizers.any() || isNamed(recipe, "CustomRecipe");
  if (isQuantized && !hasGroupedKernels(*recipe))
    return Verdict::no(fmt::format(
        "{}: te.ops.GroupedLinear does not support {} under {}{}. Set {} to false, or choose another recipe.", node.id,
        attribute, recipe->name(),
        isNamed(recipe, "NVFP4BlockScaling") ? " without its transform or with row scales" : "", attribute));
  return Verdict::yes();
}

std::vector<std::string> groupRowNotes(const Graph& graph, const std::optional<Recipe>& recipe,
                                       ComputeCapability capability) {
  std::vector<std::string> notes;
  const char* const cublas = recipe ? cublasOfWholeBlocks(*recipe, capability) : nullptr;
  if (!cublas) return notes;
  for (const Node& node : graph.nodes())
    if (rowGroups(node) > 0 && node.quantizers.any() && graph.value(node.outputs.front()).spec.dtype != DType::F32)
      notes.push_back(
          fmt::format("{}: with cuBLASLt {} or newer on {}, TransformerEngine's grouped kernels need multiples of {} "
                      "rows in each group under {}. Pad the groups.",
                      node.id, cublas, toString(capability), kRowsOfGroup, recipe->name()));
  return notes;
}

}  // namespace fuseline
