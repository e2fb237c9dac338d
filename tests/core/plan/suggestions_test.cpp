// Suggestions: each has the promised effect, and ineffective ones are not suggested.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/suggestions.h"

#include "core/document/file_format.h"
#include "core/edit/apply_edit.h"
#include "core/runtime/backend.h"
#include "core/support/json_fields.h"
#include "tests/support/run_plan.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace fuseline {
namespace {

using testing::firstDifference;
using testing::runPlan;
using testing::RunResults;
using testing::uniformData;

/// One op of a chain: "fc BasicLinear {...}".
struct Op {
  std::string id;
  std::string operation;
  std::string attributes = "{}";
};

/// x [M, H] through the ops, one after the other. An AddExtraInput adds r, another input.
PipelineDocument chainOf(const std::vector<Op>& ops, const std::string& more = "", const std::string& dtype = "bf16") {
  std::vector<std::string> written;
  std::vector<std::string> wires;
  std::string from = "x";
  for (const Op& op : ops) {
    written.push_back(
        fmt::format(R"({{"id": "{}", "op": "{}", "attributes": {}}})", op.id, op.operation, op.attributes));
    wires.push_back(fmt::format(R"(["{}", "{}.x"])", from, op.id));
    if (op.operation == "AddExtraInput") wires.push_back(fmt::format(R"(["r", "{}.extra"])", op.id));
    from = op.id + ".y";
  }
  const std::string input = R"({{"id": "{}", "dtype": "{}", "shape": ["M", "H"]}})";
  LoadedDocument loaded = parseDocument(fmt::format(
      R"({{"format": "fuseline-pipeline", "formatVersion": {{"major": 1, "minor": 0}}, "symbols": {{"M": 64, "H": 32}},
           "pipeline": {{"inputs": [{}, {}], "ops": [{}], "wires": [{}], "outputs": [{{"id": "y", "from": "{}"}}]}}{}}})",
      fmt::format(fmt::runtime(input), "x", dtype), fmt::format(fmt::runtime(input), "r", dtype),
      fmt::join(written, ", "), fmt::join(wires, ", "), from, more));
  EXPECT_FALSE(hasErrors(loaded.diagnostics)) << (loaded.diagnostics.empty() ? "" : loaded.diagnostics.front().message);
  return std::move(loaded.document);
}

const Op kLinear = {"fc", "BasicLinear", R"({"in_features": "H", "out_features": "H"})"};
const Op kHalf = {"scale", "ConstantScale", R"({"scale": 0.5})"};
const Op kNothing = {"nothing", "Identity"};
const Op kAddInPlace = {"add", "AddExtraInput", R"({"in_place": true})"};

std::vector<std::string> labelsOf(const std::vector<Suggestion>& found) {
  std::vector<std::string> labels;
  for (const Suggestion& suggestion : found) labels.push_back(suggestion.proposal.repair.label);
  return labels;
}

const Suggestion* find(const std::vector<Suggestion>& found, const std::string& label) {
  const auto at = std::ranges::find(found, label, [](const Suggestion& each) { return each.proposal.repair.label; });
  return at == found.end() ? nullptr : &*at;
}

TEST(Suggestions, HaveNothingToSayOfAPlanThatCannotBeBettered) {
  EXPECT_EQ(labelsOf(suggestions(chainOf({kLinear, kAddInPlace}))), std::vector<std::string>{});
}

TEST(Suggestions, AreEmptyForADocumentWithErrors) {
  EXPECT_TRUE(suggestions(chainOf({{"fc", "BasicLinear", R"({"in_features": 7, "out_features": 8})"}})).empty());
}

TEST(Suggestions, StopWhenAsked) {
  std::stop_source source;
  source.request_stop();
  EXPECT_TRUE(suggestions(chainOf({kHalf, kLinear, kAddInPlace}), {}, {.stop = source.get_token()}).empty());
}

