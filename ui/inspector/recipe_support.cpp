// Asks what the recipes of TransformerEngine need.
// SPDX-License-Identifier: Apache-2.0
#include "ui/inspector/recipe_support.h"

#include "ui/theme/format.h"

namespace fuseline::ui {

QString whyNotOn(const RunTarget& target, const Recipe& recipe) {
  const auto capability = parseCapability(target.architecture);
  if (!target.isGpu() || !capability) return {};
  const Verdict verdict = supports(recipe, *capability);
  return verdict ? QString() : toQt(verdict.reason());
}

}  // namespace fuseline::ui
