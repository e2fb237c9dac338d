// SigLIP: its image encoder, with the head that pools the patches.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/image_text.h"
#include "core/export/model/model_architectures.h"

#include <string>

namespace fuseline::architectures {

namespace {
namespace siglip_vision_parts {

/// Queries are the first rows of PyTorch's packed projection, keys and values the others.
void addPoolingWeights(ModelForm& form) {
  const std::string head = "vision_model.head.";
  form.weights.push_back({.parameter = "probe.weight", .tensors = {head + "probe"}, .shape = {1, 1, form.hidden}});
  const auto addRows = [&](const std::string& id, std::int64_t first) {
    const std::string packed = head + "attention.in_proj_";
    const std::int64_t rows = 3 * form.hidden;
    form.weights.push_back(
        {.parameter = id + ".weight", .tensors = {packed + "weight"}, .shape = {rows, form.hidden}, .first = first});
    form.weights.push_back({.parameter = id + ".bias", .tensors = {packed + "bias"}, .shape = {rows}, .first = first});
  };
  addRows("pool_q", 0);
  addRows("pool_kv", form.hidden);
  addWeights(form, "pool_proj", {head + "attention.out_proj"}, true);
  addWeights(form, "pool_norm", {head + "layernorm"}, true);
  addWeights(form, "pool_fc1", {head + "mlp.fc1"}, true);
  addWeights(form, "pool_fc2", {head + "mlp.fc2"}, true);
}

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
  if (form.image->hasPoolingHead) addPoolingWeights(form);
}

ModelForm form(const ModelConfig& config) {
  ModelForm form;
  readSizes(config.without({"num_key_value_heads", "head_dim"}), form);
  readImage(config, 0, form);
  form.norm = {.op = "LayerNorm", .eps = config.real("layer_norm_eps", 1e-6)};
  form.isCausal = false;
  form.hasQkvBias = form.hasProjectionBias = form.hasMlpBias = true;
  readActivation(config, "hidden_act", "gelu_pytorch_tanh", false, form);
  form.image->hasPoolingHead = config.flag("vision_use_head", true);
  if (form.image->hasPoolingHead) form.notes.emplace_back("The values of probe_ids are not read.");
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
