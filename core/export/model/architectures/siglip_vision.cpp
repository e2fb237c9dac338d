// SigLIP: its image encoder, up to the last norm.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/image_text.h"
#include "core/export/model/model_architectures.h"

#include <string>

namespace fuseline::architectures {

namespace {
namespace siglip_vision_parts {

void addSiglipWeights(const ModelConfig& config, ModelForm& form) {
  const std::string embeddings = "vision_model.embeddings.";
  addPatchWeights(config,
                  {.convolution = embeddings + "patch_embedding",
                   .positions = embeddings + "position_embedding.weight",
                   .positionShape = {form.tokens, form.hidden}},
                  form);
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
  readSizes(config.without({"num_key_value_heads", "head_dim"}), form);
  readImage(config, 0, form);
  form.norm = {.op = "LayerNorm", .eps = config.real("layer_norm_eps", 1e-6)};
  form.isCausal = false;
  form.hasQkvBias = form.hasProjectionBias = form.hasMlpBias = true;
  readActivation(config, "hidden_act", "gelu_pytorch_tanh", false, form);
  if (config.flag("vision_use_head", true))
    form.notes.emplace_back("The pipeline ends with the last norm, without the pooling head.");
  addSiglipWeights(config, form);
  return form;
}

}  // namespace siglip_vision_parts
}  // namespace

ModelArchitecture siglip_vision() {
  using namespace siglip_vision_parts;
  return {.modelTypes = {"siglip_vision_model"}, .form = form};
}

}  // namespace fuseline::architectures
