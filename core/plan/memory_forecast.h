// MemoryForecast: a plan's memory by layer, and what recipes, offloading and recomputation would change.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"
#include "core/support/json.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fuseline {

/// Bytes of an instance of a block, or of an op outside of blocks.
struct LayerMemory {
  std::string layer;  // "layer0"
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;  // of parameters, and the buffers that they are added to
  /// By forward for the backward of this layer's ops. A tensor that ops of several layers read counts for the first.
  std::int64_t kept = 0;
  /// AdamW's two moments in float32, and a float32 copy of parameters of 16 bits; allocated only if the plan has an
  /// optimizer.
  std::int64_t optimizer = 0;
};

/// The whole plan, as it is or changed.
struct MemoryChange {
  std::string name;  // "DelayedScaling"
  LayerMemory sum;
  std::int64_t onHost = 0;
  std::int64_t allocated = 0;  // Plan::peakBytes()
  bool isEstimate = false;     // not planned
  std::string problem = {};    // the pipeline cannot be planned like this
};

struct MemoryForecast {
  std::vector<LayerMemory> layers;  // in the order of the ops
  /// As planned first.
  std::vector<MemoryChange> changes;
};

/// Plans the document anew for each change. Precondition: the analysis of this document, with these options, is
/// runnable.
MemoryForecast memoryForecast(const PipelineDocument& document, const AnalysisOptions& options,
                              const Analysis& analysis);

/// Equal neighbors in one: "layer0 to layer31, each".
std::vector<LayerMemory> groupedLayers(const std::vector<LayerMemory>& layers);

/// Two tables: by layer, with equal neighbors in one line, and by change.
std::string toString(const MemoryForecast& forecast);
Json toJson(const MemoryForecast& forecast);
Json memoryForecastSchema();

}  // namespace fuseline
