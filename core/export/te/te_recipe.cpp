// The arguments of TransformerEngine's recipes, 2.19 and 2.20: transformer_engine/common/recipe.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/te_recipe.h"

#include "core/export/te/python_text.h"
#include "core/export/te/te_factory.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Defaults are TransformerEngine's own, and its environment variables may change them.
bool isDefault(const Recipe& recipe, const std::string& name) {
  return recipe.fields().get(name) == recipe.definition().field(name)->defaultValue;
}

std::string gemmArgument(std::string_view name, bool isSplit) {
  return fmt::format("fp8_gemm_{}=recipe.MMParams(use_split_accumulator={})", name.substr(name.rfind('_') + 1),
                     pythonBool(isSplit));
}

/// DelayedScaling takes no parameters of GEMMs: te.ops has constants for them.
bool isNoArgument(const Recipe& recipe, std::string_view name) {
  return recipe.name() == "DelayedScaling" && name.starts_with("split_accumulator");
}

/// Nothing for fields that scalesText() writes.
std::string argumentOf(const Recipe& recipe, const std::string& name) {
  const Attributes& fields = recipe.fields();
  if (name.starts_with("amax_epsilon")) return {};
  if (name.starts_with("split_accumulator")) return gemmArgument(name, fields.boolean(name));
  if (name == "use_power_2_scales" && recipe.name() == "Float8BlockScaling")
    return "use_f32_scales=" + pythonBool(!fields.boolean(name));
  if (name.ends_with("_format")) return fmt::format("{}=recipe.Format.{}", name, fields.text(name));
  const AttributeValue& value = fields.get(name);
  if (const auto* text = std::get_if<std::string>(&value))
    return fmt::format("{}={}", name, name == "backward_override" && *text == "none" ? "None" : pythonText(*text));
  if (const auto* flag = std::get_if<bool>(&value)) return fmt::format("{}={}", name, pythonBool(*flag));
  return fmt::format("{}={}", name, toString(value));
}

/// TransformerEngine takes these from the class and ignores its arguments, so they are set after the constructor.
std::string scalesText(const Recipe& recipe) {
  constexpr std::array<const char*, 4> kFields = {"use_power_2_scales", "amax_epsilon_input", "amax_epsilon_weight",
                                                  "amax_epsilon_grad_output"};
  const bool areSet = std::ranges::any_of(
      kFields, [&](const char* field) { return recipe.definition().field(field) && !isDefault(recipe, field); });
  if (!areSet) return {};
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

TeRecipe customRecipe(const Graph& graph, const Recipe& recipe) {
  TeFactory factory = teFactory(graph, recipe);
  PythonCall call{.callee = "recipe.CustomRecipe", .arguments = {fmt::format("qfactory={}", kQuantizerFactory)}};
  if (!isDefault(recipe, "backward_override")) call.arguments.push_back(argumentOf(recipe, "backward_override"));
  return {.text = factory.text + "\n\n" + statement("RECIPE = ", call, "", 0),
          .notes = std::move(factory.notes),
          .names = std::move(factory.names)};
}

}  // namespace

TeRecipe teRecipe(const std::optional<Recipe>& recipe, const Graph& graph) {
  if (!recipe || !recipe->definition().quantizer) return {.text = "RECIPE = None\n"};
  if (recipe->definition().isCustom) return customRecipe(graph, *recipe);
  PythonCall call{.callee = "recipe." + recipe->name()};
  TeRecipe result;
  for (const AttributeSpec& field : recipe->definition().fields) {
    if (isDefault(*recipe, field.name) || field.name == kQuantizedModelInit) continue;
    if (isNoArgument(*recipe, field.name))
      result.notes.push_back(fmt::format("The recipe sets {}, but TransformerEngine's {} has no such argument.",
                                         field.name, recipe->name()));
    else if (std::string argument = argumentOf(*recipe, field.name); !argument.empty())
      call.arguments.push_back(std::move(argument));
  }
  result.text = statement("RECIPE = ", call, "", 0) + scalesText(*recipe);
  if (!recipe->overrides().empty())
    result.notes.push_back(
        fmt::format("The recipe has {} override(s) of single GEMMs, which TransformerEngine's {} does not support. Use "
                    "CustomRecipe, or remove them.",
                    recipe->overrides().size(), recipe->name()));
  return result;
}

}  // namespace fuseline
