// RunRecord: what a run measured, with the environment it was measured in. The "*.fuserun" file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"
#include "core/profile/device_peaks.h"
#include "core/profile/efficiency.h"
#include "core/profile/experts/expert_load.h"
#include "core/profile/numerics.h"
#include "core/profile/run_spec.h"
#include "core/profile/stats.h"
#include "core/profile/stretch_note.h"
#include "core/support/json.h"
#include "core/support/result.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

/// A kernel or a copy that a step launched, as the device's tracing library saw it. Such of the same name and
/// configuration are one, with their sum: one sample per instrumented round.
struct ActivityRecord {
  std::string name;
  std::string configuration;  // for people: its grid, registers, or bytes
  std::vector<double> samplesNs;
};

/// Something that took time in a run: a step, or one thing that the device did, where it was traced.
struct TimelineSpan {
  int step = -1;         // index in VariantRecord::steps; -1: no step's
  int activity = -1;     // index in the step's activities, or in VariantRecord::unattributed; -1: the step as a whole
  double startNs = 0.0;  // since the run began
  double durationNs = 0.0;
  int rank = 0;  // in Timeline::rankSpans
};

/// One instrumented round as it went.
struct Timeline {
  int round = 0;  // index in VariantRecord::instrumentedNs
  std::vector<TimelineSpan> spans;
  /// When the host launched what the device did beside it, since the run began: a step each, or -1 for all at once.
  /// Empty where a launch is over when it returns, and in older files.
  std::vector<TimelineSpan> launches;
  /// On several ranks: the steps of each rank, since the ranks began the run together; `spans` are those of the rank
  /// that ended last.
  std::vector<TimelineSpan> rankSpans;
};

/// "fc1.linear (BasicLinear, forward) [4096, 4096] bf16". `writes` may be empty.
std::string rangeName(std::string_view step, std::string_view kernel, std::string_view phase, std::string_view writes);

/// One step of one variant. samplesNs has one entry per instrumented round.
struct StepRecord {
  std::string name;
  std::string rule;   // empty for a basic op
  std::string phase;  // "forward", "backward" or "optimizer"
  std::string kernel;
  std::vector<std::string> ops;      // node ids, forward order
  std::vector<std::string> absorbs;  // names of other steps whose work it does besides: "fc1.quantize_input"
  std::vector<std::string> owners;   // the document's op ids, without repeats
  std::string writes;                // first: "[4096, 4096] bf16"; empty in older files
  bool isView = false;
  std::string note;                          // such as "one rank: nothing to measure"; mostly empty
  std::vector<std::string> ways;             // how its kernel did it, where there was a choice; mostly empty
  Arithmetic arithmetic = Arithmetic::None;  // the peak that limits it; None in older files
  std::int64_t flops = 0;
  std::int64_t bytes = 0;
  std::int64_t launches = 1;  // of the device, in a run; views have none, steps in older files one
  std::vector<double> samplesNs;
  std::vector<ActivityRecord> activities;  // where the device was traced; on its clock, of transfers only
  std::string collective;                  // "all-gather"; empty: the step does not communicate
  std::int64_t wireBytes = 0;              // that each rank sends, by the ring algorithm
  double transferNs = 0.0;                 // median of the time on the rank that waited least for others
  double exposedNs = 0.0;                  // median of the time that other steps waited for it, of the slowest rank
  double hiddenNs = 0.0;                   // and of the time that it took beside other steps
  std::vector<double> rankNs;              // median time on each rank; empty: there is one rank

  /// Does it communicate? One that only waits for a collective does not.
  bool exchanges() const { return !collective.empty() && !kernel.ends_with("_wait"); }
  /// Does it copy to the host or back, beside other steps?
  bool isTransfer() const { return kernel.starts_with("offload") || kernel.starts_with("reload"); }
  /// Its name in profilers, in traces and on the timeline.
  std::string range() const { return rangeName(name, kernel, phase, writes); }
};

struct VariantRecord {
  std::string name;  // "unfused" or "fused"
  std::vector<StepRecord> steps;
  /// One per round, from a pass without per-step clocks: the headline.
  std::vector<double> endToEndNs;
  /// One per round, from the instrumented pass.
  std::vector<double> instrumentedNs;
  /// One per round, from the pass without clocks: the host's time until all was launched. Empty where a launch is over
  /// when it returns.
  std::vector<double> launchNs;
  /// Making the plan ready: kernels compiled, memory allocated, tensors drawn and copied. 0 in older files.
  double preparationNs = 0.0;
  /// Time of the first run, before the rounds. 0: none, or an older file.
  double firstRunNs = 0.0;
  /// How that pass was launched, for people: "captured and replayed". Empty where there is no choice.
  std::string launching;
  /// Where the device was traced: what no step launched.
  std::vector<ActivityRecord> unattributed;
  /// Spans of the instrumented round with the median total. Empty where steps were not timed, and in older files.
  Timeline timeline;
  std::int64_t peakBytes = 0;
  std::int64_t arenaBytes = 0;
  std::int64_t savedForBackwardBytes = 0;
  std::int64_t hostBytes = 0;  // of the host's memory, for what waits there for backward
  std::int64_t launches = 0;   // of the device, in a run: kernels, calls of a library, copies and fills

