// Writes the commands that GitHub's runner reads from standard output.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/annotations.h"

#include "core/support/visible_text.h"

#include <string_view>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

const char* commandOf(Severity severity) {
  switch (severity) {
    case Severity::Error: return "error";
    case Severity::Warning: return "warning";
    case Severity::Note: return "notice";
  }
  return "";
}

/// As percent codes: what would end the text, and the percent sign itself.
std::string escaped(std::string_view text, std::string_view ends) {
  std::string result;
  for (const char c : text)
    result += ends.find(c) == std::string_view::npos ? std::string(1, c) : fmt::format("%{:02X}", c);
  return result;
}

}  // namespace

std::string githubAnnotation(const Annotation& annotation) {
  std::string place = "file=" + escaped(annotation.file, "%\r\n:,");
  if (annotation.line > 0) place += fmt::format(",line={},col={}", annotation.line, annotation.column);
  const std::string message = escaped(annotation.message, "%\r\n");
  return fmt::format("::{} {}::{}\n", commandOf(annotation.severity), visibleText(place), visibleText(message));
}

void addAnnotateOption(CLI::App& verb, bool& isWanted) {
  verb.add_option_function<std::string>(
          "--annotate", [&isWanted](const std::string&) { isWanted = true; },
          "Print findings as annotations of a pull request for this service: github")
      ->type_name("SERVICE")
      ->check(CLI::IsMember({"github"}))
      ->excludes(verb.get_option("--json"));
}

}  // namespace fuseline::cli