// The scale costs a separate pass before the GEMM: 2 x 64 x 32 x 2 B forward, and the same backward.
TEST(Suggestions, MoveAScaleBehindTheProductThatTakesItAlong) {
  const std::vector<Suggestion> found = suggestions(chainOf({kHalf, kLinear, kAddInPlace}));
  const Suggestion* move = find(found, "Move scale after fc");
  ASSERT_TRUE(move) << fmt::format("{}", fmt::join(labelsOf(found), ", "));
  EXPECT_EQ(move->proposal.kind, SuggestionKind::SameResults);
  EXPECT_EQ(move->proposal.node, "scale");
  EXPECT_EQ(move->saving(), (Saving{.bytes = 4 * 64 * 32 * 2, .launches = 2}));
  EXPECT_EQ(effectsOf(*move).front(), "moves 16 KiB less");
}

TEST(Suggestions, RemoveWhatDoesNothingWhereItStandsBetweenOthers) {
  const PipelineDocument document = chainOf({kLinear, kNothing, kAddInPlace}, R"(, "fusion": {"rules": "te"})");
  const std::vector<Suggestion> found = suggestions(document);
  const Suggestion* removal = find(found, "Remove nothing, which has no effect");
  ASSERT_TRUE(removal) << fmt::format("{}", fmt::join(labelsOf(found), ", "));
  EXPECT_EQ(removal->proposal.kind, SuggestionKind::SameResults);
  EXPECT_EQ(removal->saving(), (Saving{.bytes = 2 * 64 * 32 * 2, .launches = 1}));
}

/// Two layers of one block, which is a chain like that of chainOf().
PipelineDocument layersOf(const std::vector<Op>& ops, const std::string& more = "", const std::string& dtype = "bf16") {
  const Json chain = *parseJson(serialize(chainOf(ops, more, dtype)));
  Json block = {{"inputs", {{{"id", "x"}}, {{"id", "r"}}}}};
  for (const char* part : {"ops", "wires", "outputs"}) block[part] = chain["pipeline"][part];
  Json document = chain;
  document["blocks"] = {{"Layer", block}};
  document["pipeline"]["ops"] = {{{"id", "first"}, {"op", "block:Layer"}}, {{"id", "second"}, {"op", "block:Layer"}}};
  document["pipeline"]["wires"] = Json::array();
  for (const auto& [from, to] :
       {std::pair("x", "first.x"), {"r", "first.r"}, {"first.y", "second.x"}, {"r", "second.r"}})
    document["pipeline"]["wires"].push_back(Json::array({from, to}));
  document["pipeline"]["outputs"] = {{{"id", "y"}, {"from", "second.y"}}};
  LoadedDocument loaded = parseDocument(document.dump());
  EXPECT_FALSE(hasErrors(loaded.diagnostics)) << loaded.diagnostics.front().message << document.dump(2);
  return std::move(loaded.document);
}

const char* const kTeRules = R"(, "fusion": {"rules": "te"})";

TEST(Suggestions, LookIntoBlocksOnceForAllInstances) {
  const std::vector<Suggestion> moves = suggestions(layersOf({kHalf, kLinear, kAddInPlace}));
  const Suggestion* move = find(moves, "Move scale after fc of block Layer");
  ASSERT_TRUE(move) << fmt::format("{}", fmt::join(labelsOf(moves), ", "));
  EXPECT_EQ(move->proposal.node, "first");
  EXPECT_TRUE(move->proposal.caution.starts_with("In every instance of block Layer. ")) << move->proposal.caution;
  // The first instance gains as outside of a block; in forward, the first GEMM absorbs the second's scale.
  EXPECT_EQ(move->saving(), (Saving{.bytes = (4 + 2) * 64 * 32 * 2, .launches = 2 + 1}));

  const PipelineDocument document = layersOf({kLinear, kNothing, kAddInPlace}, kTeRules);
  const std::vector<Suggestion> removals = suggestions(document);
  const Suggestion* removal = find(removals, "Remove nothing of block Layer, which has no effect");
  ASSERT_TRUE(removal) << fmt::format("{}", fmt::join(labelsOf(removals), ", "));
  EXPECT_EQ(removal->saving(), (Saving{.bytes = 2 * 2 * 64 * 32 * 2, .launches = 2}));
  PipelineDocument changed = document;
  const Result<Edit> undo = applyEdit(changed, removal->proposal.repair.edit);
  ASSERT_TRUE(undo);
  EXPECT_EQ(changed.findBlock("Layer")->ops.size(), 2u);
  ASSERT_TRUE(applyEdit(changed, *undo));
  EXPECT_EQ(serialize(changed), serialize(document));
}

