// Lowering: from a document to a graph, with every problem as a diagnostic.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/diagnostic.h"
#include "core/document/document.h"
#include "core/document/file_format.h"
#include "core/graph/graph.h"
#include "core/ops/catalog.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fuseline {

/// Codes of diagnostics that others look for: a note for every op that is bypassed, an error for one that cannot be.
inline constexpr const char* kBypassedCode = "bypassed";
inline constexpr const char* kBypassRefusedCode = "bypass";

struct LoweringOptions {
  ExecutionMode pass = ExecutionMode::Training;
  /// `--set SYMBOL=VALUE`: replaces the document's value.
  std::map<std::string, std::int64_t> symbols;
  const OperationCatalog* catalog = nullptr;  // nullptr: builtinOperations()
  /// Updates the parameters at the end of a training pass.
  std::optional<AdamW> optimizer = std::nullopt;
};

struct LoweredGraph {
  /// Everything that could be inferred. Complete exactly if `diagnostics` has no error.
  Graph graph;
  std::vector<Diagnostic> diagnostics;
};

/// Finds, among others: unknown ops, attributes and ports, duplicate ids, missing or wrong attributes, bad
/// expressions, integer overflow, unconnected inputs, two wires into one input, cycles, shapes that do not fit.
/// With a source map the diagnostics carry line and column.
LoweredGraph lower(const PipelineDocument& document, const LoweringOptions& options = {},
                   const SourceMap* sourceMap = nullptr);

}  // namespace fuseline
