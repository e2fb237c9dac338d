// DeepSeek-V3 is known, but not imported yet: its attention has no op.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/model_architectures.h"

namespace fuseline::architectures {

namespace {

ModelForm form(const ModelConfig& config) {
  config.refuse("model_type",
                "a model without multi-head latent attention, for which there is no op. Its experts can be built from "
                "TopKRouter, MoEPermute, GroupedLinear and MoEUnpermute");
  return {};
}

}  // namespace

ModelArchitecture deepseek_v3() { return {.modelTypes = {"deepseek_v3", "deepseek_v2"}, .form = form}; }

}  // namespace fuseline::architectures
