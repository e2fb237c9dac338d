// Choices of a sweep: symbols of a pipeline with suggested sizes, and recipes with the reason if they cannot run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/profile/shape_sweep.h"
#include "ui/session/session.h"

#include <QString>
#include <QStringList>

#include <vector>

namespace fuseline::ui {

struct SweepSymbol {
  QString name;
  /// "128:2048:x2" of 1024; empty where the symbol is an expression.
  QString sizes;
};
/// Those with a size of their own first.
std::vector<SweepSymbol> sweepSymbols(const PipelineDocument& document);

struct SweepRecipe {
  /// As in ShapeSweep::recipes. Empty: that of the pipeline, under whatever name.
  QString key;
  QString label;
  /// A sentence; empty: the device can run it.
  QString whyNot;
};
/// The pipeline's recipe, and all others with their defaults. The pipeline's is one of these if it has the defaults.
std::vector<SweepRecipe> sweepRecipes(const PipelineDocument& document, const RunTarget& target);

/// The pipeline's own recipe alone is no axis: the file decides. A chosen recipe that is not offered is left out.
std::vector<std::string> recipeAxis(const std::vector<SweepRecipe>& offered, const QStringList& chosen,
                                    const PipelineDocument& document);

/// Displayed name of a recipe in a sweep: "No quantization", "The pipeline's".
QString sweepRecipeName(const std::string& recipe);

}  // namespace fuseline::ui
