// fuseline new: writes a pipeline from a template.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output_file.h"
#include "app/cli/table.h"
#include "app/cli/verbs.h"
#include "core/document/file_format.h"
#include "core/support/atomic_file.h"
#include "core/support/output_schema.h"
#include "core/support/text.h"

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

struct NewOptions {
  std::string name;
  std::string file;
  bool replaces = false;
  bool asJson = false;
};

Result<int> listTemplates(const NewOptions& options, Context& context) {
  Json list = Json::array();
  Table table({{"template", Align::Left}, {"", Align::Left}});
  for (const DocumentTemplate& entry : documentTemplates()) {
    list.push_back({{"name", entry.name}, {"summary", entry.summary}});
    table.addRow({entry.name, entry.summary});
  }
  if (options.asJson)
    printJson(context, {{"templates", list}});
  else
    context.out << table.toString(context.hasColour);
  return 0;
}

Error unknownTemplate(const std::string& name) {
  std::vector<std::string> names;
  for (const DocumentTemplate& entry : documentTemplates()) names.push_back(entry.name);
  return unknownName("new", "template", name, names);
}

Result<int> writeTemplate(const NewOptions& options, Context& context) {
  if (options.name.empty() && !options.file.empty())
    return Error{
        fmt::format("new -o {}: expected TEMPLATE, found none. `fuseline new` lists the templates.", options.file),
        ErrorKind::Usage};
  if (options.name.empty()) return listTemplates(options, context);
  const DocumentTemplate* found = findTemplate(options.name);
  if (!found) return unknownTemplate(options.name);
  if (!options.file.empty()) {
    if (Result<void> free = checkFree(options.file, options.replaces); !free) return free.error();
    Result<void> written = writeFileAtomically(options.file, [&](std::ostream& file) { file << found->text; });
    if (!written) return written.error();
  }
  if (options.asJson)
    printJson(context, {{"template", found->name}, {"file", options.file}, {"text", found->text}});
  else if (options.file.empty())
    context.out << found->text;
  else
    context.err << fmt::format("Wrote {}. Next: fuseline run {}\n", options.file, options.file);
  return 0;
}

Json newSchema() {
  Json both = schema::object({{"template", schema::text("Name of the template.")},
                              {"file", schema::text("File that was written; empty: none.")},
                              {"text", schema::text("Text of the pipeline file.")}});
  Json names = schema::object(
      {{"templates",
        schema::list(schema::object({{"name", schema::text("Name of the template, as for `fuseline new`.")},
                                     {"summary", schema::text("Summary, one sentence.")}}))}});
  return {{"oneOf", Json::array({names, both})}};
}

}  // namespace

void addNewVerb(CLI::App& app, Context& context) {
  const auto options = std::make_shared<NewOptions>();
  CLI::App* verb =
      addVerb(app, context, "new", "Write a new pipeline from a template; without a name, list the templates.", options,
              writeTemplate, newSchema);
  verb->add_option("TEMPLATE", options->name, "Template");
  verb->add_option("-o,--output", options->file, "File to write (default: standard output)")->type_name("FILE");
  verb->add_flag("--force", options->replaces, "Overwrite an existing file");
  verb->add_flag("--json", options->asJson, "Machine-readable output");
}

}  // namespace fuseline::cli
