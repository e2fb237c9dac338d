// Qwen3: Llama with a norm of the queries and keys of each head, before they are turned.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <utility>

namespace fuseline::architectures {

namespace {
namespace qwen3_parts {

ModelForm form(const ModelConfig& config) {
  ModelForm form = llamaForm(config.without({"mlp_bias"}));
  form.hasQkNorm = true;
  config.ignore({"layer_types", "max_window_layers", "sliding_window"});
  if (config.flag("use_sliding_window", false))
    config.refuse("use_sliding_window", "false; the published models have no window");
  return withLlamaWeights(std::move(form));
}

}  // namespace qwen3_parts
}  // namespace

ModelArchitecture qwen3() {
  using namespace qwen3_parts;
  return {.modelTypes = {"qwen3"}, .form = form};
}

}  // namespace fuseline::architectures
