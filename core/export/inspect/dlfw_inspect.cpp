// Two exporters of one text.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/inspect/dlfw_inspect.h"

#include "core/export/inspect/inspect_config.h"
#include "core/runtime/measured_pipeline.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

/// In place of none the one that quantizes nothing.
Recipe recipeOf(const Analysis& analysis) {
  return analysis.recipe ? *analysis.recipe : *Recipe::create(*findRecipe("None"));
}

}  // namespace

Result<PipelineText> dlfwInspect(const ExportedPipeline& pipeline) {
  const Recipe recipe = recipeOf(pipeline.analysis);
  Result<InspectConfig> config =
      inspectConfig({.name = pipeline.name, .graph = pipeline.analysis.graph(), .recipe = recipe});
  if (!config) return config.error();
  return PipelineText{.text = std::move(config->text), .notes = std::move(config->notes)};
}

Result<std::string> dlfwInspectOfRun(const RunRecord& record) {
  const Result<MeasuredPipeline> measured = measuredPipeline(record);
  if (!measured) return measured.error();
  const Analysis analysis = analyze(measured->document, {.lowering = {.pass = measured->pass}});
  if (!analysis.isRunnable())
    return Error{fmt::format("{}: the pipeline in this run has errors in this version. `fuseline validate` lists them.",
                             record.title())};
  const Recipe recipe = recipeOf(analysis);
  Result<InspectConfig> config =
      inspectConfig({.name = record.title(), .graph = analysis.graph(), .recipe = recipe, .run = &record});
  if (!config) return config.error();
  return std::move(config->text);
}

}  // namespace fuseline
