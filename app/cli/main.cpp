// fuseline: the product without a window. Exit codes: 0 done, 1 invalid input, 2 usage, 3 no such device,
// 4 the run failed, 5 an expectation was not met.
// SPDX-License-Identifier: Apache-2.0
#include "app/backends.h"
#include "app/cli/terminal.h"
#include "app/cli/verbs.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>

using namespace fuseline;

namespace {

void addVerbs(CLI::App& app, cli::Context& context) {
  cli::addNewVerb(app, context);
  cli::addOpsVerb(app, context);
  cli::addRulesVerb(app, context);
  cli::addRecipesVerb(app, context);
  cli::addValidateVerb(app, context);
  cli::addInferVerb(app, context);
  cli::addFuseVerb(app, context);
  cli::addExplainVerb(app, context);
  cli::addRunVerb(app, context);
  cli::addCompareVerb(app, context);
  cli::addExportVerb(app, context);
  cli::addDevicesVerb(app, context);
  cli::addBenchVerb(app, context);
  cli::addSchemaVerb(app, context);
  cli::addWorkerVerb(app, context);
}

/// CLI11 says only that there is none.
int refuseVerb(const CLI::App& app, const std::string& name) {
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) verbs.push_back(verb->get_name());
  const std::string near = nearest(name, verbs);
  std::cerr << fmt::format("fuseline {}: there is no such command{} `fuseline --help` lists them.\n", name,
                           near.empty() ? "." : fmt::format("; did you mean {}?", near));
  return static_cast<int>(ErrorKind::Usage);
}

int runProgram(int argc, char** argv) {
  CLI::App app("Design, fuse, run and measure TransformerEngine-style op pipelines.", "fuseline");
  app.set_version_flag("--version", "fuseline " + std::string(version()));
  app.require_subcommand(1);
  app.footer("Start with: fuseline new llama-mlp -o mlp.fuseline, then fuseline run mlp.fuseline");
  const std::unique_ptr<BackendRegistry> registry = makeBackendRegistry();
  cli::Context context{.registry = *registry, .out = std::cout, .err = std::cerr, .hasColour = cli::outputHasColour()};
  addVerbs(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (const std::vector<std::string> rest = app.remaining(); app.get_subcommands().empty() && !rest.empty())
      return refuseVerb(app, rest.front());
    const int code = app.exit(problem, std::cout, std::cerr);
    return code == 0 ? 0 : static_cast<int>(ErrorKind::Usage);
  }
  return context.exitCode;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return runProgram(argc, argv);
  } catch (const std::exception& problem) {
    std::cerr << "fuseline: " << problem.what() << std::endl;
    return static_cast<int>(ErrorKind::RunFailed);
  }
}
