// The conditions of is_op_fuser_grouped_tensor_path_supported in ops/basic/grouped_linear.py, and the checks of the
// kernels that it selects (cast/core/grouped_layout.cuh, fp8_blockwise/group_quantize_fp8_blockwise.cuh).
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/te_grouped.h"

#include "core/quant/apply_recipe.h"
#include "core/quant/te_requirements.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr ComputeCapability kHopper = {9, 0};
constexpr ComputeCapability kBlackwell = {10, 0};
constexpr ComputeCapability kNewest = {11, 0};
constexpr int kRowsOfGroup = 128;

/// The oldest cuBLASLt whose grouped GEMM TransformerEngine uses on such a GPU with kernels for whole blocks of 128
/// rows; nullptr: it uses other kernels there.
const char* cublasOfWholeBlocks(const Recipe& recipe, ComputeCapability capability) {
  if (!hasGroupedKernels(recipe) || kNewest < capability) return nullptr;
  if (recipe.name() == "Float8BlockScaling") return kHopper <= capability && capability < kBlackwell ? "13.6" : nullptr;
  const bool isOfBlocks = recipe.name() == "MXFP8BlockScaling" || recipe.name() == "NVFP4BlockScaling";
  return isOfBlocks && kBlackwell <= capability ? "13.3" : nullptr;
}

}  // namespace

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
