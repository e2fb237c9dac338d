// The fields of every verb's JSON output. Tests hold the real output against them.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output_schemas.h"

#include <string_view>

namespace fuseline::cli {

namespace {

using Fields = std::vector<std::pair<std::string, Json>>;

Json text(std::string_view description) { return {{"type", "string"}, {"description", description}}; }
Json integer(std::string_view description) { return {{"type", "integer"}, {"description", description}}; }
Json number(std::string_view description) { return {{"type", "number"}, {"description", description}}; }
Json flag(std::string_view description) { return {{"type", "boolean"}, {"description", description}}; }
Json choice(const std::vector<std::string>& values) { return {{"type", "string"}, {"enum", values}}; }
Json any(std::string_view description) { return {{"description", description}}; }

Json list(Json items) { return {{"type", "array"}, {"items", std::move(items)}}; }
Json texts() { return list({{"type", "string"}}); }
Json numbers() { return list({{"type", "number"}}); }

Json orNull(Json schema) {
  schema["type"] = Json::array({schema["type"], "null"});
  return schema;
}

/// Every field is always present, and there are no others.
Json object(const Fields& fields) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const auto& [name, schema] : fields) {
    properties[name] = schema;
    required.push_back(name);
  }
  return {{"type", "object"}, {"properties", properties}, {"required", required}, {"additionalProperties", false}};
}

Json mapOf(Json values) { return {{"type", "object"}, {"additionalProperties", std::move(values)}}; }

Json phase() { return choice({"forward", "backward"}); }
Json rowNotes() {
  return list(object({{"step", text("Its name.")}, {"phase", phase()}, {"text", text("What a user says of it.")}}));
}
Json stretchNotes() {
  return list(object({{"variant", text("unfused or fused; empty: all.")},
                      {"startNs", number("Since the run began.")},
                      {"endNs", number("Since the run began.")},
                      {"text", text("What a user says of this part of the timeline.")}}));
}
Json saving() {
  return orNull(
      object({{"bytes", integer("Memory traffic saved at least, by the model.")},
              {"launches", integer("Launches saved: a step counts as one, but for what the device says of it.")},
              {"predictedNs", orNull(number("What they are worth; null: no device was measured."))}}));
}

Json measuredGain() {
  return orNull(object({{"gainNs", number("Median of unfused minus fused; negative: slower.")},
                        {"speedup", number("Unfused over fused, within a round.")},
                        {"speedupLow", number("Of the 95 % interval.")},
                        {"speedupHigh", number("Of the 95 % interval.")},
                        {"device", text("Where it was measured.")}}));
}

Json deviceModel() {
  return orNull(object({{"bandwidthBytesPerSecond", number("Of memory.")},
                        {"launchSeconds", number("Of one launch.")},
                        {"source", text("Who measured it.")}}));
}

Json newSchema() {
  Json both = object({{"template", text("Its name.")},
                      {"file", text("Where it was written; empty: nowhere.")},
                      {"text", text("The pipeline.")}});
  Json names =
      object({{"templates", list(object({{"name", text("For `new`.")}, {"summary", text("One sentence.")}}))}});
  return {{"oneOf", Json::array({names, both})}};
}

Json gatesSchema() {
  return list(object({{"gate", text("As given.")},
                      {"isMet", flag("What it guards against has not happened.")},
                      {"sentence", text("With the figures.")}}));
}

/// Of two runs.
Fields comparisonFields() {
  const Json stats = orNull(object({{"median", number("Of the unit.")},
                                    {"spreadPercent", number("Half the interquartile range over the median.")},
                                    {"samples", integer("Rounds.")}}));
  const Json metric = object({{"name", text("For --fail-if; of a step its name.")},
                              {"phase", text("Of a step; else empty.")},
                              {"unit", choice({"ns", "bytes", "x", ""})},
                              {"base", stats},
                              {"new", stats},
                              {"change", orNull(number("New over base; null: one of them is missing."))},
                              {"changeLow", orNull(number("Of the 95 % interval."))},
                              {"changeHigh", orNull(number("Of the 95 % interval."))},
                              {"isSignificant", flag("Not by chance within the runs.")}});
  return {{"variant", choice({"unfused", "fused"})},
          {"isPaired", flag("Both took turns in one measurement, and changes are of each round.")},
          {"differences", list(object({{"what", text("A setting or a fact of the environment.")},
                                       {"base", text("Empty: not said.")},
                                       {"new", text("Empty: not said.")}}))},
          {"totals", list(metric)},
          {"steps", list(metric)}};
}

Json compareSchema() {
  const Json notes = object({{"note", text("What a user says of the run; mostly empty.")},
                             {"rowNotes", rowNotes()},
                             {"stretchNotes", stretchNotes()}});
  Fields other = comparisonFields();
  other.insert(other.end(), {{"file", text("Of --with.")}, {"notes", notes}});
  Fields all = comparisonFields();
  all.insert(all.end(), {{"others", list(object(other))},
                         {"notes", object({{"base", notes}, {"new", notes}})},
                         {"gates", gatesSchema()}});
  return object(all);
}

