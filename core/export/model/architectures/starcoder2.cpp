// StarCoder2: LayerNorm and biases, grouped attention, and an MLP without a gate.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <string>
#include <string_view>
#include <utility>

namespace fuseline::architectures {

namespace {
namespace starcoder2_parts {

void rename(std::string& tensor, std::string_view from, std::string_view to) {
  if (const std::size_t place = tensor.find(from); place != std::string::npos) tensor.replace(place, from.size(), to);
}

ModelForm form(const ModelConfig& config) {
  ModelForm form = llamaForm(config.without({"attention_bias", "mlp_bias", "rms_norm_eps"}));
  form.norm = {.op = "LayerNorm", .eps = config.real("norm_epsilon", 1e-5)};
  form.hasQkvBias = form.hasProjectionBias = form.hasMlpBias = config.flag("use_bias", true);
  readActivation(config, "hidden_act", "gelu_pytorch_tanh", false, form);
  setUniformWindow(config, form);
  form.head = config.flag("tie_word_embeddings", true) ? ModelHead::Tied : ModelHead::Linear;
  form = withLlamaWeights(std::move(form));
  for (WeightSource& source : form.weights)
    for (std::string& tensor : source.tensors) {
      rename(tensor, "mlp.up_proj", "mlp.c_fc");
      rename(tensor, "mlp.down_proj", "mlp.c_proj");
    }
  return form;
}

}  // namespace starcoder2_parts
}  // namespace

ModelArchitecture starcoder2() {
  using namespace starcoder2_parts;
  return {.modelTypes = {"starcoder2"}, .form = form};
}

}  // namespace fuseline::architectures
