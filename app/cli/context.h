// Context of every verb: the devices, the streams, and where the exit code goes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/drawing/graph_layout.h"
#include "core/runtime/backend.h"
#include "core/support/json.h"
#include "core/support/result.h"
#include "core/support/text.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline::cli {

/// Data goes to `out`, everything else to `err`; neither passes on what would steer a terminal or a service. `commands`
/// is standard output as it is, for lines that a service is to obey.
struct Context {
  const BackendRegistry& registry;
  std::ostream& out;
  std::ostream& err;
  std::ostream& commands;
  bool hasColour = false;
  int exitCode = 0;
  LayOutGraph layOut = nullptr;
  /// Every verb, in the order of the help, with what describes its --json.
  std::vector<std::pair<std::string, Json (*)()>> schemas = {};
};

/// Examples of a verb, one call a line, for the beginning of its help.
std::string examplesOf(const std::string& verb);

/// Keeps the exit code, or that of an error, whose sentence it prints after the name of the program.
void finish(const Result<int>& code, const std::string& program, Context& context);

/// Declares a verb whose options live in an Options, and what it does. `run` returns the exit code, `schema` describes
/// what it prints with --json.
template <class Options>
CLI::App* addVerb(CLI::App& app, Context& context, const std::string& name, const std::string& help,
                  const std::shared_ptr<Options>& options, Result<int> (*run)(const Options&, Context&),
                  Json (*schema)()) {
  CLI::App* verb = app.add_subcommand(name, help);
  verb->footer(examplesOf(name));
  context.schemas.emplace_back(name, schema);
  verb->callback([&context, options, run] { finish(run(*options, context), "fuseline", context); });
  return verb;
}

/// Two-space indent and a newline. Bytes that are not UTF-8 are replaced.
inline void printJson(Context& context, const Json& json) {
  context.out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

/// `ops RMSNrom`: "there is no such op; did you mean RMSNorm?" (Usage).
inline Error unknownName(const std::string& verb, const std::string& noun, const std::string& name,
                         const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  const std::string hint = near.empty() ? "." : fmt::format("; did you mean {}?", near);
  return {fmt::format("{} {}: there is no such {}{} `fuseline {}` lists all.", verb, name, noun, hint, verb),
          ErrorKind::Usage};
}

}  // namespace fuseline::cli
