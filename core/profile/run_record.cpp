// Run records as JSON: format "fuseline-run", versioned like the pipeline file.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_record.h"

#include "core/document/format_version.h"
#include "core/graph/phase.h"
#include "core/support/field_bounds.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr const char* kFormat = kRunFormatName;
constexpr int kMajor = 1;
constexpr int kMinor = 0;

void checkStep(JsonFields& fields, const std::string& place, const TimelineSpan& span, const VariantRecord& variant) {
  if (span.step < -1 || span.step >= static_cast<std::int64_t>(variant.steps.size()))
    fields.refuse(place + "step", fmt::format("expected -1, or one of the variant's {} steps, found {}.",
                                              variant.steps.size(), span.step));
}

/// The ranks of a run are few.
void checkRank(JsonFields& fields, const std::string& place, const TimelineSpan& span) {
  constexpr int kMostRanks = 1 << 16;
  if (span.rank < 0 || span.rank >= kMostRanks)
    fields.refuse(place + "rank", fmt::format("expected 0 to {}, found {}.", kMostRanks - 1, span.rank));
}

/// The span names a step that exists.
void checkActivity(JsonFields& fields, const std::string& place, const TimelineSpan& span,
                   const VariantRecord& variant) {
  const auto& activities =
      span.step < 0 ? variant.unattributed : variant.steps[static_cast<std::size_t>(span.step)].activities;
  const auto numActivities = static_cast<std::int64_t>(activities.size());
  if (span.activity < -1 || span.activity >= numActivities || (span.step < 0 && span.activity < 0))
    fields.refuse(place + "activity", fmt::format("expected {}one of {} activities, found {}.",
                                                  span.step < 0 ? "" : "-1, or ", numActivities, span.activity));
}

/// Refuses indices that are none of the variant's steps and activities.
void checkVariant(JsonFields& fields, const VariantRecord& variant) {
  const auto check = [&](const char* list, std::size_t index, const TimelineSpan& span) {
    const std::string place = fmt::format("timeline/{}/{}/", list, index);
    checkStep(fields, place, span, variant);
    return place;
  };
  for (std::size_t i = 0; i < variant.timeline.launches.size(); ++i) check("launches", i, variant.timeline.launches[i]);
  for (std::size_t i = 0; i < variant.timeline.rankSpans.size() && !fields.error(); ++i) {
    const TimelineSpan& span = variant.timeline.rankSpans[i];
    const std::string place = check("rankSpans", i, span);
    if (!fields.error()) checkRank(fields, place, span);
    if (!fields.error() && span.step < 0) fields.refuse(place + "step", "expected a step of a rank, found -1.");
  }
  for (std::size_t i = 0; i < variant.timeline.spans.size() && !fields.error(); ++i) {
    const std::string place = check("spans", i, variant.timeline.spans[i]);
    if (!fields.error()) checkActivity(fields, place, variant.timeline.spans[i], variant);
  }
}

void readFormat(JsonFields& fields, RunRecord&) {
  std::string format;
  fields.read("format", format);
  if (format != kFormat)
    fields.refuse("format",
                  fmt::format("expected \"{}\", found \"{}\". `fuseline run PIPELINE -o RUN.fuserun` writes run files.",
                              kFormat, format));
}

void readVersion(JsonFields& fields, RunRecord&) {
  int major = kMajor;
  fields.readObject("formatVersion", [&](JsonFields& version) { version.read("major", major); });
  if (major > kMajor)
    fields.refuse(
        "formatVersion",
        fmt::format("the run has format {}, but this program reads up to {}. Use a newer Fuseline, or measure again.",
                    major, kMajor));
}

/// A step's arithmetic that a newer program knows is none.
Field<StepRecord> arithmeticField() {
  return {"arithmetic", schema::text("Peak that limits it: f32, bf16 or fp8; empty: none."),
          [](const StepRecord& step) { return Json(arithmeticName(step.arithmetic)); },
          [](JsonFields& fields, StepRecord& step) {
            std::string name;
            fields.read("arithmetic", name, Presence::Optional);
            step.arithmetic = arithmeticNamed(name);
          }};
}

/// Views launch nothing; older programs did not say how much other steps launch.
Field<StepRecord> launchesField() {
  Field<StepRecord> field = amount(newField("launches", &StepRecord::launches,
                                            "Device launches in one run: kernels, library calls, copies, fills."));
  field.write = [](const StepRecord& step) { return Json(step.isView ? 0 : step.launches); };
  return field;
}

const FieldTable<TimelineSpan>& launchFields() {
  static const FieldTable<TimelineSpan> table(
      {field("step", &TimelineSpan::step, "Index in steps; -1: all steps at once (CUDA graph)."),
       amount(field("startNs", &TimelineSpan::startNs, "Start, in ns since the round began.")),
       amount(field("durationNs", &TimelineSpan::durationNs, "Host time of the launch, in ns."))});
  return table;
}

