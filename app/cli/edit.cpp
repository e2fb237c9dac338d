// fuseline edit: changes a pipeline file by edits that are named, in their order.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/change_lines.h"
#include "app/cli/diagnostic_lines.h"
#include "app/cli/pipeline_options.h"
#include "app/cli/verbs.h"
#include "core/compare/document_difference.h"
#include "core/document/file_format.h"
#include "core/edit/edit_request.h"
#include "core/support/output_schema.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {
namespace edit_parts {

struct EditOptions : PipelineOptions {
  std::string output;
  bool isInPlace = false;
  bool replaces = false;
  std::map<std::string, std::vector<std::string>> arguments;  // by option, in their order
  std::vector<std::string> before;
  std::vector<std::string> after;
  int numFolds = 0;
  CLI::App* verb = nullptr;
};

std::string flagOf(const EditVerbInfo& info) { return fmt::format("--{}", info.name); }

/// --before and --after belong to the insertion that they follow.
Result<void> place(std::vector<EditRequest>& requests, const std::string& flag, Side side, const std::string& anchor) {
  const bool isFree =
      !requests.empty() && requests.back().verb == EditVerb::Insert && requests.back().side == Side::Unknown;
  if (!isFree)
    return Error{
        fmt::format("{0} {1}: expected --insert TYPE before it, such as --insert RMSNorm {0} {1}.", flag, anchor),
        ErrorKind::Usage};
  requests.back().side = side;
  requests.back().anchor = anchor;
  return {};
}

/// The edits in the order in which the command line has them.
Result<std::vector<EditRequest>> requestsOf(const EditOptions& options) {
  std::vector<EditRequest> requests;
  std::map<std::string, std::size_t> numTaken;
  for (const CLI::Option* option : options.verb->parse_order()) {
    const std::string flag = option->get_name();
    const std::size_t index = numTaken[flag]++;
    const bool isBefore = flag == "--before";
    if (isBefore || flag == "--after") {
      const auto& anchors = isBefore ? options.before : options.after;
      const Side side = isBefore ? Side::Before : Side::After;
      if (Result<void> placed = place(requests, flag, side, anchors.at(index)); !placed) return placed.error();
    }
    const auto info = std::ranges::find(editVerbs(), flag, flagOf);
    if (info == editVerbs().end()) continue;
    const std::string argument = info->argument.empty() ? std::string() : options.arguments.at(flag).at(index);
    requests.push_back({.verb = info->verb, .argument = argument, .side = Side::Unknown, .anchor = {}});
  }
  return requests;
}

Result<void> checkOptions(const EditOptions& options, const std::vector<EditRequest>& requests) {
  if (requests.empty())
    return Error{fmt::format("edit {}: expected an edit, such as --insert RMSNorm --before fc1. `fuseline edit --help` "
                             "lists them.",
                             options.file),
                 ErrorKind::Usage};
  return options.isInPlace ? Result<void>() : checkEdited(options, options.output, options.replaces);
}

/// A picture, a script or a model is no place for a pipeline file.
Result<void> checkInPlace(const EditOptions& options, const LoadedDocument& loaded) {
  if (!options.isInPlace || !loaded.isTakenOut) return {};
  return Error{
      fmt::format(
          "--in-place: expected a *.fuseline file, found {}. Write the pipeline to its own file: -o FILE.fuseline.",
          options.file),
      ErrorKind::Usage};
}

Result<EditedDocument> edited(const EditOptions& options, const OpenedPipeline& pipeline) {
  const Result<std::vector<EditRequest>> requests = requestsOf(options);
  if (!requests) return requests.error();
  if (Result<void> checked = checkOptions(options, *requests); !checked) return checked.error();
  if (Result<void> checked = checkInPlace(options, pipeline.loaded); !checked) return checked.error();
  if (Result<void> readable = checkReadable(pipeline.loaded, options.file, "edited"); !readable)
    return readable.error();
  Result<EditedDocument> edited = editedDocument(pipeline.loaded.document, *requests);
  if (edited) return edited;
  return Error{fmt::format("edit {}: {} Nothing was written.", options.file, edited.error().message),
               edited.error().kind};
}

std::string destinationOf(const EditOptions& options) { return options.isInPlace ? options.file : options.output; }

void printJsonOf(const EditOptions& options, const EditedDocument& edited, const std::vector<DocumentChange>& changes,
                 const std::vector<Diagnostic>& diagnostics, Context& context) {
  Json edits = Json::array();
  for (const AppliedEdit& each : edited.edits)
    edits.push_back({{"edit", describe(each.edit)}, {"undo", describe(each.inverse)}});
  printJson(context, {{"file", options.file},
                      {"output", destinationOf(options)},
                      {"edits", std::move(edits)},
                      {"changes", changesJson(changes)},
                      {"isValid", !hasErrors(diagnostics)},
                      {"diagnostics", diagnosticsJson(diagnostics)},
                      {"text", serialize(edited.document)}});
}

/// Without a file of its own the pipeline is the data, and the changes are told beside it.
void printText(const EditOptions& options, const EditedDocument& edited, const std::vector<DocumentChange>& changes,
               const std::vector<Diagnostic>& diagnostics, Context& context) {
  const bool isWritten = !destinationOf(options).empty();
  std::ostream& out = isWritten ? context.out : context.err;
  if (!isWritten) context.out << serialize(edited.document);
  out << (changes.empty() ? "Nothing changed.\n" : changesText(changes, isWritten && context.hasColour));
  for (const Diagnostic& problem : diagnostics) context.err << toString(problem, options.file) << '\n';
}

Result<int> edit(const EditOptions& options, Context& context) {
  const Result<OpenedPipeline> pipeline = inspectPipeline(options, context.registry);
  if (!pipeline) return pipeline.error();
  const Result<EditedDocument> changed = edited(options, *pipeline);
  if (!changed) return changed.error();
  const std::string destination = destinationOf(options);
  if (!destination.empty())
    if (Result<void> saved = saveDocument(changed->document, destination); !saved) return saved.error();
  const std::vector<DocumentChange> changes = documentDifference(pipeline->loaded.document, changed->document);
  const std::vector<Diagnostic> diagnostics = analyze(changed->document, pipeline->options).lowered.diagnostics;
  if (options.asJson)
    printJsonOf(options, *changed, changes, diagnostics, context);
  else
    printText(options, *changed, changes, diagnostics, context);
  return hasErrors(diagnostics) ? static_cast<int>(ErrorKind::InvalidInput) : 0;
}

void addEdits(CLI::App& verb, EditOptions& options) {
  for (const EditVerbInfo& info : editVerbs()) {
    const std::string flag = flagOf(info);
    const std::string help(info.help);
    if (info.argument.empty())
      verb.add_flag(flag, options.numFolds, help)->group("Edits");
    else
      verb.add_option(flag, options.arguments[flag], help)
          ->type_name(std::string(info.argument))
          ->allow_extra_args(false)
          ->group("Edits");
    if (info.verb != EditVerb::Insert) continue;
    for (const auto& [name, anchors, text] :
         {std::tuple("--before", &options.before, "Insert the new op before this op or output"),
          {"--after", &options.after, "Insert the new op after this op or input"}})
      verb.add_option(name, *anchors, text)->type_name("OP")->allow_extra_args(false)->group("Edits");
  }
}

Json editSchema() {
  const Json edit = schema::object({{"edit", schema::text("Name of the edit in the undo menu.")},
                                    {"undo", schema::text("The edit that reverts it.")}});
  return schema::object({{"file", schema::text("Pipeline file, as given on the command line.")},
                         {"output", schema::text("The file that was written; empty: none.")},
                         {"edits", schema::list(edit)},
                         {"changes", changesSchema()},
                         {"isValid", schema::flag("Whether the pipeline has no errors.")},
                         {"diagnostics", diagnosticsSchema()},
                         {"text", schema::text("The pipeline after the edits.")}});
}

}  // namespace edit_parts
}  // namespace

void addEditVerb(CLI::App& app, Context& context) {
  using namespace edit_parts;
  const auto options = std::make_shared<EditOptions>();
  options->spec.device = "reference";  // no kernel is asked for
  CLI::App* verb = addVerb(app, context, "edit", "Apply edits to a pipeline, in the given order, and show the changes.",
                           options, edit, editSchema);
  options->verb = verb;
  verb->add_option("FILE", options->file, "Pipeline (*.fuseline), ONNX model, or config.json of a model")->required();
  addEdits(*verb, *options);
  CLI::Option* inPlace = verb->add_flag("--in-place", options->isInPlace, "Write the changed pipeline back to FILE");
  verb->add_option("-o,--output", options->output, "File for the changed pipeline (default: standard output)")
      ->type_name("FILE")
      ->excludes(inPlace);
  verb->add_flag("--force", options->replaces, "Overwrite an existing file");
  verb->add_flag("--json", options->asJson, "Print JSON");
}

}  // namespace fuseline::cli
