// Llama 1 to 3: the model that most later decoders vary.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

namespace fuseline::architectures {

namespace {
namespace llama_parts {

ModelForm form(const ModelConfig& config) { return withLlamaWeights(llamaForm(config)); }

}  // namespace llama_parts
}  // namespace

ModelArchitecture llama() {
  using namespace llama_parts;
  return {.modelTypes = {"llama"}, .form = form};
}

}  // namespace fuseline::architectures
