// Recipes with one scale per tensor, as pairs of QuantizeLinear and DequantizeLinear.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_graph.h"
#include "core/quant/recipe.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fuseline {

/// Does the quantizer have one scale per tensor, and a format that ONNX supports?
bool isOnnxQuantizer(const std::optional<QuantizerSpec>& quantizer);

/// Writes the recipe's quantization of inputs and weights in fprop.
class OnnxQuantization {
 public:
  /// given: tensors of an earlier run; delayed scaling takes its scales from there.
  OnnxQuantization(const Graph& graph, const NamedTensors& given);

  /// Input 0 of the current op, quantized and dequantized, in float32; unchanged in its own dtype if the op does not
  /// quantize it.
  OnnxValue input(OnnxGraph& graph);
  /// Parameter 0, quantized and dequantized. The same otherwise.
  OnnxValue weight(OnnxGraph& graph);

  /// Differences from the recipe, in sentences.
  std::vector<std::string> notes() const;

 private:
  using Place = std::pair<NodeId, TensorType>;
  std::optional<float> givenScale(const Place& place) const;
  OnnxValue inverseScale(OnnxGraph& graph, const OnnxValue& x, const QuantizerSpec& quantizer);

  const NamedTensors& m_given;
  std::map<Place, std::string> m_scaleNames;   // of delayed scaling
  std::vector<std::string> m_followingScales;  // ops with input scales from the inputs, without a history
  std::vector<std::string> m_exactScales;      // ops with input scales that are no powers of two
};

}  // namespace fuseline
