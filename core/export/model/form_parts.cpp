// Reads what configs of transformers have in common, in the keys of both generations of the library.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/form_parts.h"

#include "core/export/model/latent_text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

void copyReal(const ModelConfig& from, const char* name, const char* attribute, Json& to) {
  if (from.has(name)) to[attribute] = from.real(name);
}

/// Attributes of longrope.
void readFactors(const ModelConfig& rope, Json& attributes) {
  for (const char* const name : {"short_factor", "long_factor"})
    attributes[name] = fmt::format("{}", fmt::join(rope.reals(name), ", "));
  copyReal(rope, "attention_factor", "attention_factor", attributes);
}

/// Attributes that a rope_type other than default needs.
void readScaling(const ModelConfig& config, const ModelConfig& rope, const std::string& type, Json& attributes) {
  const std::int64_t longest = config.count("max_position_embeddings", 2048);
  const std::int64_t original =
      rope.count("original_max_position_embeddings", config.count("original_max_position_embeddings", longest));
  const double growth = static_cast<double>(longest) / static_cast<double>(original);
  attributes["factor"] = type == "longrope" ? rope.real("factor", growth) : rope.real("factor");
  if (type == "linear") return;
  attributes["original_max_position_embeddings"] = original;
  if (type == "longrope") return readFactors(rope, attributes);
  for (const char* name : {"low_freq_factor", "high_freq_factor"})
    if (type == "llama3") copyReal(rope, name, name, attributes);
  if (type != "yarn") return;
  for (const char* name : {"beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim"})
    copyReal(rope, name, name, attributes);
  if (rope.has("truncate")) attributes["truncate"] = rope.flag("truncate", true);
}

std::string ropeTypeOf(const ModelConfig& rope) {
  constexpr std::array kTypes = {"default", "linear", "dynamic", "llama3", "yarn", "longrope"};
  const char* const key = rope.has("rope_type") ? "rope_type" : "type";
  std::string type = rope.text(key, "default");
  if (std::ranges::find(kTypes, type) != kTypes.end()) return type;
  rope.refuse(key, "default, linear, dynamic, llama3, yarn or longrope, which RotaryPositionEmbedding supports");
  return "default";
}

/// The object with the keys of the rotary embedding.
ModelConfig ropeSection(const ModelConfig& config, std::string_view layerType) {
  if (!config.has("rope_parameters")) return config.section("rope_scaling");
  const ModelConfig all = config.section("rope_parameters");
  return !layerType.empty() && all.has(layerType) ? all.section(layerType) : all;
}

struct Activation {
  std::string_view name;  // in configs
  const char* gated;      // nullptr: there is no gated op
  const char* plain;
  const char* approximate;  // of GELU; nullptr: another function
};

constexpr std::array kActivations = {
    Activation{"silu", "SwiGLU", "SiLU", nullptr},
    Activation{"swish", "SwiGLU", "SiLU", nullptr},
    Activation{"gelu", "GEGLU", "GELU", "none"},
    Activation{"gelu_python", "GEGLU", "GELU", "none"},
    Activation{"gelu_new", "GEGLU", "GELU", "tanh"},
    Activation{"gelu_fast", "GEGLU", "GELU", "tanh"},
    Activation{"gelu_pytorch_tanh", "GEGLU", "GELU", "tanh"},
    Activation{"quick_gelu", "QGEGLU", "QGELU", nullptr},
    Activation{"relu", "ReGLU", "ReLU", nullptr},
    Activation{"relu2", "SReGLU", "SReLU", nullptr},
};

std::string knownActivations() {
  std::string names;
  for (const Activation& each : kActivations) names += fmt::format("{}{}", names.empty() ? "" : ", ", each.name);
  return "one of " + names;
}

}  // namespace

void addWeights(ModelForm& form, const std::string& parameter, const std::vector<std::string>& tensors, bool hasBias,
                WeightSource::Order order) {
  const auto add = [&](const char* name, WeightSource::Order how) {
    WeightSource source{.parameter = fmt::format("{}.{}", parameter, name), .tensors = {}, .order = how};
    for (const std::string& tensor : tensors) source.tensors.push_back(fmt::format("{}.{}", tensor, name));
    form.weights.push_back(std::move(source));
  };
  add("weight", order);
  if (hasBias) add("bias", order == WeightSource::Order::Transposed ? WeightSource::Order::AsStored : order);
}