// In the first layer s is not read, so that the graph does not contain it; in the second it is.
TEST(Suggestions, DoNotMoveWhatAnInstanceReadsInBetween) {
  Json document = *parseJson(serialize(layersOf({kHalf, kLinear, kAddInPlace})));
  document["blocks"]["Layer"]["outputs"].push_back({{"id", "s"}, {"from", "scale.y"}});
  document["pipeline"]["outputs"].push_back({{"id", "s"}, {"from", "second.s"}});
  const LoadedDocument loaded = parseDocument(document.dump());
  ASSERT_FALSE(hasErrors(loaded.diagnostics));
  EXPECT_FALSE(find(suggestions(loaded.document), "Move scale after fc of block Layer"));
}

// Between them the file has an op, which is only bypassed for now.
TEST(Suggestions, DoNotMoveAnOpOverOneThatIsBypassed) {
  PipelineDocument document = chainOf({kHalf, {"act", "GELU"}, kLinear, kAddInPlace});
  ASSERT_TRUE(applyEdit(document, SetBypassed{"act", true}));
  const std::vector<Suggestion> found = suggestions(document);
  for (const Suggestion& each : found) EXPECT_NE(each.proposal.source, "order") << each.proposal.repair.label;
}

TEST(Suggestions, SayWhatTheBestDoTogether) {
  const Op otherHalf = {"half", "ConstantScale", R"({"scale": 0.25})"};
  const Op otherLinear = {"fc2", "BasicLinear", R"({"in_features": "H", "out_features": "H"})"};
  const Op otherAdd = {"add2", "AddExtraInput", R"({"in_place": true})"};
  const PipelineDocument document = chainOf({kHalf, kLinear, kAddInPlace, otherHalf, otherLinear, otherAdd});
  const std::vector<Suggestion> found = suggestions(document);
  const Suggestion* first = find(found, "Move scale after fc");
  const Suggestion* second = find(found, "Move half after fc2");
  ASSERT_TRUE(first && second) << fmt::format("{}", fmt::join(labelsOf(found), ", "));
  const Suggestion& both = found.front();
  EXPECT_EQ(both.proposal.repair.label, "Do 2 of these together: Move scale after fc; Move half after fc2");
  EXPECT_EQ(both.proposal.kind, SuggestionKind::SameResults);
  EXPECT_EQ(both.saving().bytes, first->saving().bytes + second->saving().bytes);
  EXPECT_EQ(both.saving().launches, first->saving().launches + second->saving().launches);
  EXPECT_EQ(both.proposal.caution, first->proposal.caution) << "said once";
  PipelineDocument changed = document;
  ASSERT_TRUE(applyEdit(changed, both.proposal.repair.edit));
  for (const Suggestion& left : suggestions(changed))
    EXPECT_NE(left.proposal.source, "order") << left.proposal.repair.label;
}

TEST(Suggestions, SayNothingOfOneThatIsAlone) {
  for (const Suggestion& each : suggestions(chainOf({kLinear, kNothing, kAddInPlace})))
    EXPECT_NE(each.proposal.source, "combination") << each.proposal.repair.label;
}

TEST(Suggestions, SwitchOnWhatTheDocumentKeepsOff) {
  const char* kOff = R"(, "fusion": {"without": ["ForwardLinearBiasAdd@fc"]})";
  EXPECT_TRUE(find(suggestions(chainOf({kLinear, kAddInPlace}, kOff)), "Switch ForwardLinearBiasAdd@fc on again"));
  const Op gelu = {"act", "GELU"};
  const std::vector<Suggestion> te = suggestions(chainOf({kLinear, gelu}, R"(, "fusion": {"rules": "te"})"));
  ASSERT_TRUE(find(te, "Use the whole rule set"));
}

