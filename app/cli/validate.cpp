// fuseline validate: every problem of a pipeline at once.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/annotations.h"
#include "app/cli/diagnostic_lines.h"
#include "app/cli/output_file.h"
#include "app/cli/pipeline_options.h"
#include "app/cli/verbs.h"
#include "core/document/file_format.h"
#include "core/lowering/folded_diagnostics.h"
#include "core/plan/repair.h"
#include "core/runtime/pipeline_run.h"
#include "core/support/output_schema.h"
#include "core/support/visible_text.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {
namespace validate_parts {

struct ValidateOptions : PipelineOptions {
  std::vector<std::string> files;
  bool annotates = false;
  bool repairs = false;
  std::string output;
  bool replaces = false;
};

void printAnnotations(const std::vector<Diagnostic>& diagnostics, const std::string& file, Context& context) {
  for (const Diagnostic& each : diagnostics)
    context.commands << githubAnnotation({.severity = each.severity,
                                          .file = file,
                                          .line = each.line,
                                          .column = each.column,
                                          .message = fmt::format("{} [{}]", each.message, each.code)});
}

void printText(const std::vector<Diagnostic>& diagnostics, const std::string& file, Context& context) {
  for (const Diagnostic& diagnostic : diagnostics) {
    context.out << toString(diagnostic, file) << '\n';
    for (const Repair& repair : diagnostic.repairs) context.out << "  repair: " << visibleText(repair.label) << '\n';
  }
  const auto errors = std::ranges::count(diagnostics, Severity::Error, &Diagnostic::severity);
  const auto warnings = std::ranges::count(diagnostics, Severity::Warning, &Diagnostic::severity);
  context.err << fmt::format("{}: {} error{}, {} warning{}\n", file, errors, errors == 1 ? "" : "s", warnings,
                             warnings == 1 ? "" : "s");
}

Json toJson(const AppliedRepair& applied) {
  return {{"code", applied.problem.code},
          {"pointer", applied.problem.pointer},
          {"message", applied.problem.message},
          {"repair", applied.label}};
}

/// left: the problems that are.
void printRepaired(const RepairedDocument& repaired, const std::vector<Diagnostic>& left,
                   const ValidateOptions& options, Context& context) {
  if (options.asJson) {
    Json applied = Json::array();
    for (const AppliedRepair& each : repaired.applied) applied.push_back(toJson(each));
    return printJson(context, {{"file", options.file},
                               {"isValid", !hasErrors(repaired.diagnostics)},
                               {"repaired", applied},
                               {"diagnostics", diagnosticsJson(left)},
                               {"text", serialize(repaired.document)}});
  }
  for (const AppliedRepair& each : repaired.applied)
    context.err << fmt::format("{}\n  repaired: {}\n", toString(each.problem, options.file), visibleText(each.label));
  for (const Diagnostic& each : left) context.err << toString(each, options.file) << '\n';
  if (options.output.empty()) context.out << serialize(repaired.document);
}

Result<int> repairFile(const ValidateOptions& options, OpenedPipeline pipeline, Context& context) {
  if (Result<void> readable = checkReadable(pipeline.loaded, options.file, "repaired"); !readable)
    return readable.error();
  keepSymbols(pipeline);
  const RepairedDocument repaired = repair(pipeline.loaded.document, pipeline.options);
  if (repaired.applied.empty() && hasErrors(repaired.diagnostics))
    return Error{fmt::format("{}: no problem has a repair; nothing was written.\n{}", options.file,
                             errorText(allDiagnostics(pipeline), options.file))};
  if (!options.output.empty())
    if (Result<void> saved = saveDocument(repaired.document, options.output); !saved) return saved.error();
  printRepaired(repaired, foldInstances(pipeline.graph(), repaired.diagnostics), options, context);
  return hasErrors(repaired.diagnostics) ? static_cast<int>(ErrorKind::InvalidInput) : 0;
}

/// One file, as JSON.
struct Findings {
  Json json;
  bool isValid = false;
};

Findings findingsOf(const std::vector<Diagnostic>& diagnostics, const std::string& file) {
  const bool isValid = !hasErrors(diagnostics);
  return {{{"file", file}, {"isValid", isValid}, {"diagnostics", diagnosticsJson(diagnostics)}}, isValid};
}

void printFindings(const std::vector<Diagnostic>& diagnostics, const ValidateOptions& options, Context& context) {
  if (options.annotates)
    printAnnotations(diagnostics, options.file, context);
  else
    printText(diagnostics, options.file, context);
}

/// Problems of one file among several; a file that cannot be read is a problem of this file only.
Result<std::vector<Diagnostic>> problemsOf(const ValidateOptions& options, Context& context) {
  const Result<OpenedPipeline> pipeline = inspectPipeline(options, context.registry);
  if (pipeline) return allDiagnostics(*pipeline);
  if (options.files.size() == 1 || pipeline.error().kind != ErrorKind::InvalidInput) return pipeline.error();
  return std::vector<Diagnostic>{{.code = "not-opened", .message = pipeline.error().message}};
}

/// The findings of one file, or a list of them for several files.
void printJsonOf(std::vector<Json> files, bool areValid, Context& context) {
  if (files.size() == 1) return printJson(context, files.front());
  printJson(context, {{"isValid", areValid}, {"files", std::move(files)}});
}

Result<int> validateFiles(ValidateOptions options, Context& context) {
  std::vector<Json> json;
  bool areValid = true;
  for (const std::string& file : options.files) {
    options.file = file;
    const Result<std::vector<Diagnostic>> diagnostics = problemsOf(options, context);
    if (!diagnostics) return diagnostics.error();
    Findings findings = findingsOf(*diagnostics, file);
    areValid = areValid && findings.isValid;
    json.push_back(std::move(findings.json));
    if (!options.asJson) printFindings(*diagnostics, options, context);
  }
  if (options.asJson) printJsonOf(std::move(json), areValid, context);
  return areValid ? 0 : static_cast<int>(ErrorKind::InvalidInput);
}

Result<int> repairOne(ValidateOptions options, Context& context) {
  if (options.files.size() > 1)
    return Error{
        fmt::format("--repair: expected one pipeline, found {}. Repair them one by one.", options.files.size()),
        ErrorKind::Usage};
  options.file = options.files.front();
  if (Result<void> usable = checkEdited(options, options.output, options.replaces); !usable) return usable.error();
  Result<OpenedPipeline> pipeline = inspectPipeline(options, context.registry);
  return pipeline ? repairFile(options, std::move(*pipeline), context) : pipeline.error();
}

Result<int> validate(const ValidateOptions& options, Context& context) {
  if (!options.output.empty() && !options.repairs)
    return Error{"-o writes the repaired pipeline: add --repair.", ErrorKind::Usage};
  if (options.annotates && options.repairs)
    return Error{"--annotate and --repair cannot be combined. Remove one of them.", ErrorKind::Usage};
  return options.repairs ? repairOne(options, context) : validateFiles(options, context);
}

Json validateSchema() {
  const Json repaired = schema::object({{"code", schema::text("Code of the error.")},
                                        {"pointer", schema::text("JSON pointer to the error.")},
                                        {"message", schema::text("Message of the error.")},
                                        {"repair", schema::text("Repair that was applied.")}});
  const schema::Fields plain = {{"file", schema::text("Pipeline file, as given on the command line.")},
                                {"isValid", schema::flag("Whether the pipeline has no errors.")},
                                {"diagnostics", diagnosticsSchema()}};
  schema::Fields afterRepair = plain;
  afterRepair.insert(afterRepair.end(),
                     {{"repaired", schema::list(repaired)}, {"text", schema::text("The pipeline after the repairs.")}});
  const Json several = schema::object(
      {{"isValid", schema::flag("Whether no pipeline has errors.")}, {"files", schema::list(schema::object(plain))}});
  return {{"oneOf", Json::array({schema::object(plain), schema::object(afterRepair), several})}};
}

}  // namespace validate_parts
}  // namespace

void addValidateVerb(CLI::App& app, Context& context) {
  using namespace validate_parts;
  const auto options = std::make_shared<ValidateOptions>();
  options->spec.device = "reference";  // no kernel is asked for
  CLI::App* verb = addVerb(app, context, "validate", "Check pipelines: list every problem with its place and a repair.",
                           options, validate, validateSchema);
  verb->add_option("FILE", options->files, "Pipelines (*.fuseline)")->required();
  addReadingOptions(*verb, *options);
  addAnnotateOption(*verb, options->annotates);
  verb->add_flag("--repair", options->repairs,
                 "Apply the first repair of each error and list the changes; warnings stay");
  verb->add_option("-o,--output", options->output, "File for the repaired pipeline (default: standard output)")
      ->type_name("FILE");
  verb->add_flag("--force", options->replaces, "Overwrite an existing file");
}

}  // namespace fuseline::cli
