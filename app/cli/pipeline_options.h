// The options that fuse, explain and run share, and how they open a pipeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/context.h"
#include "app/cli/output_file.h"
#include "core/plan/analysis.h"
#include "core/profile/run_record.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fuseline::cli {

struct PipelineOptions {
  std::string file;
  RunSpec spec = {.rules = std::nullopt};
  RuleSwitches switches;
  std::vector<std::string> measuredFiles;  // runs of this pipeline
  double bandwidthGBps = 0.0;              // 0: unknown
  double launchUs = 0.0;
  std::int64_t ranks = 1;
  bool plansOneRank = false;  // else whole layers are planned, for several ranks
  bool asJson = false;
};

/// A field of a run as an option, or as the flag that changes it. Its own help where `help` is empty.
CLI::Option* addSpecOption(CLI::App& verb, RunSpec& spec, const SpecField& field, std::string help = {});
/// All options of a group.
void addSpecOptions(CLI::App& verb, RunSpec& spec, SpecGroup group);

/// FILE, and the group Reading, and --json.
void addFileOptions(CLI::App& verb, PipelineOptions& options);
/// The same without FILE: for verbs that name their files otherwise.
void addReadingOptions(CLI::App& verb, PipelineOptions& options);
/// The group Planning, and --without, --with, --measured, --bandwidth, --launch.
void addFusionOptions(CLI::App& verb, PipelineOptions& options);
/// --ranks: for verbs that run nothing.
void addRanksOption(CLI::App& verb, PipelineOptions& options);
/// The same for verbs that plan what one rank runs. TransformerEngine's rules fuse whole layers, as its layers
/// communicate inside, so that with them whole layers are planned.
void addOneRankOption(CLI::App& verb, PipelineOptions& options);
/// Says why --chunks has less effect than its number, or none. analysis: of the plan of one rank.
void noteChunks(const RunSpec& spec, std::int64_t ranks, const Analysis& analysis, std::ostream& err);

/// The files that these options read: FILE and --measured.
std::vector<NamedFile> filesRead(const PipelineOptions& options);

/// For verbs that write an edited pipeline: a pipeline file may be edited in place. Errors (Usage): as checkOutputs().
Result<void> checkEdited(const PipelineOptions& options, const std::string& output, bool replaces);

/// Errors (Usage): settings of a recipe that is not named.
Result<void> checkSpec(const RunSpec& spec);
/// No: with the symbols that it has.
Verdict hasSymbol(const PipelineDocument& document, const std::string& name);

struct OpenedPipeline {
  LoadedDocument loaded;
  AnalysisOptions options;
  Analysis analysis;

  const Graph& graph() const { return analysis.graph(); }
};

/// Loads and analyses, whatever is wrong with the document: for `validate`.
/// Errors: the file cannot be read, an option does not fit, the device cannot be planned for.
Result<OpenedPipeline> inspectPipeline(const PipelineOptions& options, const BackendRegistry& registry);

/// The same, for verbs that need a sound pipeline. Prints warnings. Errors: also every problem of the document.
Result<OpenedPipeline> openPipeline(const PipelineOptions& options, Context& context);

/// Prints the caveats of a pipeline's figures: notes of its import, warnings, ops that are not run, and layers that are
/// too small for the recipe to gain.
void printNotes(const OpenedPipeline& pipeline, const std::string& file, Context& context);

/// Writes the values of --set into the document: edits are tried with them, and a changed pipeline has them.
void keepSymbols(OpenedPipeline& pipeline);

/// Problems of the text, then of the pipeline; what holds in every instance of a block once.
std::vector<Diagnostic> allDiagnostics(const OpenedPipeline& pipeline);

/// Names an architecture to plan for, without a device: "sm_90".
bool isPlannedArchitecture(std::string_view device);

}  // namespace fuseline::cli
