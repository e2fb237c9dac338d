// Qwen3 with experts.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/experts_parts.h"
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <utility>

namespace fuseline::architectures {

namespace {

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

}  // namespace

ModelArchitecture qwen3_moe() { return {.modelTypes = {"qwen3_moe"}, .form = form}; }

}  // namespace fuseline::architectures
