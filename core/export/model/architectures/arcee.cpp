// Arcee: Llama with an MLP that has no gate.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <utility>

namespace fuseline::architectures {

namespace {
namespace arcee_parts {

ModelForm form(const ModelConfig& config) {
  ModelForm form = llamaForm(config);
  readActivation(config, "hidden_act", "relu2", false, form);
  return withLlamaWeights(std::move(form));
}

}  // namespace arcee_parts
}  // namespace

ModelArchitecture arcee() {
  using namespace arcee_parts;
  return {.modelTypes = {"arcee"}, .form = form};
}

}  // namespace fuseline::architectures
