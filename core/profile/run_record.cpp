// Run records as JSON: format "fuseline-run", versioned like the pipeline file.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_record.h"

#include "core/document/format_version.h"
#include "core/support/json_fields.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr const char* kFormat = kRunFormatName;
constexpr int kMajor = 1;
constexpr int kMinor = 0;

Json toJson(const std::vector<ActivityRecord>& activities) {
  Json items = Json::array();
  for (const ActivityRecord& activity : activities)
    items.push_back(
        {{"name", activity.name}, {"configuration", activity.configuration}, {"samplesNs", activity.samplesNs}});
  return items;
}

Json toJson(const Timeline& timeline) {
  Json spans = Json::array();
  for (const TimelineSpan& span : timeline.spans)
    spans.push_back(
        {{"step", span.step}, {"activity", span.activity}, {"startNs", span.startNs}, {"durationNs", span.durationNs}});
  Json launches = Json::array();
  for (const TimelineSpan& launch : timeline.launches)
    launches.push_back({{"step", launch.step}, {"startNs", launch.startNs}, {"durationNs", launch.durationNs}});
  return {{"round", timeline.round}, {"spans", std::move(spans)}, {"launches", std::move(launches)}};
}

Json toJson(const StepRecord& step) {
  return {{"name", step.name},
          {"rule", step.rule},
          {"phase", step.phase},
          {"kernel", step.kernel},
          {"ops", step.ops},
          {"absorbs", step.absorbs},
          {"owners", step.owners},
          {"writes", step.writes},
          {"isView", step.isView},
          {"note", step.note},
          {"ways", step.ways},
          {"arithmetic", arithmeticName(step.arithmetic)},
          {"flops", step.flops},
          {"bytes", step.bytes},
          {"launches", step.isView ? 0 : step.launches},
          {"samplesNs", step.samplesNs},
          {"activities", toJson(step.activities)}};
}

Json toJson(const VariantRecord& variant) {
  Json steps = Json::array();
  for (const StepRecord& step : variant.steps) steps.push_back(toJson(step));
  return {{"name", variant.name},
          {"peakBytes", variant.peakBytes},
          {"arenaBytes", variant.arenaBytes},
          {"savedForBackwardBytes", variant.savedForBackwardBytes},
          {"hostBytes", variant.hostBytes},
          {"launches", variant.launches},
          {"endToEndNs", variant.endToEndNs},
          {"instrumentedNs", variant.instrumentedNs},
          {"launchNs", variant.launchNs},
          {"preparationNs", variant.preparationNs},
          {"firstRunNs", variant.firstRunNs},
          {"launching", variant.launching},
          {"unattributed", toJson(variant.unattributed)},
          {"timeline", toJson(variant.timeline)},
          {"steps", std::move(steps)}};
}

template <class T>
Json pairsToJson(const std::vector<std::pair<std::string, T>>& pairs) {
  Json object = Json::object();
  for (const auto& [name, value] : pairs) object[name] = value;
  return object;
}

void read(JsonFields& fields, const char* key, std::vector<ActivityRecord>& activities) {
  const auto readOne = [&](JsonFields& item) {
    ActivityRecord& activity = activities.emplace_back();
    item.read("name", activity.name);
    item.read("configuration", activity.configuration);
    item.read("samplesNs", activity.samplesNs);
  };
  fields.readObjects(key, readOne, Presence::Optional);
}

void checkTimes(JsonFields& fields, const TimelineSpan& span) {
  for (const auto& [key, value] : {std::pair("startNs", span.startNs), {"durationNs", span.durationNs}})
    if (!(value >= 0.0)) fields.refuse(key, fmt::format("expected nanoseconds from 0 up, found {}.", value));
}

