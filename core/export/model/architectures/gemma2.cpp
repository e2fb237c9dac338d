// Gemma 2: norms before and after each part, limited scores and logits, every other layer with a window.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <utility>
#include <vector>

namespace fuseline::architectures {

namespace {
namespace gemma2_parts {

std::vector<bool> slidingOf(const ModelConfig& config, std::size_t numLayers) {
  if (std::vector<bool> isSliding = slidingLayers(config, numLayers); !isSliding.empty()) return isSliding;
  std::vector<bool> isSliding(numLayers);
  for (std::size_t layer = 0; layer < numLayers; layer += 2) isSliding[layer] = true;
  return isSliding;
}

ModelForm form(const ModelConfig& config) {
  ModelForm form = gemmaForm(config);
  form.attentionSoftcap = config.has("attn_logit_softcapping") ? config.real("attn_logit_softcapping") : 0.0;
  form.logitSoftcap = config.has("final_logit_softcapping") ? config.real("final_logit_softcapping") : 0.0;
  setWindows(config.count("sliding_window", 4096), slidingOf(config, form.layers.size()), form);
  return withLlamaWeights(std::move(form));
}

}  // namespace gemma2_parts
}  // namespace

ModelArchitecture gemma2() {
  using namespace gemma2_parts;
  return {.modelTypes = {"gemma2"}, .form = form};
}

}  // namespace fuseline::architectures
