// GPT-NeoX: attention and MLP side by side, a quarter of each head turns, packed projections head by head.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <string>

namespace fuseline::architectures {

namespace {
namespace gpt_neox_parts {

using Order = WeightSource::Order;

void addNeoxWeights(ModelForm& form) {
  const std::string layer = "gpt_neox.layers.{}.";
  addWeights(form, "embed", {"gpt_neox.embed_in"}, false);
  addWeights(form, "layer{}.norm", {layer + "input_layernorm"}, true);
  addWeights(form, "layer{}.qkv", {layer + "attention.query_key_value"}, form.hasQkvBias, Order::HeadsTogether);
  addWeights(form, "layer{}.proj", {layer + "attention.dense"}, form.hasProjectionBias);
  addWeights(form, "layer{}.norm2", {layer + "post_attention_layernorm"}, true);
  addWeights(form, "layer{}.fc1", {layer + "mlp.dense_h_to_4h"}, true);
  addWeights(form, "layer{}.fc2", {layer + "mlp.dense_4h_to_h"}, true);
  addWeights(form, "norm", {"gpt_neox.final_layer_norm"}, true);
  if (form.head == ModelHead::Linear) addWeights(form, "head", {"embed_out"}, false);
}

ModelForm form(const ModelConfig& config) {
  ModelForm form;
  readSizes(config.without({"num_key_value_heads", "head_dim"}), form);
  form.vocabulary = config.count("vocab_size");
  form.norm = {.op = "LayerNorm", .eps = config.real("layer_norm_eps", 1e-5)};
  form.order = config.flag("use_parallel_residual", true) ? LayerOrder::Parallel : LayerOrder::PreNorm;
  form.hasQkvBias = form.hasProjectionBias = config.flag("attention_bias", true);
  form.hasMlpBias = true;
  readActivation(config, "hidden_act", "gelu", false, form);
  form.kinds.front().rope = ropeOf(config, form.headDim, {}, config.real("rotary_pct", 0.25));
  if (config.has("rotary_emb_base") && !config.has("rope_parameters"))
    form.kinds.front().rope["rotary_base"] = config.real("rotary_emb_base");
  form.head = config.flag("tie_word_embeddings", false) ? ModelHead::Tied : ModelHead::Linear;
  addNeoxWeights(form);
  return form;
}

}  // namespace gpt_neox_parts
}  // namespace

ModelArchitecture gpt_neox() {
  using namespace gpt_neox_parts;
  return {.modelTypes = {"gpt_neox"}, .form = form};
}

}  // namespace fuseline::architectures
