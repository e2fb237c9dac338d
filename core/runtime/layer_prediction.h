// LayerPrediction: the time of a step of a whole model, from a run that has each kind of its layers once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/profile/run_record.h"
#include "core/runtime/rank_prediction.h"
#include "core/support/json.h"
#include "core/support/result.h"

#include <string>
#include <vector>

namespace fuseline {

/// Instances of a block of which one is measured.
struct RepeatedLayer {
  std::string layer;  // "layer0", the first one
  std::string block;
  int count = 1;
};

struct ShortenedModel {
  PipelineDocument document;
  std::vector<RepeatedLayer> layers;
};

/// The first instance of each block; the others, with one input and one output each, are left out of the chain.
/// Errors (Usage): no block has several such instances.
Result<ShortenedModel> withLayersOnce(const PipelineDocument& document);

struct LayerPrediction {
  struct Part {
    RepeatedLayer layer;  // an empty name: all that is outside of them
    double ns = 0.0;      // measured: the sum of its steps' medians
    TimeRange range;      // with the sums of their quartiles
  };
  std::string variant;
  std::vector<Part> parts;

  double totalNs() const;
  TimeRange total() const;
};

/// One a variant. A step that is fused over the end of a layer counts for the layer of its first op.
std::vector<LayerPrediction> predict(const RunRecord& record, const std::vector<RepeatedLayer>& layers);

std::string toString(const std::vector<LayerPrediction>& predictions);
Json toJson(const std::vector<LayerPrediction>& predictions);
Json layerPredictionSchema();

}  // namespace fuseline