void readSizes(const ModelConfig& config, ModelForm& form) {
  form.hidden = config.count("hidden_size");
  form.intermediate = config.count("intermediate_size");
  form.heads = config.count("num_attention_heads");
  form.groups = form.heads;
  form.headDim = config.count("head_dim", std::max<std::int64_t>(1, form.hidden / form.heads));
  form.layers.assign(static_cast<std::size_t>(config.count("num_hidden_layers")), 0);
  constexpr std::size_t kMostLayers = 1000;
  if (form.layers.size() > kMostLayers) {
    config.refuse("num_hidden_layers", fmt::format("at most {} layers", kMostLayers));
    form.layers.resize(1);
  }
  if (!config.has("head_dim") && form.hidden % form.heads != 0)
    config.refuse("hidden_size", fmt::format("a multiple of num_attention_heads, {}", form.heads));
  constexpr std::int64_t kMostTokens = 2048;
  form.tokens = std::min(kMostTokens, config.count("max_position_embeddings", kMostTokens));
}

Json ropeOf(const ModelConfig& config, std::int64_t headDim, std::string_view layerType, double percent) {
  config.ignore({"rope_theta", "rope_scaling", "partial_rotary_factor", "original_max_position_embeddings"});
  const ModelConfig rope = ropeSection(config, layerType);
  const std::string type = ropeTypeOf(rope);
  Json attributes = {{"dim", "D"}, {"tensor_format", "bshd"}};
  attributes["rotary_base"] = rope.has("rope_theta") ? rope.real("rope_theta") : config.real("rope_theta", 10000.0);
  const double share = config.real("partial_rotary_factor", percent);
  const double rotated = rope.has("partial_rotary_factor") ? rope.real("partial_rotary_factor") : share;
  if (rotated != 1.0) attributes["rotary_percent"] = rotated;
  if (!(rotated >= 0.0 && rotated <= 1.0))
    config.fail(fmt::format("partial_rotary_factor is {}; expected 0 to 1. Correct the config.", rotated));
  else if (static_cast<std::int64_t>(static_cast<double>(headDim) * rotated) % 2 != 0)
    config.fail(fmt::format(
        "{} of {} channels of a head are rotated; expected an even number. Correct head_dim or partial_rotary_factor.",
        rotated, headDim));
  if (type == "default") return attributes;
  attributes["rope_type"] = type;
  readScaling(config, rope, type, attributes);
  return attributes;
}

void readActivation(const ModelConfig& config, std::string_view key, std::string_view otherwise, bool isGated,
                    ModelForm& form) {
  const std::string name = config.text(key, otherwise);
  const auto found = std::ranges::find(kActivations, std::string_view(name), &Activation::name);
  if (found == kActivations.end()) return config.refuse(key, knownActivations());
  form.activation = isGated ? found->gated : found->plain;
  if (found->approximate) form.activationAttributes["approximate"] = found->approximate;
}

void setUniformWindow(const ModelConfig& config, ModelForm& form) {
  if (config.has("sliding_window")) form.kinds.front().window = config.count("sliding_window");
}

std::vector<bool> slidingLayers(const ModelConfig& config, std::size_t numLayers) {
  std::vector<bool> isSliding;
  const std::vector<std::string> types = config.texts("layer_types");
  if (types.empty()) return isSliding;
  for (const std::string& type : types)
    if (type == "sliding_attention" || type == "full_attention")
      isSliding.push_back(type == "sliding_attention");
    else
      config.refuse("layer_types", "full_attention or sliding_attention for each layer");
  if (isSliding.size() != numLayers)
    config.refuse("layer_types", fmt::format("one type for each of {} layers", numLayers));
  isSliding.resize(numLayers);
  return isSliding;
}

void setWindows(std::int64_t window, const std::vector<bool>& isSliding, ModelForm& form) {
  const LayerKind full = form.kinds.front();
  LayerKind sliding = full;
  sliding.window = window;
  const auto numSliding = static_cast<std::size_t>(std::ranges::count(isSliding, true));
  if (numSliding == 0) return;
  if (numSliding == isSliding.size()) {
    form.kinds = {sliding};
    return;
  }
  form.kinds = {full, sliding};
  form.kinds[0].block = "FullLayer";
  form.kinds[1].block = "SlidingLayer";
  for (std::size_t i = 0; i < form.layers.size(); ++i) form.layers[i] = isSliding[i] ? 1 : 0;
}