Json exportSchema() {
  Json file = object({{"format", text("Its name.")},
                      {"file", text("Where it was written; empty: nowhere.")},
                      {"notes", list(text("Where the other program does something else than Fuseline."))},
                      {"text", text("What it holds; of bytes a listing of it.")}});
  Json formats = object({{"formats", list(object({{"name", text("For --to.")},
                                                  {"of", choice({"pipeline", "run"})},
                                                  {"ending", text("Of its files.")},
                                                  {"summary", text("One sentence.")}}))}});
  return {{"oneOf", Json::array({formats, file})}};
}

Json importSchema() {
  return object({{"file", text("Where it was written; empty: nowhere.")},
                 {"notes", list(text("What a model does not say, or a pipeline does not hold."))},
                 {"text", text("The pipeline file.")}});
}

Json portSchema() {
  return object({{"name", text("Of the port.")}, {"shape", text("Symbolic.")}, {"help", text("What it is.")}});
}

Json attributeSchema() {
  return object({{"name", text("In the file.")},
                 {"type", text("Of the value.")},
                 {"isRequired", flag("It has no default.")},
                 {"default", text("Empty: none.")},
                 {"range", text("Allowed values.")},
                 {"help", text("What it does.")}});
}

Json workSchema() {
  return object({{"flops", integer("Floating-point operations.")}, {"bytes", integer("Least memory traffic.")}});
}

Json opsSchema() {
  return object({{"ops", list(object({{"name", text("In the file.")},
                                      {"category", text("In the palette.")},
                                      {"summary", text("One sentence.")},
                                      {"formula", text("Forward.")},
                                      {"derivative", text("Backward.")},
                                      {"source", text("Where the mathematics is from.")},
                                      {"details", text("Lines; mostly empty.")},
                                      {"cost", orNull(object({{"x", text("The input that was assumed.")},
                                                              {"forward", workSchema()},
                                                              {"backward", workSchema()}}))},
                                      {"isComposite", flag("It becomes several basic ops.")},
                                      {"inputs", list(portSchema())},
                                      {"parameters", list(portSchema())},
                                      {"outputs", list(portSchema())},
                                      {"residuals", list(portSchema())},
                                      {"attributes", list(attributeSchema())},
                                      {"fusions", texts()}}))}});
}

Json recipesSchema() {
  const Json field = object({{"name", text("For --recipe-set.")},
                             {"type", text("Of its values.")},
                             {"default", text("As text.")},
                             {"choices", texts()},
                             {"help", text("What it does.")}});
  return object({{"recipes", list(object({{"name", text("For --recipe.")},
                                          {"summary", text("One sentence.")},
                                          {"source", text("Of the mathematics.")},
                                          {"hardware", text("What its GEMMs need of a GPU.")},
                                          {"hasState", flag("Scales follow from earlier steps.")},
                                          {"fields", list(field)}}))}});
}

Json guideSchema() {
  return object({{"topics", list(object({{"name", text("A page, or the code of a problem.")},
                                         {"title", text("Its heading.")},
                                         {"text", text("Markdown.")}}))}});
}

/// What a rule did in the pipeline that was named.
Json ruleUseSchema() {
  return object({{"standing", choice({"tried", "outside book", "outside pass"})},
                 {"hits", integer("Places where it fused.")},
                 {"misses", integer("Places where it did not.")},
                 {"switchedOff", integer("Of these, where it is switched off.")},
                 {"bytesSaved", integer("Of the least memory traffic, by all hits.")},
                 {"launchesSaved", integer("By all hits.")},
                 {"predictedNs", orNull(number("What that is worth by the model; null: there is none."))}});
}

Json deviceModelSchema() {
  return object({{"bandwidthGBps", number("Of memory.")},
                 {"launchUs", number("Of one launch.")},
                 {"source", text("Where both come from.")}});
}

Json rulesSchema() {
  const Json step = object({{"role", text("Of the step.")},
                            {"accepts", text("In words.")},
                            {"operations", texts()},
                            {"repeat", choice({"once", "optional", "oneOrMore", "zeroOrMore"})}});
  return object({{"rules", list(object({{"name", text("For --without.")},
                                        {"pass", choice({"joint", "forward", "backward"})},
                                        {"origin", choice({"te", "fuseline"})},
                                        {"summary", text("What is saved, and why it is legal.")},
                                        {"chain", list(step)},
                                        {"conditions", texts()},
                                        {"becomes", text("The kernel.")},
                                        {"hardware", text("What it needs of a GPU; empty: nothing.")},
                                        {"price", text("Why it is used on request only; empty: it has none.")},
                                        {"use", orNull(ruleUseSchema())}}))},
                 {"model", orNull(deviceModelSchema())}});
}

Json instancesOfDiagnostic() {
  Json ops = texts();
  ops["description"] = "Where it holds in several instances of a block: the op in each of them; else empty.";
  return ops;
}

Json diagnosticSchema() {
  return object({{"severity", choice({"error", "warning", "note"})},
                 {"code", text("Stable.")},
                 {"node", text("Op, input or output; empty: the file.")},
                 {"port", text("Empty: the whole node.")},
                 {"pointer", text("JSON pointer.")},
                 {"line", integer("1-based; 0: unknown.")},
                 {"column", integer("1-based; 0: unknown.")},
                 {"message", text("One sentence with both values.")},
                 {"repairs", texts()},
                 {"instances", instancesOfDiagnostic()}});
}

