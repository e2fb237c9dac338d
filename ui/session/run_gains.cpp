// Collects the gains that runs measured.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/run_gains.h"

#include "core/document/file_format.h"
#include "core/plan/analysis.h"
#include "core/profile/measured_gains.h"

#include <utility>

namespace fuseline::ui {

void RunGains::take(const RunRecord& run, const std::string& runName) {
  Result<GainModel> gains = gainsOf(run, runName);
  if (!gains || !run.pipeline.is_object()) return;
  const bool isSame = isKnown() && measuredSame(m_measured, run.pipeline, run.settings, run.recipe);
  if (!isSame) m_gains = {};
  m_measured = {.pipeline = run.pipeline, .settings = run.settings, .recipe = run.recipe};
  merge(m_gains, std::move(*gains));
}

GainModel RunGains::gainsFor(const PipelineDocument& document, RunSpec settings) const {
  if (!isKnown()) return {.decides = false};
  settings.recipe = recipeName(document, std::nullopt);
  const Json pipeline = toJson(document);
  const bool isSame{measuredSame(m_measured, pipeline, settings, wholeRecipe(document, std::nullopt))};
  GainModel gains = isSame ? m_gains : GainModel();
  gains.decides = false;
  return gains;
}

}  // namespace fuseline::ui
