// ViT and DeiT: classifiers of images.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/image_text.h"
#include "core/export/model/model_architectures.h"

#include <string>

namespace fuseline::architectures {

namespace {
namespace vit_parts {

/// model: "vit", with which the names of its tensors begin.
void addEmbeddingWeights(const ModelConfig& config, ModelForm& form, const std::string& model) {
  const std::string embeddings = model + ".embeddings.";
  WeightSource tokens{.parameter = "class_tokens.weight", .tensors = {embeddings + "cls_token"}};
  if (form.image->classTokens > 1) tokens.tensors.push_back(embeddings + "distillation_token");
  tokens.shape = {1, 1, form.hidden};
  form.weights.push_back(std::move(tokens));
  addPatchWeights(config,
                  {.convolution = embeddings + "patch_embeddings.projection",
                   .positions = embeddings + "position_embeddings",
                   .positionShape = {1, form.tokens, form.hidden}},
                  form);
}

void addVitWeights(ModelForm& form, const std::string& model) {
  const std::string layer = model + ".encoder.layer.{}.";
  const std::string attention = layer + "attention.";
  addWeights(form, "layer{}.norm", {layer + "layernorm_before"}, true);
  addWeights(form, "layer{}.qkv",
             {attention + "attention.query", attention + "attention.key", attention + "attention.value"},
             form.hasQkvBias);
  addWeights(form, "layer{}.proj", {attention + "output.dense"}, true);
  addWeights(form, "layer{}.norm2", {layer + "layernorm_after"}, true);
  addWeights(form, "layer{}.fc1", {layer + "intermediate.dense"}, true);
  addWeights(form, "layer{}.fc2", {layer + "output.dense"}, true);
  addWeights(form, "norm", {model + ".layernorm"}, true);
  if (form.head == ModelHead::Classifier) addWeights(form, "head", {"classifier"}, true);
}

ModelForm form(const ModelConfig& config) {
  ModelForm form;
  readSizes(config.without({"num_key_value_heads", "head_dim"}), form);
  const std::string model = config.text("model_type", "vit");
  readImage(config, model == "deit" ? 2 : 1, form);  // DeiT has one for distillation
  readClasses(config, form);
  form.norm = {.op = "LayerNorm", .eps = config.real("layer_norm_eps", 1e-12)};
  form.isCausal = false;
  form.hasQkvBias = config.flag("qkv_bias", true);
  form.hasProjectionBias = form.hasMlpBias = true;
  readActivation(config, "hidden_act", "gelu", false, form);
  config.ignore({"encoder_stride", "pooler_act", "pooler_output_size"});
  addEmbeddingWeights(config, form, model);
  addVitWeights(form, model);
  return form;
}

}  // namespace vit_parts
}  // namespace

ModelArchitecture vit() {
  using namespace vit_parts;
  return {.modelTypes = {"vit", "deit"}, .form = form};
}

}  // namespace fuseline::architectures
