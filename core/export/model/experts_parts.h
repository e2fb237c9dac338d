// Experts of forms: what several architectures read from their configs in the same way.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/model/model_config.h"
#include "core/export/model/model_form.h"

#include <string>
#include <vector>

namespace fuseline {

/// Number of experts and of those that a token has, and the loss of their load where the config asks for it.
/// Errors: more experts a token than there are.
void readExperts(const ModelConfig& config, ModelForm& form);

/// Gives dense layers kinds of their own.
void setDenseLayers(const std::vector<bool>& isDense, ModelForm& form);

/// Experts with the keys of Qwen, in all layers but those of mlp_only_layers and decoder_sparse_step.
void readQwenExperts(const ModelConfig& config, ModelForm& form);

/// Where the files have the tensors of an expert, without ".weight": "{e}" is its number. together: [E, 2 F, H] and
/// [E, H, F], as other files have them.
struct ExpertNames {
  std::string router;
  std::vector<std::string> gateAndUp;
  std::string down;
  std::string gateAndUpTogether, downTogether;
};

void addExpertWeights(ModelForm& form, const ExpertNames& names);
/// The names in the files of Qwen and those that follow them.
ExpertNames qwenExpertNames();

/// Adds sources of layers with experts.
void addSourceOfExperts(ModelForm& form, WeightSource source);

}  // namespace fuseline
