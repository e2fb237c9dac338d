// GPT-2: LayerNorm, learned positions, and weights that are stored transposed.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <algorithm>
#include <string>

namespace fuseline::architectures {

namespace {
namespace gpt2_parts {

using Order = WeightSource::Order;

void addGptWeights(ModelForm& form) {
  const std::string layer = "transformer.h.{}.";
  addWeights(form, "embed", {"transformer.wte"}, false);
  addWeights(form, "positions", {"transformer.wpe"}, false);
  addWeights(form, "layer{}.norm", {layer + "ln_1"}, true);
  addWeights(form, "layer{}.qkv", {layer + "attn.c_attn"}, true, Order::Transposed);
  addWeights(form, "layer{}.proj", {layer + "attn.c_proj"}, true, Order::Transposed);
  addWeights(form, "layer{}.norm2", {layer + "ln_2"}, true);
  addWeights(form, "layer{}.fc1", {layer + "mlp.c_fc"}, true, Order::Transposed);
  addWeights(form, "layer{}.fc2", {layer + "mlp.c_proj"}, true, Order::Transposed);
  addWeights(form, "norm", {"transformer.ln_f"}, true);
  if (form.head == ModelHead::Linear) addWeights(form, "head", {"lm_head"}, false);
}

/// Under GPT-2's own keys.
void readGptSizes(const ModelConfig& config, ModelForm& form) {
  form.hidden = config.count("n_embd");
  form.heads = form.groups = config.count("n_head");
  form.headDim = std::max<std::int64_t>(1, form.hidden / form.heads);
  form.intermediate = config.count("n_inner", 4 * form.hidden);
  form.layers.assign(static_cast<std::size_t>(std::min<std::int64_t>(1000, config.count("n_layer"))), 0);
  form.vocabulary = config.count("vocab_size");
  form.positions = config.count("n_positions", 1024);
  form.tokens = std::min<std::int64_t>(form.tokens, form.positions);
  if (form.hidden % form.heads != 0) config.refuse("n_embd", "a multiple of n_head");
}

ModelForm form(const ModelConfig& config) {
  ModelForm form;
  readGptSizes(config, form);
  form.norm = {.op = "LayerNorm", .eps = config.real("layer_norm_epsilon", 1e-5)};
  form.hasQkvBias = form.hasProjectionBias = form.hasMlpBias = true;
  readActivation(config, "activation_function", "gelu_new", false, form);
  form.head = config.flag("tie_word_embeddings", true) ? ModelHead::Tied : ModelHead::Linear;
  if (config.flag("scale_attn_by_inverse_layer_idx", false))
    config.refuse("scale_attn_by_inverse_layer_idx", "false, as all layers are instances of one block");
  if (!config.flag("scale_attn_weights", true)) form.softmaxScale = 1.0;
  config.ignore({"n_ctx", "reorder_and_upcast_attn", "add_cross_attention"});
  addGptWeights(form);
  return form;
}

}  // namespace gpt2_parts
}  // namespace

ModelArchitecture gpt2() {
  using namespace gpt2_parts;
  return {.modelTypes = {"gpt2"}, .form = form};
}

}  // namespace fuseline::architectures
