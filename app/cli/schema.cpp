// fuseline schema: the JSON Schema of the pipeline file, or of what a verb prints with --json.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/verbs.h"
#include "core/document/file_format.h"
#include "core/quant/recipe.h"
#include "core/support/output_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cli {

namespace {

struct SchemaOptions {
  std::string verb;
  bool asJson = false;
};

Error unknownVerb(const std::string& verb, const Context& context) {
  std::vector<std::string> names;
  for (const auto& [name, schema] : context.schemas) names.push_back(name);
  return {fmt::format("schema --of {}: expected one of {}.", verb, fmt::join(names, ", ")), ErrorKind::Usage};
}

Result<int> showSchema(const SchemaOptions& options, Context& context) {
  if (options.verb.empty()) {
    printJson(context, pipelineSchema(recipeSchema()));
    return 0;
  }
  for (const auto& [verb, schema] : context.schemas)
    if (verb == options.verb) {
      Json headed = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                     {"title", "fuseline " + verb + " --json"}};
      headed.update(schema());
      printJson(context, headed);
      return 0;
    }
  return unknownVerb(options.verb, context);
}

Json schemaOfSchemas() { return schema::any("The requested JSON Schema."); }

}  // namespace

void addSchemaVerb(CLI::App& app, Context& context) {
  const auto options = std::make_shared<SchemaOptions>();
  CLI::App* verb =
      addVerb(app, context, "schema", "Print the JSON Schema of the pipeline file, or of a command's --json output.",
              options, showSchema, schemaOfSchemas);
  verb->add_option("--of", options->verb, "Command whose --json output to describe")->type_name("COMMAND");
  verb->add_flag("--json", options->asJson, "Accepted for uniformity; a schema is always JSON");
}

}  // namespace fuseline::cli