/// Refuses what is no index of these variants' steps and activities.
void check(JsonFields& fields, const TimelineSpan& span, const VariantRecord& variant) {
  const auto isIndex = [](int index, std::size_t size) {
    return index >= -1 && index < static_cast<std::int64_t>(size);
  };
  if (!isIndex(span.step, variant.steps.size()))
    return fields.refuse("step", fmt::format("expected -1, or one of the variant's {} steps, found {}.",
                                             variant.steps.size(), span.step));
  const auto& activities =
      span.step < 0 ? variant.unattributed : variant.steps[static_cast<std::size_t>(span.step)].activities;
  if (!isIndex(span.activity, activities.size()) || (span.step < 0 && span.activity < 0))
    fields.refuse("activity", fmt::format("expected {}one of {} activities, found {}.", span.step < 0 ? "" : "-1, or ",
                                          activities.size(), span.activity));
  checkTimes(fields, span);
}

void checkLaunch(JsonFields& fields, const TimelineSpan& launch, const VariantRecord& variant) {
  if (launch.step < -1 || launch.step >= static_cast<std::int64_t>(variant.steps.size()))
    fields.refuse("step", fmt::format("expected -1, or one of the variant's {} steps, found {}.", variant.steps.size(),
                                      launch.step));
  checkTimes(fields, launch);
}

/// After the steps, which it refers to.
void readTimeline(JsonFields& fields, VariantRecord& variant) {
  const auto readSpan = [&](JsonFields& item) {
    TimelineSpan& span = variant.timeline.spans.emplace_back();
    item.read("step", span.step);
    item.read("activity", span.activity);
    item.read("startNs", span.startNs);
    item.read("durationNs", span.durationNs);
    check(item, span, variant);
  };
  const auto readLaunch = [&](JsonFields& item) {
    TimelineSpan& launch = variant.timeline.launches.emplace_back();
    item.read("step", launch.step);
    item.read("startNs", launch.startNs);
    item.read("durationNs", launch.durationNs);
    checkLaunch(item, launch, variant);
  };
  const auto readAll = [&](JsonFields& item) {
    item.read("round", variant.timeline.round);
    item.readObjects("spans", readSpan);
    item.readObjects("launches", readLaunch, Presence::Optional);
  };
  fields.readObject("timeline", readAll, Presence::Optional);
}

void read(JsonFields& fields, StepRecord& step) {
  fields.read("name", step.name);
  fields.read("rule", step.rule);
  fields.read("phase", step.phase);
  fields.read("kernel", step.kernel);
  fields.read("ops", step.ops);
  fields.read("absorbs", step.absorbs, Presence::Optional);
  fields.read("owners", step.owners);
  fields.read("writes", step.writes, Presence::Optional);
  fields.read("isView", step.isView);
  fields.read("note", step.note);
  fields.read("ways", step.ways, Presence::Optional);
  std::string arithmetic;
  fields.read("arithmetic", arithmetic, Presence::Optional);
  step.arithmetic = arithmeticNamed(arithmetic);
  fields.read("flops", step.flops);
  fields.read("bytes", step.bytes);
  fields.read("launches", step.launches, Presence::Optional);
  fields.read("samplesNs", step.samplesNs);
  read(fields, "activities", step.activities);
}

void read(JsonFields& fields, VariantRecord& variant) {
  fields.read("name", variant.name);
  fields.read("peakBytes", variant.peakBytes);
  fields.read("arenaBytes", variant.arenaBytes);
  fields.read("savedForBackwardBytes", variant.savedForBackwardBytes);
  fields.read("hostBytes", variant.hostBytes, Presence::Optional);
  fields.read("launches", variant.launches);
  fields.read("endToEndNs", variant.endToEndNs);
  fields.read("instrumentedNs", variant.instrumentedNs);
  fields.read("launchNs", variant.launchNs, Presence::Optional);
  fields.read("preparationNs", variant.preparationNs, Presence::Optional);
  fields.read("firstRunNs", variant.firstRunNs, Presence::Optional);
  fields.read("launching", variant.launching, Presence::Optional);
  read(fields, "unattributed", variant.unattributed);
  fields.readObjects("steps", [&](JsonFields& step) { read(step, variant.steps.emplace_back()); });
  readTimeline(fields, variant);
}

/// Reads an object with free keys into pairs.
template <class T>
void readPairs(JsonFields& fields, const char* key, std::vector<std::pair<std::string, T>>& pairs) {
  Json object = Json::object();
  fields.read(key, object);
  JsonFields items(object, std::string("/") + key);
  for (const auto& [name, unused] : object.items()) items.read(name, pairs.emplace_back(name, T{}).second);
  if (items.error()) fields.refuse(key, items.error()->message);
}

