// Gemma 3: as Gemma 2, but queries and keys are normalized, and layers with a window turn by another base.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <utility>
#include <vector>

namespace fuseline::architectures {

namespace {
namespace gemma3_parts {

/// Every pattern-th layer sees all keys.
std::vector<bool> slidingOf(const ModelConfig& config, std::size_t numLayers) {
  config.ignore({"sliding_window_pattern", "_sliding_window_pattern"});
  if (std::vector<bool> isSliding = slidingLayers(config, numLayers); !isSliding.empty()) return isSliding;
  const auto pattern = static_cast<std::size_t>(config.count("sliding_window_pattern", 6));
  std::vector<bool> isSliding(numLayers);
  for (std::size_t layer = 0; layer < numLayers; ++layer) isSliding[layer] = (layer + 1) % pattern != 0;
  return isSliding;
}

/// Older files have the base of layers with a window as a key of its own, and no scaling for these.
Json slidingRope(const ModelConfig& config, std::int64_t headDim) {
  if (config.has("rope_parameters")) return ropeOf(config, headDim, "sliding_attention");
  return {{"dim", "D"}, {"tensor_format", "bshd"}, {"rotary_base", config.real("rope_local_base_freq", 10000.0)}};
}

ModelForm form(const ModelConfig& config) {
  ModelForm form = gemmaForm(config);
  form.hasQkNorm = true;
  config.ignore({"attn_logit_softcapping", "final_logit_softcapping"});
  form.kinds.front().rope = config.has("rope_parameters") ? ropeOf(config, form.headDim, "full_attention")
                                                          : ropeOf(config, form.headDim, {}, 1.0);
  if (!config.has("rope_parameters") && !config.has("rope_theta")) form.kinds.front().rope["rotary_base"] = 1000000.0;
  const std::vector<bool> isSliding = slidingOf(config, form.layers.size());
  setWindows(config.count("sliding_window", 4096), isSliding, form);
  if (form.kinds.back().window) form.kinds.back().rope = slidingRope(config, form.headDim);
  return withLlamaWeights(std::move(form));
}

}  // namespace gemma3_parts
}  // namespace

ModelArchitecture gemma3() {
  using namespace gemma3_parts;
  return {.modelTypes = {"gemma3_text", "gemma3"}, .form = form};
}

}  // namespace fuseline::architectures
