// --on HOST: the verb runs on another machine, with this call's options; files are read and written here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/context.h"
#include "app/cli/output_file.h"

#include <string>

namespace fuseline::cli {

struct OnOption {
  std::string host;
  const CLI::App* verb = nullptr;  // whose options are repeated there

  bool isGiven() const { return !host.empty(); }
};

void addOnOption(CLI::App& verb, OnOption& option, const std::string& help);

/// One call of a verb.
struct CallThere {
  VerbFiles files = {};   // of its options; the other machine has files of other names
  bool replaces = false;  // the files written
  bool isQuiet = false;
};

/// Returns the exit code of the verb there; its output and its messages were printed.
/// Errors: the connection, the copy of the program, or a file here, as a sentence.
Result<int> callThere(const OnOption& on, const CallThere& call, Context& context);

}  // namespace fuseline::cli
