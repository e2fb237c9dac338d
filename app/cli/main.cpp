// fuseline: the product without a window.
// SPDX-License-Identifier: Apache-2.0
#include "app/backends.h"
#include "app/cli/program.h"
#include "app/cli/verbs.h"
#include "core/export/graphviz/layouts.h"

using namespace fuseline;

namespace {

void addVerbs(CLI::App& app, cli::Context& context) {
  app.require_subcommand(1);
  app.footer("Start with: fuseline new llama-mlp -o mlp.fuseline, then fuseline run mlp.fuseline");
  cli::addNewVerb(app, context);
  cli::addOpsVerb(app, context);
  cli::addRulesVerb(app, context);
  cli::addRecipesVerb(app, context);
  cli::addValidateVerb(app, context);
  cli::addInferVerb(app, context);
  cli::addFuseVerb(app, context);
  cli::addExplainVerb(app, context);
  cli::addEditVerb(app, context);
  cli::addSuggestVerb(app, context);
  cli::addDiffVerb(app, context);
  cli::addRunVerb(app, context);
  cli::addSweepVerb(app, context);
  cli::addCompareVerb(app, context);
  cli::addExportVerb(app, context);
  cli::addImportVerb(app, context);
  cli::addDevicesVerb(app, context);
  cli::addGuideVerb(app, context);
  cli::addSchemaVerb(app, context);
  cli::addWorkerVerb(app, context);
}

}  // namespace

int main(int argc, char** argv) {
  return cli::runProgram({.name = "fuseline",
                          .description = "Design, fuse, run and measure TransformerEngine-style op pipelines.",
                          .declare = addVerbs,
                          .makeRegistry = makeBackendRegistry,
                          .layOut = graphLayout()},
                         argc, argv);
}
