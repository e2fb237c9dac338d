// Diagnostic: one problem of a pipeline, with the place, both actual values, and repairs that can be applied.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/edit.h"

#include <string>
#include <vector>

namespace fuseline {

enum class Severity { Error, Warning, Note };

std::string_view severityName(Severity severity);

/// An edit that would remove the problem, with the text of its button: "Set in_features to 1024".
struct Repair {
  std::string label;
  Edit edit;
};

struct Diagnostic {
  Severity severity = Severity::Error;
  std::string code;     // stable, such as "shape-mismatch", "unknown-op"
  std::string node;     // id of the op, input or output; empty when it concerns the whole file
  std::string port;     // empty when it concerns the whole node
  std::string pointer;  // JSON pointer, "/pipeline/ops/1/attributes/eps"
  int line = 0;         // 1-based; 0 when the document did not come from text
  int column = 0;
  std::string message;  // one sentence with both actual values
  std::vector<Repair> repairs;
  std::vector<std::string> instances;  // where it stands for several instances of a block: the op in each of them
};

bool hasErrors(const std::vector<Diagnostic>& diagnostics);

/// "file.fuseline:12:7: error: ... [unknown-op at /pipeline/ops/1]"
std::string toString(const Diagnostic& diagnostic, std::string_view file);

}  // namespace fuseline
