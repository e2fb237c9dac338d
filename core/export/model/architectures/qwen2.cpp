// Qwen2: Llama with a bias of queries, keys and values.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <utility>
#include <vector>

namespace fuseline::architectures {

namespace {

/// A window counts only with use_sliding_window, from layer max_window_layers on.
std::vector<bool> slidingOf(const ModelConfig& config, std::size_t numLayers) {
  config.ignore({"layer_types", "max_window_layers"});
  if (!config.flag("use_sliding_window", false)) return std::vector<bool>(numLayers);
  if (std::vector<bool> isSliding = slidingLayers(config, numLayers); !isSliding.empty()) return isSliding;
  std::vector<bool> isSliding(numLayers);
  const double first = config.real("max_window_layers", 28);
  for (std::size_t layer = 0; layer < numLayers; ++layer) isSliding[layer] = static_cast<double>(layer) >= first;
  return isSliding;
}

ModelForm form(const ModelConfig& config) {
  ModelForm form = llamaForm(config);
  form.hasQkvBias = true;
  form.hasProjectionBias = false;
  setWindows(config.count("sliding_window", 4096), slidingOf(config, form.layers.size()), form);
  return withLlamaWeights(std::move(form));
}

}  // namespace

ModelArchitecture qwen2() { return {.modelTypes = {"qwen2"}, .form = form}; }

}  // namespace fuseline::architectures
