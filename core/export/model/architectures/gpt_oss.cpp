// GPT-OSS: experts with biases and a clamped gate, sinks in attention, and windows in every other layer.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/experts_parts.h"
#include "core/export/model/form_parts.h"
#include "core/export/model/model_architectures.h"

#include <string>
#include <utility>

namespace fuseline::architectures {

namespace {
namespace gpt_oss_parts {

using Order = WeightSource::Order;

/// Every second layer has a window, the first one included.
std::vector<bool> slidingOf(const ModelConfig& config, std::size_t numLayers) {
  std::vector<bool> isSliding = slidingLayers(config, numLayers);
  for (std::size_t layer = isSliding.size(); layer < numLayers; ++layer) isSliding.push_back(layer % 2 == 0);
  return isSliding;
}

/// All experts are in one tensor, [E, in, out], with a column of gate beside each of up.
void addOssWeights(ModelForm& form) {
  const std::string layer = "model.layers.{}.";
  const std::string mlp = layer + "mlp.";
  form.weights.push_back({.parameter = "layer{}.attention.softmax_offset", .tensors = {layer + "self_attn.sinks"}});
  addWeights(form, "layer{}.router", {mlp + "router"}, true);
  const auto add = [&](const char* parameter, const char* tensor, Order order) {
    addSourceOfExperts(form, {.parameter = parameter, .tensors = {mlp + "experts." + tensor}, .order = order});
  };
  add("layer{}.experts_fc1.weight", "gate_up_proj", Order::PairsApart);
  add("layer{}.experts_fc1.bias", "gate_up_proj_bias", Order::PairsApart);
  add("layer{}.experts_fc2.weight", "down_proj", Order::Transposed);
  add("layer{}.experts_fc2.bias", "down_proj_bias", Order::AsStored);
}

/// Weights in MXFP4, as in the published files, are decoded on reading.
void noteQuantized(const ModelConfig& config, ModelForm& form) {
  if (!config.has("quantization_config")) return;
  const ModelConfig quantization = config.section("quantization_config");
  const std::string method = quantization.text("quant_method", "a quantized format");
  quantization.ignore({"modules_to_not_convert"});
  if (method != "mxfp4")
    form.notes.push_back("The experts of the files are in " + method +
                         ": save the model in bf16 with transformers before you import its weights.");
}

ModelForm form(const ModelConfig& config) {
  ModelForm form = llamaForm(config.without({"mlp_bias"}));
  form.hasQkvBias = form.hasProjectionBias = config.flag("attention_bias", true);
  form.hasSinks = true;
  setWindows(config.count("sliding_window", 128), slidingOf(config, form.layers.size()), form);
  readExperts(config, form);
  form.experts->intermediate = form.intermediate;
  form.experts->hasRouterBias = form.experts->hasBias = true;
  form.activation = "ClampedSwiGLU";
  form.activationAttributes = {{"limit", config.real("swiglu_limit", 7.0)},
                               {"alpha", config.real("swiglu_alpha", 1.702)},
                               {"glu_linear_offset", 1.0}};
  config.ignore({"experts_per_token", "initial_context_length"});
  noteQuantized(config, form);
  form = withLlamaWeights(std::move(form));
  addOssWeights(form);
  return form;
}

}  // namespace gpt_oss_parts
}  // namespace

ModelArchitecture gpt_oss() {
  using namespace gpt_oss_parts;
  return {.modelTypes = {"gpt_oss"}, .form = form};
}

}  // namespace fuseline::architectures
