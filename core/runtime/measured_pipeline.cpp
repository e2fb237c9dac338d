// Settings become edits of the document, so that it says by itself what was measured.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/measured_pipeline.h"

#include "core/document/file_format.h"
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
  LoadedDocument loaded = parseDocument(run.pipeline.dump(-1, ' ', false, Json::error_handler_t::replace));
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
      : m_settings(run.settings), m_options(options), m_measured(measured) {}

  Result<void> apply() {
    for (const auto& [name, value] : m_settings.symbols)
      if (Result<void> set = setSymbol(name, value); !set) return set;
    if (Result<void> set = setRecipe(); !set) return set;
    return setRules();
  }

 private:
  const PipelineDocument& document() const { return m_measured.document; }

  Result<void> put(const Edit& edit, std::string change) {
    if (Result<Edit> applied = m_measured.document.apply(edit); !applied) return applied.error();
    m_measured.changes.push_back(std::move(change));
    return {};
  }

  Result<void> setSymbol(const std::string& name, std::int64_t value) {
    const Json& symbols = document().symbols();
    if (!symbols.contains(name))
      return Error{
          fmt::format("/settings/symbols/{}: the run set {} to {}, but its pipeline has no symbol {}. Measure "
                      "again: fuseline run PIPELINE --set {}={} -o RUN.fuserun.",
                      name, name, value, name, name, value)};
    if (symbols[name] == value) return {};
    return put(SetSymbol{.name = name, .value = value}, fmt::format("{} = {}", name, value));
  }

  /// A record always names the recipe; where it is the document's own, its fields are, too.
  Result<void> setRecipe() {
    if (!m_options.recipe || isOwnRecipe()) return {};
    return put(SetRecipe{.recipe = recipeJson()}, recipeText());
  }

  bool isOwnRecipe() const {
    return m_settings.recipeFields.empty() && recipeName(document(), std::nullopt) == m_options.recipe->name();
  }

  Json recipeJson() const {
    const Recipe& recipe = *m_options.recipe;
    if (!recipe.definition().quantizer) return nullptr;
    const Json fields = toJson(recipe)["fields"];
    Json json = {{"name", recipe.name()}};
    for (const auto& [name, text] : m_settings.recipeFields) json[name] = fields[name];
    return json;
  }

  std::string recipeText() const {
    std::string text = "recipe " + m_options.recipe->name();
    for (const auto& [name, value] : m_settings.recipeFields) text += fmt::format(" {}={}", name, value);
    return text;
  }

  Result<void> setRules() {
    const bool isTe = m_options.book == RuleBook::Te;
    Json fusion = document().fusion().is_object() ? document().fusion() : Json::object();
    const bool wasTe = fusion.contains("rules") && fusion["rules"] == "te";
    if (!m_options.book || isTe == wasTe) return {};
    fusion["rules"] = m_settings.rules;
    return put(SetFusion{.fusion = std::move(fusion)}, "rules " + m_settings.rules);
  }

  const RunSettings& m_settings;
  const AnalysisOptions& m_options;
  MeasuredPipeline& m_measured;
};

/// Phase, step, rule.
using StepNames = std::set<std::tuple<std::string, std::string, std::string>>;

StepNames namesOf(const VariantRecord& variant) {
  StepNames names;
  for (const StepRecord& step : variant.steps) names.emplace(step.phase, step.name, step.rule);
  return names;
}

StepNames namesOf(const Plan& plan) {
  StepNames names;
  for (const Step& step : plan.steps) names.emplace(phaseName(step.phase), step.name, step.rule);
  return names;
}

void appendDifference(const RunRecord& run, const char* variant, const std::optional<Plan>& plan,
                      std::vector<std::string>& names) {
  const VariantRecord* measured = run.variant(variant);
  if (!measured || !plan) return;
  std::vector<StepNames::value_type> differing;
  std::ranges::set_symmetric_difference(namesOf(*measured), namesOf(*plan), std::back_inserter(differing));
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
  appendDifference(run, "unfused", analysis.unfusedPlan, names);
  appendDifference(run, "fused", analysis.fusedPlan, names);
  return names;
}

}  // namespace fuseline