/// Inputs, ops and wires of a pipeline with the output y from `from`.
PipelineDocument pipelineOf(const std::string& inputs, const std::string& ops, const std::string& wires,
                            const std::string& outputs, const std::string& more = "") {
  LoadedDocument loaded =
      parseDocument(fmt::format(R"({{"format": "fuseline-pipeline", "formatVersion": {{"major": 1, "minor": 0}},
                       "pipeline": {{"inputs": [{}], "ops": [{}], "wires": [{}], "outputs": [{}]}}{}}})",
                                inputs, ops, wires, outputs, more));
  EXPECT_FALSE(hasErrors(loaded.diagnostics)) << (loaded.diagnostics.empty() ? "" : loaded.diagnostics.front().message);
  return std::move(loaded.document);
}

/// The difference between the fused plan after the suggestion and the unfused plan before it.
std::string differenceAfter(const PipelineDocument& document, const Suggestion& suggestion) {
  const Graph before = analyze(document).graph();
  PipelineDocument changed = document;
  EXPECT_TRUE(applyEdit(changed, suggestion.proposal.repair.edit));
  const Analysis after = analyze(changed);
  return firstDifference(runPlan(after.graph(), after.report, makeReferenceBackend()),
                         runPlan(before, unfused(before), makeReferenceBackend()), 1e-4);
}

bool fuses(const Suggestion& suggestion, const std::string& rule) {
  return std::ranges::any_of(suggestion.plans, [&](const PlanListDifference& list) {
    return std::ranges::any_of(
        list.lines, [&](const PlanLine& line) { return line.mark == '+' && line.text.starts_with(rule + " "); });
  });
}

TEST(Suggestions, MoveAReshapeOutFromBetweenASumAndItsNorm) {
  const PipelineDocument document = pipelineOf(
      R"({"id": "x", "dtype": "f32", "shape": [2, 64, 32]}, {"id": "r", "dtype": "f32", "shape": [2, 64, 32]})",
      R"({"id": "add", "op": "AddExtraInput"}, {"id": "flat", "op": "Reshape", "attributes": {"shape": [128, 32]}},
         {"id": "save", "op": "MakeExtraOutput"}, {"id": "norm", "op": "RMSNorm", "attributes": {"normalized_shape": [32]}},
         {"id": "fc", "op": "BasicLinear", "attributes": {"in_features": 32, "out_features": 32}},
         {"id": "add2", "op": "AddExtraInput"})",
      R"(["x", "add.x"], ["r", "add.extra"], ["add.y", "flat.x"], ["flat.y", "save.x"], ["save.y", "norm.x"],
         ["norm.y", "fc.x"], ["fc.y", "add2.x"], ["save.extra", "add2.extra"])",
      R"({"id": "y", "from": "add2.y"})");
  const std::vector<Suggestion> found = suggestions(document);
  const Suggestion* move = find(found, "Move flat before add");
  ASSERT_TRUE(move) << fmt::format("{}", fmt::join(labelsOf(found), ", "));
  EXPECT_EQ(move->proposal.kind, SuggestionKind::SameResults);
  EXPECT_TRUE(fuses(*move, "ForwardAddNorm"));
  EXPECT_EQ(differenceAfter(document, *move), "");
}

TEST(Suggestions, MoveAReshapeBehindTheSumThatAProductTakesAlong) {
  const PipelineDocument document = pipelineOf(
      R"({"id": "x", "dtype": "f32", "shape": [128, 32]}, {"id": "r", "dtype": "f32", "shape": [2, 64, 32]})",
      R"({"id": "fc", "op": "BasicLinear", "attributes": {"in_features": 32, "out_features": 32}},
         {"id": "split", "op": "Reshape", "attributes": {"shape": [2, 64, 32]}}, {"id": "add", "op": "AddExtraInput"})",
      R"(["x", "fc.x"], ["fc.y", "split.x"], ["split.y", "add.x"], ["r", "add.extra"])",
      R"({"id": "y", "from": "add.y"})");
  const std::vector<Suggestion> found = suggestions(document);
  const Suggestion* move = find(found, "Move split after add");
  ASSERT_TRUE(move) << fmt::format("{}", fmt::join(labelsOf(found), ", "));
  EXPECT_TRUE(fuses(*move, "ForwardLinearEpilogue"));
  EXPECT_EQ(differenceAfter(document, *move), "");
}

