// OnnxNodeFacts: a node with the known facts about its inputs, and the facts that a rule derives about its outputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_facts.h"
#include "core/export/onnx/onnx_reading.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// Integers with a shape, row-major. Booleans are 0 and 1.
struct OnnxArray {
  std::vector<std::int64_t> shape;
  OnnxExtents elements;
};

class OnnxNodeFacts {
 public:
  using Lookup = std::function<const OnnxFact*(const std::string& tensor)>;
  OnnxNodeFacts(const ::onnx::NodeProto& node, OnnxFactSymbols& symbols, const Lookup& lookup);

  const ::onnx::NodeProto& node() const { return m_node; }
  OnnxFactSymbols& symbols() { return m_symbols; }
  std::size_t numInputs() const { return m_inputs.size(); }
  std::size_t numOutputs() const { return m_outputs.size(); }

  /// Nothing is known of an input that the node does not have.
  const OnnxFact& input(std::size_t index) const;
  bool has(std::size_t index) const { return !inputOf(m_node, static_cast<int>(index)).empty(); }
  const std::optional<OnnxExtents>& shape(std::size_t index) const { return input(index).shape; }
  std::optional<std::size_t> rank(std::size_t index) const;
  std::optional<OnnxArray> array(std::size_t index) const;
  /// The values of an input, or of an attribute where older versions of the operator have it there.
  std::optional<OnnxExtents> list(std::size_t index, std::string_view attribute) const;
  /// The same, all of them numbers.
  std::optional<std::vector<std::int64_t>> numbers(std::size_t index, std::string_view attribute) const;
  std::int64_t integer(std::string_view attribute, std::int64_t otherwise) const;
  std::vector<std::int64_t> integers(std::string_view attribute) const;

  void setType(std::size_t output, std::int32_t elementType);
  void setShape(std::size_t output, std::optional<OnnxExtents> shape);
  /// An extent that nothing is known of.
  OnnxExtent fresh(std::size_t output, std::size_t axis);
  std::vector<OnnxFact>& outputs() { return m_outputs; }

 private:
  const ::onnx::NodeProto& m_node;
  OnnxFactSymbols& m_symbols;
  std::vector<const OnnxFact*> m_inputs;
  std::vector<OnnxFact> m_outputs;
};

/// Elements of a constant in the message, up to a few thousand; including whole numbers in floating point.
std::optional<OnnxExtents> integersOf(const ::onnx::TensorProto& tensor);

/// An axis counted from the front; nothing if there is no such axis.
std::optional<std::size_t> axisOf(std::int64_t axis, std::size_t rank);

/// Derives facts about the outputs from the known inputs, by the operator's name. An operator without a rule leaves
/// everything unknown.
void inferOnnxNode(OnnxNodeFacts& node);
/// Values of integer arithmetic and of movements of elements, where those of the inputs are known; after the former.
void foldOnnxNode(OnnxNodeFacts& node);

}  // namespace fuseline
