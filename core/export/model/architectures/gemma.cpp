// Gemma, the first one: norms before each part alone, scores by the size of a head.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <utility>

namespace fuseline::architectures {

namespace {
namespace gemma_parts {

ModelForm form(const ModelConfig& config) {
  ModelForm form = gemmaForm(config.without({"query_pre_attn_scalar"}));
  form.order = LayerOrder::PreNorm;
  form.softmaxScale.reset();
  return withLlamaWeights(std::move(form));
}

}  // namespace gemma_parts
}  // namespace

ModelArchitecture gemma() {
  using namespace gemma_parts;
  return {.modelTypes = {"gemma"}, .form = form};
}

}  // namespace fuseline::architectures
