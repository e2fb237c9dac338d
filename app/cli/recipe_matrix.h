// `fuseline run --recipe all`, or a list: one pipeline under several recipes, in one table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/context.h"
#include "core/document/file_format.h"
#include "core/quant/recipe.h"
#include "core/runtime/pipeline_run.h"

#include <stop_token>
#include <string>
#include <vector>

namespace fuseline::cli {

struct MatrixRequest {
  const LoadedDocument& loaded;
  std::string pipelineName;
  PipelineRunOptions options;  // the recipe is each in turn
  std::vector<const RecipeDefinition*> recipes;
  bool wantsNumerics = true;
  bool asJson = false;
  bool isQuiet = false;
};

/// Runs all of them interleaved, and prints. Errors: no recipe can run.
Result<int> runRecipes(const MatrixRequest& request, Context& context, const std::stop_token& cancel);

/// Schema of its JSON.
Json matrixSchema();

}  // namespace fuseline::cli
