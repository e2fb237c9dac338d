// CLI11 says little of an argument that it does not expect; the sentences are made here.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/program.h"

#include "app/cli/terminal.h"
#include "app/cli/visible_stream.h"
#include "core/support/version.h"
#include "core/support/visible_text.h"

#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline::cli {

namespace {

/// A full disk, or a descriptor that is closed. A closed pipe ends the program earlier.
int flushed(std::ostream& out, const std::string& program, int exitCode) {
  if (out.flush() || exitCode != 0) return exitCode;
  std::cerr << program << ": standard output cannot be written, so the output is incomplete.\n";
  return static_cast<int>(ErrorKind::RunFailed);
}

/// Benchmarks were a verb once.
std::string hintFor(const CLI::App& app, const std::string& name) {
  if (name == "bench")
    return ": benchmarks are a separate program; `cmake --build BUILD --target fuseline-bench` builds it.";
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) verbs.push_back(verb->get_name());
  return fmt::format(": there is no such command{} `{} --help` lists all.", didYouMean(nearest(name, verbs)),
                     app.get_name());
}

/// An argument that CLI11 did not expect: a misspelt option, or one argument too many.
std::string unexpected(const CLI::App& verb, const std::string& argument) {
  if (!argument.starts_with("-")) return fmt::format("'{}' is one argument too many.", argument);
  const std::string name = argument.substr(0, argument.find('='));
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) names.push_back(option->get_name());
  return fmt::format("there is no option {}{}", name, didYouMean(nearest(name, names)));
}

/// CLI11's sentence about the value of an option, or about two options, with what was found and what is expected.
std::string reworded(const std::string& text) {
  const auto parts = [&](const char* between) -> std::optional<std::pair<std::string, std::string>> {
    const std::size_t at = text.rfind(between);
    if (at == std::string::npos) return std::nullopt;
    return std::pair(text.substr(0, at), text.substr(at + std::string_view(between).size()));
  };
  const std::size_t colon = text.find(": ");
  const std::string option = text.substr(0, colon);
  if (const auto names = parts(" not in {"); names && colon < names->first.size()) {
    std::string choices;
    for (const char each : names->second.substr(0, names->second.size() - 1))
      choices += each == ',' ? std::string(", ") : std::string(1, each);
    return fmt::format("{}: expected one of {}; found {}", option, choices, names->first.substr(colon + 2));
  }
  if (const auto counts = parts(" required but received "))
    return fmt::format("{}: expected one value, found {}", option, counts->second);
  if (const auto type = parts(" required "); type && type->second.ends_with(" missing"))
    return fmt::format("{}: expected a value, {}", option, type->second.substr(0, type->second.size() - 8));
  if (const auto both = parts(" excludes "))
    return fmt::format("{} and {} exclude each other. Remove one of them", both->first, both->second);
  if (const auto both = parts(" requires ")) return fmt::format("{} needs {}", both->first, both->second);
  return text;
}

/// Options before arguments: what follows a misspelt one is most often its value.
std::string sentenceOf(const CLI::App& verb, const CLI::ParseError& problem) {
  const std::vector<std::string> rest = verb.remaining();
  const std::string text = reworded(problem.what());
  if (problem.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError) || rest.empty())
    return fmt::format("{}{}", text, text.ends_with('.') || text.ends_with('?') ? "" : ".");
  const auto option = std::ranges::find_if(rest, [](const std::string& each) { return each.starts_with("-"); });
  return unexpected(verb, option == rest.end() ? rest.front() : *option);
}

/// Exit code of arguments that CLI11 refuses, or that ask for help or the version.
int refuse(const CLI::App& app, const CLI::ParseError& problem) {
  if (problem.get_exit_code() == 0) return app.exit(problem, std::cout, std::cerr);
  const std::vector<CLI::App*> verbs = app.get_subcommands();
  const CLI::App& verb = verbs.empty() ? app : *verbs.front();
  const std::string name = verbs.empty() ? app.get_name() : app.get_name() + " " + verb.get_name();
  std::cerr << fmt::format("{0}: {1} `{0} --help` lists its options.\n", name, sentenceOf(verb, problem));
  return static_cast<int>(ErrorKind::Usage);
}

/// Is the first argument that nobody expected a verb that there is not? What follows it may be one that there is.
bool isOfVerb(const CLI::App& app) {
  const std::vector<std::string> rest = app.remaining();
  if (app.get_require_subcommand_min() == 0 || rest.empty()) return false;
  return app.get_subcommands().empty() || !rest.front().starts_with("-");
}

/// Help opens with one sentence and the examples; usage and options follow.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    const std::string sentence = CLI::Formatter::make_description(app);
    return app->get_footer().empty() ? sentence : fmt::format("{}\n{}\n\n", sentence, app->get_footer());
  }
  std::string make_footer(const CLI::App*) const override { return {}; }
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string text = CLI::Formatter::make_option_opts(option);
    return text.substr(0, std::min(text.find(" Needs:"), text.find(" Excludes:")));
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return CLI::Formatter::make_option_desc(option) + others(" (needs {})", option->get_needs()) +
           others(" (excludes {})", option->get_excludes());
  }

 private:
  static std::string others(const char* format, const std::set<CLI::Option*>& options) {
    std::vector<std::string> names;
    for (const CLI::Option* option : options) names.push_back(option->get_name());
    std::ranges::sort(names);
    return names.empty() ? std::string() : fmt::format(fmt::runtime(format), fmt::join(names, ", "));
  }
};

int refuseVerb(const CLI::App& app, const std::string& name) {
  std::cerr << app.get_name() << " " << name << hintFor(app, name) << "\n";
  return static_cast<int>(ErrorKind::Usage);
}

int parsed(const Program& program, int argc, char** argv) {
  const bool hasColour = outputHasColour();
  VisibleBuffer outBuffer(*std::cout.rdbuf(), hasColour);
  VisibleBuffer errBuffer(*std::cerr.rdbuf(), hasColour);
  std::ostream out(&outBuffer);
  std::ostream err(&errBuffer);
  err.tie(&out);
  CLI::App app(program.description, program.name);
  app.set_version_flag("--version", program.name + " " + std::string(version()));
  app.formatter(std::make_shared<HelpFormatter>());
  const std::unique_ptr<BackendRegistry> registry = program.makeRegistry();
  Context context{.registry = *registry,
                  .out = out,
                  .err = err,
                  .commands = std::cout,
                  .hasColour = hasColour,
                  .layOut = program.layOut};
  program.declare(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return isOfVerb(app) ? refuseVerb(app, app.remaining().front()) : refuse(app, problem);
  }
  return flushed(out, program.name, context.exitCode);
}

}  // namespace

int runProgram(const Program& program, int argc, char** argv) {
  try {
    return parsed(program, argc, argv);
  } catch (const std::exception& problem) {
    std::cerr << program.name << ": " << visibleText(problem.what()) << std::endl;
    return static_cast<int>(ErrorKind::RunFailed);
  }
}

void finish(const Result<int>& code, const std::string& program, Context& context) {
  context.exitCode = code ? *code : static_cast<int>(code.error().kind);
  if (!code) context.err << program << ": " << code.error().message << std::endl;
}

}  // namespace fuseline::cli