Json validateSchema() {
  const Json repaired = object({{"code", text("Of the error.")},
                                {"pointer", text("JSON pointer, where the error was.")},
                                {"message", text("Of the error.")},
                                {"repair", text("What was done.")}});
  const Fields plain = {
      {"file", text("As given.")}, {"isValid", flag("There is no error.")}, {"diagnostics", list(diagnosticSchema())}};
  Fields afterRepair = plain;
  afterRepair.insert(afterRepair.end(), {{"repaired", list(repaired)}, {"text", text("The pipeline as it is now.")}});
  const Json several = object({{"isValid", flag("There is no error in any.")}, {"files", list(object(plain))}});
  return {{"oneOf", Json::array({object(plain), object(afterRepair), several})}};
}

Fields tensorFields(const std::vector<std::string>& dtypes = {"f32", "f16", "bf16", "i64"}) {
  return {{"name", text("Of the tensor.")},
          {"dtype", choice(dtypes)},
          {"shape", list({{"type", "integer"}})},
          {"bytes", integer("Of its data.")}};
}

Json edgeSchema() {
  Fields fields = tensorFields();
  fields.emplace_back("producer", orNull(text("An op; null: a pipeline input.")));
  fields.emplace_back("readers", texts());
  fields.emplace_back("needsGradient", flag("In training."));
  return object(fields);
}

Json inferSchema() {
  const Json op = object({{"id", text("Of the basic op.")},
                          {"owner", text("The op of the file that it came from.")},
                          {"op", text("Its name in the library.")},
                          {"inputs", texts()},
                          {"outputs", texts()},
                          {"parameters", list(object(tensorFields()))},
                          {"flopsForward", integer("Of one call.")},
                          {"flopsBackward", integer("Of one call; 0: takes no part.")}});
  return object({{"pass", choice({"forward", "train"})},
                 {"edges", list(edgeSchema())},
                 {"ops", list(op)},
                 {"outputs", list(object({{"name", text("Of the output.")}, {"from", text("An edge.")}}))}});
}

Json attemptSchema() {
  Fields fields = {
      {"rule", text("That was tried.")}, {"pass", choice({"joint", "forward", "backward"})}, {"ops", texts()}};
  fields.emplace_back("stepsMatched", integer("Of the rule's chain."));
  fields.emplace_back("outcome",
                      choice({"fused", "broken chain", "outside use", "condition failed", "taken by another fusion",
                              "no kernel on this device", "switched off", "on request", "measured slower"}));
  fields.emplace_back("explanation", text("One sentence with actual values."));
  fields.emplace_back("request", text("For --with, where the fusion is possible but left to the user; else empty."));
  fields.emplace_back("repairs", texts());
  fields.emplace_back("saving", saving());
  fields.emplace_back("measured", measuredGain());
  Json instances = texts();
  instances["description"] =
      "First ops of this attempt and of all that say the same of other instances of a block; empty: an earlier attempt "
      "has them.";
  fields.emplace_back("instances", std::move(instances));
  return object(fields);
}

Json fuseSchema() {
  const Json entry =
      object({{"name", text("The rule, or the op.")}, {"rule", orNull(text("null: a basic op."))}, {"ops", texts()}});
  return object(
      {{"rules", choice({"te", "all"})},
       {"forward", list(entry)},
       {"backward", list(entry)},
       {"handOvers",
        list(object(
            {{"name", text("What the step that makes it quantizes; after \"amax:\", what it finds the amax of.")},
             {"ops", texts()}}))},
       {"attempts", list(attemptSchema())},
       {"device", deviceModel()}});
}

Json suggestSchema() {
  Json needs = object({{"bytesMoved", integer("By all steps, at least.")},
                       {"launches", integer("Steps of the plan; a device may launch several kernels for one.")},
                       {"savedForBackwardBytes", integer("What forward keeps.")},
                       {"peakBytes", integer("Of the plan's memory.")},
                       {"flops", integer("Of all steps.")},
                       {"quantizedFlops", integer("Of them in steps that multiply quantized matrices.")}});
  Json plans = mapOf(texts());
  plans["description"] = "By list, forward, backward or handOvers: what goes (-) and what comes (+).";
  return object(
      {{"suggestions",
        list(object({{"kind", choice({"same results", "changes behaviour"})},
                     {"label", text("What to do.")},
                     {"op", text("Where; empty: it concerns the whole pipeline.")},
                     {"source", text("Who proposed it.")},
                     {"effects", texts()},
                     {"caution", text("What else there is to know; may be empty.")},
                     {"before", needs},
                     {"after", needs},
                     {"predictedSavedNs", orNull(number("Of traffic and launches; null: no device was measured."))},
                     {"estimatedFp8SavedUs", number("By 8-bit products, by the data sheet of an H200.")},
                     {"plans", plans}}))}});
}

Json explainSchema() {
  return object(
      {{"ops", list(object({{"op", text("Where the attempts begin.")}, {"attempts", list(attemptSchema())}}))}});
}