PipelineDocument twoReaders(const std::string& more) {
  return pipelineOf(R"({"id": "x", "dtype": "f32", "shape": [128, 128]})",
                    R"({"id": "norm", "op": "RMSNorm", "attributes": {"normalized_shape": [128]}},
         {"id": "q", "op": "BasicLinear", "attributes": {"in_features": 128, "out_features": 64}},
         {"id": "k", "op": "BasicLinear", "attributes": {"in_features": 128, "out_features": 32}})",
                    R"(["x", "norm.x"], ["norm.y", "q.x"], ["norm.y", "k.x"])",
                    R"({"id": "a", "from": "q.y"}, {"id": "b", "from": "k.y"})", more);
}

TEST(Suggestions, QuantizeOnceForAllReadersOfATensor) {
  const char* const label = "Quantize norm.y once for q, k";
  const PipelineDocument document = twoReaders(R"(, "recipe": {"name": "DelayedScaling"})");
  const std::vector<Suggestion> found = suggestions(document);
  const Suggestion* shared = find(found, label);
  ASSERT_TRUE(shared) << fmt::format("{}", fmt::join(labelsOf(found), ", "));
  EXPECT_LT(shared->after.savedForBackwardBytes, shared->before.savedForBackwardBytes);
  EXPECT_EQ(differenceAfter(document, *shared), "");
  EXPECT_FALSE(find(suggestions(twoReaders("")), label)) << "Nothing is quantized.";
  for (const char* recipe : {"MXFP8BlockScaling", "Float8CurrentScaling"})
    EXPECT_FALSE(find(suggestions(twoReaders(fmt::format(R"(, "recipe": {{"name": "{}"}})", recipe))), label))
        << "It is quantized once.";
}

const Tensor& tensorOf(const NamedTensors& tensors, const std::string& name) {
  return std::ranges::find(tensors, name, &NamedTensors::value_type::first)->second;
}

/// The weights of q and k, one after the other, as that of q.
NamedTensors withMergedWeights(NamedTensors tensors) {
  Tensor merged = tensorOf(tensors, "q.weight");
  const Tensor& other = tensorOf(tensors, "k.weight");
  merged.spec.shape.front() += other.spec.shape.front();
  merged.data.insert(merged.data.end(), other.data.begin(), other.data.end());
  std::erase_if(tensors,
                [](const auto& each) { return each.first.ends_with(".weight") && each.first != "norm.weight"; });
  tensors.emplace_back("q.weight", std::move(merged));
  return tensors;
}

TEST(Suggestions, MergeLayersThatReadOneTensor) {
  const PipelineDocument document = twoReaders("");
  const std::vector<Suggestion> found = suggestions(document);
  const Suggestion* merge = find(found, "Merge q, k into one layer");
  ASSERT_TRUE(merge) << fmt::format("{}", fmt::join(labelsOf(found), ", "));
  EXPECT_EQ(merge->proposal.kind, SuggestionKind::ChangesBehavior);
  EXPECT_GT(merge->saving().bytes, 0);
  PipelineDocument changed = document;
  ASSERT_TRUE(applyEdit(changed, merge->proposal.repair.edit));
  const Analysis before = analyze(document), after = analyze(changed);
  const NamedTensors given = uniformData(before.graph(), -0.5);
  RunResults expected = runPlan(before.graph(), before.report, makeReferenceBackend(), 1, given);
  RunResults actual = runPlan(after.graph(), after.report, makeReferenceBackend(), 1, withMergedWeights(given));
  std::vector<double>& weight = expected["grad.q.weight"];
  weight.insert(weight.end(), expected["grad.k.weight"].begin(), expected["grad.k.weight"].end());
  expected.erase("grad.k.weight");
  EXPECT_EQ(firstDifference(actual, expected, 1e-4), "");
}

TEST(Suggestions, MergeNoLayersThatDiffer) {
  PipelineDocument document = twoReaders("");
  ASSERT_TRUE(applyEdit(document, SetAttribute{"k", "weight_requires_grad", false}));
  for (const Suggestion& each : suggestions(document)) EXPECT_NE(each.proposal.source, "merge_layers");
}

