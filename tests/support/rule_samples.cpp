// Minimal pipelines for every rule.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/rule_samples.h"

#include <map>

namespace fuseline::testing {

namespace {

Link mode(Link link, std::string value) { return with(std::move(link), "tensor_parallel_mode", std::move(value)); }

Link save() { return link("MakeExtraOutput", "save"); }

const ChainOptions kReadBranch{.extraOutputs = {"save.extra"}};

std::map<std::string, std::vector<RuleSample>> makeSamples() {
  const Link add = link("AddExtraInput", "add");
  const Link bias = link("Bias", "bias");
  return {
      {"ForwardLinearBiasAdd",
       {{"without bias", {linear(16), inPlace(add)}, {}},
        {"with bias", {linear(16), bias, inPlace(add)}, {}},
        {"residual from the start",
         {save(), linear(16), bias, inPlace(link("AddExtraInput", "add", "save.extra"))},
         {}}}},
      {"ForwardLinearScaleAdd",
       {{"plain", {linear(16), link("ConstantScale"), inPlace(add)}, {}},
        {"to nothing", {linear(16), with(link("ConstantScale"), "scale", 0.0), inPlace(add)}, {}}}},
      {"ForwardLinearBiasActivation", {{"plain", {linear(16), bias}, {}}}},
      {"ForwardLinearBiasGelu", {{"plain", {linear(16), bias, link("GELU")}, {}}}},
      {"ForwardAddNorm",
       {{"RMSNorm", {add, link("RMSNorm")}, {}},
        {"LayerNorm", {add, link("LayerNorm")}, {}},
        {"with a branch between", {add, save(), link("RMSNorm")}, kReadBranch}}},
      {"ForwardElementwiseChain",
       {{"two ops", {bias, link("GELU")}, {}},
        {"five ops", {link("ConstantScale"), bias, link("GELU"), add, link("Identity"), link("ConstantScale")}, {}},
        {"gated first", {link("SwiGLU"), bias, link("ConstantScale")}, {}},
        {"scaled rows first", {link("ScaledSwiGLU"), bias, link("ScaledSReLU")}, {}},
        {"dropouts", {link("Dropout"), bias, link("Dropout"), add}, {}},
        {"with a branch inside", {bias, save(), link("GELU")}, kReadBranch}}},
      {"BackwardLinearAdd",
       {{"branch read", {inPlace(save()), linear(16)}, kReadBranch},
        {"branch unread", {inPlace(save()), linear(16)}, {}}}},
      {"BackwardLinearScale",
       {{"plain", {linear(16), link("ConstantScale")}, {}},
        {"negative", {linear(24), with(link("ConstantScale"), "scale", -2.5)}, {}},
        {"many rows", {linear(16), with(link("ConstantScale"), "scale", 3.5), link("GELU")}, {}}}},
      {"BackwardAddRMSNorm",
       {{"branch read", {save(), link("RMSNorm")}, kReadBranch},
        {"branch unread", {save(), link("RMSNorm")}, {}},
        {"zero-centred", {save(), with(link("RMSNorm"), "zero_centered_gamma", true)}, kReadBranch}}},
      {"BackwardAddLayerNorm", {{"branch read", {save(), link("LayerNorm")}, kReadBranch}}},
      {"BackwardBiasSwiGLU",
       {{"plain", {bias, link("SwiGLU")}, {}},
        {"interleaved", {bias, with(link("SwiGLU"), "glu_interleave_size", std::int64_t{4})}, {}}}},
      {"BackwardElementwiseChain",
       {{"two ops", {bias, link("GELU")}, {}},
        {"four ops", {link("ConstantScale"), bias, link("GELU"), add}, {}},
        {"gated first", {link("SwiGLU"), bias}, {}},
        {"scaled rows first", {link("ScaledSwiGLU"), bias, link("ScaledSReLU")}, {}},
        {"dropouts", {link("Dropout"), bias, link("Dropout"), add}, {}},
        {"with a branch inside", {bias, save(), link("GELU")}, kReadBranch}}},
      {"ForwardBackwardSwiGLULinear",
       {{"plain", {link("SwiGLU"), linear(24)}, {}},
        {"interleaved", {with(link("SwiGLU"), "glu_interleave_size", std::int64_t{4}), linear(24)}, {}},
        {"with a residual", {link("SwiGLU"), linear(24), add}, {}},
        {"with an upstream op", {link("RMSNorm"), link("SwiGLU"), linear(24)}, {}}}},
  };
}

std::map<std::string, std::vector<RefusalSample>> makeRefusals() {
  const Link add = link("AddExtraInput", "add");
  const Link bias = link("Bias", "bias");
  const Link f32Norm = with(link("RMSNorm"), "dtype", std::string("f32"));
  const Link f32LayerNorm = with(link("LayerNorm"), "dtype", std::string("f32"));
  return {
      {"ForwardLinearBiasAdd",
       {{0, DType::BF16, {mode(linear(16), "row"), inPlace(add)}, {}}, {1, DType::BF16, {linear(16), add}, {}}}},
      {"ForwardLinearBiasActivation",
       {{0, DType::BF16, {mode(linear(16), "row"), bias}, {}}, {1, DType::F32, {linear(16), bias}, {}}}},
      {"ForwardLinearScaleAdd",
       {{0, DType::BF16, {mode(linear(16), "row"), link("ConstantScale"), inPlace(add)}, {}},
        {1, DType::BF16, {linear(16), link("ConstantScale"), add}, {}},
        {2,
         DType::BF16,
         {save(), with(linear(16), "dtype", std::string("f32")), link("ConstantScale"),
          inPlace(link("AddExtraInput", "add", "save.extra"))},
         {}}}},
      {"BackwardLinearScale", {{0, DType::BF16, {mode(linear(16), "column"), link("ConstantScale")}, {}}}},
      {"ForwardLinearBiasGelu", {{0, DType::BF16, {mode(linear(16), "row"), bias, link("GELU")}, {}}}},
      {"ForwardAddNorm", {{0, DType::BF16, {add, f32Norm}, {}}}},
      {"BackwardLinearAdd",
       {{0, DType::BF16, {save(), linear(16)}, kReadBranch},
        {1, DType::BF16, {inPlace(save()), mode(linear(16), "column")}, kReadBranch}}},
      {"BackwardAddRMSNorm", {{0, DType::BF16, {inPlace(save()), link("RMSNorm")}, kReadBranch}}},
      {"BackwardAddLayerNorm", {{0, DType::BF16, {save(), f32LayerNorm}, kReadBranch}}},
      {"ForwardBackwardSwiGLULinear",
       {{0, DType::BF16, {link("SwiGLU"), mode(linear(24), "row")}, {}},
        {1, DType::BF16, {link("SwiGLU"), mode(linear(24), "column")}, {}}}},
  };
}

template <class Map>
typename Map::mapped_type lookUp(const Map& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? typename Map::mapped_type{} : found->second;
}

}  // namespace

std::vector<RuleSample> ruleSamples(const std::string& rule) {
  static const auto samples = makeSamples();
  return lookUp(samples, rule);
}

RuleSwitches everythingAsked(const RuleCatalog& catalog) {
  RuleSwitches switches;
  for (const FusionRule* rule : catalog.all())
    if (!rule->price.empty()) switches.with.push_back(rule->name);
  return switches;
}

std::vector<RefusalSample> refusalSamples(const std::string& rule) {
  static const auto samples = makeRefusals();
  return lookUp(samples, rule);
}

}  // namespace fuseline::testing
