// Converts settings to edits of the document, so that it contains everything that was measured.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/measured_pipeline.h"

#include "core/edit/apply_edit.h"
#include "core/profile/run_pipeline.h"
#include "core/runtime/pipeline_run.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace fuseline {

namespace {

Result<PipelineDocument> documentOf(const RunRecord& run) {
  LoadedDocument loaded = pipelineOf(run);
  for (const Diagnostic& diagnostic : loaded.diagnostics)
    if (diagnostic.severity == Severity::Error)
      return Error{
          fmt::format("the pipeline in this run cannot be used: {} Measure again: fuseline run PIPELINE -o "
                      "RUN.fuserun.",
                      diagnostic.message)};
  return std::move(loaded.document);
}

/// The changes of one run, on the way into its document.
class SettingsEdits {
 public:
  SettingsEdits(const RunRecord& run, const AnalysisOptions& options, MeasuredPipeline& measured)
      : m_run(run), m_options(options), m_measured(measured) {}

  Result<void> apply() {
    for (const auto& [name, value] : m_run.settings.symbols)
      if (Result<void> set = setSymbol(name, value); !set) return set;
    if (Result<void> set = setRecipe(); !set) return set;
    if (Result<void> set = setRules(); !set) return set;
    if (Result<void> set = addSwitches("without", m_run.switches.without); !set) return set;
    return addSwitches("with", m_run.switches.with);
  }

 private:
  const PipelineDocument& document() const { return m_measured.document; }

  Result<void> put(const Edit& edit, std::string change) {
    if (Result<Edit> applied = applyEdit(m_measured.document, edit); !applied) return applied.error();
    m_measured.changes.push_back(std::move(change));
    return {};
  }

  Result<void> setSymbol(const std::string& name, std::int64_t value) {
    const Json& symbols = document().symbols();
    if (!symbols.contains(name))
      return Error{
          fmt::format("/settings/symbols/{}: the run set {} to {}, but its pipeline has no symbol {}. Measure again: "
                      "fuseline run PIPELINE --set {}={}.",
                      name, name, value, name, name, value)};
    if (symbols[name] == value) return {};
    return put(SetSymbol{.name = name, .value = value}, fmt::format("{} = {}", name, value));
  }

  Result<void> setRecipe() {
    if (m_run.recipe.is_object()) return setRecipe(recipeFromJson(m_run.recipe));
    // An older record names the recipe; where that is the document's own, its fields are, too.
    const bool isOwn = m_run.settings.recipeFields.empty() &&
                       recipeName(document(), std::nullopt) == recipeName(document(), m_options.recipe);
    return isOwn || !m_options.recipe ? Result<void>() : setRecipe(*m_options.recipe);
  }

  Result<void> setRecipe(const Result<Recipe>& recipe) {
    if (!recipe) return Error{fmt::format("/recipe: {}", recipe.error().message)};
    const Result<Recipe> own = recipeFromJson(document().recipe());
    if (own && *own == *recipe) return {};
    Json json = shortJson(*recipe);
    if (json == document().recipe()) return {};
    return put(SetRecipe{.recipe = std::move(json)}, recipeText(*recipe));
  }

  /// In the short form of handwritten files: null if nothing is quantized, and no fields at their defaults.
  static Json shortJson(const Recipe& recipe) {
    if (!recipe.definition().quantizer) return nullptr;
    const Result<Recipe> plain = Recipe::create(recipe.definition());
    return plain && *plain == recipe ? Json{{"name", recipe.name()}} : toJson(recipe);
  }

  std::string recipeText(const Recipe& recipe) const {
    std::string text = "recipe " + recipe.name();
    for (const auto& [name, value] : m_run.settings.recipeFields) text += fmt::format(" {}={}", name, value);
    return text;
  }

  Result<void> setRules() {
    if (!m_options.book || m_options.book == documentBook(document())) return {};
    return setFusion("rules", nameOf(m_options.book), "rules " + nameOf(m_options.book));
  }

  Result<void> addSwitches(const char* key, const std::vector<std::string>& entries) {
    const Json fusion = document().fusion();
    Json list = fusion.is_object() && fusion.contains(key) && fusion[key].is_array() ? fusion[key] : Json::array();
    for (const std::string& entry : entries) {
      if (std::ranges::find(list, Json(entry)) != list.end()) continue;
      list.push_back(entry);
      if (Result<void> set = setFusion(key, list, fmt::format("{} {}", key, entry)); !set) return set;
    }
    return {};
  }

  Result<void> setFusion(const char* key, Json value, std::string change) {
    Json fusion = document().fusion().is_object() ? document().fusion() : Json::object();
    fusion[key] = std::move(value);
    return put(SetFusion{.fusion = std::move(fusion)}, std::move(change));
  }

  const RunRecord& m_run;
  const AnalysisOptions& m_options;
  MeasuredPipeline& m_measured;
};

/// Phase, step, rule.
using StepNames = std::set<std::tuple<std::string, std::string, std::string>>;

/// An optimizer is a setting of the run, not a part of its pipeline.
bool isOfPipeline(std::string_view phase) { return phase != phaseName(Phase::Optimizer); }

StepNames namesOf(const VariantRecord& variant) {
  StepNames names;
  for (const StepRecord& step : variant.steps)
    if (isOfPipeline(step.phase)) names.emplace(step.phase, step.name, step.rule);
  return names;
}

StepNames namesOf(const Plan& plan) {
  StepNames names;
  for (const Step& step : plan.steps)
    if (isOfPipeline(phaseName(step.phase))) names.emplace(phaseName(step.phase), step.name, step.rule);
  return names;
}

void appendDifference(const RunRecord& run, const char* variant, const Plan& plan, std::vector<std::string>& names) {
  const VariantRecord* measured = run.variant(variant);
  if (!measured) return;
  std::vector<StepNames::value_type> differing;
  std::ranges::set_symmetric_difference(namesOf(*measured), namesOf(plan), std::back_inserter(differing));
  for (const auto& [phase, step, rule] : differing) names.push_back(fmt::format("{} ({}, {})", step, variant, phase));
}

}  // namespace

Result<MeasuredPipeline> measuredPipeline(const RunRecord& run) {
  const Result<AnalysisOptions> options = analysisOptions(run.settings, {}, {});
  if (!options) return Error{fmt::format("/settings: {}", options.error().message)};
  Result<PipelineDocument> document = documentOf(run);
  if (!document) return document.error();
  MeasuredPipeline measured{.document = std::move(*document), .pass = options->lowering.pass};
  if (Result<void> applied = SettingsEdits(run, *options, measured).apply(); !applied) return applied.error();
  return measured;
}

std::vector<std::string> differingSteps(const RunRecord& run, const Analysis& analysis) {
  std::vector<std::string> names;
  if (!analysis.isRunnable()) return names;
  if (run.variant("unfused")) appendDifference(run, "unfused", analysis.unfusedPlan(), names);
  appendDifference(run, "fused", *analysis.fusedPlan, names);
  return names;
}

}  // namespace fuseline