TEST(Suggestions, SayWhatElseAnAttributeChanges) {
  const Op add = {"add", "AddExtraInput", R"({"in_place": false})"};
  const std::vector<Suggestion> found = suggestions(chainOf({kLinear, add}, R"(, "fusion": {"rules": "te"})"));
  const Suggestion* inPlace = find(found, "Set add.in_place to true");
  ASSERT_TRUE(inPlace) << fmt::format("{}", fmt::join(labelsOf(found), ", "));
  EXPECT_EQ(inPlace->proposal.kind, SuggestionKind::ChangesBehavior);
  EXPECT_NE(inPlace->proposal.caution.find("overwrites"), std::string::npos) << inPlace->proposal.caution;
  const auto isLast = [](const Suggestion& each) { return each.proposal.kind == SuggestionKind::ChangesBehavior; };
  EXPECT_TRUE(std::ranges::is_partitioned(found, std::not_fn(isLast)));
}

// The model does not count its cost: the suggestion must not claim a gain in time.
TEST(Suggestions, TellOfAFusionWithAPriceWhatMemoryItSavesAndNoMore) {
  const PipelineDocument document = chainOf({{"fc1", "BasicLinear", R"({"in_features": "H", "out_features": "4*H"})"},
                                             {"act", "SwiGLU"},
                                             {"fc2", "BasicLinear", R"({"in_features": "2*H", "out_features": "H"})"}});
  const std::vector<Suggestion> found = suggestions(document);
  const Suggestion* joint = find(found, "Use ForwardBackwardSwiGLULinear at act");
  ASSERT_TRUE(joint) << fmt::format("{}", fmt::join(labelsOf(found), ", "));
  EXPECT_EQ(joint->saving(), Saving{});
  const std::vector<std::string> effects = effectsOf(*joint);
  EXPECT_EQ(effects.front(), "keeps 8 KiB less for backward");  // SwiGLU's output: 64 x 2 x 32 x 2 B
  EXPECT_TRUE(std::ranges::none_of(effects, [](const std::string& text) { return text.starts_with("moves"); }));
  EXPECT_FALSE(joint->proposal.caution.empty());
}

TEST(Suggestions, PadWhatTheRecipeCannotTake) {
  PipelineDocument document = chainOf({kLinear}, R"(, "recipe": {"name": "Float8CurrentScaling"})");
  ASSERT_TRUE(applyEdit(document, SetSymbol{"M", 60}));
  const std::vector<Suggestion> found = suggestions(document);
  const Suggestion* padding = find(found, "Pad M to 64 (6.7 % more)");
  ASSERT_TRUE(padding) << fmt::format("{}", fmt::join(labelsOf(found), ", "));
  EXPECT_EQ(padding->before.quantizedFlops, 0);
  EXPECT_GE(padding->after.quantizedFlops, 3 * 2 * 64 * 32 * 32);
}

/// Products so large that 8 bits gain by any data sheet, or so small that quantizing takes longer.
std::vector<Suggestion> recipesFor(std::int64_t size, std::optional<ComputeCapability> capability) {
  PipelineDocument document = chainOf({kLinear});
  EXPECT_TRUE(applyEdit(document, SetSymbol{"M", size}));
  EXPECT_TRUE(applyEdit(document, SetSymbol{"H", size}));
  return suggestions(document, {.capability = capability});
}

TEST(Suggestions, OfferRecipesWhereTheyArePredictedToGain) {
  const ComputeCapability hopper{9, 0};
  const std::vector<Suggestion> large = recipesFor(8192, hopper);
  const Suggestion* recipe = find(large, "Use Float8CurrentScaling");
  ASSERT_TRUE(recipe) << fmt::format("{}", fmt::join(labelsOf(large), ", "));
  EXPECT_GT(recipe->fp8SavedUs, 0.0);
  EXPECT_FALSE(find(large, "Use MXFP8BlockScaling")) << "Hopper has no such products.";
  EXPECT_FALSE(find(recipesFor(256, hopper), "Use Float8CurrentScaling"));
  EXPECT_FALSE(find(recipesFor(8192, std::nullopt), "Use Float8CurrentScaling"));
  EXPECT_TRUE(recipesFor(8192, ComputeCapability{10, 0}).empty()) << "Nobody estimated what it gains there.";
}

