// Mixtral: Mistral with experts in place of the MLP.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/experts_parts.h"
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <string>
#include <utility>

namespace fuseline::architectures {

namespace {
namespace mixtral_parts {

/// Files of the hub name the block, models in memory the MLP.
ExpertNames names() {
  const std::string block = "model.layers.{}.block_sparse_moe.";
  const std::string mlp = "model.layers.{}.mlp.";
  return {.router = block + "gate",
          .gateAndUp = {block + "experts.{e}.w1", block + "experts.{e}.w3"},
          .down = block + "experts.{e}.w2",
          .gateAndUpTogether = mlp + "experts.gate_up_proj",
          .downTogether = mlp + "experts.down_proj"};
}

ModelForm form(const ModelConfig& config) {
  ModelForm form = llamaForm(config.without({"attention_bias", "mlp_bias"}));
  setUniformWindow(config, form);
  readExperts(config, form);
  form.experts->intermediate = form.intermediate;
  form.experts->router = {{"use_pre_softmax", true}, {"norm_topk_prob", true}};
  form = withLlamaWeights(std::move(form));
  addExpertWeights(form, names());
  return form;
}

}  // namespace mixtral_parts
}  // namespace

ModelArchitecture mixtral() {
  using namespace mixtral_parts;
  return {.modelTypes = {"mixtral"}, .form = form};
}

}  // namespace fuseline::architectures
