// Parts of forms that several architectures read from their configs in the same way.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/model/model_config.h"
#include "core/export/model/model_form.h"

#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// A decoder with the keys of Llama; most later architectures begin with it and change some of it.
ModelForm llamaForm(const ModelConfig& config);
/// A decoder with the keys of Gemma 2 and later.
ModelForm gemmaForm(const ModelConfig& config);
/// Adds the names that tensors have in Llama's files, for all that the form has.
ModelForm withLlamaWeights(ModelForm form);

/// Sizes under the names that most configs have. Errors: heads that do not fit.
void readSizes(const ModelConfig& config, ModelForm& form);
/// Attributes of RotaryPositionEmbedding from rope_parameters, or from rope_theta and rope_scaling. layerType: the key
/// inside rope_parameters, if it has one for each type of layers. percent: if no key says it.
Json ropeOf(const ModelConfig& config, std::int64_t headDim, std::string_view layerType = {}, double percent = 1.0);
/// The op of a gated MLP for hidden_act, or of a plain one. Errors: an activation without an op.
void readActivation(const ModelConfig& config, std::string_view key, std::string_view otherwise, bool isGated,
                    ModelForm& form);
/// The same window for all layers, if sliding_window is set.
void setUniformWindow(const ModelConfig& config, ModelForm& form);
/// A window for some layers. Both kinds keep what kinds[0] has; the second, if there are two, has the window.
void setWindows(std::int64_t window, const std::vector<bool>& isSliding, ModelForm& form);
/// isSliding by layer_types; empty if there is no such list.
std::vector<bool> slidingLayers(const ModelConfig& config, std::size_t numLayers);

/// The windows of Qwen: use_sliding_window, then those of layer_types or all from layer max_window_layers on.
void setQwenWindows(const ModelConfig& config, ModelForm& form);

/// Adds "parameter.weight" from "tensor.weight", and the bias where there is one.
void addWeights(ModelForm& form, const std::string& parameter, const std::vector<std::string>& tensors, bool hasBias,
                WeightSource::Order order = WeightSource::Order::AsStored);

}  // namespace fuseline