  const StepRecord* find(const std::string& stepName, const std::string& phase) const;
  /// Steps that give the device something to do.
  std::int64_t numSteps() const;
  /// Kernels, copies and fills in the round of the timeline. Not traced, all but transfers are unknown.
  std::int64_t numTraced() const;
  /// One per instrumented round: what the device did and no step launched.
  std::vector<double> unattributedNs() const;
};

/// Verdicts about the numbers of a run.
struct RunNumerics {
  NumericsVerdict fusion;               // fused against unfused
  NumericsVerdict float32;              // unfused against float32
  std::vector<CopyLosses> copies = {};  // what quantizing lost; none in older files
  bool operator==(const RunNumerics&) const = default;
};
RunNumerics summarized(const NumericsReport& report);

/// A user's note on a step.
struct RowNote {
  std::string step;
  std::string phase;
  std::string text;
  bool operator==(const RowNote&) const = default;
};

struct RunRecord {
  std::string createdWith;  // program and version
  std::string pipelineName;
  std::string pipelineHash;  // of the document's bytes without its view
  Json pipeline;             // embedded copy
  RunSpec settings;
  /// With its fields and overrides, wherever it came from. Null: none, or an older program did not say.
  Json recipe;
  RuleSwitches switches;                                         // besides the document's own
  std::vector<std::pair<std::string, std::string>> environment;  // device, libraries, compiler, threads
  /// The same in records of runs that took turns in one measurement, so that round follows round. Empty: it ran alone.
  std::string roundsId;
  std::string timingNote;            // why steps were timed in another way than was wanted; mostly empty
  int numWarmups = -1;               // that were done: a GPU is warmed up for a while; -1 in older files
  std::optional<DevicePeaks> peaks;  // of the device, measured after the rounds of this run
  std::string peaksNote;             // why there are none though they were wanted; mostly empty
  std::vector<VariantRecord> variants;
  std::vector<ExpertLoad> expertLoads = {};    // of the last run of the last variant; none without routing
  std::optional<RunNumerics> numerics;         // nothing: nobody looked
  bool isPartial = false;                      // cancelled: what was measured until then
  std::string note;                            // what a user says of it
  std::vector<RowNote> rowNotes;               // and of its steps; none is empty
  std::vector<StretchNote> stretchNotes = {};  // and of its timeline; none is empty, by when they begin

  /// Runs before the first round.
  int warmups() const { return numWarmups >= 0 ? numWarmups : settings.warmup; }
  const VariantRecord* variant(const std::string& name) const;
  /// A fact of the environment, such as "driver"; empty where the record has none.
  std::string fact(std::string_view name) const;
  /// "NVIDIA H200"; where the record does not say, the id that was asked for: "cuda:0".
  std::string deviceName() const;
  /// The user's note on a step; mostly empty.
  std::string noteOf(std::string_view step, std::string_view phase) const;
  /// Replaces the note; an empty text removes it.
  void setNoteOf(const RowNote& given);
  /// The pipeline's name. Runs of the designer name its file, those of the command line leave the ending out.
  std::string title() const;
};

/// Format "fuseline-run", versioned like the pipeline file.
const FieldTable<RunRecord>& fieldsOf(const RunRecord*);
Json toJson(const RunRecord& record);
/// Errors: another format, a newer major version, a missing or wrong field; with the JSON pointer.
Result<RunRecord> runRecordFromJson(const Json& json);

const FieldTable<RowNote>& fieldsOf(const RowNote*);

/// One row of the table that stands beside the graph: a fused op, and its basic ops one level deeper.
struct ComparisonRow {
  std::string label;
  std::string phase;
  int depth = 0;                    // 0: an entry of the fused plan; 1: a basic op beneath it
  std::vector<std::string> owners;  // document ops, for synchronised selection
  bool isFused = false;
  bool isView = false;
  /// Both plans have this very step: its ratio is the noise of the machine and of the places in memory, no speed-up.
  bool isInBoth = false;
  std::string note;
  SampleStats unfused;  // sum over the basic ops for depth 0
  SampleStats fused;    // count 0 for depth 1: a part has no time of its own
  Efficiency unfusedEfficiency;
  Efficiency fusedEfficiency;
  RatioStats speedup;  // unfused / fused, depth 0 only
  std::int64_t bytesSaved = 0;
  std::int64_t launchesSaved = 0;

  /// A difference between the plans, and not by chance.
  bool isClear() const { return speedup.isSignificant() && !isInBoth; }
};

struct Comparison {
  std::vector<ComparisonRow> rows;
  ComparisonRow sum;  // over all steps
  ComparisonRow endToEnd;
};

/// Samples of a variant, such as &VariantRecord::endToEndNs.
using SamplesOf = std::function<std::vector<double>(const VariantRecord&)>;
/// The times of both variants, as far as there are any.
ComparisonRow compareSamples(const RunRecord& record, std::string label, const SamplesOf& samplesOf);

/// Needs both variants; with one only, the other column stays empty.
Comparison compareVariants(const RunRecord& record);

}  // namespace fuseline