Json documentChangeSchema() {
  const Json field = object({{"name", text("Of the member; empty: the value itself.")},
                             {"base", text("As the file writes it; empty: it is not there.")},
                             {"new", text("As the file writes it; empty: it is not there.")}});
  return object({{"section", choice({"symbols", "inputs", "ops", "wires", "outputs", "blocks", "recipe", "fusion",
                                     "view", "file"})},
                 {"block", text("That it is in; empty: the pipeline.")},
                 {"kind", choice({"added", "removed", "changed", "renamed"})},
                 {"id", text("Of a wire where it ends; empty: the section as a whole.")},
                 {"newId", text("Of what was renamed; else empty.")},
                 {"fields", list(field)}});
}

Json editSchema() {
  const Json edit = object({{"edit", text("As the undo menu names it.")}, {"undo", text("The edit that reverts it.")}});
  return object({{"file", text("As given.")},
                 {"output", text("The file that was written; empty: none.")},
                 {"edits", list(edit)},
                 {"changes", list(documentChangeSchema())},
                 {"isValid", flag("There is no error.")},
                 {"diagnostics", list(diagnosticSchema())},
                 {"text", text("The pipeline as it is now.")}});
}

Json diffSchema() {
  const Json planList =
      object({{"list", choice({"forward", "backward", "handOvers"})},
              {"lines", list(object({{"mark", choice({" ", "-", "+"})}, {"text", text("An entry.")}}))}});
  const Json figure = object({{"variant", choice({"unfused", "fused"})},
                              {"name", choice({"peakBytes", "savedForBackwardBytes", "launches"})},
                              {"base", integer("Of its plan.")},
                              {"new", integer("Of its plan.")}});
  return object({{"base", text("As given.")},
                 {"new", text("As given.")},
                 {"isSame", flag("The documents mean the same.")},
                 {"changes", list(documentChangeSchema())},
                 {"plansReason", text("Why the plans cannot be compared; empty: they can.")},
                 {"plans", list(planList)},
                 {"predicted", list(figure)},
                 {"measured", orNull(object(comparisonFields()))},
                 {"gates", gatesSchema()}});
}

Json activitySchema() {
  return object({{"name", text("A kernel's, or copy, or fill.")},
                 {"configuration", text("Its grid and registers, or its bytes.")},
                 {"samplesNs", numbers()}});
}

Json stepSchema() {
  return object({{"name", text("Of the step.")},
                 {"rule", text("Empty: a basic op.")},
                 {"phase", phase()},
                 {"kernel", text("That ran.")},
                 {"ops", texts()},
                 {"absorbs", texts()},
                 {"owners", texts()},
                 {"writes", text("First, as its shape and format.")},
                 {"isView", flag("Nothing to do.")},
                 {"note", text("What there is to know about it; mostly empty.")},
                 {"ways", texts()},
                 {"arithmetic", text("Under which roof it stands: f32, bf16 or fp8; empty: none.")},
                 {"flops", integer("Of one call.")},
                 {"bytes", integer("Least traffic.")},
                 {"launches", integer("Launches on the device in one run: kernels, library calls, copies and fills.")},
                 {"samplesNs", numbers()},
                 {"activities", list(activitySchema())}});
}

Json timelineSchema() {
  const Json span = object({{"step", integer("Index in steps; -1: no step's.")},
                            {"activity", integer("Index in its activities; -1: the step as a whole.")},
                            {"startNs", number("Since the round began.")},
                            {"durationNs", number("Until it ended.")}});
  const Json launch = object({{"step", integer("Index in steps; -1: all at once.")},
                              {"startNs", number("Since the round began.")},
                              {"durationNs", number("Of the host's time.")}});
  return object({{"round", integer("The one with the median total; index in instrumentedNs.")},
                 {"spans", list(span)},
                 {"launches", list(launch)}});
}

Json variantSchema() {
  return object({{"name", choice({"unfused", "fused"})},
                 {"peakBytes", integer("Of the plan's memory and of what its kernels need beside it.")},
                 {"arenaBytes", integer("Of it shared by lifetime.")},
                 {"savedForBackwardBytes", integer("Kept from forward for backward.")},
                 {"hostBytes", integer("Of the host's memory, for what waits there for backward.")},
                 {"launches", integer("Launches on the device in one run: kernels, library calls, copies and fills.")},
                 {"endToEndNs", numbers()},
                 {"instrumentedNs", numbers()},
                 {"launchNs", numbers()},
                 {"preparationNs", number("Making the plan ready to run; 0: not known.")},
                 {"firstRunNs", number("The first run, before the rounds; 0: there was none.")},
                 {"launching", text("How the steps were launched; empty: there is no choice.")},
                 {"unattributed", list(activitySchema())},
                 {"timeline", timelineSchema()},
                 {"steps", list(stepSchema())}});
}

Json settingsSchema() {
  return object(
      {{"device", text("Its id.")},
       {"pass", choice({"forward", "train"})},
       {"rules", choice({"te", "all"})},
       {"recipe", text("Its name.")},
       {"recipeFields", mapOf({{"type", "string"}})},
       {"timing", text("What timed steps: cupti (each kernel by itself), events (the device's clock), host, or none.")},
       {"emulates", flag("A recipe that the GPU does not multiply natively is computed in high precision.")},
       {"replays", flag("Launches are recorded and replayed where the device can.")},
       {"startsCold", flag("Caches are filled with other data before every run.")},
       {"measuresRoofs", flag("Of the device, after the rounds.")},
       {"warmup", integer("Runs that were wanted before the first round.")},
       {"iterations", integer("Rounds asked for; 0: automatic.")},
       {"seed", integer("Of what was drawn.")},
       {"symbols", mapOf({{"type", "integer"}})}});
}