const FieldTable<TimelineSpan>& rankSpanFields() {
  static const FieldTable<TimelineSpan> table(
      {field("rank", &TimelineSpan::rank, "From 0."), field("step", &TimelineSpan::step, "Index in steps."),
       amount(field("startNs", &TimelineSpan::startNs, "Since the ranks began the round together.")),
       amount(field("durationNs", &TimelineSpan::durationNs, "On this rank."))});
  return table;
}

/// Spans without an activity.
Field<Timeline> spansField(const char* key, std::vector<TimelineSpan> Timeline::*spans,
                           const FieldTable<TimelineSpan>& table) {
  return {key, schema::list(table.schema()),
          [spans, &table](const Timeline& timeline) {
            Json list = Json::array();
            for (const TimelineSpan& span : timeline.*spans) list.push_back(table.toJson(span));
            return list;
          },
          [key, spans, &table](JsonFields& fields, Timeline& timeline) {
            const auto read = [&](JsonFields& item) { table.read(item, (timeline.*spans).emplace_back()); };
            fields.readObjects(key, read, Presence::Optional);
          }};
}

}  // namespace

static const FieldTable<ActivityRecord>& fieldsOf(const ActivityRecord*) {
  static const FieldTable<ActivityRecord> table(
      {field("name", &ActivityRecord::name, "Name of the kernel, or copy, or fill."),
       field("configuration", &ActivityRecord::configuration,
             "Grid and registers of a kernel; bytes of a copy or fill."),
       amount(field("samplesNs", &ActivityRecord::samplesNs, "Its time in each round."))});
  return table;
}

static const FieldTable<StepRecord>& fieldsOf(const StepRecord*) {
  static const FieldTable<StepRecord> table(
      {field("name", &StepRecord::name, "Name of the step."),
       field("rule", &StepRecord::rule, "Fusion rule of the step; empty: a basic op."),
       field("phase", &StepRecord::phase).oneOf({"forward", "backward", "optimizer"}),
       field("kernel", &StepRecord::kernel, "Kernel that ran."),
       field("ops", &StepRecord::ops, "Basic ops of the step."),
       newField("mergedSteps", &StepRecord::absorbs,
                "Names of other steps whose work this step does, such as fc1.quantize_input.")
           .formerly("absorbs"),
       field("owners", &StepRecord::owners, "Ops of the pipeline file that these come from."),
       newField("output", &StepRecord::writes, "Shape and format of its first output.").formerly("writes"),
       field("isView", &StepRecord::isView, "Only a view: no kernel runs."),
       field("note", &StepRecord::note, "Remark of the kernel; usually empty."),
       newField("algorithms", &StepRecord::ways, "Algorithms that the kernel chose, one sentence each.")
           .formerly("ways"),
       arithmeticField(),
       amount(field("flops", &StepRecord::flops, "Floating-point operations of one call.")),
       amount(field("bytes", &StepRecord::bytes, "Minimum memory traffic.")),
       launchesField(),
       amount(field("samplesNs", &StepRecord::samplesNs, "Its time in each round; empty: not timed.")),
       newField("activities", &StepRecord::activities, "Kernels, copies and fills of the step (CUPTI activities)."),
       newField("collective", &StepRecord::collective, "all-gather, reduce-scatter, all-reduce; empty: none."),
       amount(newField("bytesSentPerRank", &StepRecord::wireBytes, "Bytes that each rank sends, by the ring algorithm.")
                  .formerly("wireBytes")),
       amount(newField("transferNs", &StepRecord::transferNs, "Median time on the rank that waited least for others.")),
       amount(newField("exposedNs", &StepRecord::exposedNs,
                       "Median time that other steps waited for it, on the slowest rank.")),
       amount(newField("hiddenNs", &StepRecord::hiddenNs,
                       "Median time that it ran concurrently with other steps, on that rank.")),
       amount(newField("rankNs", &StepRecord::rankNs, "Median time on each rank."))});
  return table;
}

static const FieldTable<TimelineSpan>& fieldsOf(const TimelineSpan*) {
  static const FieldTable<TimelineSpan> table(
      {field("step", &TimelineSpan::step, "Index in steps; -1: none."),
       field("activity", &TimelineSpan::activity, "Index in its activities; -1: the step as a whole."),
       amount(field("startNs", &TimelineSpan::startNs, "Start, in ns since the round began.")),
       amount(field("durationNs", &TimelineSpan::durationNs, "Duration in ns."))});
  return table;
}

