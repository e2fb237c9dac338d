// Problems as annotations of a continuous-integration service, which shows them beside the lines of a change.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/diagnostic.h"

#include <CLI/CLI.hpp>

#include <string>

namespace fuseline::cli {

struct Annotation {
  Severity severity = Severity::Error;
  std::string file;
  int line = 0;  // 1-based; 0: the file as a whole
  int column = 0;
  std::string message;
};

/// "::error file=mlp.fuseline,line=12,col=7::The message.", with a newline. Source of the format: GitHub's workflow
/// commands.
std::string githubAnnotation(const Annotation& annotation);

/// --annotate github: sets `isWanted`. Not with --json, which shares its stream.
void addAnnotateOption(CLI::App& verb, bool& isWanted);

}  // namespace fuseline::cli
