// fuseline recipes: the quantization recipes, what they need and what can be set.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/table.h"
#include "app/cli/verbs.h"
#include "core/quant/recipe.h"
#include "core/support/field_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

static const FieldTable<AttributeSpec>& fieldsOf(const AttributeSpec*) {
  using Spec = AttributeSpec;
  static const FieldTable<Spec> table(
      {field("name", &Spec::name, "Name of the field, as for --recipe-set."),
       derived<Spec>(
           "type", [](const Spec& spec) { return typeName(spec.type); }, "Type of its values."),
       derived<Spec>(
           "default", [](const Spec& spec) { return toString(spec.defaultValue); }, "As text."),
       field("choices", &Spec::choices), field("help", &Spec::help, "Effect of the field.")});
  return table;
}

static const FieldTable<RecipeDefinition>& fieldsOf(const RecipeDefinition*) {
  using Definition = RecipeDefinition;
  static const FieldTable<Definition> table(
      {field("name", &Definition::name, "Name of the recipe, as for --recipe."),
       field("summary", &Definition::summary, "Summary, one sentence."),
       field("source", &Definition::source, "Source of the mathematics."),
       derived<Definition>("hardware", &hardwareText, "GPUs that its GEMMs need."),
       field("hasState", &Definition::hasState, "Scales are derived from earlier steps."),
       field("fields", &Definition::fields)});
  return table;
}

}  // namespace fuseline

namespace fuseline::cli {

namespace {
namespace recipes_parts {

struct RecipesOptions {
  std::string name;
  bool asJson = false;
};

void printList(Context& context) {
  Table table({{"recipe", Align::Left}, {"", Align::Left}});
  for (const RecipeDefinition& recipe : builtinRecipes())
    table.addRow({recipe.name, fmt::format("{} On a GPU it {}.", recipe.summary, hardwareText(recipe))});
  context.out << table.toString(context.hasColour)
              << "\nOn a CPU every recipe is emulated, so times are not those of tensor cores.\n";
}

std::string fieldText(const AttributeSpec& field) {
  if (field.choices.empty()) return field.help;
  return fmt::format("{} One of {}.", field.help, fmt::join(field.choices, ", "));
}

void printDetails(const RecipeDefinition& recipe, Context& context) {
  context.out << styled(recipe.name, Style::Bold, context.hasColour)
              << fmt::format("\n{}\n\nsource    {}\nhardware  {}\nstate     {}\n\n", recipe.summary, recipe.source,
                             hardwareText(recipe),
                             recipe.hasState ? "scales and amax histories, written by run --save" : "none");
  if (recipe.fields.empty()) return;
  Table table({{"field (--recipe-set)", Align::Left}, {"default"}, {"", Align::Left}});
  for (const AttributeSpec& field : recipe.fields)
    table.addRow({field.name, toString(field.defaultValue), fieldText(field)});
  context.out << table.toString(context.hasColour);
}

void print(const std::vector<const RecipeDefinition*>& recipes, Context& context) {
  Json list = Json::array();
  for (const RecipeDefinition* recipe : recipes) list.push_back(fieldJson(*recipe));
  printJson(context, {{"recipes", std::move(list)}});
}

Result<int> showRecipes(const RecipesOptions& options, Context& context) {
  std::vector<const RecipeDefinition*> shown;
  for (const RecipeDefinition& recipe : builtinRecipes()) shown.push_back(&recipe);
  if (!options.name.empty()) {
    const Result<const RecipeDefinition*> named = recipeNamed(options.name);
    if (!named) return named.error();
    shown = {*named};
  }
  if (options.asJson)
    print(shown, context);
  else if (options.name.empty())
    printList(context);
  else
    printDetails(*shown.front(), context);
  return 0;
}

Json recipesSchema() { return schema::object({{"recipes", fieldSchema<std::vector<RecipeDefinition>>()}}); }

}  // namespace recipes_parts
}  // namespace

void addRecipesVerb(CLI::App& app, Context& context) {
  using namespace recipes_parts;
  const auto options = std::make_shared<RecipesOptions>();
  CLI::App* verb = addVerb(app, context, "recipes",
                           "List the quantization recipes; with a name, show fields, formats and requirements of one.",
                           options, showRecipes, recipesSchema);
  verb->add_option("NAME", options->name, "Recipe, or the beginning of its name");
  verb->add_flag("--json", options->asJson, "Machine-readable output");
}

}  // namespace fuseline::cli
