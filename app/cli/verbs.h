// The verbs of the command line, one file each. Names and options: the headless contract.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/context.h"

namespace fuseline::cli {

void addNewVerb(CLI::App& app, Context& context);
void addOpsVerb(CLI::App& app, Context& context);
void addRulesVerb(CLI::App& app, Context& context);
void addRecipesVerb(CLI::App& app, Context& context);
void addValidateVerb(CLI::App& app, Context& context);
void addInferVerb(CLI::App& app, Context& context);
void addFuseVerb(CLI::App& app, Context& context);
void addExplainVerb(CLI::App& app, Context& context);
void addEditVerb(CLI::App& app, Context& context);
void addSuggestVerb(CLI::App& app, Context& context);
void addDiffVerb(CLI::App& app, Context& context);
void addRunVerb(CLI::App& app, Context& context);
void addSweepVerb(CLI::App& app, Context& context);
void addCompareVerb(CLI::App& app, Context& context);
void addExportVerb(CLI::App& app, Context& context);
void addImportVerb(CLI::App& app, Context& context);
void addDevicesVerb(CLI::App& app, Context& context);
void addGuideVerb(CLI::App& app, Context& context);
void addSchemaVerb(CLI::App& app, Context& context);
void addWorkerVerb(CLI::App& app, Context& context);

}  // namespace fuseline::cli
