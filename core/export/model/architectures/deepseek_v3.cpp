// DeepSeek-V3 and V2: latent attention, experts after the first dense layers, and one expert for all tokens.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/experts_parts.h"
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline::architectures {

namespace {
namespace deepseek_v3_parts {

/// A number that may be 0.
std::int64_t countFromZero(const ModelConfig& config, const char* key, std::int64_t otherwise) {
  const double value = config.real(key, static_cast<double>(otherwise));
  constexpr double kMost = 1 << 20;
  if (value >= 0.0 && value <= kMost && value == std::floor(value)) return static_cast<std::int64_t>(value);
  config.refuse(key, "a whole number of 0 or more");
  return 0;
}

void refuseOther(const ModelConfig& config, const char* key, std::string_view known) {
  if (config.text(key, known) != known) config.refuse(key, fmt::format("{}, as TopKRouter has no other", known));
}

bool isV2(const ModelConfig& config) { return config.text("model_type", "") == "deepseek_v2"; }

LatentForm latentOf(const ModelConfig& config) {
  return {.queryRank = config.has("q_lora_rank") ? config.count("q_lora_rank") : 0,
          .keyRank = config.count("kv_lora_rank"),
          .plainChannels = config.count("qk_nope_head_dim"),
          .rotatedChannels = config.count("qk_rope_head_dim"),
          .valueChannels = config.count("v_head_dim"),
          .hasBias = config.flag("attention_bias", false)};
}

/// YaRN scales the scores by the square of its factor for all channels.
double softmaxScale(const LatentForm& latent, const Json& rope) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(latent.plainChannels + latent.rotatedChannels));
  if (!rope.contains("mscale_all_dim") || !rope.contains("factor")) return scale;
  const double factor = rope["factor"].get<double>();
  const double growth = factor > 1.0 ? 0.1 * rope["mscale_all_dim"].get<double>() * std::log(factor) + 1.0 : 1.0;
  return scale * growth * growth;
}

/// Groups of experts, by the sum of the two best scores of each.
void readGroups(const ModelConfig& config, Json& router) {
  const std::int64_t groups = config.count("n_group", 1);
  const std::int64_t chosen = config.count("topk_group", groups);
  if (chosen >= groups) return;
  if (config.count("num_experts_per_tok") != 2 * chosen)
    config.refuse("topk_group",
                  "half of num_experts_per_tok: the model ranks groups by their 2 best scores, TopKRouter by "
                  "num_experts_per_tok / topk_group");
  router["num_groups"] = groups;
  router["group_topk"] = chosen;
}

void readShared(const ModelConfig& config, ExpertsForm& experts) {
  experts.intermediate = config.count("moe_intermediate_size");
  experts.sharedIntermediate = experts.intermediate * countFromZero(config, "n_shared_experts", 1);
  experts.hasSharedGate = false;
}

void readDense(const ModelConfig& config, ModelForm& form) {
  const std::int64_t dense = countFromZero(config, "first_k_dense_replace", 0);
  if (config.count("moe_layer_freq", 1) != 1) config.refuse("moe_layer_freq", "1: experts in all layers but the first");
  std::vector<bool> isDense(form.layers.size());
  for (std::size_t layer = 0; layer < isDense.size(); ++layer)
    isDense[layer] = static_cast<std::int64_t>(layer) < dense;
  setDenseLayers(isDense, form);
}

void addNotes(const ModelConfig& config, ModelForm& form) {
  config.ignore({"ep_size", "aux_loss_alpha", "seq_aux", "qk_head_dim", "router_aux_loss_coef"});
  for (const char* const key : {"num_nextn_predict_layers", "num_mtp_layers"})
    if (countFromZero(config, key, 0) > 0 && form.notes.empty())
      form.notes.emplace_back("The layers that predict further tokens are not part of the pipeline.");
  if (config.has("quantization_config"))
    form.notes.emplace_back("The weights of the files are quantized: save the model in bf16 before you import them.");
}

/// The parts that both versions have.
ModelForm latentDecoder(const ModelConfig& config) {
  ModelForm form = llamaForm(isV2(config) ? config : config.without({"mlp_bias"}));
  form.latent = latentOf(config);
  Json rope = ropeOf(config, form.latent->rotatedChannels);
  rope["dim"] = "DR";
  rope["interleaved"] = config.flag("rope_interleave", true);
  form.softmaxScale = softmaxScale(*form.latent, rope);
  if (!std::isfinite(*form.softmaxScale))
    config.fail("factor and mscale_all_dim give attention a scale that is not finite. Correct the config.");
  form.kinds.front().rope = std::move(rope);
  form.hasProjectionBias = form.latent->hasBias;
  readExperts(config, form);
  if (std::exchange(form.experts->auxLossCoeff, 0.0) > 0.0)
    form.notes.emplace_back("The loss does not include the load-balancing term of the experts.");
  readShared(config, *form.experts);
  form.experts->router = {{"scaling_factor", config.real("routed_scaling_factor", 1.0)}};
  readDense(config, form);
  addNotes(config, form);
  return form;
}

ModelForm withWeights(ModelForm form) {
  form = withLlamaWeights(std::move(form));
  addExpertWeights(form, qwenExpertNames());
  const std::string mlp = "model.layers.{}.mlp.";
  if (form.experts->router.contains("expert_bias"))
    addSourceOfExperts(form,
                       {.parameter = "layer{}.route.expert_bias", .tensors = {mlp + "gate.e_score_correction_bias"}});
  if (form.experts->sharedIntermediate == 0) return form;
  const std::string shared = mlp + "shared_experts.";
  addSourceOfExperts(form, {.parameter = "layer{}.shared_fc1.weight",
                            .tensors = {shared + "gate_proj.weight", shared + "up_proj.weight"}});
  addSourceOfExperts(form, {.parameter = "layer{}.shared_fc2.weight", .tensors = {shared + "down_proj.weight"}});
  return form;
}

/// Sigmoids with a bias that only chooses.
void readRouter(const ModelConfig& config, Json& router) {
  refuseOther(config, "scoring_func", "sigmoid");
  config.ignore({"topk_method"});
  router["norm_topk_prob"] = config.flag("norm_topk_prob", true);
  router["score_function"] = "sigmoid";
  router["expert_bias"] = true;
  readGroups(config, router);
}

/// The softmax of all logits, never normalized.
void readRouterOfV2(const ModelConfig& config, Json& router) {
  refuseOther(config, "scoring_func", "softmax");
  config.ignore({"norm_topk_prob", "n_group", "topk_group"});
  if (config.text("topk_method", "greedy") != "greedy")
    config.refuse("topk_method", "greedy, as TopKRouter does not choose groups by their largest score");
  router["norm_topk_prob"] = false;
  router["use_pre_softmax"] = true;
}

ModelForm form(const ModelConfig& config) {
  ModelForm form = latentDecoder(config);
  isV2(config) ? readRouterOfV2(config, form.experts->router) : readRouter(config, form.experts->router);
  return withWeights(std::move(form));
}

}  // namespace deepseek_v3_parts
}  // namespace

ModelArchitecture deepseek_v3() {
  using namespace deepseek_v3_parts;
  return {.modelTypes = {"deepseek_v3", "deepseek_v2"}, .form = form};
}

}  // namespace fuseline::architectures
