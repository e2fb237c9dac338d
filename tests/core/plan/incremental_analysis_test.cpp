// Analyses after edits: each equals the complete analysis of its document.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/incremental_analysis.h"

#include "core/edit/apply_edit.h"
#include "core/edit/edit_extent.h"
#include "core/lowering/connections.h"
#include "core/plan/incremental/neighborhood.h"
#include "core/plan/savings/window_shapes.h"
#include "tests/support/random_edits.h"

#include <algorithm>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// All that an analysis says, as text.
std::string textOf(const Analysis& analysis) {
  std::string text = toString(analysis.graph()) + toJson(analysis.graph(), analysis.report).dump();
  for (const Diagnostic& problem : analysis.lowered.diagnostics)
    text += problem.code + " " + problem.pointer + " " + problem.message + "\n";
  if (analysis.isRunnable()) text += toString(analysis.unfusedPlan()) + toString(*analysis.fusedPlan);
  return text;
}

RC_GTEST_PROP(IncrementalAnalysis, EqualsTheCompleteOneAfterEveryEdit, ()) {
  IncrementalAnalysis analyses;
  PipelineDocument document = randomStart();
  for (int edit = *rc::gen::inRange(1, 6); edit > 0; --edit) {
    (void)applyEdit(document, randomEditOrGroup(document));
    RC_ASSERT(textOf(*analyses.next(document, {}, 0)) == textOf(analyze(document)));
  }
}

/// Many blocks around ops that are drawn, so that an edit leaves most of the pipeline out of its window.
PipelineDocument randomBlocks(int numBlocks) {
  PipelineDocument document;
  const auto apply = [&](const Edit& edit) { RC_ASSERT(bool(applyEdit(document, edit))); };
  apply(AddInput{{.id = "x", .dtype = "bf16", .shape = {16, 32}}});
  std::string last = "x";
  const auto add = [&](const std::string& id, const char* operation, Json attributes = Json::object()) {
    apply(AddOp{{.id = id, .operation = operation, .attributes = std::move(attributes)}});
    apply(AddWire{{parseEndpoint(last), {id, "x"}}});
    last = id + ".y";
  };
  for (int block = 0; block < numBlocks; ++block) {
    const std::string n = std::to_string(block);
    const bool isResidual = *rc::gen::arbitrary<bool>();
    if (isResidual) add("save" + n, "MakeExtraOutput");
    for (int op = *rc::gen::inRange(1, 4); op > 0; --op) {
      const std::string id = "op" + n + "_" + std::to_string(op);
      switch (*rc::gen::inRange(0, 6)) {
        case 0: add(id, "RMSNorm", {{"normalized_shape", {32}}}); break;
        case 1: add(id, "BasicLinear", {{"in_features", 32}, {"out_features", 32}}); break;
        case 2: add(id, "Bias", {{"size", 32}}); break;
        case 3: add(id, "Dropout", {{"p", 0.1}}); break;
        case 4: add(id, "ConstantScale", {{"scale", 2.0}}); break;
        default: add(id, "GELU"); break;
      }
    }
    if (!isResidual) continue;
    add("add" + n, "AddExtraInput");
    apply(AddWire{{{"save" + n, "extra"}, {"add" + n, "extra"}}});
  }
  apply(AddOutput{{.id = "y", .from = parseEndpoint(last)}});
  return document;
}

/// A switch that names an op makes no two windows alike.
RC_GTEST_PROP(PlannedSavings, OfLikeWindowsAreThoseOfEach, ()) {
  const PipelineDocument document = randomBlocks(8);
  AnalysisOptions options;
  if (*rc::gen::arbitrary<bool>()) options.recipe = *recipeFromJson({{"name", "MXFP8BlockScaling"}});
  const Analysis shared = analyze(document, options);
  options.switches.without = {"ForwardLinearEpilogue@nothing"};
  const Analysis each = analyze(document, options);
  RC_ASSERT(toJson(shared.graph(), shared.report) == toJson(each.graph(), each.report));
}

/// Some attributes do not fit the op, some change the fusions, and some the graph.
Edit randomAttribute(const PipelineDocument& document) {
  const DocumentOp& op = document.ops()[*rc::gen::inRange<std::size_t>(0, document.ops().size())];
  static const std::vector<std::pair<std::string, Json>> kAttributes = {{"eps", 1e-3},
                                                                        {"p", 0.0},
                                                                        {"p", 0.5},
                                                                        {"scale", 1.0},
                                                                        {"scale", 3.0},
                                                                        {"in_place", true},
                                                                        {"eps", nullptr},
                                                                        {"zero_centered_gamma", true},
                                                                        {"out_features", 64},
                                                                        {"accumulate_into_main_grad", true},
                                                                        {"delay_wgrad_compute", true}};
  const auto& [name, value] = kAttributes[*rc::gen::inRange<std::size_t>(0, kAttributes.size())];
  return SetAttribute{.id = op.id, .name = name, .value = value};
}

