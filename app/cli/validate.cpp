// fuseline validate: every problem of a pipeline at once.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/annotations.h"
#include "app/cli/pipeline_options.h"
#include "app/cli/verbs.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

struct ValidateOptions : PipelineOptions {
  bool annotates = false;
};

Json toJson(const Diagnostic& diagnostic) {
  Json repairs = Json::array();
  for (const Repair& repair : diagnostic.repairs) repairs.push_back(repair.label);
  return {{"severity", severityName(diagnostic.severity)},
          {"code", diagnostic.code},
          {"node", diagnostic.node},
          {"port", diagnostic.port},
          {"pointer", diagnostic.pointer},
          {"line", diagnostic.line},
          {"column", diagnostic.column},
          {"message", diagnostic.message},
          {"repairs", repairs}};
}

void printAnnotations(const std::vector<Diagnostic>& diagnostics, const std::string& file, Context& context) {
  for (const Diagnostic& each : diagnostics)
    context.out << githubAnnotation({.severity = each.severity,
                                     .file = file,
                                     .line = each.line,
                                     .column = each.column,
                                     .message = fmt::format("{} [{}]", each.message, each.code)});
}

void printText(const std::vector<Diagnostic>& diagnostics, const std::string& file, Context& context) {
  for (const Diagnostic& diagnostic : diagnostics) {
    context.out << toString(diagnostic, file) << '\n';
    for (const Repair& repair : diagnostic.repairs) context.out << "  repair: " << repair.label << '\n';
  }
  const auto errors = std::ranges::count(diagnostics, Severity::Error, &Diagnostic::severity);
  const auto warnings = std::ranges::count(diagnostics, Severity::Warning, &Diagnostic::severity);
  context.err << fmt::format("{}: {} error{}, {} warning{}\n", file, errors, errors == 1 ? "" : "s", warnings,
                             warnings == 1 ? "" : "s");
}

Result<int> validate(const ValidateOptions& options, Context& context) {
  Result<OpenedPipeline> pipeline = inspectPipeline(options, context.registry);
  if (!pipeline) return pipeline.error();
  const std::vector<Diagnostic> diagnostics = allDiagnostics(*pipeline);
  const bool isValid = !hasErrors(diagnostics);
  if (options.asJson) {
    Json list = Json::array();
    for (const Diagnostic& diagnostic : diagnostics) list.push_back(toJson(diagnostic));
    printJson(context, {{"file", options.file}, {"isValid", isValid}, {"diagnostics", list}});
  } else if (options.annotates) {
    printAnnotations(diagnostics, options.file, context);
  } else {
    printText(diagnostics, options.file, context);
  }
  return isValid ? 0 : static_cast<int>(ErrorKind::InvalidInput);
}

}  // namespace

void addValidateVerb(CLI::App& app, Context& context) {
  const auto options = std::make_shared<ValidateOptions>();
  options->device = "reference";  // no kernel is asked for
  CLI::App* verb = addVerb(app, context, "validate", "Every problem of a pipeline, each with its place and a repair",
                           options, validate);
  addFileOptions(*verb, *options);
  addAnnotateOption(*verb, options->annotates);
}

}  // namespace fuseline::cli
