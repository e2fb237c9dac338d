// fuseline: the product without a window. Exit codes: 0 done, 1 invalid input, 2 usage, 3 no such device,
// 4 the run failed, 5 an expectation was not met.
// SPDX-License-Identifier: Apache-2.0
#include "app/backends.h"
#include "app/cli/terminal.h"
#include "app/cli/verbs.h"
#include "app/cli/visible_stream.h"
#include "app/drawing/layouts.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "core/support/visible_text.h"

#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>
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
  cli::addEditVerb(app, context);
  cli::addSuggestVerb(app, context);
  cli::addDiffVerb(app, context);
  cli::addRunVerb(app, context);
  cli::addSweepVerb(app, context);
  cli::addCompareVerb(app, context);
  cli::addExportVerb(app, context);
  cli::addImportVerb(app, context);
  cli::addDevicesVerb(app, context);
  cli::addBenchVerb(app, context);
  cli::addGuideVerb(app, context);
  cli::addSchemaVerb(app, context);
  cli::addWorkerVerb(app, context);
}

/// A full disk, or a descriptor that is closed. A closed pipe ends the program earlier.
int flushed(std::ostream& out, int exitCode) {
  if (out.flush() || exitCode != 0) return exitCode;
  std::cerr << "fuseline: standard output cannot be written, so the output is incomplete.\n";
  return static_cast<int>(ErrorKind::RunFailed);
}

/// CLI11 says only that there is none.
int refuseVerb(const CLI::App& app, const std::string& name) {
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) verbs.push_back(verb->get_name());
  std::cerr << fmt::format("fuseline {}: there is no such command{} `fuseline --help` lists all.\n", name,
                           didYouMean(nearest(name, verbs)));
  return static_cast<int>(ErrorKind::Usage);
}

/// An argument that CLI11 did not expect after a verb: a misspelt option, or one argument too many.
std::string unexpected(const CLI::App& verb, const std::string& argument) {
  if (!argument.starts_with("-")) return fmt::format("'{}' is one argument too many.", argument);
  const std::string name = argument.substr(0, argument.find('='));
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) names.push_back(option->get_name());
  return fmt::format("there is no option {}{}", name, didYouMean(nearest(name, names)));
}

/// Options before arguments: what follows a misspelt one is most often its value.
std::string sentenceOf(const CLI::App& verb, const CLI::ParseError& problem) {
  const std::vector<std::string> rest = verb.remaining();
  const std::string_view text = problem.what();
  if (problem.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError) || rest.empty())
    return fmt::format("{}{}", text, text.ends_with('.') || text.ends_with('?') ? "" : ".");
  const auto option = std::ranges::find_if(rest, [](const std::string& each) { return each.starts_with("-"); });
  return unexpected(verb, option == rest.end() ? rest.front() : *option);
}

/// Help opens with one sentence and the examples; usage and options follow.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    const std::string sentence = CLI::Formatter::make_description(app);
    return app->get_footer().empty() ? sentence : fmt::format("{}\n{}\n\n", sentence, app->get_footer());
  }
  std::string make_footer(const CLI::App*) const override { return {}; }
};

int runProgram(int argc, char** argv) {
  const bool hasColour = cli::outputHasColour();
  cli::VisibleBuffer outBuffer(*std::cout.rdbuf(), hasColour);
  cli::VisibleBuffer errBuffer(*std::cerr.rdbuf(), hasColour);
  std::ostream out(&outBuffer);
  std::ostream err(&errBuffer);
  err.tie(&out);
  CLI::App app("Design, fuse, run and measure TransformerEngine-style op pipelines.", "fuseline");
  app.set_version_flag("--version", "fuseline " + std::string(version()));
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer("Start with: fuseline new llama-mlp -o mlp.fuseline, then fuseline run mlp.fuseline");
  const std::unique_ptr<BackendRegistry> registry = makeBackendRegistry();
  cli::Context context{.registry = *registry,
                       .out = out,
                       .err = err,
                       .commands = std::cout,
                       .hasColour = hasColour,
                       .layOut = graphLayout()};
  addVerbs(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (const std::vector<std::string> rest = app.remaining(); app.get_subcommands().empty() && !rest.empty())
      return refuseVerb(app, rest.front());
    if (problem.get_exit_code() == 0) return app.exit(problem, std::cout, std::cerr);  // --help, --version
    const std::vector<CLI::App*> verbs = app.get_subcommands();
    const CLI::App& verb = verbs.empty() ? app : *verbs.front();
    const std::string name = verbs.empty() ? "fuseline" : "fuseline " + verb.get_name();
    std::cerr << fmt::format("{0}: {1} `{0} --help` lists its options.\n", name, sentenceOf(verb, problem));
    return static_cast<int>(ErrorKind::Usage);
  }
  return flushed(out, context.exitCode);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return runProgram(argc, argv);
  } catch (const std::exception& problem) {
    std::cerr << "fuseline: " << visibleText(problem.what()) << std::endl;
    return static_cast<int>(ErrorKind::RunFailed);
  }
}
