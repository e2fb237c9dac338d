// Layers that FP8 is not predicted to make faster.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/diagnostic.h"
#include "core/graph/graph.h"
#include "core/quant/recipe.h"

#include <optional>

namespace fuseline {

/// Code of the note from noteSmallLayers().
inline constexpr const char* kSmallLayersCode = "recipe-small";

/// Compute capability of the GPU of these estimates.
inline constexpr ComputeCapability kEstimatedCapability{9, 0};

/// Gain from FP8 for one linear layer in one step, by the data sheet of an H200 and 3 us for the smallest launch: an
/// estimate, not a measurement.
struct Fp8Estimate {
  double savedUs = 0.0;     // by GEMMs at twice the rate
  double quantizeUs = 0.0;  // for reading the tensors in 2 bytes per element and writing the quantized tensors
};

/// For y[M, N] = x[M, K] w[N, K]^T in 16 bits. Training has three GEMMs, and every tensor is quantized in two
/// directions.
Fp8Estimate estimateFp8(std::int64_t m, std::int64_t n, std::int64_t k, bool isTraining);

/// Time saved by 8-bit GEMMs in all quantized layers with formats that an H200 supports, minus the time of
/// quantization, in microseconds per step: an estimate, as above.
double estimateFp8(const Graph& graph);

/// A note that names the quantized layers for which quantizing takes longer than the GEMMs save; nothing if there are
/// none, or if the formats need another GPU than the one of the estimate.
std::optional<Diagnostic> noteSmallLayers(const Graph& graph, const Recipe& recipe);

}  // namespace fuseline