static const FieldTable<Timeline>& fieldsOf(const Timeline*) {
  static const FieldTable<Timeline> table(
      {amount(field("round", &Timeline::round, "Round with the median total; index in instrumentedNs.")),
       field("spans", &Timeline::spans), spansField("launches", &Timeline::launches, launchFields()),
       spansField("rankSpans", &Timeline::rankSpans, rankSpanFields())});
  return table;
}

static const FieldTable<VariantRecord>& fieldsOf(const VariantRecord*) {
  static const FieldTable<VariantRecord> table(
      {field("name", &VariantRecord::name).oneOf({"unfused", "fused"}),
       amount(field("peakBytes", &VariantRecord::peakBytes, "Memory of the plan and of its kernels' workspaces.")),
       amount(field("arenaBytes", &VariantRecord::arenaBytes,
                    "Part of peakBytes in the arena, where tensors with disjoint lifetimes share memory.")),
       amount(field("savedForBackwardBytes", &VariantRecord::savedForBackwardBytes, "Kept from forward for backward.")),
       amount(newField("offloadedBytes", &VariantRecord::hostBytes, "Host memory of offloaded tensors.")
                  .formerly("hostBytes")),
       amount(field("launches", &VariantRecord::launches,
                    "Device launches in one run: kernels, library calls, copies and fills.")),
       amount(field("endToEndNs", &VariantRecord::endToEndNs, "Time of each round, uninstrumented.")),
       amount(field("instrumentedNs", &VariantRecord::instrumentedNs, "Time of each round with every step timed.")),
       amount(newField("launchNs", &VariantRecord::launchNs, "Host time to launch all steps, in each round.")),
       amount(newField("setupNs", &VariantRecord::preparationNs, "Setup time of the plan; 0: unknown.")
                  .formerly("preparationNs")),
       amount(newField("firstRunNs", &VariantRecord::firstRunNs,
                       "Time of the first run, before the rounds; 0: there was none.")),
       newField("launchMode", &VariantRecord::launching, "Launch method of the steps; empty: the device has only one.")
           .formerly("launching"),
       newField("unattributed", &VariantRecord::unattributed, "Kernels, copies and fills outside of all steps."),
       newField("timeline", &VariantRecord::timeline), field("steps", &VariantRecord::steps)},
      checkVariant);
  return table;
}

static const FieldTable<RunNumerics>& fieldsOf(const RunNumerics*) {
  static const FieldTable<RunNumerics> table({field("fusion", &RunNumerics::fusion),
                                              field("float32", &RunNumerics::float32),
                                              newField("quantizedTensors", &RunNumerics::copies).formerly("copies")});
  return table;
}

static const FieldTable<RuleSwitches>& fieldsOf(const RuleSwitches*) {
  static const FieldTable<RuleSwitches> table(
      {field("without", &RuleSwitches::without, "Disabled rules: RULE or RULE@OP."),
       field("with", &RuleSwitches::with, "Requested rules: RULE or RULE@OP.")});
  return table;
}

const FieldTable<RowNote>& fieldsOf(const RowNote*) {
  static const FieldTable<RowNote> table({field("step", &RowNote::step, "Name of the step."),
                                          field("phase", &RowNote::phase).oneOf({"forward", "backward", "optimizer"}),
                                          field("text", &RowNote::text, "The user's note.")});
  return table;
}

const FieldTable<RunRecord>& fieldsOf(const RunRecord*) {
  static const Json version = {{"major", kMajor}, {"minor", kMinor}};
  static const FieldTable<RunRecord> table(
      {{"format", schema::choice({kFormat}), [](const RunRecord&) { return Json(kFormat); }, readFormat},
       {"formatVersion",
        schema::object({{"major", schema::integer("Version of the format; programs refuse files of newer versions.")},
                        {"minor", schema::integer("Raised when fields are added.")}}),
        [](const RunRecord&) { return version; }, readVersion},
       field("createdWith", &RunRecord::createdWith, "Program and version."),
       field("isPartial", &RunRecord::isPartial, "Whether the run was cancelled; then it has only complete rounds."),
       field("pipelineName", &RunRecord::pipelineName, "Name of the file."),
       field("pipelineHash", &RunRecord::pipelineHash, "Hash of the pipeline without its view."),
       newField("interleavedGroupId", &RunRecord::roundsId,
                "Equal in runs whose rounds were interleaved with each other; empty: the run was measured alone.")
           .formerly("roundsId"),
       between(newField("numWarmups", &RunRecord::numWarmups, "Number of warm-up runs before the first round."), -1.0,
               kMostAmount),
       field("settings", &RunRecord::settings),
       newField("recipe", &RunRecord::recipe, "Recipe with its fields and overrides; null: none."),
       newField("switches", &RunRecord::switches),
       newField("timingNote", &RunRecord::timingNote, "Reason for another clock than requested; empty: none."),
       newField("peaks", &RunRecord::peaks).formerly("roofs"),
       newField("peaksNote", &RunRecord::peaksNote, "Reason why requested values are missing; empty: none.")
           .formerly("roofsNote"),
       field("environment", &RunRecord::environment, "Properties of machine, device and libraries, by name."),
       field("variants", &RunRecord::variants),
       newField("expertLoads", &RunRecord::expertLoads, "Tokens of each expert in the last run."),
       newField("numerics", &RunRecord::numerics),
       newField("note", &RunRecord::note, "Note of the user; empty: none."),
       newField("stepNotes", &RunRecord::rowNotes).formerly("rowNotes"),
       newField("timeRangeNotes", &RunRecord::stretchNotes).formerly("stretchNotes"),
       field("pipeline", &RunRecord::pipeline, "Copy of the pipeline file.")});
  return table;
}

