// Run records as JSON: format "fuseline-run", versioned like the pipeline file.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_record.h"

#include "core/document/format_version.h"
#include "core/support/field_table.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr const char* kFormat = kRunFormatName;
constexpr int kMajor = 1;
constexpr int kMinor = 0;

void checkTimes(JsonFields& fields, const std::string& place, const TimelineSpan& span) {
  for (const auto& [key, value] : {std::pair("startNs", span.startNs), {"durationNs", span.durationNs}})
    if (!(value >= 0.0)) fields.refuse(place + key, fmt::format("expected nanoseconds from 0 up, found {}.", value));
}

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
    checkTimes(fields, place, span);
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
  Field<StepRecord> field =
      newField("launches", &StepRecord::launches, "Device launches in one run: kernels, library calls, copies, fills.");
  field.write = [](const StepRecord& step) { return Json(step.isView ? 0 : step.launches); };
  return field;
}

const FieldTable<TimelineSpan>& launchFields() {
  static const FieldTable<TimelineSpan> table({field("step", &TimelineSpan::step, "Index in steps; -1: all at once."),
                                               field("startNs", &TimelineSpan::startNs, "Since the round began."),
                                               field("durationNs", &TimelineSpan::durationNs, "The host's time.")});
  return table;
}

const FieldTable<TimelineSpan>& rankSpanFields() {
  static const FieldTable<TimelineSpan> table(
      {field("rank", &TimelineSpan::rank, "From 0."), field("step", &TimelineSpan::step, "Index in steps."),
       field("startNs", &TimelineSpan::startNs, "Since the ranks began the round together."),
       field("durationNs", &TimelineSpan::durationNs, "On this rank.")});
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
      {field("name", &ActivityRecord::name, "The kernel's name, or copy, or fill."),
       field("configuration", &ActivityRecord::configuration, "Grid and registers, or bytes."),
       field("samplesNs", &ActivityRecord::samplesNs)});
  return table;
}

static const FieldTable<StepRecord>& fieldsOf(const StepRecord*) {
  static const FieldTable<StepRecord> table(
      {field("name", &StepRecord::name, "Name of the step."),
       field("rule", &StepRecord::rule, "Empty: a basic op."),
       field("phase", &StepRecord::phase).oneOf({"forward", "backward"}),
       field("kernel", &StepRecord::kernel, "Kernel that ran."),
       field("ops", &StepRecord::ops),
       newField("absorbs", &StepRecord::absorbs),
       field("owners", &StepRecord::owners),
       newField("writes", &StepRecord::writes, "Shape and format of its first output."),
       field("isView", &StepRecord::isView, "Nothing to do."),
       field("note", &StepRecord::note, "A remark; mostly empty."),
       newField("ways", &StepRecord::ways),
       arithmeticField(),
       field("flops", &StepRecord::flops, "FLOPs of one call."),
       field("bytes", &StepRecord::bytes, "Least traffic."),
       launchesField(),
       field("samplesNs", &StepRecord::samplesNs),
       newField("activities", &StepRecord::activities),
       newField("collective", &StepRecord::collective, "all-gather, reduce-scatter, all-reduce; empty: none."),
       newField("wireBytes", &StepRecord::wireBytes, "Bytes that each rank sends, by the ring algorithm."),
       newField("transferNs", &StepRecord::transferNs, "Median time on the rank that waited least for others."),
       newField("rankNs", &StepRecord::rankNs)});
  return table;
}

static const FieldTable<TimelineSpan>& fieldsOf(const TimelineSpan*) {
  static const FieldTable<TimelineSpan> table(
      {field("step", &TimelineSpan::step, "Index in steps; -1: none."),
       field("activity", &TimelineSpan::activity, "Index in its activities; -1: the step as a whole."),
       field("startNs", &TimelineSpan::startNs, "Since the round began."),
       field("durationNs", &TimelineSpan::durationNs, "Until it ended.")});
  return table;
}

static const FieldTable<Timeline>& fieldsOf(const Timeline*) {
  static const FieldTable<Timeline> table(
      {field("round", &Timeline::round, "Round with the median total; index in instrumentedNs."),
       field("spans", &Timeline::spans), spansField("launches", &Timeline::launches, launchFields()),
       spansField("rankSpans", &Timeline::rankSpans, rankSpanFields())});
  return table;
}

