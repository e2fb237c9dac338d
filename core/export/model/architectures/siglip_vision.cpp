// SigLIP: the layers of its image encoder, from the embedded patches to the last norm.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <string>

namespace fuseline::architectures {

namespace {

void addSiglipWeights(ModelForm& form) {
  const std::string layer = "vision_model.encoder.layers.{}.";
  const std::string attention = layer + "self_attn.";
  addWeights(form, "layer{}.norm", {layer + "layer_norm1"}, true);
  addWeights(form, "layer{}.qkv", {attention + "q_proj", attention + "k_proj", attention + "v_proj"}, true);
  addWeights(form, "layer{}.proj", {attention + "out_proj"}, true);
  addWeights(form, "layer{}.norm2", {layer + "layer_norm2"}, true);
  addWeights(form, "layer{}.fc1", {layer + "mlp.fc1"}, true);
  addWeights(form, "layer{}.fc2", {layer + "mlp.fc2"}, true);
  addWeights(form, "norm", {"vision_model.post_layernorm"}, true);
}

ModelForm form(const ModelConfig& config) {
  ModelForm form;
  readSizes(config, form);
  const std::int64_t side = config.count("image_size", 224) / config.count("patch_size", 16);
  form.tokens = side * side;
  form.norm = {.op = "LayerNorm", .eps = config.real("layer_norm_eps", 1e-6)};
  form.isCausal = false;
  form.hasQkvBias = form.hasProjectionBias = form.hasMlpBias = true;
  readActivation(config, "hidden_act", "gelu_pytorch_tanh", false, form);
  form.head = ModelHead::None;
  config.ignore({"num_channels", "vision_use_head"});
  form.notes.emplace_back(
      "The pipeline begins with the embedded patches and ends with the last norm, without patch embedding and pooling "
      "head.");
  addSiglipWeights(form);
  return form;
}

}  // namespace

ModelArchitecture siglip_vision() { return {.modelTypes = {"siglip_vision_model"}, .form = form}; }

}  // namespace fuseline::architectures