Json verdictSchema() {
  return object({{"isWithin", flag("All results are within their tolerances.")},
                 {"worst", text("The result that takes most of it; empty: there is none.")},
                 {"toleranceShare", orNull(number("What it takes; above 1 is too much."))}});
}

Json roofsSchema() {
  return object({{"copyGBps", number("Read and written.")},
                 {"fmaF32Gflops", number("Of multiply-adds.")},
                 {"bf16Gflops", number("The fastest product.")},
                 {"fp8Gflops", number("The fastest product of codes; 0: none was measured.")}});
}

Fields lossesAnd(Fields fields) {
  fields.insert(
      fields.end(),
      {{"amax", orNull(number("The largest magnitude of the tensor."))},
       {"smallest", orNull(number("The smallest magnitude besides 0."))},
       {"dynamicRange", orNull(number("log2 of their ratio."))},
       {"scaleInv", list(orNull(number("What codes are multiplied by: of all blocks the smallest, the largest.")))},
       {"underflowShare", number("Of the elements that are not 0: those that became 0.")},
       {"saturationShare", number("Of all elements: those beyond the largest number.")},
       {"meanSquaredError", orNull(number("Of the numbers against the tensor."))},
       {"signalToNoise", orNull(number("In dB; null: there is no noise."))}});
  return fields;
}

/// A quantized copy and what it lost.
Fields copyLossesAnd(Fields fields) {
  fields.insert(fields.end(), {{"name", text("Of the copy.")},
                               {"owner", text("The document's op that reads it.")},
                               {"format", text("Of its elements and scales.")}});
  return lossesAnd(std::move(fields));
}

Json runNumericsSchema() {
  return object(
      {{"fusion", verdictSchema()}, {"float32", verdictSchema()}, {"copies", list(object(copyLossesAnd({})))}});
}

Json recordSchema() {
  const Json formatVersion =
      object({{"major", integer("Readers refuse a newer one.")}, {"minor", integer("Additions.")}});
  return object({{"format", choice({"fuseline-run"})},
                 {"formatVersion", formatVersion},
                 {"createdWith", text("Program and version.")},
                 {"isPartial", flag("It was cancelled.")},
                 {"pipelineName", text("Of the file.")},
                 {"pipelineHash", text("Of the pipeline without its view.")},
                 {"roundsId", text("The same in runs that took turns in one measurement; empty: it ran alone.")},
                 {"numWarmups", integer("Runs before the first round: a GPU is warmed up for a while.")},
                 {"settings", settingsSchema()},
                 {"recipe", any("With its fields and overrides; null: none.")},
                 {"switches", object({{"without", texts()}, {"with", texts()}})},
                 {"environment", mapOf({{"type", "string"}})},
                 {"timingNote", text("Why steps were timed in another way than was wanted; mostly empty.")},
                 {"roofs", orNull(roofsSchema())},
                 {"roofsNote", text("Why there are none though they were wanted; mostly empty.")},
                 {"variants", list(variantSchema())},
                 {"numerics", orNull(runNumericsSchema())},
                 {"note", text("What a user says of the run; mostly empty.")},
                 {"rowNotes", rowNotes()},
                 {"stretchNotes", stretchNotes()},
                 {"pipeline", any("A copy of the pipeline file.")}});
}

Json statsSchema() {
  return orNull(object({{"medianNs", number("Per round.")},
                        {"lowerQuartileNs", number("Per round.")},
                        {"upperQuartileNs", number("Per round.")},
                        {"percentile5Ns", number("Per round, as quartiles between two rounds.")},
                        {"percentile95Ns", number("Per round, as quartiles between two rounds.")},
                        {"minimumNs", number("Per round.")},
                        {"count", integer("Rounds.")}}));
}

Json efficiencySchema() {
  return orNull(object({{"flopsPerByte", orNull(number("Operations over the least traffic; null: there are none."))},
                        {"gbps", number("Of the least traffic, in 1e9 bytes a second.")},
                        {"gflops", number("Of the operations by definition, in 1e9 a second.")},
                        {"leastNs", orNull(number("That the roofs allow, step by step; null: no roofs."))},
                        {"timesFromRoof", orNull(number("The median time over it."))},
                        {"bound", text("memory, f32, bf16 or fp8 compute, host launch, several; empty: not known.")}}));
}

Json rowSchema() {
  const Json speedup = orNull(object({{"median", number("Unfused over fused, within a round.")},
                                      {"low", number("Of the 95 % interval.")},
                                      {"high", number("Of the 95 % interval.")},
                                      {"isSignificant", flag("The interval excludes 1, and the plans differ here.")}}));
  return object({{"label", text("The step.")},
                 {"phase", text("forward, backward, or empty for a sum.")},
                 {"depth", integer("1: a basic op beneath a fused one.")},
                 {"owners", texts()},
                 {"isFused", flag("Several ops run as one.")},
                 {"isView", flag("Nothing to do.")},
                 {"isInBoth", flag("Both plans have this very step: its ratio is noise.")},
                 {"note", text("What there is to know about it; mostly empty.")},
                 {"unfused", statsSchema()},
                 {"fused", statsSchema()},
                 {"unfusedEfficiency", efficiencySchema()},
                 {"fusedEfficiency", efficiencySchema()},
                 {"speedup", speedup},
                 {"bytesSaved", integer("Least traffic.")},
                 {"launchesSaved", integer("Launches of the device.")}});
}

