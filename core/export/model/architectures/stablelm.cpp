// StableLM: Llama with LayerNorm, and a quarter of each head turns.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <utility>

namespace fuseline::architectures {

namespace {
namespace stablelm_parts {

ModelForm form(const ModelConfig& config) {
  ModelForm form = llamaForm(config.without({"attention_bias", "mlp_bias", "rms_norm_eps"}));
  form.norm = {.op = "LayerNorm", .eps = config.real("layer_norm_eps", 1e-5)};
  form.hasQkvBias = config.flag("use_qkv_bias", false);
  form.kinds.front().rope = ropeOf(config, form.headDim, {}, 0.25);
  for (const char* key : {"qk_layernorm", "use_parallel_residual"})
    if (config.flag(key, false)) config.refuse(key, "false");
  return withLlamaWeights(std::move(form));
}

}  // namespace stablelm_parts
}  // namespace

ModelArchitecture stablelm() {
  using namespace stablelm_parts;
  return {.modelTypes = {"stablelm"}, .form = form};
}

}  // namespace fuseline::architectures
