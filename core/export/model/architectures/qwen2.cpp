// Qwen2: Llama with a bias of queries, keys and values.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <utility>

namespace fuseline::architectures {

namespace {
namespace qwen2_parts {

ModelForm form(const ModelConfig& config) {
  ModelForm form = llamaForm(config.without({"attention_bias", "mlp_bias"}));
  form.hasQkvBias = true;
  setQwenWindows(config, form);
  return withLlamaWeights(std::move(form));
}

}  // namespace qwen2_parts
}  // namespace

ModelArchitecture qwen2() {
  using namespace qwen2_parts;
  return {.modelTypes = {"qwen2"}, .form = form};
}

}  // namespace fuseline::architectures
