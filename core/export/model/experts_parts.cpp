// Reads experts from configs, and names their weights.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/experts_parts.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr const char* kLayer = "model.layers.{}.";

/// The layers that mlp_only_layers and decoder_sparse_step leave without experts.
std::vector<bool> denseLayers(const ModelConfig& config, std::size_t numLayers) {
  std::vector<bool> isDense(numLayers);
  const auto step = static_cast<std::size_t>(config.count("decoder_sparse_step", 1));
  for (std::size_t layer = 0; layer < numLayers; ++layer) isDense[layer] = (layer + 1) % step != 0;
  for (const std::int64_t layer : config.indices("mlp_only_layers"))
    if (static_cast<std::size_t>(layer) < numLayers) isDense[static_cast<std::size_t>(layer)] = true;
  return isDense;
}

}  // namespace

void setDenseLayers(const std::vector<bool>& isDense, ModelForm& form) {
  const std::size_t numKinds = form.kinds.size();
  for (std::size_t kind = 0; kind < numKinds; ++kind) {
    form.kinds.push_back(form.kinds[kind]);
    form.kinds.back().block = "Dense" + form.kinds[kind].block;
    form.kinds.back().isDense = true;
  }
  for (std::size_t layer = 0; layer < form.layers.size(); ++layer)
    if (isDense[layer]) form.layers[layer] += numKinds;
}

void readExperts(const ModelConfig& config, ModelForm& form) {
  const char* key = "num_local_experts";
  for (const char* const other : {"num_experts", "n_routed_experts"})
    if (config.has(other)) key = other;
  ExpertsForm experts{.count = config.count(key), .topk = config.count("num_experts_per_tok")};
  constexpr std::int64_t kMostExperts = 4096;
  if (experts.count > kMostExperts) config.refuse(key, fmt::format("at most {} experts", kMostExperts));
  if (experts.topk > experts.count)
    config.refuse("num_experts_per_tok", fmt::format("at most {}, {}", key, experts.count));
  config.ignore({"router_jitter_noise"});
  const double coefficient = config.real("router_aux_loss_coef", 0.001);
  if (coefficient < 0.0) config.refuse("router_aux_loss_coef", "a number of 0 or more");
  // transformers counts the slots of a token, not the token.
  if (config.flag("output_router_logits", false))
    experts.auxLossCoeff = coefficient * static_cast<double>(experts.topk);
  form.experts = experts;
}

void readQwenExperts(const ModelConfig& config, ModelForm& form) {
  readExperts(config, form);
  form.experts->intermediate = config.count("moe_intermediate_size");
  form.experts->router = {{"use_pre_softmax", true}, {"norm_topk_prob", config.flag("norm_topk_prob", false)}};
  setDenseLayers(denseLayers(config, form.layers.size()), form);
}

void addSourceOfExperts(ModelForm& form, WeightSource source) {
  source.layers = WeightSource::Layers::OfExperts;
  form.weights.push_back(std::move(source));
}

void addExpertWeights(ModelForm& form, const ExpertNames& names) {
  const auto weightOf = [](std::vector<std::string> tensors) {
    for (std::string& tensor : tensors) tensor += ".weight";
    return tensors;
  };
  addSourceOfExperts(form, {.parameter = "layer{}.router.weight", .tensors = weightOf({names.router})});
  addSourceOfExperts(form, {.parameter = "layer{}.experts_fc1.weight",
                            .tensors = weightOf(names.gateAndUp),
                            .order = WeightSource::Order::Experts,
                            .together = names.gateAndUpTogether});
  addSourceOfExperts(form, {.parameter = "layer{}.experts_fc2.weight",
                            .tensors = weightOf({names.down}),
                            .order = WeightSource::Order::Experts,
                            .together = names.downTogether});
}

ExpertNames qwenExpertNames() {
  const std::string mlp = std::string(kLayer) + "mlp.";
  return {.router = mlp + "gate",
          .gateAndUp = {mlp + "experts.{e}.gate_proj", mlp + "experts.{e}.up_proj"},
          .down = mlp + "experts.{e}.down_proj",
          .gateAndUpTogether = mlp + "experts.gate_up_proj",
          .downTogether = mlp + "experts.down_proj"};
}

}  // namespace fuseline