Json magnitudesSchema() {
  return object({{"firstExponent", integer("Of the first count: 2^e <= |x| < 2^(e + 1).")},
                 {"counts", list(integer("Elements by binary order of magnitude."))},
                 {"zeros", integer("Elements that are 0.")}});
}

Json copyNumericsSchema() {
  const Json requantized = object(lossesAnd({{"recipe", text("Its name.")},
                                             {"format", text("Of its elements and scales.")},
                                             {"element", text("e4m3, e5m2 or e2m1.")},
                                             {"elements", integer("So many, of the first rows, were quantized.")}}));
  return object(copyLossesAnd({{"magnitudes", magnitudesSchema()}, {"requantized", list(requantized)}}));
}

Json errorNumericsSchema() {
  return object({{"name", text("Of the tensor.")},
                 {"owner", text("The document's op that makes it; empty: none.")},
                 {"maxAbsolute", orNull(number("The largest difference."))},
                 {"rmsRelative", orNull(number("Rms of the differences over rms of the values expected."))},
                 {"cosine", orNull(number("Of the angle between both."))},
                 {"ulpHistogram", list(integer("Elements by distance: at most 0.5, 1, 2, 4 ... 512 ulp, and more."))},
                 {"isFinite", flag("NaN and infinity stand at the same places.")},
                 {"tolerance", number("What is allowed, relative to the values.")},
                 {"toleranceShare", orNull(number("Of that, what the differences take; above 1 is too much."))},
                 {"isWithin", flag("Finite, and at most 1.")}});
}

Json numericsSchema() {
  const Json origin = orNull(object({{"step", text("That made it.")},
                                     {"tensor", text("Where it is.")},
                                     {"phase", text("forward, backward or input.")}}));
  const Json frozen = object({{"name", text("Of the tensor.")},
                              {"owner", text("The document's op that reads it.")},
                              {"scale", number("What it stays.")},
                              {"steps", integer("Until the infinite amax leaves the history.")}});
  return object({{"recipe", text("Its name.")},
                 {"copies", list(copyNumericsSchema())},
                 {"frozenScales", list(frozen)},
                 {"errors", list(errorNumericsSchema())},
                 {"fusionErrors", list(errorNumericsSchema())},
                 {"firstNonFinite", origin}});
}

/// `--recipe all`, or a list.
Json matrixSchema() {
  const Json row = object({{"recipe", text("Its name.")},
                           {"fits", flag("It ran.")},
                           {"reason", text("Why it does not fit, or not everywhere; mostly empty.")},
                           {"record", orNull(recordSchema())},
                           {"numerics", orNull(numericsSchema())},
                           {"timeRatio", orNull(number("The time over that of the first row, round by round."))},
                           {"timeRatioLow", orNull(number("The lower end of its 95 % confidence interval."))},
                           {"timeRatioHigh", orNull(number("The upper end."))},
                           {"fusions", integer("Fused entries of both passes.")},
                           {"linears", integer("Linear ops.")},
                           {"quantizedLinears", integer("Of them those that the recipe quantizes.")}});
  return object({{"recipes", list(row)}});
}

/// Also of what ops keep for backward.
Fields capturedFields() { return tensorFields({"f32", "f16", "bf16", "i64", "e4m3"}); }

Json capturableSchema() {
  Fields fields = capturedFields();
  fields.emplace_back("op", text("Of the file, which makes it, or else reads it; empty: none."));
  fields.emplace_back("kind", text("What it is."));
  fields.emplace_back("fusedAwayBy", orNull(text("The fusion that never stores it; null: it can be captured.")));
  return object({{"capturable", list(object(fields))}});
}

Json capturedSchema() {
  const Json statistics = object({{"elements", integer("All.")},
                                  {"zeros", integer("Of them.")},
                                  {"nans", integer("Of them.")},
                                  {"infinities", integer("Of them.")},
                                  {"min", orNull(number("Of the finite ones; null: there is none."))},
                                  {"max", orNull(number("Of the finite ones."))},
                                  {"mean", orNull(number("Of the finite ones."))},
                                  {"std", orNull(number("Of the finite ones, over n - 1; null: fewer than two."))},
                                  {"l1", number("Norm of the finite ones.")},
                                  {"l2", number("Norm of the finite ones.")},
                                  {"largestAt", integer("Row-major: of the largest finite magnitude; -1: none.")},
                                  {"magnitudes", magnitudesSchema()}});
  Fields fields = capturedFields();
  fields.emplace_back("statistics", statistics);
  return object(fields);
}

Json runSchema() {
  const Json comparison = object({{"rows", list(rowSchema())}, {"sum", rowSchema()}, {"endToEnd", rowSchema()}});
  const Json one = object({{"record", recordSchema()},
                           {"comparison", comparison},
                           {"numerics", orNull(numericsSchema())},
                           {"captured", list(capturedSchema())},
                           {"gates", gatesSchema()}});
  return {{"oneOf", Json::array({one, matrixSchema(), capturableSchema()})}};
}

