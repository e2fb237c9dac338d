// The linear layers of a graph as TransformerEngine's debug tool sees them: by module, GEMM and tensor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/profile/numerics.h"
#include "core/quant/recipe.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

/// "activation", "weight", "gradient": the tool's names of a layer's tensors.
std::string_view inspectName(TensorType tensor);

struct InspectedLayer {
  std::string node;        // its id in the graph: "fc1.linear"
  std::string module;      // the name of its module: "fc1", "layer1.fc1"
  bool isGrouped = false;  // the tool calls its GEMMs MODULE.gemm_0, MODULE.gemm_1 ...
  /// GEMMs that the recipe would quantize, and that an override, or the shape, leaves in high precision.
  std::vector<GemmRole> kept;
  bool isUnfit = false;             // it is the shape
  std::vector<TensorType> tensors;  // those that there are in this pass
  /// Of these the ones that are quantized for both GEMMs that read them in training.
  std::vector<TensorType> quantized;

  bool isWhollyKept() const { return kept.size() == 3; }
};

/// In the order of the graph. recipe: the one that gave the nodes their quantizers.
std::vector<InspectedLayer> inspectedLayers(const Graph& graph, const Recipe& recipe);

/// Losses of a layer's tensors: for each the direction with the most noise. None for tensors that were not quantized.
struct LayerLosses {
  std::vector<std::pair<TensorType, CopyLosses>> worst;

  /// In dB, of the worst tensor; infinite: no loss.
  double signalToNoise() const;
};
LayerLosses lossesOf(const InspectedLayer& layer, std::span<const CopyLosses> copies);

}  // namespace fuseline
