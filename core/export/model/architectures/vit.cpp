// ViT and DeiT: the layers of an image classifier, from the embedded patches to the last norm.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <string>

namespace fuseline::architectures {

namespace {

/// model: "vit", with which the names of its tensors begin.
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
}

ModelForm form(const ModelConfig& config) {
  ModelForm form;
  readSizes(config, form);
  const std::int64_t patch = config.count("patch_size", 16);
  const std::int64_t side = config.count("image_size", 224) / patch;
  const std::string model = config.text("model_type", "vit");
  form.tokens = side * side + (model == "deit" ? 2 : 1);  // DeiT has one for distillation
  form.norm = {.op = "LayerNorm", .eps = config.real("layer_norm_eps", 1e-12)};
  form.isCausal = false;
  form.hasQkvBias = config.flag("qkv_bias", true);
  form.hasProjectionBias = form.hasMlpBias = true;
  readActivation(config, "hidden_act", "gelu", false, form);
  form.head = ModelHead::None;
  config.ignore({"num_channels", "encoder_stride", "pooler_act", "pooler_output_size"});
  form.notes.emplace_back(
      "The pipeline begins with the embedded patches and ends with the last norm, without patch embedding and "
      "classifier.");
  addVitWeights(form, model);
  return form;
}

}  // namespace

ModelArchitecture vit() { return {.modelTypes = {"vit", "deit"}, .form = form}; }

}  // namespace fuseline::architectures