RC_GTEST_PROP(IncrementalAnalysis, EqualsTheCompleteOneAfterEditsOfAttributes, ()) {
  IncrementalAnalysis analyses;
  PipelineDocument document = randomBlocks(10);
  AnalysisOptions options;
  if (*rc::gen::arbitrary<bool>()) options.recipe = *recipeFromJson({{"name", "Float8CurrentScaling"}});
  for (int edit = 0; edit < 2; ++edit) {
    RC_ASSERT(textOf(*analyses.next(document, options, 0)) == textOf(analyze(document, options)));
    (void)applyEdit(document, randomAttribute(document));
  }
}

OptionsFor always(const AnalysisOptions& options) {
  return [options](const PipelineDocument&) { return options; };
}

RC_GTEST_PROP(IncrementalAnalysis, EditsThatItFollowsGiveTheCompleteOne, ()) {
  IncrementalAnalysis analyses;
  PipelineDocument document = randomBlocks(10);
  AnalysisOptions options;
  if (*rc::gen::arbitrary<bool>()) options.recipe = *recipeFromJson({{"name", "MXFP8BlockScaling"}});
  std::shared_ptr<const Analysis> last = analyses.next(document, options, 0);
  for (int step = 0; step < 3; ++step) {
    std::vector<Edit> edits;
    for (int edit = *rc::gen::inRange(1, 3); edit > 0; --edit) {
      Edit drawn = *rc::gen::inRange(0, 4) == 0 ? randomEditOrGroup(document) : randomAttribute(document);
      if (applyEdit(document, drawn)) edits.push_back(std::move(drawn));
    }
    const auto next = analyses.after(edits, always(options), 0);
    RC_ASSERT(analyses.document() == document);
    RC_ASSERT(textOf(*next) == textOf(analyze(document, options)));
    RC_ASSERT(!analyses.changedOps() || textOf(*next) == textOf(*last));
    last = next;
  }
}

/// An op less, one more, one that is bypassed, another output, or another attribute.
Edit randomStructure(const PipelineDocument& document) {
  const DocumentOp& op = document.ops()[*rc::gen::inRange<std::size_t>(0, document.ops().size())];
  switch (*rc::gen::inRange(0, 6)) {
    case 0: return removeOpWithWires(document, op.id, true);
    case 1: return SetBypassed{op.id, *rc::gen::element<std::optional<bool>>(std::nullopt, true)};
    case 2: return AddOutput{{.id = "out_" + op.id, .from = {op.id, "y"}}};
    case 3: return randomAttribute(document);
    default: {
      const auto wire = std::ranges::find(document.wires(), Endpoint{op.id, "x"}, &Wire::to);
      if (wire == document.wires().end()) return AddOp{{.id = "loose", .operation = "GELU"}};
      const std::string id = "before_" + op.id;
      const char* const operation = *rc::gen::element("GELU", "Dropout", "MakeExtraOutput");
      const Json attributes = operation == std::string("Dropout") ? Json{{"p", 0.1}} : Json::object();
      return EditGroup{.label = "Insert",
                       .edits = {RemoveWire{*wire}, AddOp{{.id = id, .operation = operation, .attributes = attributes}},
                                 AddWire{{wire->from, {id, "x"}}}, AddWire{{{id, "y"}, wire->to}}}};
    }
  }
}

