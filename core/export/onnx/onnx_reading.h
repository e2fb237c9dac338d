// OnnxReading: reads an ONNX graph from its outputs: the producers of tensors, and the constants.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"
#include "core/tensor/tensor_spec.h"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

class OnnxReading {
 public:
  /// The graph must outlive it. opset: of its standard ops.
  explicit OnnxReading(const ::onnx::GraphProto& graph, std::int64_t opset = kOnnxOpset);

  std::int64_t opset() const { return m_opset; }

  const ::onnx::GraphProto& graph() const { return m_graph; }
  /// The tensor that this one equals, upstream of nodes that pass their input on: Identity, Dropout, Cast, a Concat
  /// with nothing, pairs of Transpose that cancel, and pairs of QuantizeLinear and DequantizeLinear.
  const std::string& source(const std::string& tensor) const;
  /// The node that produces it, or its source; nullptr for inputs and initializers.
  const ::onnx::NodeProto* maker(const std::string& tensor) const;
  /// The maker, if it is one of this type of the standard ops.
  const ::onnx::NodeProto* makerOf(std::string_view type, const std::string& tensor) const;
  /// Position of its producer among the nodes; -1 for inputs and initializers.
  int position(const std::string& tensor) const;
  /// How many nodes read it, and outputs are it, which do not only pass it on.
  int numReaders(const std::string& tensor) const;

  /// An initializer, or the value of a Constant; nullptr if it is computed.
  const ::onnx::TensorProto* constant(const std::string& tensor) const;
  /// Value of a constant with one element. Nothing: it has more elements, or its data are stored elsewhere.
  std::optional<double> number(const std::string& tensor) const;
  /// Elements of a constant of int64.
  std::optional<std::vector<std::int64_t>> integers(const std::string& tensor) const;
  bool isNumber(const std::string& tensor, double value) const;
  /// How far a constant may be from its original number, relative to it: by the rounding to its dtype, or to that of
  /// the model, if it was converted back to f32.
  double roundingOf(const std::string& number) const;
  /// Was the tensor quantized and dequantized on its way?
  bool isRequantized(const std::string& tensor) const;

  /// TensorProto.DataType: as declared in the graph, or that of its node's input. 0 if neither is known, as in a graph
  /// whose nodes are not in execution order.
  std::int32_t elementType(const std::string& tensor) const;
  /// Does it have tensors of several floating-point types?
  bool isMixed() const;
  /// The type to which all consumers convert it; nothing if a consumer reads it unconverted.
  std::optional<DType> readAs(const std::string& tensor) const;
  /// Its declared element type and shape; nullptr if there is no declaration.
  const ::onnx::TypeProto::Tensor* type(const std::string& tensor) const;
  /// The axis, counted from the end: -1 is the last one. Nothing: it is counted from the front, and the graph does not
  /// declare the rank.
  std::optional<std::int64_t> axisFromEnd(const std::string& tensor, std::int64_t axis) const;

 private:
  void noteType(const ::onnx::ValueInfoProto& value);
  void noteMaker(int position);
  std::int32_t elementTypeMadeBy(const ::onnx::NodeProto& node) const;
  const std::string* passedOn(const ::onnx::NodeProto& node) const;
  const std::string* onlyPart(const ::onnx::NodeProto& concat) const;
  const std::string* undone(const ::onnx::NodeProto& node) const;
  bool hasSameCodes(const ::onnx::NodeProto& quantize, const ::onnx::NodeProto& dequantize) const;
  bool has(DType dtype) const;
  void noteReaders(const ::onnx::NodeProto& node);

  const ::onnx::GraphProto& m_graph;
  std::int64_t m_opset;
  std::map<std::string, int, std::less<>> m_makers;  // positions of nodes
  std::map<std::string, const ::onnx::TensorProto*, std::less<>> m_constants;
  std::map<std::string, std::string, std::less<>> m_sources;
  std::map<std::string, int, std::less<>> m_readers;
  std::map<std::string, std::optional<DType>, std::less<>> m_readAs;
  std::map<std::string, const ::onnx::TypeProto::Tensor*, std::less<>> m_types;
  std::map<std::string, std::int32_t, std::less<>> m_elementTypes;  // of the nodes' outputs
  std::set<std::int32_t> m_typesOfModel;                            // of tensors with a known type
  std::set<std::string, std::less<>> m_dequantized;                 // quantized tensors that are dequantized at once
};

Shape shapeOf(const ::onnx::TensorProto& tensor);
/// Does the dtype represent all elements? True as well if they are stored in another file.
bool isExactIn(const ::onnx::TensorProto& constant, DType dtype);
/// The elements of a tensor with two bytes per element, each stored in a separate int32.
std::vector<std::uint16_t> halfBits(const ::onnx::TensorProto& tensor);
/// For f32, f16 and bf16.
std::optional<DType> floatTypeOf(std::int32_t type);

const ::onnx::AttributeProto* findAttribute(const ::onnx::NodeProto& node, std::string_view name);
std::int64_t integerOf(const ::onnx::NodeProto& node, std::string_view name, std::int64_t otherwise);
double realOf(const ::onnx::NodeProto& node, std::string_view name, double otherwise);
std::string textOf(const ::onnx::NodeProto& node, std::string_view name, std::string_view otherwise);
/// Names of tensors that a node reads: its inputs, and outer tensors that its subgraphs read.
std::vector<std::string> readBy(const ::onnx::NodeProto& node);
/// An empty name for an index beyond the node's inputs, as for an omitted input.
const std::string& inputOf(const ::onnx::NodeProto& node, int index);

}  // namespace fuseline
