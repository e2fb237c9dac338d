// QuantizeLinear divides by the factor with which DequantizeLinear multiplies: the inverse of a scale.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_quantization.h"

#include "core/export/onnx/name_list.h"
#include "core/quant/apply_recipe.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace fuseline {

bool isOnnxQuantizer(const std::optional<QuantizerSpec>& quantizer) {
  return quantizer && quantizer->scaling == Scaling::PerTensor && quantizer->format != ElementFormat::E2M1;
}

OnnxQuantization::OnnxQuantization(const Graph& graph, const NamedTensors& given) : m_given(given) {
  for (const QuantizerState& state : quantizerStates(graph))
    m_scaleNames.emplace(Place(state.node, state.type), state.scaleName);
}

std::optional<float> OnnxQuantization::givenScale(const Place& place) const {
  const auto name = m_scaleNames.find(place);
  if (name == m_scaleNames.end()) return std::nullopt;
  const auto tensor = std::ranges::find(m_given, name->second, &NamedTensors::value_type::first);
  if (tensor == m_given.end() || tensor->second.spec.numElements() != 1) return std::nullopt;
  const auto scale = static_cast<float>(tensor->second.toDoubles().front());
  return std::isfinite(scale) && scale > 0.0F ? std::optional(scale) : std::nullopt;
}

OnnxValue OnnxQuantization::input(OnnxGraph& graph) {
  const std::optional<QuantizerSpec>& quantizer = graph.operation().quantizers.input.rowwise;
  if (!isOnnxQuantizer(quantizer)) return graph.input();
  const OnnxValue x = graph.cast(graph.input(), DType::F32);
  const OnnxValue inverse = inverseScale(graph, x, *quantizer);
  const OnnxValue codes = graph.add("QuantizeLinear", {x, inverse, graph.zeroPoint(quantizer->format)}, "codes");
  return {graph.add("DequantizeLinear", {codes, inverse}, "input").name, DType::F32};
}

OnnxValue OnnxQuantization::weight(OnnxGraph& graph) {
  const std::optional<QuantizerSpec>& quantizer = graph.operation().quantizers.weight.rowwise;
  if (!isOnnxQuantizer(quantizer)) return graph.parameter();
  const Place place(graph.id(), TensorType::Weight);
  const auto [codes, inverse] =
      graph.quantizedParameter(*quantizer, givenScale(place) ? m_scaleNames.at(place) : std::string());
  return {graph.add("DequantizeLinear", {codes, inverse}, "weight").name, DType::F32};
}

/// max |x| / the largest code, and 1 of a tensor of zeros. x: float32; result: a scalar.
OnnxValue OnnxQuantization::inverseScale(OnnxGraph& graph, const OnnxValue& x, const QuantizerSpec& quantizer) {
  const Place place(graph.id(), TensorType::Input);
  if (const std::optional<float> scale = givenScale(place)) return graph.number(1.0F / *scale);
  if (m_scaleNames.contains(place)) m_followingScales.push_back(graph.operation().id);
  if (quantizer.scale.isPowerOfTwo) m_exactScales.push_back(graph.operation().id);
  OnnxValue amax = graph.add("ReduceMax", {graph.add("Abs", {x}, "abs")}, "amax", {{"keepdims", std::int64_t{0}}});
  if (quantizer.scale.epsilon > 0.0F)
    amax = graph.add("Max", {amax, graph.number(quantizer.scale.epsilon)}, "amax_at_least");
  const OnnxValue isPositive = graph.add("Greater", {amax, graph.number(0.0)}, "is_positive");
  const OnnxValue inverse = graph.add("Div", {amax, graph.number(maxFinite(quantizer.format))}, "amax_by_max");
  return {graph.add("Where", {isPositive, inverse, graph.number(1.0)}, "scale_inv").name, DType::F32};
}

std::vector<std::string> OnnxQuantization::notes() const {
  std::vector<std::string> notes;
  if (!m_followingScales.empty())
    notes.push_back(
        fmt::format("{}: no amax history is known, so inputs get current scales. For those of a run: `fuseline run "
                    "--save STATE.safetensors`, then --tensors STATE.safetensors.",
                    nameList(m_followingScales)));
  if (!m_exactScales.empty())
    notes.push_back(fmt::format("{}: the recipe rounds scales of inputs to powers of two; the model does not.",
                                nameList(m_exactScales)));
  return notes;
}

}  // namespace fuseline