void setQwenWindows(const ModelConfig& config, ModelForm& form) {
  config.ignore({"layer_types", "max_window_layers", "sliding_window"});
  if (!config.flag("use_sliding_window", false)) return;
  const std::size_t numLayers = form.layers.size();
  std::vector<bool> isSliding = slidingLayers(config, numLayers);
  const double first = config.real("max_window_layers", 28);
  for (std::size_t layer = isSliding.size(); layer < numLayers; ++layer)
    isSliding.push_back(static_cast<double>(layer) >= first);
  setWindows(config.count("sliding_window", 4096), isSliding, form);
}

ModelForm llamaForm(const ModelConfig& config) {
  ModelForm form;
  readSizes(config, form);
  form.groups = config.count("num_key_value_heads", form.heads);
  if (form.heads % form.groups != 0)
    config.refuse("num_key_value_heads", fmt::format("a divisor of num_attention_heads, {}", form.heads));
  form.vocabulary = config.count("vocab_size");
  form.norm = {.op = "RMSNorm", .eps = config.real("rms_norm_eps", 1e-6)};
  readActivation(config, "hidden_act", "silu", true, form);
  form.hasQkvBias = form.hasProjectionBias = config.flag("attention_bias", false);
  form.hasMlpBias = config.flag("mlp_bias", false);
  form.kinds.front().rope = ropeOf(config, form.headDim);
  form.head = config.flag("tie_word_embeddings", false) ? ModelHead::Tied : ModelHead::Linear;
  return form;
}

ModelForm gemmaForm(const ModelConfig& config) {
  ModelForm form = llamaForm(config.without({"mlp_bias"}));
  if (config.flag("use_bidirectional_attention", false)) config.refuse("use_bidirectional_attention", "false");
  form.order = LayerOrder::Sandwich;
  form.norm.isZeroCentered = true;
  if (config.has("hidden_activation"))
    readActivation(config, "hidden_activation", "", true, form);
  else
    readActivation(config, "hidden_act", "gelu_pytorch_tanh", true, form);
  if (form.activation == "GEGLU") form.activationAttributes["approximate"] = "tanh";
  const double scalar = config.real("query_pre_attn_scalar", 256.0);
  if (scalar > 0.0)
    form.softmaxScale = 1.0 / std::sqrt(scalar);
  else
    config.refuse("query_pre_attn_scalar", "a number above 0");
  form.embeddingScale = std::sqrt(static_cast<double>(form.hidden));
  form.head = config.flag("tie_word_embeddings", true) ? ModelHead::Tied : ModelHead::Linear;
  return form;
}

ModelForm withLlamaWeights(ModelForm form) {
  const std::string layer = "model.layers.{}.";
  const std::string attention = layer + "self_attn.";
  const bool hasNormBias = form.norm.op == "LayerNorm";
  const bool hasSandwich = form.order == LayerOrder::Sandwich;
  addWeights(form, "embed", {"model.embed_tokens"}, false);
  addWeights(form, "layer{}.norm", {layer + "input_layernorm"}, hasNormBias);
  if (form.latent)
    addLatentWeights(form);
  else
    addWeights(form, "layer{}.qkv", {attention + "q_proj", attention + "k_proj", attention + "v_proj"},
               form.hasQkvBias);
  if (form.hasQkNorm) {
    addWeights(form, "layer{}.norm_q", {attention + "q_norm"}, false);
    addWeights(form, "layer{}.norm_k", {attention + "k_norm"}, false);
  }
  addWeights(form, "layer{}.proj", {attention + "o_proj"}, form.hasProjectionBias);
  if (hasSandwich) addWeights(form, "layer{}.post_norm", {layer + "post_attention_layernorm"}, false);
  addWeights(form, "layer{}.norm2", {layer + (hasSandwich ? "pre_feedforward_layernorm" : "post_attention_layernorm")},
             hasNormBias);
  const std::size_t beforeMlp = form.weights.size();
  std::vector<std::string> wide = {layer + "mlp.up_proj"};
  if (form.isGated()) wide.insert(wide.begin(), layer + "mlp.gate_proj");
  addWeights(form, "layer{}.fc1", wide, form.hasMlpBias);
  addWeights(form, "layer{}.fc2", {layer + "mlp.down_proj"}, form.hasMlpBias);
  if (form.experts)
    for (std::size_t i = beforeMlp; i < form.weights.size(); ++i) form.weights[i].layers = WeightSource::Layers::Dense;
  if (hasSandwich) addWeights(form, "layer{}.post_norm2", {layer + "post_feedforward_layernorm"}, false);
  addWeights(form, "norm", {"model.norm"}, hasNormBias);
  if (form.head == ModelHead::Linear) addWeights(form, "head", {"lm_head"}, false);
  return form;
}

}  // namespace fuseline
