// Document to plan in one call.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/analysis.h"

#include "core/graph/in_place_hazards.h"
#include "core/graph/row_parallel_inputs.h"
#include "core/plan/analysis_stages.h"
#include "core/plan/padding.h"
#include "core/plan/savings/planned_savings.h"
#include "core/quant/apply_recipe.h"
#include "core/quant/attention_quantizers.h"
#include "core/quant/cuda_quantizers.h"
#include "core/quant/small_layers.h"
#include "core/quant/te_ignored_fields.h"
#include "core/quant/te_requirements.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

void appendStrings(const Json& fusion, const char* key, std::vector<std::string>& entries) {
  if (!fusion.is_object() || !fusion.contains(key) || !fusion[key].is_array()) return;
  for (const Json& entry : fusion[key])
    if (entry.is_string()) entries.push_back(entry.get<std::string>());
}

/// Notes the recipe fields that a te.ops module ignores, for users who export the pipeline.
void noteIgnoredByTeOps(const Graph& graph, const Recipe& recipe, std::vector<Diagnostic>& diagnostics) {
  for (std::string& ignored : ignoredByTeOps(recipe))
    diagnostics.push_back(
        {.severity = Severity::Note, .code = "recipe-te", .pointer = "/recipe", .message = std::move(ignored)});
  for (const Node& node : graph.nodes())
    if (std::string ignored = ignoredByTeOp(node, recipe); !ignored.empty())
      diagnostics.push_back(
          {.severity = Severity::Note, .code = "recipe-te", .node = node.owner, .message = std::move(ignored)});
}

/// A pipeline that Fuseline runs, but of which `export --to te` writes no module.
void noteRefusedByTeOps(const Graph& graph, const std::optional<Recipe>& recipe, std::vector<Diagnostic>& diagnostics) {
  for (const Node& node : graph.nodes())
    if (const Verdict taken = isTakenByTe(graph, node, recipe); !taken)
      diagnostics.push_back(
          {.severity = Severity::Note, .code = "recipe-te", .node = node.owner, .message = taken.reason()});
}

/// Planned with the kernels of the CUDA backend, which would then not run the plan.
void warnOfCudaQuantizers(const AnalysisOptions& options, const Graph& graph, std::vector<Diagnostic>& diagnostics) {
  if (!options.capability || !options.capabilities) return;
  if (std::optional<std::string> reason = notQuantizedByCuda(graph))
    diagnostics.push_back({.severity = Severity::Warning,
                           .code = "recipe-cuda",
                           .pointer = "/recipe",
                           .message = fmt::format("This plan does not run on a GPU yet: {}", *reason)});
}

Diagnostic attentionNote(const Node& attention, std::string message) {
  return {.severity = Severity::Note, .code = kAttentionCode, .node = attention.owner, .message = std::move(message)};
}

/// One note at the first attention that stays in high precision, although the recipe requests FP8; and one for fp8_mha,
/// which Fuseline ignores.
void noteAttention(const Graph& graph, const Recipe& recipe, std::vector<Diagnostic>& diagnostics) {
  const auto first = std::ranges::find_if(graph.nodes(), isAttention);
  if (first == graph.nodes().end()) return;
  if (recipe.definition().field("fp8_mha") && recipe.fields().boolean("fp8_mha"))
    diagnostics.push_back(attentionNote(
        *first, fmt::format("fp8_mha is on, but Fuseline ignores it: the tensors between attention and its projections "
                            "stay in {}.",
                            dtypeName(graph.value(first->inputs.front()).spec.dtype))));
  if (!requestsFp8Attention(recipe)) return;
  const auto plain = std::ranges::find_if(
      graph.nodes(), [](const Node& node) { return isAttention(node) && !isQuantizedAttention(node); });
  if (plain == graph.nodes().end()) return;
  diagnostics.push_back(attentionNote(*plain, fmt::format("fp8_dpa is on, but {} computes in {}: {}.", plain->id,
                                                          dtypeName(graph.value(plain->inputs.front()).spec.dtype),
                                                          fitsFp8Attention(*plain, recipe).reason())));
}

