// Phi-3: Llama with packed projections in its files.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <string>

namespace fuseline::architectures {

namespace {
namespace phi3_parts {

ModelForm form(const ModelConfig& config) {
  ModelForm form = llamaForm(config.without({"attention_bias", "mlp_bias"}));
  setUniformWindow(config, form);
  const std::string layer = "model.layers.{}.";
  addWeights(form, "embed", {"model.embed_tokens"}, false);
  addWeights(form, "layer{}.norm", {layer + "input_layernorm"}, false);
  addWeights(form, "layer{}.qkv", {layer + "self_attn.qkv_proj"}, false);
  addWeights(form, "layer{}.proj", {layer + "self_attn.o_proj"}, false);
  addWeights(form, "layer{}.norm2", {layer + "post_attention_layernorm"}, false);
  addWeights(form, "layer{}.fc1", {layer + "mlp.gate_up_proj"}, false);
  addWeights(form, "layer{}.fc2", {layer + "mlp.down_proj"}, false);
  addWeights(form, "norm", {"model.norm"}, false);
  if (form.head == ModelHead::Linear) addWeights(form, "head", {"lm_head"}, false);
  return form;
}

}  // namespace phi3_parts
}  // namespace

ModelArchitecture phi3() {
  using namespace phi3_parts;
  return {.modelTypes = {"phi3"}, .form = form};
}

}  // namespace fuseline::architectures