/// Fusions, attempts and tensors of these ops.
std::string textAbout(const Analysis& analysis, const std::set<std::string>& ops) {
  const Graph& graph = analysis.graph();
  std::multiset<std::string> lines;
  const auto add = [&](const std::vector<NodeId>& nodes, std::string line) {
    bool isAbout = false;
    for (const NodeId id : nodes) {
      line += " " + graph.node(id).id;
      isAbout = isAbout || ops.contains(graph.node(id).owner);
    }
    if (isAbout) lines.insert(std::move(line));
  };
  for (const auto* list : {&analysis.report.forward, &analysis.report.backward})
    for (const FusedOperation& entry : *list) add(entry.nodes, entry.name(graph) + entry.caveat);
  for (const Attempt& attempt : analysis.report.attempts)
    add(attempt.nodes, std::string(attempt.rule->name) + std::string(outcomeName(attempt.outcome)) +
                           attempt.explanation + std::to_string(attempt.saving ? attempt.saving->bytes : -1));
  for (const Value& value : graph.values())
    if (value.producer >= 0) add({value.producer}, value.name + toString(value.spec));
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

RC_GTEST_PROP(IncrementalAnalysis, AReportThatIsSplicedIsTheCompleteOne, ()) {
  IncrementalAnalysis analyses;
  PipelineDocument document = randomBlocks(36);
  AnalysisOptions options;
  const std::string recipe = *rc::gen::element<std::string>("None", "None", "MXFP8BlockScaling", "DelayedScaling");
  options.recipe = *recipeFromJson({{"name", recipe}});
  const auto before = analyses.next(document, options, 0);
  const Edit edit = randomStructure(document);
  RC_PRE(bool(applyEdit(document, edit)));
  const auto next = analyses.after({edit}, always(options), 0);
  RC_ASSERT(textOf(*next) == textOf(analyze(document, options)));
  auto window = windowAround(extentOf({edit}), document, *before);
  if (!window) return;
  KnownSavings known;
  const auto near = neighborhoodOf(std::move(*window), *before, options, known);
  if (near) RC_ASSERT(textAbout(near->window, near->ops) == textAbout(*next, near->ops));
}

/// A second output, of an op of the chain or of a branch, comes from elsewhere or goes.
RC_GTEST_PROP(IncrementalAnalysis, FusionsAroundAnOutputThatGoesAreForetold, ()) {
  IncrementalAnalysis analyses;
  PipelineDocument document = randomBlocks(16);
  const auto drawnOp = [&] { return document.ops()[*rc::gen::inRange<std::size_t>(0, document.ops().size())].id; };
  const auto apply = [&](const Edit& edit) { RC_ASSERT(bool(applyEdit(document, edit))); };
  const std::string op = drawnOp();
  if (*rc::gen::arbitrary<bool>()) {
    apply(AddOutput{{.id = "side", .from = {op, "y"}}});
  } else {
    apply(AddOp{{.id = "branch", .operation = *rc::gen::element("GELU", "MakeExtraOutput")}});
    apply(AddWire{{{op, "y"}, {"branch", "x"}}});
    apply(AddOutput{{.id = "side", .from = {"branch", "y"}}});
  }
  const auto before = analyses.next(document, {}, 0);
  const Edit edit = *rc::gen::arbitrary<bool>()
                        ? Edit(RemoveOutput{.id = "side"})
                        : Edit(ReplaceOutput{.id = "side", .output = {.id = "side", .from = {drawnOp(), "y"}}});
  apply(edit);
  const auto next = analyses.after({edit}, always({}), 0);
  RC_ASSERT(textOf(*next) == textOf(analyze(document)));
  auto window = windowAround(extentOf({edit}), document, *before);
  if (!window) return;
  KnownSavings known;
  const auto near = neighborhoodOf(std::move(*window), *before, {}, known);
  RC_CLASSIFY(near.has_value());
  if (near) RC_ASSERT(textAbout(near->window, near->ops) == textAbout(*next, near->ops));
}

/// Blocks of a norm, a linear layer and an activation.
PipelineDocument longPipeline(int numBlocks) {
  PipelineDocument document;
  const auto apply = [&](const Edit& edit) { EXPECT_TRUE(applyEdit(document, edit)); };
  apply(AddInput{{.id = "x", .dtype = "bf16", .shape = {16, 32}}});
  std::string last = "x";
  for (int block = 0; block < numBlocks; ++block)
    for (const auto& [name, operation, attributes] :
         {std::tuple("norm", "RMSNorm", Json{{"normalized_shape", {32}}}),
          std::tuple("fc", "BasicLinear", Json{{"in_features", 32}, {"out_features", 32}}),
          std::tuple("act", "GELU", Json::object())}) {
      const std::string id = name + std::to_string(block);
      apply(AddOp{{.id = id, .operation = operation, .attributes = attributes}});
      apply(AddWire{{parseEndpoint(last), {id, "x"}}});
      last = id + ".y";
    }
  apply(AddOutput{{.id = "y", .from = parseEndpoint(last)}});
  return document;
}

TEST(IncrementalAnalysis, ARemovedOpOfALongPipelineLeavesTheFusionsFarAway) {
  IncrementalAnalysis analyses;
  PipelineDocument document = longPipeline(100);
  (void)analyses.next(document, {}, 0);
  const Edit removal = removeOpWithWires(document, "act50", true);
  ASSERT_TRUE(applyEdit(document, removal));
  EXPECT_EQ(textOf(*analyses.after({removal}, always({}), 0)), textOf(analyze(document)));
  EXPECT_EQ(analyses.numComplete(), 1);
}

TEST(IncrementalAnalysis, TheWindowAroundAnEditOfALongPipelineIsSmall) {
  IncrementalAnalysis analyses;
  PipelineDocument document = longPipeline(140);
  const auto before = analyses.next(document, {}, 0);
  const Edit removal = removeOpWithWires(document, "act50", true);
  ASSERT_TRUE(applyEdit(document, removal));
  const auto window = windowAround(extentOf({removal}), document, *before);
  ASSERT_TRUE(window);
  EXPECT_TRUE(window->ops.contains("fc50"));
  EXPECT_FALSE(window->ops.contains("act50"));
  EXPECT_FALSE(window->ops.contains("fc90"));
  EXPECT_FALSE(windowAround(extentOf({removal, SetFusion{}}), document, *before))
      << "switches may change fusions anywhere";
}

/// The layer that comes back is like the others, whose fusions were planned.
TEST(IncrementalAnalysis, TheFusionsAroundAnEditNeedNoPlansThatTheWholeHas) {
  IncrementalAnalysis analyses;
  PipelineDocument document = longPipeline(100);
  (void)analyses.next(document, {}, 0);
  const Edit removal = removeOpWithWires(document, "act50", true);
  const Result<Edit> inverse = applyEdit(document, removal);
  ASSERT_TRUE(inverse);
  const auto before = analyses.after({removal}, always({}), 0);
  ASSERT_TRUE(applyEdit(document, *inverse));
  auto window = windowAround(extentOf({*inverse}), document, *before);
  ASSERT_TRUE(window);
  KnownSavings known = *analyses.knownSavings();
  const std::size_t numKnown = known.savings.size();
  EXPECT_GT(numKnown, 0U);
  ASSERT_TRUE(neighborhoodOf(std::move(*window), *before, {}, known));
  EXPECT_EQ(known.savings.size(), numKnown);
}

/// Options whose kernels request a stop when they are asked about for that number of times.
OptionsFor stoppingAfter(int numQueries, const std::stop_source& stop, AnalysisOptions options) {
  options.capabilities = [stop, left = std::make_shared<int>(numQueries)](const KernelQuery&) mutable {
    if (--*left == 0) stop.request_stop();
    return Verdict::yes();
  };
  return always(options);
}

/// Wherever an analysis is stopped, the next one has its edits, too, given as edits or as a document, and whether the
/// settings have changed since or not.
RC_GTEST_PROP(IncrementalAnalysis, AnAnalysisAfterStoppedOnesIsTheCompleteOne, ()) {
  IncrementalAnalysis analyses;
  PipelineDocument document = randomBlocks(24);
  AnalysisOptions options;
  options.capabilities = [](const KernelQuery&) { return Verdict::yes(); };
  (void)analyses.next(document, options, 0);
  std::uint64_t settings = 0;
  for (int step = 0; step < 5; ++step) {
    std::vector<Edit> edits;
    for (int edit = *rc::gen::inRange(1, 3); edit > 0; --edit) {
      const bool isAnything = document.ops().empty() || *rc::gen::inRange(0, 4) == 0;
      Edit drawn = isAnything ? randomEditOrGroup(document) : randomStructure(document);
      if (applyEdit(document, drawn)) edits.push_back(std::move(drawn));
    }
    std::stop_source stop;
    const int numQueries = *rc::gen::element(-1, -1, 1, 3, 40);
    if (*rc::gen::inRange(0, 4) == 0) stop.request_stop();
    settings += *rc::gen::inRange(0, 4) == 0 ? 1 : 0;
    options.lowering.pass = settings % 2 == 0 ? ExecutionMode::Training : ExecutionMode::Inference;
    const OptionsFor stopping = stoppingAfter(numQueries, stop, options);
    const auto next = *rc::gen::arbitrary<bool>()
                          ? analyses.next(document, stopping(document), settings, stop.get_token())
                          : analyses.after(edits, stopping, settings, stop.get_token());
    RC_ASSERT(analyses.document() == document);
    RC_ASSERT(next || stop.stop_requested());
    if (next) RC_ASSERT(textOf(*next) == textOf(analyze(document, options)));
  }
  const auto last = *rc::gen::arbitrary<bool>() ? analyses.next(document, options, settings)
                                                : analyses.after({}, always(options), settings);
  RC_ASSERT(textOf(*last) == textOf(analyze(document, options)));
}

/// Everything that a run would be given.
std::string attributesOf(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes()) text += node.id + " " + node.operation->name + " " + node.note() + "\n";
  return text;
}