/// Within rounds.
Json ratioSchema() {
  return object({{"median", number("Within rounds.")},
                 {"low", number("Of the 95 % interval.")},
                 {"high", number("Of the 95 % interval.")}});
}

Json sweepSchema() {
  const Json symbols = mapOf({{"type", "integer"}});
  const Json measured = object({{"rounds", integer("Complete ones.")},
                                {"unfusedMedianNs", number("End to end.")},
                                {"unfusedSpreadPercent", number("Half the interquartile range over the median.")},
                                {"fusedMedianNs", number("End to end.")},
                                {"fusedSpreadPercent", number("Half the interquartile range over the median.")},
                                {"speedup", ratioSchema()},
                                {"isSignificant", flag("The interval excludes 1.")},
                                {"unfusedPeakBytes", integer("Of the plan's memory.")},
                                {"fusedPeakBytes", integer("Of the plan's memory.")},
                                {"unfusedLaunches", integer("Launches on the device in one run, unfused.")},
                                {"fusedLaunches", integer("Launches on the device in one run, fused.")}});
  const Json row = object({{"symbols", symbols},
                           {"recipe", text("Where there is an axis of recipes; else empty.")},
                           {"reason", text("Why it was not measured; empty: it was.")},
                           {"measured", orNull(measured)}});
  const Json breakEven =
      object({{"symbol", text("Of the first axis.")},
              {"symbols", symbols},
              {"recipe", text("Where there is an axis of recipes; else empty.")},
              {"kind", choice({"atAllSizes", "never", "from", "upTo", "undecided", "mixed", "notMeasured"})},
              {"size", orNull(integer("Of kinds from and upTo."))},
              {"faster", list(integer("A size at which fusing is."))},
              {"slower", list(integer("A size at which fusing is."))},
              {"undecided", list(integer("A size at which the ratio could be chance."))},
              {"sentence", text("For people.")}});
  return object({{"pipeline", text("Its name.")},
                 {"device", text("Its name.")},
                 {"rows", list(row)},
                 {"breakEvens", list(breakEven)}});
}

Json deviceSchema() {
  return object(
      {{"id", text("For --device.")},
       {"name", text("Of the product.")},
       {"architecture", text("Instruction set or compute capability.")},
       {"memoryBytes", integer("0: unknown.")},
       {"canRun", flag("Here and now.")},
       {"reason", text("Why not; empty when it can.")},
       {"nativeRecipes", orNull(list(text("Its name. By compute capability; with --probe as its library says.")))},
       {"details", mapOf({{"type", "string"}})}});
}

Json devicesSchema() {
  Json products = list(object({{"device", text("Whose library was asked.")},
                               {"factors", text("Their formats and scalings.")},
                               {"result", text("Its format.")},
                               {"epilogue", text("By the library's name.")},
                               {"isSupported", flag("It has an algorithm.")},
                               {"reason", text("In the library's words; empty: it has one.")}}));
  products["description"] = "With --probe; else null.";
  return object({{"devices", list(deviceSchema())}, {"products", orNull(std::move(products))}});
}

Json pipelineBenchRow() {
  Fields row = {{"pipeline", text("The template.")},
                {"size", choice({"small", "medium", "large"})},
                {"M", integer("Rows.")},
                {"H", integer("Hidden size.")},
                {"F", integer("Inner size.")},
                {"dtype", choice({"f32", "bf16"})},
                {"pass", choice({"forward", "train"})},
                {"rounds", integer("Measured.")}};
  for (const char* name : {"unfusedMedianNs", "unfusedSpreadPercent", "fusedMedianNs", "fusedSpreadPercent", "speedup",
                           "speedupLow", "speedupHigh", "fusedGflops", "roofShare", "gemmShare"})
    row.emplace_back(name, number("End to end."));
  return object(row);
}

Json operationBenchRow() {
  return object({{"op", text("The basic op, or the layer.")},
                 {"N", integer("Columns.")},
                 {"dtype", choice({"f32", "bf16"})},
                 {"recipe", text("Of a layer.")},
                 {"step", text("Of the plan.")},
                 {"phase", choice({"forward", "backward"})},
                 {"isView", flag("Nothing runs.")},
                 {"rounds", integer("Measured.")},
                 {"medianNs", number("Of the step.")},
                 {"spreadPercent", number("Half the interquartile range over the median.")},
                 {"bytes", integer("The least traffic.")},
                 {"flops", integer("Of the step.")},
                 {"roofShare", number("The least time that the roofs allow, over the time.")},
                 {"reason", text("Of a share below half; else empty.")},
                 {"meets", orNull(flag("Half of the roof; on a GPU 0.85 of it, 0.75 where copies are quantized, 0.9 of "
                                       "products. Null: a view."))}});
}

Json scalingBenchRow() {
  return object({{"ops", integer("Of the pipeline.")},
                 {"stage", choice({"load", "infer", "fuse", "plan", "edit and re-plan"})},
                 {"rounds", integer("Measured.")},
                 {"medianNs", number("On the processor.")},
                 {"spreadPercent", number("Half the interquartile range over the median.")},
                 {"share", number("Of the time of all stages.")},
                 {"growth", orNull(number("The time over that of the size before; null: there is none."))},
                 {"growthLow", orNull(number("The lower end of its 95 % confidence interval."))},
                 {"growthHigh", orNull(number("The upper end."))}});
}

