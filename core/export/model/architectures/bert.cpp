// BERT: norms after each part, every token sees all others, and a head for masked tokens.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <string>

namespace fuseline::architectures {

namespace {
namespace bert_parts {

void addBertWeights(ModelForm& form) {
  const std::string layer = "bert.encoder.layer.{}.";
  const std::string attention = layer + "attention.";
  addWeights(form, "embed", {"bert.embeddings.word_embeddings"}, false);
  addWeights(form, "positions", {"bert.embeddings.position_embeddings"}, false);
  addWeights(form, "token_types", {"bert.embeddings.token_type_embeddings"}, false);
  addWeights(form, "embed_norm", {"bert.embeddings.LayerNorm"}, true);
  addWeights(form, "layer{}.qkv", {attention + "self.query", attention + "self.key", attention + "self.value"}, true);
  addWeights(form, "layer{}.proj", {attention + "output.dense"}, true);
  addWeights(form, "layer{}.norm", {attention + "output.LayerNorm"}, true);
  addWeights(form, "layer{}.fc1", {layer + "intermediate.dense"}, true);
  addWeights(form, "layer{}.fc2", {layer + "output.dense"}, true);
  addWeights(form, "layer{}.norm2", {layer + "output.LayerNorm"}, true);
  addWeights(form, "transform", {"cls.predictions.transform.dense"}, true);
  addWeights(form, "head_norm", {"cls.predictions.transform.LayerNorm"}, true);
  form.weights.push_back({.parameter = "head_bias.bias", .tensors = {"cls.predictions.bias"}});
}

ModelForm form(const ModelConfig& config) {
  ModelForm form;
  readSizes(config.without({"num_key_value_heads", "head_dim"}), form);
  form.vocabulary = config.count("vocab_size");
  form.positions = config.count("max_position_embeddings", 512);
  form.tokenTypes = config.count("type_vocab_size", 2);
  form.norm = {.op = "LayerNorm", .eps = config.real("layer_norm_eps", 1e-12)};
  form.order = LayerOrder::PostNorm;
  form.isCausal = false;
  form.hasQkvBias = form.hasProjectionBias = form.hasMlpBias = form.hasEmbeddingNorm = true;
  form.hasFinalNorm = false;
  readActivation(config, "hidden_act", "gelu", false, form);
  form.head = ModelHead::MaskedLanguage;
  if (const std::string type = config.text("position_embedding_type", "absolute"); type != "absolute")
    config.refuse("position_embedding_type", "absolute");
  if (!config.flag("tie_word_embeddings", true)) config.refuse("tie_word_embeddings", "true");
  if (config.flag("is_decoder", false)) config.refuse("is_decoder", "false");
  config.ignore({"add_cross_attention"});
  form.notes.emplace_back("Padding masks are not imported: every token attends to all tokens of its sequence.");
  addBertWeights(form);
  return form;
}

}  // namespace bert_parts
}  // namespace

ModelArchitecture bert() {
  using namespace bert_parts;
  return {.modelTypes = {"bert"}, .form = form};
}

}  // namespace fuseline::architectures
