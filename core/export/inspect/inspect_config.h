// Writes the configuration of nvidia-dlfw-inspect for the linear layers of a graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/inspect/inspected_layers.h"
#include "core/profile/run_record.h"

#include <string>
#include <vector>

namespace fuseline {

struct InspectSource {
  std::string name;  // of the pipeline
  const Graph& graph;
  const Recipe& recipe;  // that gave the graph its quantizers
  /// Whose figures choose the layers that are logged, and stand in comments; nullptr: all are logged.
  const RunRecord* run = nullptr;
};

struct InspectConfig {
  std::string text;  // YAML
  /// Where TransformerEngine will do something else than Fuseline, in sentences. The text has them, too.
  std::vector<std::string> notes;
};

/// A section for each kind of layer: what stays in high precision, and which statistics are logged, and when. No layer
/// is in two sections, which the tool refuses.
/// Errors: the graph has no linear layer; the run does not say what its tensors lost.
Result<InspectConfig> inspectConfig(const InspectSource& source);

}  // namespace fuseline
