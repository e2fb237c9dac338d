// Qwen3 with experts.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/experts_parts.h"
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <utility>

namespace fuseline::architectures {

namespace {
namespace qwen3_moe_parts {

ModelForm form(const ModelConfig& config) {
  ModelForm form = llamaForm(config.without({"mlp_bias"}));
  form.hasQkNorm = true;
  config.ignore({"layer_types", "max_window_layers"});
  if (config.flag("use_sliding_window", false)) setUniformWindow(config, form);
  config.ignore({"sliding_window"});
  readQwenExperts(config, form);
  form = withLlamaWeights(std::move(form));
  addExpertWeights(form, qwenExpertNames());
  return form;
}

}  // namespace qwen3_moe_parts
}  // namespace

ModelArchitecture qwen3_moe() {
  using namespace qwen3_moe_parts;
  return {.modelTypes = {"qwen3_moe"}, .form = form};
}

}  // namespace fuseline::architectures