void addRecipe(const PipelineDocument& document, const AnalysisOptions& options, Analysis& analysis) {
  std::vector<Diagnostic>& diagnostics = analysis.lowered.diagnostics;
  analysis.recipe = options.recipe;
  if (!analysis.recipe && !document.recipe().is_null()) {
    Result<Recipe> own = recipeFromJson(document.recipe());
    if (!own)
      diagnostics.push_back({.code = "recipe", .pointer = "/recipe", .message = own.error().message});
    else
      analysis.recipe = std::move(*own);
  }
  if (!analysis.recipe) return noteRefusedByTeOps(analysis.graph(), analysis.recipe, diagnostics);
  analysis.lowered.graph = applyRecipe(std::move(analysis.lowered.graph), *analysis.recipe, diagnostics);
  if (std::vector<Diagnostic> ofRank; analysis.wholeGraph)  // whose states the ranks share
    analysis.wholeGraph = applyRecipe(std::move(*analysis.wholeGraph), *analysis.recipe, ofRank);
  addPaddingRepairs(document, options.lowering, *analysis.recipe, diagnostics);
  noteIgnoredByTeOps(analysis.graph(), *analysis.recipe, diagnostics);
  noteRefusedByTeOps(analysis.graph(), analysis.recipe, diagnostics);
  warnOfCudaQuantizers(options, analysis.graph(), diagnostics);
  noteAttention(analysis.graph(), *analysis.recipe, diagnostics);
  if (std::optional<Diagnostic> note = noteSmallLayers(analysis.graph(), *analysis.recipe))
    diagnostics.push_back(std::move(*note));
}

/// Fuseline's own plans are right; users who export the pipeline to TransformerEngine should know.
void noteInPlaceHazards(const Graph& graph, std::vector<Diagnostic>& diagnostics) {
  for (const InPlaceHazard& hazard : inPlaceHazards(graph)) {
    const Node& node = graph.node(hazard.node);
    diagnostics.push_back({.severity = Severity::Note,
                           .code = "in-place",
                           .node = node.owner,
                           .message = fmt::format(
                               "{} is in place, but {}. Fuseline avoids this; `export --to te` sets in_place to false.",
                               node.id, hazardText(graph, hazard))});
  }
}

/// A plan for several ranks has the extents of whole layers, so that no shape tells.
void warnOfWholeRows(const Graph& graph, std::int64_t ranks, std::vector<Diagnostic>& diagnostics) {
  for (const WholeRows& rows : wholeRowsIntoRowParallel(graph)) {
    const Node& layer = graph.node(rows.layer);
    const Node& source = graph.node(rows.source);
    const std::int64_t width = graph.spec(rows.layer, OperandKind::Input, 0).cols();
    const std::string share = ranks > 1
                                  ? fmt::format("each of {} ranks reads a share of {} elements", ranks, width / ranks)
                                  : fmt::format("each rank reads its share of {} elements", width);
    diagnostics.push_back({.severity = Severity::Warning,
                           .code = "row-parallel-input",
                           .node = layer.owner,
                           .message = fmt::format("{} is row-parallel: {} of a row, but {} produces all {} on every "
                                                  "rank. Make {} column-parallel, or insert a column-parallel layer.",
                                                  layer.path, share, source.id, rows.width, layer.path)});
  }
}

/// A switch whose op was removed is no error: the pipeline's result does not change.
void noteIdleSwitches(const Graph& graph, const RuleSwitches& switches, std::vector<Diagnostic>& diagnostics) {
  for (const auto* entries : {&switches.without, &switches.with})
    for (const std::string& entry : *entries)
      if (const Verdict verdict = hasItsOp(graph, entry); !verdict)
        diagnostics.push_back(
            {.severity = Severity::Warning, .code = "idle-switch", .pointer = "/fusion", .message = verdict.reason()});
}

/// From the whole model to the part of one rank.
void addRank(const RankPlace& place, Analysis& analysis) {
  std::vector<Diagnostic>& diagnostics = analysis.lowered.diagnostics;
  if (place.ranks == 1 || hasErrors(diagnostics)) return;
  Result<RankGraph> made = rankGraph(analysis.graph(), place.rank, place.ranks);
  if (!made) {
    // Messages begin with the op.
    const NodeId op = analysis.graph().findNode(made.error().message.substr(0, made.error().message.find(':')));
    diagnostics.push_back({.code = kPlacementCode,
                           .node = op < 0 ? std::string() : analysis.graph().node(op).owner,
                           .message = made.error().message});
    return;
  }
  for (std::string& note : made->notes)
    diagnostics.push_back({.severity = Severity::Warning, .code = kPlacementCode, .message = std::move(note)});
  analysis.wholeGraph = std::exchange(analysis.lowered.graph, std::move(made->graph));
  analysis.shards = std::move(made->shards);
  analysis.ranks = place.ranks;
}

}  // namespace

RuleBook documentBook(const PipelineDocument& document) {
  const Json& fusion = document.fusion();
  const bool isTe = fusion.is_object() && fusion.contains("rules") && fusion["rules"] == "te";
  return isTe ? RuleBook::Te : RuleBook::All;
}