Json toJson(const RunRecord& record) { return fieldsOf(&record).toJson(record); }

namespace {

/// In older files the optimizer's step belongs to the backward pass.
void moveOptimizer(RunRecord& record) {
  const std::string optimizer(phaseName(Phase::Optimizer));
  for (VariantRecord& variant : record.variants)
    for (StepRecord& step : variant.steps)
      if (step.kernel == "adamw") step.phase = optimizer;
  for (RowNote& note : record.rowNotes)
    if (note.step == "AdamW" && note.phase == phaseName(Phase::Backward)) note.phase = optimizer;
}

}  // namespace

Result<RunRecord> runRecordFromJson(const Json& json) {
  Result<RunRecord> record = fieldsOf(static_cast<const RunRecord*>(nullptr)).from(json);
  if (record) moveOptimizer(*record);
  return record;
}

RunNumerics summarized(const NumericsReport& report) {
  RunNumerics numerics{.fusion = verdictOf(report.fusionErrors), .float32 = verdictOf(report.errors)};
  for (const CopyNumerics& copy : report.copies)
    numerics.copies.push_back({.name = copy.name, .owner = copy.owner, .format = copy.format, .losses = copy.losses});
  return numerics;
}

std::string rangeName(std::string_view step, std::string_view kernel, std::string_view phase, std::string_view writes) {
  return fmt::format("{} ({}, {}){}{}", step, kernel, phase, writes.empty() ? "" : " ", writes);
}

const StepRecord* VariantRecord::find(const std::string& stepName, const std::string& phase) const {
  const auto found =
      std::ranges::find_if(steps, [&](const StepRecord& step) { return step.name == stepName && step.phase == phase; });
  return found == steps.end() ? nullptr : &*found;
}

std::int64_t VariantRecord::numSteps() const {
  return std::ranges::count_if(steps, [](const StepRecord& step) { return !step.isView && step.launches > 0; });
}

std::int64_t VariantRecord::numTraced() const {
  return std::ranges::count_if(timeline.spans, [](const TimelineSpan& span) { return span.activity >= 0; });
}

std::vector<double> VariantRecord::unattributedNs() const {
  std::vector<double> sums(instrumentedNs.size(), 0.0);
  for (const ActivityRecord& activity : unattributed)
    for (std::size_t round = 0; round < std::min(sums.size(), activity.samplesNs.size()); ++round)
      sums[round] += activity.samplesNs[round];
  return sums;
}

const VariantRecord* RunRecord::variant(const std::string& name) const {
  const auto found = std::ranges::find(variants, name, &VariantRecord::name);
  return found == variants.end() ? nullptr : &*found;
}

std::string RunRecord::fact(std::string_view name) const {
  const auto found = std::ranges::find(environment, name, &std::pair<std::string, std::string>::first);
  return found == environment.end() ? std::string() : found->second;
}

std::string RunRecord::deviceName() const {
  const std::string name = fact("device");
  return name.empty() ? settings.device : name;
}

std::string RunRecord::noteOf(std::string_view step, std::string_view phase) const {
  const auto found =
      std::ranges::find_if(rowNotes, [&](const RowNote& each) { return each.step == step && each.phase == phase; });
  return found == rowNotes.end() ? std::string() : found->text;
}

void RunRecord::setNoteOf(const RowNote& given) {
  std::erase_if(rowNotes, [&](const RowNote& each) { return each.step == given.step && each.phase == given.phase; });
  if (!given.text.empty()) rowNotes.push_back(given);
}

std::string RunRecord::title() const {
  constexpr std::string_view kEnding = ".fuseline";
  const bool isFile = pipelineName.ends_with(kEnding);
  return pipelineName.substr(0, pipelineName.size() - (isFile ? kEnding.size() : 0));
}

}  // namespace fuseline
