// fuseline schema: the JSON Schema of the pipeline file, or of what a verb prints with --json.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output_schemas.h"
#include "app/cli/verbs.h"
#include "core/document/file_format.h"
#include "core/quant/recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cli {

namespace {

struct SchemaOptions {
  std::string verb;
  bool asJson = false;
};

Error unknownVerb(const std::string& verb) {
  std::vector<std::string> names;
  for (const auto& [name, schema] : outputSchemas()) names.push_back(name);
  return {fmt::format("schema --of {}: there is no such verb. There is: {}.", verb, fmt::join(names, ", ")),
          ErrorKind::Usage};
}

Result<int> showSchema(const SchemaOptions& options, Context& context) {
  if (options.verb.empty()) {
    printJson(context, pipelineSchema(recipeSchema()));
    return 0;
  }
  for (const auto& [verb, schema] : outputSchemas())
    if (verb == options.verb) {
      printJson(context, schema);
      return 0;
    }
  return unknownVerb(options.verb);
}

}  // namespace

void addSchemaVerb(CLI::App& app, Context& context) {
  const auto options = std::make_shared<SchemaOptions>();
  CLI::App* verb = addVerb(app, context, "schema", "The JSON Schema of the pipeline file, or of a verb's --json",
                           options, showSchema);
  verb->add_option("--of", options->verb, "A verb")->type_name("VERB");
  verb->add_flag("--json", options->asJson, "Accepted everywhere; a schema is always JSON");
}

}  // namespace fuseline::cli
