// OnnxReading: looks at an ONNX graph from its outputs: who makes a tensor, and which tensors are constants.
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
  /// The graph must outlive it.
  explicit OnnxReading(const ::onnx::GraphProto& graph);

  const ::onnx::GraphProto& graph() const { return m_graph; }
  /// The tensor that this one is, behind nodes that pass their input on: Identity, Dropout, Cast, pairs of Transpose
  /// that cancel, and pairs of QuantizeLinear and DequantizeLinear.
  const std::string& source(const std::string& tensor) const;
  /// The node that makes it, or its source; nullptr for inputs and initialisers.
  const ::onnx::NodeProto* maker(const std::string& tensor) const;
  /// The maker, if it is one of this type of the standard ops.
  const ::onnx::NodeProto* makerOf(std::string_view type, const std::string& tensor) const;
  /// Of its maker among the nodes; -1 for inputs and initialisers.
  int position(const std::string& tensor) const;
  /// How many nodes read it, and outputs are it, which do not only pass it on.
  int numReaders(const std::string& tensor) const;

  /// An initialiser, or what a Constant holds; nullptr where it is computed.
  const ::onnx::TensorProto* constant(const std::string& tensor) const;
  /// Of a constant with one element. Nothing: it has more, or its data stand elsewhere.
  std::optional<double> number(const std::string& tensor) const;
  /// Of a constant of int64.
  std::optional<std::vector<std::int64_t>> integers(const std::string& tensor) const;
  bool isNumber(const std::string& tensor, double value) const;
  /// How far a constant may be from the number that it was made of, relative to it: by the rounding to its dtype, or to
  /// that of the model, where it was converted back to f32.
  double roundingOf(const std::string& number) const;
  /// Was the tensor quantized and brought back on its way?
  bool isRequantized(const std::string& tensor) const;

  /// TensorProto.DataType: what the graph says of it, or that of what it is computed of. 0 where neither is known,
  /// as in a graph whose nodes do not stand in the order in which they run.
  std::int32_t elementType(const std::string& tensor) const;
  /// Has it tensors of several floating-point types?
  bool isMixed() const;
  /// What all who read it convert it to; nothing where somebody reads it as it is.
  std::optional<DType> readAs(const std::string& tensor) const;
  /// What the graph says of its element type and shape; nullptr where it says nothing.
  const ::onnx::TypeProto::Tensor* type(const std::string& tensor) const;
  /// The axis, counted from the end: -1 is the last one. Nothing: it is counted from the front, and the graph does not
  /// say how many there are.
  std::optional<std::int64_t> axisFromEnd(const std::string& tensor, std::int64_t axis) const;

 private:
  void noteType(const ::onnx::ValueInfoProto& value);
  void noteMaker(int position);
  std::int32_t elementTypeMadeBy(const ::onnx::NodeProto& node) const;
  const std::string* passedOn(const ::onnx::NodeProto& node) const;
  const std::string* undone(const ::onnx::NodeProto& node) const;
  bool has(DType dtype) const;
  void noteReaders(const ::onnx::NodeProto& node);

  const ::onnx::GraphProto& m_graph;
  std::map<std::string, int, std::less<>> m_makers;  // positions of nodes
  std::map<std::string, const ::onnx::TensorProto*, std::less<>> m_constants;
  std::map<std::string, std::string, std::less<>> m_sources;
  std::map<std::string, int, std::less<>> m_readers;
  std::map<std::string, std::optional<DType>, std::less<>> m_readAs;
  std::map<std::string, const ::onnx::TypeProto::Tensor*, std::less<>> m_types;
  std::map<std::string, std::int32_t, std::less<>> m_elementTypes;  // of what nodes make
  std::set<std::int32_t> m_typesOfModel;                            // of tensors whose type is known
  std::set<std::string, std::less<>> m_dequantized;                 // codes that are brought back at once
};

Shape shapeOf(const ::onnx::TensorProto& tensor);
/// The elements of a tensor of two bytes an element, which has each in an int32 of its own.
std::vector<std::uint16_t> halfBits(const ::onnx::TensorProto& tensor);
/// Of f32, f16 and bf16.
std::optional<DType> floatTypeOf(std::int32_t type);

const ::onnx::AttributeProto* findAttribute(const ::onnx::NodeProto& node, std::string_view name);
std::int64_t integerOf(const ::onnx::NodeProto& node, std::string_view name, std::int64_t otherwise);
double realOf(const ::onnx::NodeProto& node, std::string_view name, double otherwise);
std::string textOf(const ::onnx::NodeProto& node, std::string_view name, std::string_view otherwise);
/// Names of tensors that a node reads: its inputs, and what its subgraphs take from around them.
std::vector<std::string> readBy(const ::onnx::NodeProto& node);
/// Of a node with fewer inputs an empty name, as of one that is left out.
const std::string& inputOf(const ::onnx::NodeProto& node, int index);

}  // namespace fuseline
