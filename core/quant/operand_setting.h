// One operand's quantizer as a setting of the command line: "fc1.weight.dgrad=MXFP8BlockScaling".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

/// Whether a key names an operand, [OP.]TENSOR[.GEMM] with the tensors input, weight, grad_output and all.
bool isOperandKey(std::string_view key);

/// Parses the value of such a key. text: e4m3, e5m2, e2m1, high_precision, or the beginning of a recipe's name, with
/// fields in brackets: "mxfp8", "Float8CurrentScaling(fp8_format=E4M3,use_power_2_scales=true)". After "~" the operand
/// is quantized from the dequantized forward tensor: "~nvfp4". Errors (Usage): any other text.
Result<RoleOverride> parseOperandSetting(std::string_view key, const std::string& text);

/// One item of a recipe's "overrides".
Json toJson(const RoleOverride& special);
/// The value that parseOperandSetting() reads, of such an item; its values need not be valid.
std::string operandSettingText(const Json& special);

/// The recipe of this definition with settings of its fields and of operands, in their order.
/// Errors (Usage): those of both, and of Recipe::create().
Result<Recipe> recipeWithSettings(const RecipeDefinition& definition,
                                  const std::vector<std::pair<std::string, std::string>>& settings);

}  // namespace fuseline
