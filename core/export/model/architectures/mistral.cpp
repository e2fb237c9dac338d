// Mistral: Llama, in its first version with a window.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <utility>

namespace fuseline::architectures {

namespace {
namespace mistral_parts {

ModelForm form(const ModelConfig& config) {
  ModelForm form = llamaForm(config.without({"attention_bias", "mlp_bias"}));
  setUniformWindow(config, form);
  return withLlamaWeights(std::move(form));
}

}  // namespace mistral_parts
}  // namespace

ModelArchitecture mistral() {
  using namespace mistral_parts;
  return {.modelTypes = {"mistral"}, .form = form};
}

}  // namespace fuseline::architectures
