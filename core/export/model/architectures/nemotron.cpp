// Nemotron: zero-centered LayerNorm, an MLP without a gate, and half of each head turns.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <utility>

namespace fuseline::architectures {

namespace {
namespace nemotron_parts {

ModelForm form(const ModelConfig& config) {
  ModelForm form = llamaForm(config.without({"rms_norm_eps"}));
  form.norm = {.op = "LayerNorm", .eps = config.real("norm_eps", 1e-5), .isZeroCentered = true};
  readActivation(config, "hidden_act", "relu2", false, form);
  form.kinds.front().rope = ropeOf(config, form.headDim, {}, 0.5);
  return withLlamaWeights(std::move(form));
}

}  // namespace nemotron_parts
}  // namespace

ModelArchitecture nemotron() {
  using namespace nemotron_parts;
  return {.modelTypes = {"nemotron"}, .form = form};
}

}  // namespace fuseline::architectures
