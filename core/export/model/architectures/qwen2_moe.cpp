// Qwen2 with experts: and one more for all tokens, which a gate weighs.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/experts_parts.h"
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <string>
#include <utility>

namespace fuseline::architectures {

namespace {
namespace qwen2_moe_parts {

void addSharedWeights(ModelForm& form) {
  const std::string mlp = "model.layers.{}.mlp.";
  const std::string shared = mlp + "shared_expert.";
  addSourceOfExperts(form, {.parameter = "layer{}.shared_gate.weight", .tensors = {mlp + "shared_expert_gate.weight"}});
  addSourceOfExperts(form, {.parameter = "layer{}.shared_fc1.weight",
                            .tensors = {shared + "gate_proj.weight", shared + "up_proj.weight"}});
  addSourceOfExperts(form, {.parameter = "layer{}.shared_fc2.weight", .tensors = {shared + "down_proj.weight"}});
}

ModelForm form(const ModelConfig& config) {
  ModelForm form = llamaForm(config.without({"attention_bias", "mlp_bias"}));
  form.hasQkvBias = config.flag("qkv_bias", true);
  setQwenWindows(config, form);
  readQwenExperts(config, form);
  form.experts->sharedIntermediate = config.count("shared_expert_intermediate_size");
  if (form.activation != "SwiGLU")
    config.refuse("hidden_act", "silu, because ScaledSwiGLU applies the gate of the shared expert");
  form = withLlamaWeights(std::move(form));
  addExpertWeights(form, qwenExpertNames());
  addSharedWeights(form);
  return form;
}

}  // namespace qwen2_moe_parts
}  // namespace

ModelArchitecture qwen2_moe() {
  using namespace qwen2_moe_parts;
  return {.modelTypes = {"qwen2_moe"}, .form = form};
}

}  // namespace fuseline::architectures
