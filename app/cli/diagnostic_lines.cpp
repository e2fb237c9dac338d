// Names of the fields are those of the schema.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/diagnostic_lines.h"

#include "core/runtime/pipeline_run.h"

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

Json toJson(const Diagnostic& diagnostic) {
  Json repairs = Json::array();
  for (const Repair& repair : diagnostic.repairs) repairs.push_back(repair.label);
  return {{"severity", severityName(diagnostic.severity)},
          {"code", diagnostic.code},
          {"node", diagnostic.node},
          {"port", diagnostic.port},
          {"pointer", diagnostic.pointer},
          {"line", diagnostic.line},
          {"column", diagnostic.column},
          {"message", diagnostic.message},
          {"repairs", repairs},
          {"instances", diagnostic.instances}};
}

}  // namespace

Json diagnosticsJson(const std::vector<Diagnostic>& diagnostics) {
  Json list = Json::array();
  for (const Diagnostic& diagnostic : diagnostics) list.push_back(toJson(diagnostic));
  return list;
}

Result<void> checkReadable(const LoadedDocument& loaded, const std::string& file, std::string_view done) {
  if (!hasErrors(loaded.diagnostics)) return {};
  return Error{fmt::format("{} cannot be {}: what of it could not be read would be lost.\n{}", file, done,
                           errorText(loaded.diagnostics, file)),
               ErrorKind::InvalidInput};
}

}  // namespace fuseline::cli
