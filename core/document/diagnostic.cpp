// Text of diagnostics.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/diagnostic.h"

#include "core/support/visible_text.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

std::string_view severityName(Severity severity) {
  switch (severity) {
    case Severity::Error: return "error";
    case Severity::Warning: return "warning";
    case Severity::Note: return "note";
  }
  return "?";
}

bool hasErrors(const std::vector<Diagnostic>& diagnostics) {
  return std::ranges::any_of(diagnostics, [](const Diagnostic& d) { return d.severity == Severity::Error; });
}

std::string toString(const Diagnostic& diagnostic, std::string_view file) {
  std::string text(file);
  if (diagnostic.line > 0) text += fmt::format(":{}:{}", diagnostic.line, diagnostic.column);
  if (!text.empty()) text += ": ";
  text +=
      fmt::format("{}: {} [{}", severityName(diagnostic.severity), visibleText(diagnostic.message), diagnostic.code);
  if (!diagnostic.pointer.empty()) text += " at " + visibleText(diagnostic.pointer);
  return text + "]";
}

}  // namespace fuseline