static const FieldTable<VariantRecord>& fieldsOf(const VariantRecord*) {
  static const FieldTable<VariantRecord> table(
      {field("name", &VariantRecord::name).oneOf({"unfused", "fused"}),
       field("peakBytes", &VariantRecord::peakBytes, "Memory of the plan and of its kernels' workspaces."),
       field("arenaBytes", &VariantRecord::arenaBytes,
             "Part of peakBytes in the arena, where tensors with disjoint lifetimes share memory."),
       field("savedForBackwardBytes", &VariantRecord::savedForBackwardBytes, "Kept from forward for backward."),
       newField("hostBytes", &VariantRecord::hostBytes, "Host memory of tensors that wait there for backward."),
       field("launches", &VariantRecord::launches,
             "Device launches in one run: kernels, library calls, copies and fills."),
       field("endToEndNs", &VariantRecord::endToEndNs), field("instrumentedNs", &VariantRecord::instrumentedNs),
       newField("launchNs", &VariantRecord::launchNs),
       newField("preparationNs", &VariantRecord::preparationNs, "Setup time of the plan; 0: unknown."),
       newField("firstRunNs", &VariantRecord::firstRunNs,
                "Time of the first run, before the rounds; 0: there was none."),
       newField("launching", &VariantRecord::launching, "How the steps were launched; empty: the device has one way."),
       newField("unattributed", &VariantRecord::unattributed), newField("timeline", &VariantRecord::timeline),
       field("steps", &VariantRecord::steps)},
      checkVariant);
  return table;
}

static const FieldTable<RunNumerics>& fieldsOf(const RunNumerics*) {
  static const FieldTable<RunNumerics> table({field("fusion", &RunNumerics::fusion),
                                              field("float32", &RunNumerics::float32),
                                              newField("copies", &RunNumerics::copies)});
  return table;
}

static const FieldTable<RuleSwitches>& fieldsOf(const RuleSwitches*) {
  static const FieldTable<RuleSwitches> table(
      {field("without", &RuleSwitches::without), field("with", &RuleSwitches::with)});
  return table;
}

const FieldTable<RowNote>& fieldsOf(const RowNote*) {
  static const FieldTable<RowNote> table({field("step", &RowNote::step, "Name of the step."),
                                          field("phase", &RowNote::phase).oneOf({"forward", "backward"}),
                                          field("text", &RowNote::text, "The user's note.")});
  return table;
}

const FieldTable<RunRecord>& fieldsOf(const RunRecord*) {
  static const Json version = {{"major", kMajor}, {"minor", kMinor}};
  static const FieldTable<RunRecord> table(
      {{"format", schema::choice({kFormat}), [](const RunRecord&) { return Json(kFormat); }, readFormat},
       {"formatVersion",
        schema::object(
            {{"major", schema::integer("Readers refuse newer versions.")}, {"minor", schema::integer("Additions.")}}),
        [](const RunRecord&) { return version; }, readVersion},
       field("createdWith", &RunRecord::createdWith, "Program and version."),
       field("isPartial", &RunRecord::isPartial, "It was cancelled."),
       field("pipelineName", &RunRecord::pipelineName, "Name of the file."),
       field("pipelineHash", &RunRecord::pipelineHash, "Hash of the pipeline without its view."),
       newField("roundsId", &RunRecord::roundsId, "Equal in runs whose rounds were interleaved; empty: it ran alone."),
       newField("numWarmups", &RunRecord::numWarmups, "Runs before the first round: a GPU is warmed up for a while."),
       field("settings", &RunRecord::settings),
       newField("recipe", &RunRecord::recipe, "Recipe with its fields and overrides; null: none."),
       newField("switches", &RunRecord::switches),
       newField("timingNote", &RunRecord::timingNote, "Reason for another clock than requested; empty: none."),
       newField("peaks", &RunRecord::peaks),
       newField("peaksNote", &RunRecord::peaksNote, "Reason why requested values are missing; empty: none."),
       field("environment", &RunRecord::environment),
       field("variants", &RunRecord::variants),
       newField("numerics", &RunRecord::numerics),
       newField("note", &RunRecord::note, "Note; empty: none."),
       newField("rowNotes", &RunRecord::rowNotes),
       newField("stretchNotes", &RunRecord::stretchNotes),
       field("pipeline", &RunRecord::pipeline, "Copy of the pipeline file.")});
  return table;
}

Json toJson(const RunRecord& record) { return fieldsOf(&record).toJson(record); }

namespace {

/// Gives a field that early versions named otherwise its present name.
void renameField(Json& object, const char* former, const char* present) {
  if (!object.is_object() || !object.contains(former) || object.contains(present)) return;
  object[present] = std::move(object[former]);
  object.erase(former);
}

bool hasFormerNames(const Json& json) {
  return json.is_object() && (json.contains("roofs") || json.contains("roofsNote"));
}

Json withPresentNames(Json json) {
  renameField(json, "roofs", "peaks");
  renameField(json, "roofsNote", "peaksNote");
  if (json.contains("settings")) renameField(json["settings"], "measuresRoofs", "measuresPeaks");
  return json;
}

}  // namespace

Result<RunRecord> runRecordFromJson(const Json& json) {
  const FieldTable<RunRecord>& fields = fieldsOf(static_cast<const RunRecord*>(nullptr));
  return hasFormerNames(json) ? fields.from(withPresentNames(json)) : fields.from(json);
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
