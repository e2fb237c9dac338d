// The arguments of TransformerEngine's recipes, 2.19 and 2.20: transformer_engine/common/recipe.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/te_recipe.h"

#include "core/export/te/python_text.h"

#include <array>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Not defaults that TransformerEngine has, too, and that nothing but an argument changes.
bool isWorthWriting(const Recipe& recipe, std::string_view name) {
  const bool isRare = name.starts_with("fp8_dpa") || name.starts_with("fp8_mha") || name.starts_with("four_over_six") ||
                      name == "row_scaled_activation" || name == "fp4_format" ||
                      name.starts_with("split_accumulator") || name.starts_with("amax_epsilon");
  return !isRare || recipe.fields().get(name) != recipe.definition().field(name)->defaultValue;
}

std::string gemmArgument(std::string_view name, bool isSplit) {
  return fmt::format("fp8_gemm_{}=recipe.MMParams(use_split_accumulator={})", name.substr(name.rfind('_') + 1),
                     pythonBool(isSplit));
}

/// Nothing for what scalesText() says.
std::string argumentOf(const Recipe& recipe, const std::string& name) {
  const Attributes& fields = recipe.fields();
  if (name.starts_with("amax_epsilon")) return {};
  if (name.starts_with("split_accumulator")) return gemmArgument(name, fields.boolean(name));
  if (name == "use_power_2_scales" && recipe.name() == "Float8BlockScaling")
    return "use_f32_scales=" + pythonBool(!fields.boolean(name));
  if (name.ends_with("_format")) return fmt::format("{}=recipe.Format.{}", name, fields.text(name));
  const AttributeValue& value = fields.get(name);
  if (const auto* text = std::get_if<std::string>(&value))
    return fmt::format("{}={}", name, *text == "none" ? "None" : pythonText(*text));
  if (const auto* flag = std::get_if<bool>(&value)) return fmt::format("{}={}", name, pythonBool(*flag));
  return fmt::format("{}={}", name, toString(value));
}

/// TransformerEngine takes these from the class, whatever its arguments were, so they are set behind it.
std::string scalesText(const Recipe& recipe) {
  if (!recipe.definition().field("use_power_2_scales")) return {};
  constexpr std::array kTensors = {std::pair("fwd_inp", "input"), std::pair("fwd_weight", "weight"),
                                   std::pair("bwd_grad", "grad_output")};
  std::string text;
  for (const auto& [te, ours] : kTensors)
    text += statement(fmt::format("RECIPE.fp8_quant_{} = ", te),
                      {"recipe.QParams",
                       {"power_2_scale=" + pythonBool(recipe.fields().boolean("use_power_2_scales")),
                        "amax_epsilon=" + pythonNumber(recipe.fields().real(fmt::format("amax_epsilon_{}", ours)))}},
                      "", 0);
  return text;
}

}  // namespace

TeRecipe teRecipe(const std::optional<Recipe>& recipe) {
  if (!recipe || !recipe->definition().quantizer) return {.text = "RECIPE = None\n"};
  PythonCall call{.callee = "recipe." + recipe->name()};
  for (const AttributeSpec& field : recipe->definition().fields)
    if (isWorthWriting(*recipe, field.name))
      if (std::string argument = argumentOf(*recipe, field.name); !argument.empty())
        call.arguments.push_back(std::move(argument));
  TeRecipe result{.text = statement("RECIPE = ", call, "", 0) + scalesText(*recipe)};
  if (!recipe->overrides().empty())
    result.notes.push_back(fmt::format(
        "The recipe has {} override(s) of single GEMMs; TransformerEngine's {} has none, so there every linear "
        "op is quantized alike.",
        recipe->overrides().size(), recipe->name()));
  return result;
}

}  // namespace fuseline