TEST(Suggestions, PredictTimesOfAMeasuredDevice) {
  const AnalysisOptions options{.gains = {.device = {.bandwidthBytesPerSecond = 1e9, .launchSeconds = 1e-6}}};
  const PipelineDocument document = chainOf({kHalf, kLinear, kAddInPlace});
  const std::vector<Suggestion> found = suggestions(document, options);
  ASSERT_TRUE(find(found, "Move scale after fc"));
  // 16 KiB at 1 GB/s and 2 launches of 1 us.
  EXPECT_EQ(effectsOf(*find(found, "Move scale after fc"), options.gains.device).front(), "predicted to save 18.4 us");
}

/// Chains of ops that the sources know to be exchangeable or idle, and of other ops.
std::vector<Op> randomChain() {
  static const std::vector<Op> kOps = {
      kHalf,
      kLinear,
      {"act", "ReLU"},
      {"gelu", "GELU"},
      {"nothing", "Identity"},
      {"drop", "Dropout", R"({"p": 0.0})"},
      {"minus", "ConstantScale", R"({"scale": -2.0})"},
      {"one", "ConstantScale", R"({"scale": 1.0})"},
      {"flat", "Reshape", R"({"shape": [-1, "H"]})"},
      kAddInPlace,
      {"bias", "Bias", R"({"size": "H"})"},
      {"norm", "RMSNorm", R"({"normalized_shape": ["H"]})"},
  };
  std::vector<Op> ops;
  const auto length = *rc::gen::inRange(1, 7);
  for (int i = 0; i < length; ++i) {
    ops.push_back(*rc::gen::elementOf(kOps));
    ops.back().id += std::to_string(i);
  }
  return ops;
}

/// As the pipeline itself, or in two instances of a block.
PipelineDocument randomDocument(const std::string& fusion, const std::string& dtype) {
  const std::vector<Op> ops = randomChain();
  return *rc::gen::arbitrary<bool>() ? layersOf(ops, fusion, dtype) : chainOf(ops, fusion, dtype);
}

RC_GTEST_PROP(Suggestions, KeepResultsWhereTheySaySo, ()) {
  const PipelineDocument document = randomDocument(*rc::gen::element<std::string>("", kTeRules), "f32");
  const Graph before = analyze(document).graph();
  const auto expected = runPlan(before, unfused(before), makeReferenceBackend());
  for (const Suggestion& suggestion : suggestions(document)) {
    if (suggestion.proposal.kind != SuggestionKind::SameResults) continue;
    PipelineDocument changed = document;
    RC_ASSERT(applyEdit(changed, suggestion.proposal.repair.edit).hasValue());
    const Analysis after = analyze(changed);
    RC_LOG() << suggestion.proposal.repair.label << '\n';
    RC_ASSERT(firstDifference(runPlan(after.graph(), after.report, makeReferenceBackend()), expected, 1e-4) == "");
  }
}

RC_GTEST_PROP(Suggestions, NeedWhatTheyPromise, ()) {
  const PipelineDocument document = randomDocument(*rc::gen::element<std::string>("", kTeRules), "bf16");
  for (const Suggestion& suggestion : suggestions(document)) {
    PipelineDocument changed = document;
    const Result<Edit> undo = applyEdit(changed, suggestion.proposal.repair.edit);
    RC_ASSERT(undo.hasValue());
    const Analysis after = analyze(changed);
    RC_ASSERT(after.isRunnable());
    RC_ASSERT(after.fusedPlan->numLaunches() == suggestion.after.launches);
    RC_ASSERT(after.fusedPlan->savedForBackwardBytes == suggestion.after.savedForBackwardBytes);
    RC_ASSERT(applyEdit(changed, *undo).hasValue());
    RC_ASSERT(serialize(changed) == serialize(document));
  }
}

}  // namespace
}  // namespace fuseline
