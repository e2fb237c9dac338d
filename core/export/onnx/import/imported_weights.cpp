// Reads weights, and notes where there are none.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/imported_weights.h"

#include "core/export/onnx/name_list.h"

#include <fmt/format.h>

namespace fuseline {

void addWeights(ImportedPipeline& imported, const Graph& graph, const WeightFinder& source,
                const OnnxImportOptions& options, const FoldedPlaces& places) {
  if (!options.takesWeights) {
    imported.notes.emplace_back("Weights are random, because a pipeline file contains none.");
    return;
  }
  Result<ReadWeights> read = readWeights(graph, source);
  if (!read) {
    imported.weightsProblem = read.error();
    return;
  }
  for (auto& [name, tensor] : read->tensors) imported.weights.emplace_back(places.of(name), std::move(tensor));
  if (!read->missing.empty())
    imported.notes.push_back(
        fmt::format("The model has no values for {}, so runs use random ones.", nameList(places.of(read->missing))));
}

}  // namespace fuseline