TEST(IncrementalAnalysis, AFollowedAttributeIsInTheGraphAndNothingElseIsMadeAgain) {
  IncrementalAnalysis analyses;
  PipelineDocument document = example("gpt_layer");
  (void)analyses.next(document, {}, 0);
  const auto norm = std::ranges::find(document.ops(), "LayerNorm", &DocumentOp::operation);
  const std::string id = norm->id;
  const Edit edit = SetAttribute{.id = id, .name = "eps", .value = 1e-3};
  ASSERT_TRUE(applyEdit(document, edit));
  const auto kept = analyses.after({edit}, always({}), 0);
  EXPECT_EQ(analyses.changedOps(), std::set<std::string>{id});
  EXPECT_EQ(textOf(*kept), textOf(analyze(document)));
  EXPECT_EQ(kept->graph().node(kept->graph().findNode(id)).attributes.real("eps"), 1e-3);
  EXPECT_EQ(attributesOf(kept->graph()), attributesOf(analyze(document).graph()));
}

TEST(IncrementalAnalysis, AFollowedAttributeWithAProblemIsNotPatchedIn) {
  IncrementalAnalysis analyses;
  PipelineDocument document = example("gpt_layer");
  (void)analyses.next(document, {}, 0);
  const auto norm = std::ranges::find(document.ops(), "LayerNorm", &DocumentOp::operation);
  const Edit edit = SetAttribute{.id = norm->id, .name = "eps", .value = "nothing"};
  ASSERT_TRUE(applyEdit(document, edit));
  EXPECT_FALSE(analyses.after({edit}, always({}), 0)->isRunnable());
  EXPECT_EQ(analyses.changedOps(), std::nullopt);
}