void readSwitches(JsonFields& fields, RuleSwitches& switches) {
  const auto read = [&](JsonFields& lists) {
    lists.read("without", switches.without);
    lists.read("with", switches.with);
  };
  fields.readObject("switches", read, Presence::Optional);
}

Json toJson(const RunNumerics& numerics) {
  Json copies = Json::array();
  for (const CopyLosses& copy : numerics.copies) copies.push_back(toJson(copy));
  return {{"fusion", toJson(numerics.fusion)}, {"float32", toJson(numerics.float32)}, {"copies", std::move(copies)}};
}

void readNumerics(JsonFields& fields, RunRecord& record) {
  Json numerics;
  fields.read("numerics", numerics, Presence::Optional);
  if (numerics.is_null()) return;
  fields.readObject("numerics", [&](JsonFields& verdicts) {
    RunNumerics& read = record.numerics.emplace();
    verdicts.readObject("fusion", [&](JsonFields& verdict) { read.fusion = verdictIn(verdict); });
    verdicts.readObject("float32", [&](JsonFields& verdict) { read.float32 = verdictIn(verdict); });
    const auto readCopy = [&](JsonFields& copy) { read.copies.push_back(copyLossesIn(copy)); };
    verdicts.readObjects("copies", readCopy, Presence::Optional);
  });
}

/// Null: they were not measured.
void readRoofs(JsonFields& fields, const Json& json, RunRecord& record) {
  fields.read("roofsNote", record.roofsNote, Presence::Optional);
  if (!json.is_object() || json.value("roofs", Json()).is_null()) return;
  const auto read = [&](JsonFields& item) {
    DeviceRoofs& roofs = record.roofs.emplace();
    for (const auto& [key, target] : {std::pair{"copyGBps", &roofs.copyGBps},
                                      {"fmaF32Gflops", &roofs.fmaF32Gflops},
                                      {"bf16Gflops", &roofs.bf16Gflops},
                                      {"fp8Gflops", &roofs.fp8Gflops}}) {
      item.read(key, *target);
      if (!(*target >= 0.0)) item.refuse(key, fmt::format("expected a rate from 0 up, found {}.", *target));
    }
  };
  fields.readObject("roofs", read);
}

void checkFormat(JsonFields& fields) {
  std::string format;
  int major = kMajor;
  fields.read("format", format);
  if (format != kFormat)
    fields.refuse(
        "format",
        fmt::format("expected \"{}\", found \"{}\". A run file is what `fuseline run PIPELINE -o RUN.fuserun` "
                    "writes.",
                    kFormat, format));
  fields.readObject("formatVersion", [&](JsonFields& version) { version.read("major", major); });
  if (major > kMajor)
    fields.refuse(
        "formatVersion",
        fmt::format("this run was written by a newer program (format {}, this one reads up to {}). Open it with that "
                    "program, or measure again with this one.",
                    major, kMajor));
}

}  // namespace

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

Json toJson(const RunSettings& settings) {
  return {{"device", settings.device},
          {"pass", settings.pass},
          {"rules", settings.rules},
          {"recipe", settings.recipe},
          {"timing", settings.timing},
          {"emulates", settings.emulates},
          {"replays", settings.replays},
          {"startsCold", settings.startsCold},
          {"measuresRoofs", settings.measuresRoofs},
          {"warmup", settings.warmup},
          {"iterations", settings.iterations},
          {"seed", settings.seed},
          {"symbols", pairsToJson(settings.symbols)},
          {"recipeFields", pairsToJson(settings.recipeFields)}};
}