Json gpuBenchRow() {
  const Json measured = object({{"rounds", integer("Complete ones.")},
                                {"clock", text("Of steps: events or host.")},
                                {"launching", text("Of the fused plan; empty: there is no choice.")},
                                {"linears", integer("Linear layers of the pipeline.")},
                                {"quantizedLinears", integer("Those of them that the recipe quantizes.")},
                                {"unfusedMedianNs", number("Replayed, where the device can.")},
                                {"fusedMedianNs", number("The same.")},
                                {"stepwiseMedianNs", number("Of the fused plan, launched step by step.")},
                                {"speedup", ratioSchema()},
                                {"replayGain", ratioSchema()},
                                {"launchNs", number("The host's time to launch the fused plan; 0: not apart.")},
                                {"stepwiseLaunchNs", number("The same, step by step.")},
                                {"fusedGflops", number("Of the fused plan.")},
                                {"fusedGBps", number("Of its least traffic.")},
                                {"roofShare", orNull(number("The least time by the roofs, over the fused plan's."))},
                                {"ceiling", orNull(number("The speed-up if both plans took the least time."))},
                                {"meetsCeiling", orNull(flag("Within 5 % of it."))}});
  return object({{"pipeline", text("A template.")},
                 {"size", text("Its name.")},
                 {"M", integer("Rows.")},
                 {"H", integer("Hidden size.")},
                 {"F", integer("Inner size.")},
                 {"G", integer("Groups; 0: none.")},
                 {"recipe", text("Its name.")},
                 {"pass", choice({"forward", "train"})},
                 {"reason", text("Why it does not run; empty: it does.")},
                 {"measured", orNull(measured)}});
}

Json benchSchema() {
  const Json roofs = roofsSchema();
  const auto suite = [&](const char* name, const Json& row) {
    return object({{"suite", choice({name})},
                   {"device", text("Its name.")},
                   {"startsCold", flag("Caches are filled with other data before every run.")},
                   {"roofs", roofs},
                   {"rows", list(row)}});
  };
  const Json scaling =
      object({{"suite", choice({"scaling"})}, {"device", text("Its name.")}, {"rows", list(scalingBenchRow())}});
  const Json gpu = object({{"suite", choice({"gpu"})},
                           {"device", text("Its name.")},
                           {"roofs", orNull(roofs)},
                           {"rows", list(gpuBenchRow())}});
  const Json cases = object(
      {{"suite", choice({"gpu"})},
       {"cases", list(object({{"name", text("For --only.")}, {"isDefault", flag("Unless others are named.")}}))}});
  return {{"description", "With --jsonl the first line is this without its rows, and each other line one of them."},
          {"oneOf",
           Json::array({suite("cpu", pipelineBenchRow()), suite("ops", operationBenchRow()), scaling, gpu, cases})}};
}

/// One line of `fuseline worker`.
Json workerSchema() {
  const auto event = [](const char* type, Fields fields) {
    fields.insert(fields.begin(), {"type", choice({type})});
    return object(fields);
  };
  const std::pair<std::string, Json> id{"id", integer("Of the request; 0: a line that was none.")};
  return {
      {"oneOf",
       Json::array(
           {event("hello", {{"version", text("Of the program.")}, {"protocol", integer("1.")}}),
            event("progress",
                  {id,
                   {"stage", text("preparing, warming up, measuring, measuring roofs, comparing or capturing.")},
                   {"done", integer("Of total.")},
                   {"total", integer("Expected.")}}),
            event("result", {id, {"record", recordSchema()}}), event("numerics", {id, {"report", numericsSchema()}}),
            event("captured", {id, {"tensors", list(capturedSchema())}}),
            event("error", {id,
                            {"message", text("A sentence.")},
                            {"kind", integer("The exit code.")},
                            {"isDeviceLost", flag("It refuses everything from now on.")}}),
            event("devices", {id, {"devices", list(deviceSchema())}})})}};
}

}  // namespace

std::vector<std::pair<std::string, Json>> outputSchemas() {
  std::vector<std::pair<std::string, Json>> schemas = {
      {"new", newSchema()},           {"ops", opsSchema()},
      {"rules", rulesSchema()},       {"recipes", recipesSchema()},
      {"validate", validateSchema()}, {"infer", inferSchema()},
      {"fuse", fuseSchema()},         {"explain", explainSchema()},
      {"suggest", suggestSchema()},   {"edit", editSchema()},
      {"diff", diffSchema()},         {"run", runSchema()},
      {"devices", devicesSchema()},   {"bench", benchSchema()},
      {"guide", guideSchema()},       {"schema", any("A JSON Schema.")},
      {"sweep", sweepSchema()},       {"compare", compareSchema()},
      {"export", exportSchema()},     {"import", importSchema()},
      {"worker", workerSchema()}};
  for (auto& [verb, schema] : schemas) {
    Json headed = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                   {"title", "fuseline " + verb + " --json"}};
    headed.update(schema);
    schema = std::move(headed);
  }
  return schemas;
}

}  // namespace fuseline::cli