TEST(IncrementalAnalysis, AnAttributeThatThePlanDoesNotDependOnKeepsIt) {
  IncrementalAnalysis analyses;
  PipelineDocument document = example("gpt_layer");
  (void)analyses.next(document, {}, 0);
  const auto norm = std::ranges::find(document.ops(), "LayerNorm", &DocumentOp::operation);
  ASSERT_NE(norm, document.ops().end());
  ASSERT_TRUE(applyEdit(document, SetAttribute{.id = norm->id, .name = "eps", .value = 1e-3}));
  const auto kept = analyses.next(document, {}, 0);
  EXPECT_EQ(analyses.numComplete(), 1);
  EXPECT_EQ(textOf(*kept), textOf(analyze(document)));
  EXPECT_EQ(kept->graph().node(kept->graph().findNode(norm->id)).attributes.real("eps"), 1e-3);
}

TEST(IncrementalAnalysis, AnEditOfTheViewGivesTheSameAnalysis) {
  IncrementalAnalysis analyses;
  PipelineDocument document = example("llama_mlp");
  const auto first = analyses.next(document, {}, 0);
  ASSERT_TRUE(applyEdit(document, MoveNode{.id = document.ops().front().id, .position = Position{40, 80}}));
  EXPECT_EQ(analyses.next(document, {}, 0), first);
  EXPECT_EQ(analyses.numComplete(), 1);
}

TEST(IncrementalAnalysis, OtherSettingsNeedAnother) {
  IncrementalAnalysis analyses;
  const PipelineDocument document = example("llama_mlp");
  const auto training = analyses.next(document, {}, 0);
  const auto forward = analyses.next(document, {.lowering = {.pass = ExecutionMode::Inference}}, 1);
  EXPECT_NE(training->fusedPlan->steps.size(), forward->fusedPlan->steps.size());
}

TEST(IncrementalAnalysis, MeasuredGainsNeedAnother) {
  IncrementalAnalysis analyses;
  const PipelineDocument document = example("llama_mlp");
  const auto first = analyses.next(document, {}, 0);
  AnalysisOptions options;
  options.gains.device = {.bandwidthBytesPerSecond = 1e12, .launchSeconds = 1e-6, .source = "a device"};
  EXPECT_EQ(analyses.next(document, options, 0)->report.device.source, "a device");
}

}  // namespace
}  // namespace fuseline
