// Names of the fields are those of the schema.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/diagnostic_lines.h"

#include "core/runtime/pipeline_run.h"
#include "core/support/field_table.h"

#include <fmt/format.h>

namespace fuseline {

static const FieldTable<Diagnostic>& fieldsOf(const Diagnostic*) {
  const auto repairs = [](const Diagnostic& diagnostic) {
    std::vector<std::string> labels;
    for (const Repair& repair : diagnostic.repairs) labels.push_back(repair.label);
    return labels;
  };
  static const FieldTable<Diagnostic> table(
      {derived<Diagnostic>("severity", [](const Diagnostic& each) { return severityName(each.severity); })
           .oneOf({"error", "warning", "note"}),
       field("code", &Diagnostic::code, "Problem code; it does not change between versions."),
       field("node", &Diagnostic::node, "Op, input or output; empty: the file as a whole."),
       field("port", &Diagnostic::port, "Port of the node; empty: the whole node."),
       field("pointer", &Diagnostic::pointer, "JSON pointer to the place in the file."),
       field("line", &Diagnostic::line, "Counted from 1; 0: unknown."),
       field("column", &Diagnostic::column, "Counted from 1; 0: unknown."),
       field("message", &Diagnostic::message, "One sentence with the value found and the value expected."),
       derived<Diagnostic>("repairs", repairs),
       field("instances", &Diagnostic::instances,
             "The op in each instance, if the problem is in several instances of a block; else empty.")});
  return table;
}

}  // namespace fuseline

namespace fuseline::cli {

Json diagnosticsJson(const std::vector<Diagnostic>& diagnostics) { return fieldJson(diagnostics); }

Json diagnosticsSchema() { return fieldSchema<std::vector<Diagnostic>>(); }

Result<void> checkReadable(const LoadedDocument& loaded, const std::string& file, std::string_view done) {
  if (!hasErrors(loaded.diagnostics)) return {};
  return Error{fmt::format("{} cannot be {}: the parts that could not be read would be lost.\n{}", file, done,
                           errorText(loaded.diagnostics, file)),
               ErrorKind::InvalidInput};
}

}  // namespace fuseline::cli