Result<RunSettings> runSettingsFromJson(const Json& json) {
  RunSettings settings;
  JsonFields fields(json, "/settings");
  for (auto [key, target] : {std::pair{"device", &settings.device},
                             {"pass", &settings.pass},
                             {"rules", &settings.rules},
                             {"recipe", &settings.recipe},
                             {"timing", &settings.timing}})
    fields.read(key, *target, Presence::Optional);
  fields.read("emulates", settings.emulates, Presence::Optional);
  fields.read("replays", settings.replays, Presence::Optional);
  fields.read("startsCold", settings.startsCold, Presence::Optional);
  fields.read("measuresRoofs", settings.measuresRoofs, Presence::Optional);
  fields.read("warmup", settings.warmup, Presence::Optional);
  fields.read("iterations", settings.iterations, Presence::Optional);
  for (const auto& [key, count] : {std::pair("warmup", settings.warmup), {"iterations", settings.iterations}})
    if (count < 0) fields.refuse(key, fmt::format("expected 0 or more, found {}.", count));
  fields.read("seed", settings.seed, Presence::Optional);
  if (json.is_object() && json.contains("symbols")) readPairs(fields, "symbols", settings.symbols);
  if (json.is_object() && json.contains("recipeFields")) readPairs(fields, "recipeFields", settings.recipeFields);
  if (fields.error()) return *fields.error();
  return settings;
}

Json toJson(const std::vector<RowNote>& notes) {
  Json list = Json::array();
  for (const RowNote& note : notes) list.push_back({{"step", note.step}, {"phase", note.phase}, {"text", note.text}});
  return list;
}

void readRowNotes(JsonFields& fields, const char* key, std::vector<RowNote>& notes) {
  const auto read = [&](JsonFields& item) {
    RowNote& note = notes.emplace_back();
    item.read("step", note.step);
    item.read("phase", note.phase);
    item.read("text", note.text);
  };
  fields.readObjects(key, read, Presence::Optional);
}

Json toJson(const RunRecord& record) {
  Json variants = Json::array();
  for (const VariantRecord& variant : record.variants) variants.push_back(toJson(variant));
  return {{"format", kFormat},
          {"formatVersion", {{"major", kMajor}, {"minor", kMinor}}},
          {"createdWith", record.createdWith},
          {"isPartial", record.isPartial},
          {"pipelineName", record.pipelineName},
          {"pipelineHash", record.pipelineHash},
          {"roundsId", record.roundsId},
          {"numWarmups", record.numWarmups},
          {"settings", toJson(record.settings)},
          {"recipe", record.recipe},
          {"switches", {{"without", record.switches.without}, {"with", record.switches.with}}},
          {"timingNote", record.timingNote},
          {"roofs", record.roofs ? toJson(*record.roofs) : Json()},
          {"roofsNote", record.roofsNote},
          {"environment", pairsToJson(record.environment)},
          {"variants", std::move(variants)},
          {"numerics", record.numerics ? toJson(*record.numerics) : Json()},
          {"note", record.note},
          {"rowNotes", toJson(record.rowNotes)},
          {"stretchNotes", toJson(record.stretchNotes)},
          {"pipeline", record.pipeline}};
}

Result<RunRecord> runRecordFromJson(const Json& json) {
  RunRecord record;
  JsonFields fields(json, "");
  checkFormat(fields);
  fields.read("createdWith", record.createdWith);
  fields.read("isPartial", record.isPartial);
  fields.read("pipelineName", record.pipelineName);
  fields.read("pipelineHash", record.pipelineHash);
  fields.read("roundsId", record.roundsId, Presence::Optional);
  fields.read("numWarmups", record.numWarmups, Presence::Optional);
  fields.read("pipeline", record.pipeline);
  fields.read("recipe", record.recipe, Presence::Optional);
  readSwitches(fields, record.switches);
  readPairs(fields, "environment", record.environment);
  fields.read("timingNote", record.timingNote, Presence::Optional);
  readRoofs(fields, json, record);
  fields.readObjects("variants", [&](JsonFields& item) { read(item, record.variants.emplace_back()); });
  readNumerics(fields, record);
  fields.read("note", record.note, Presence::Optional);
  readRowNotes(fields, "rowNotes", record.rowNotes);
  readStretchNotes(fields, "stretchNotes", record.stretchNotes);
  Json settings;
  fields.read("settings", settings);
  if (fields.error()) return *fields.error();
  Result<RunSettings> parsed = runSettingsFromJson(settings);
  if (!parsed) return parsed.error();
  record.settings = std::move(*parsed);
  return record;
}

}  // namespace fuseline
