// Runs a pipeline to determine the effects of its number formats.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"
#include "core/profile/numerics.h"
#include "core/runtime/backend.h"
#include "core/tensor/tensor.h"

#include <memory>
#include <stop_token>
#include <string>

namespace fuseline {

struct NumericsRequest {
  std::shared_ptr<Backend> backend;
  const Graph& graph;         // with its quantizers
  const FusionReport& fused;  // of this graph
  /// Of the graph.
  const NamedTensors& bindings;
  std::string recipe;
  /// Steps before the one that is looked at, so that delayed scales have settled.
  int warmup = 0;
  std::stop_token cancel = {};
};

/// Runs the pipeline in float32, and in its own formats, unfused and fused, keeping every tensor.
/// Errors: those of a run; it was canceled.
Result<NumericsReport> measureNumerics(const NumericsRequest& request);

}  // namespace fuseline
