// Program: the frame of a program of the command line: its streams, exit codes, and sentences for wrong arguments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/context.h"

namespace fuseline::cli {

struct Program {
  std::string name;
  std::string description;
  /// Declares all options, and the verbs of a program that has some.
  void (*declare)(CLI::App& app, Context& context);
  std::unique_ptr<BackendRegistry> (*makeRegistry)();
  LayOutGraph layOut = nullptr;
};

/// Parses the arguments, which runs what they name. Exit codes: 0 done, 1 invalid input, 2 usage, 3 no such device, 4
/// the run failed, 5 an expectation was not met.
int runProgram(const Program& program, int argc, char** argv);

}  // namespace fuseline::cli
