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
  const Recipe& recipe;  // assigned the quantizers of the graph
  /// Its figures choose the logged layers, and are written in comments; nullptr: all layers are logged.
  const RunRecord* run = nullptr;
};

struct InspectConfig {
  std::string text;  // YAML
  /// Where TransformerEngine will do something else than Fuseline, in sentences. The text has them, too.
  std::vector<std::string> notes;
};

/// A section for each kind of layer: the GEMMs in high precision, the logged statistics, and their frequency. No layer
/// is in two sections, which the tool refuses.
/// Errors: the graph has no linear layer; the run does not contain losses.
Result<InspectConfig> inspectConfig(const InspectSource& source);

}  // namespace fuseline