std::span<const std::string_view> plannedArchitectures() {
  static constexpr std::array<std::string_view, 8> kArchitectures = {"sm_80",  "sm_86",  "sm_89",  "sm_90",
                                                                     "sm_100", "sm_103", "sm_110", "sm_120"};
  return kArchitectures;
}

Capabilities plannedCapabilities(Capabilities cuda) {
  if (!cuda) return {};
  Capabilities planned = [cuda](const KernelQuery& query) {
    const std::vector<const FusionRule*> rules = builtinRules().all();
    const bool isAssumed = std::ranges::any_of(
        rules, [&](const FusionRule* rule) { return rule->hardware && rule->becomes == query.kernel; });
    return isAssumed ? Verdict::yes() : cuda(query);
  };
  planned.extraCost = std::move(cuda.extraCost);
  return planned;
}

std::string recipeName(const PipelineDocument& document, const std::optional<Recipe>& chosen) {
  if (chosen) return chosen->name();
  const Json& own = document.recipe();
  const bool isNamed = own.is_object() && own.contains("name") && own["name"].is_string();
  return isNamed ? own["name"].get<std::string>() : builtinRecipes().front().name;
}

Json wholeRecipe(const PipelineDocument& document, const std::optional<Recipe>& chosen) {
  if (chosen) return toJson(*chosen);
  if (document.recipe().is_null()) return {};
  const Result<Recipe> own = recipeFromJson(document.recipe());
  return own ? toJson(*own) : Json();
}

Analysis graphStage(const PipelineDocument& document, const AnalysisOptions& options, const SourceMap* sourceMap) {
  Analysis analysis{.lowered = lower(document, options.lowering, sourceMap)};
  addRank(options.place, analysis);
  addRecipe(document, options, analysis);
  return analysis;
}

FusionOptions fusionOptions(const PipelineDocument& document, const AnalysisOptions& options,
                            const Analysis& analysis) {
  FusionOptions fusion{.book = options.book.value_or(documentBook(document)),
                       .switches = options.switches,
                       .capabilities = options.capabilities,
                       .target = {.recipe = analysis.recipe,
                                  .capability = options.capability,
                                  .ranks = std::max<std::int64_t>(options.ranks, options.place.ranks)},
                       .gains = options.gains};
  appendStrings(document.fusion(), "without", fusion.switches.without);
  appendStrings(document.fusion(), "with", fusion.switches.with);
  return fusion;
}

void addPlanNotes(const FusionOptions& fusion, Analysis& analysis) {
  std::vector<Diagnostic>& diagnostics = analysis.lowered.diagnostics;
  noteIdleSwitches(analysis.graph(), fusion.switches, diagnostics);
  noteInPlaceHazards(analysis.graph(), diagnostics);
  warnOfWholeRows(analysis.documentGraph(), fusion.target.ranks, diagnostics);
}

PlanOptions planOptions(const AnalysisOptions& options) {
  return {.overlapsCollectives = options.place.overlapsCollectives, .chunks = options.place.chunks};
}

void planStage(const FusionOptions& fusion, Analysis& analysis, const PlanOptions& plan, KnownSavings* known,
               const std::stop_token& stop) {
  analysis.report.book = fusion.book;
  Result<FusionReport> report = fuseByPlans(analysis.graph(), fusion, plan, known, stop);
  if (!report)
    analysis.lowered.diagnostics.push_back(
        {.code = "unknown-rule", .pointer = "/fusion", .message = report.error().message});
  if (!hasErrors(analysis.lowered.diagnostics)) addPlans(std::move(*report), fusion, analysis, plan, stop);
}

void addPlans(FusionReport report, const FusionOptions& fusion, Analysis& analysis, const PlanOptions& plan,
              const std::stop_token& stop) {
  const Graph& graph = analysis.graph();
  analysis.report = std::move(report);
  if (stop.stop_requested()) return;
  std::optional<Plan> fused = makePlan(graph, analysis.report, plan, stop);
  if (!fused) return;
  addPlanNotes(fusion, analysis);
  analysis.fusedPlan = std::make_shared<const Plan>(std::move(*fused));
  analysis.withoutFusions = std::make_shared<const LazyPlan>(plan);
}

void planStageFrom(const Analysis& earlier, const FusionOptions& fusion, Analysis& analysis) {
  analysis.report = earlier.report;
  addPlanNotes(fusion, analysis);
  analysis.fusedPlan = earlier.fusedPlan;
  analysis.withoutFusions = earlier.withoutFusions;
}

Analysis analyze(const PipelineDocument& document, const AnalysisOptions& options, const SourceMap* sourceMap) {
  Analysis analysis = graphStage(document, options, sourceMap);
  planStage(fusionOptions(document, options, analysis), analysis, planOptions(options));
  return analysis;
}

}  // namespace fuseline
