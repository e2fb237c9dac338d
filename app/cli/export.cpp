// fuseline export: writes a run in a format of other programs.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output_file.h"
#include "app/cli/table.h"
#include "app/cli/verbs.h"
#include "core/export/exporter.h"
#include "core/profile/run_file.h"
#include "core/support/atomic_file.h"

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

struct ExportOptions {
  std::string file;
  std::string format;
  std::string output;
  bool replaces = false;
  bool asJson = false;
};

Result<int> listFormats(const ExportOptions& options, Context& context) {
  Json list = Json::array();
  Table table({{"format", Align::Left}, {"file", Align::Left}, {"", Align::Left}});
  for (const Exporter& exporter : exporters()) {
    list.push_back({{"name", exporter.name}, {"ending", exporter.ending}, {"summary", exporter.summary}});
    table.addRow({std::string(exporter.name), fmt::format("*{}", exporter.ending), std::string(exporter.summary)});
  }
  if (options.asJson)
    printJson(context, {{"formats", list}});
  else
    context.out << table.toString(context.hasColour);
  return 0;
}

Result<const Exporter*> chosenExporter(const ExportOptions& options) {
  if (options.format.empty())
    return Error{"export: expected a format, such as --to trace. `fuseline export` lists them.", ErrorKind::Usage};
  Result<const Exporter*> exporter = exporterNamed(options.format);
  if (!exporter) return Error{fmt::format("export --to {}", exporter.error().message), ErrorKind::Usage};
  return exporter;
}

/// A pipeline has no times.
Result<RunRecord> loadRun(const std::string& file) {
  Result<RunRecord> record = loadRunRecord(file);
  if (record || !file.ends_with(".fuseline")) return record;
  return Error{
      fmt::format("{}: expected a run, found a pipeline. Measure it first: `fuseline run {} -o RUN.fuserun`, "
                  "then export RUN.fuserun.",
                  file, file)};
}

Result<int> exportRun(const ExportOptions& options, Context& context) {
  if (options.file.empty()) return listFormats(options, context);
  const Result<const Exporter*> exporter = chosenExporter(options);
  if (!exporter) return exporter.error();
  if (Result<void> free = checkFree(options.output, options.replaces); !free) return free.error();
  const Result<RunRecord> record = loadRun(options.file);
  if (!record) return record.error();
  const Result<std::string> text = (*exporter)->write(*record);
  if (!text) return text.error();
  if (!options.output.empty()) {
    Result<void> written = writeFileAtomically(options.output, [&](std::ostream& file) { file << *text; });
    if (!written) return written.error();
  }
  if (options.asJson)
    printJson(context, {{"format", options.format}, {"file", options.output}, {"text", *text}});
  else if (options.output.empty())
    context.out << *text;
  else
    context.err << fmt::format("Wrote {}.\n", options.output);
  return 0;
}

}  // namespace

void addExportVerb(CLI::App& app, Context& context) {
  const auto options = std::make_shared<ExportOptions>();
  CLI::App* verb = addVerb(app, context, "export",
                           "Writes a run as a trace or a table; without a file lists the formats", options, exportRun);
  verb->add_option("FILE", options->file, "The run")->type_name("RUN.fuserun");
  verb->add_option("--to", options->format, "The format")->type_name("FORMAT");
  verb->add_option("-o,--output", options->output, "The file to write; without it standard output")->type_name("FILE");
  verb->add_flag("--force", options->replaces, "Replaces the file where it exists");
  verb->add_flag("--json", options->asJson, "Machine-readable output");
}

}  // namespace fuseline::cli
