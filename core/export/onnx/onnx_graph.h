// OnnxGraph: an ONNX graph that grows op by op, each of a few nodes named after it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"
#include "core/graph/graph.h"
#include "core/tensor/quantizer_spec.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace fuseline {

/// A tensor of an ONNX graph.
struct OnnxValue {
  std::string name;
  DType dtype = DType::F32;
};

using OnnxAttribute = std::pair<const char*, std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>>>;
using OnnxAttributes = std::vector<OnnxAttribute>;

/// An initializer with a type and a shape, whose data are added last: a pipeline may be viewed without its weights.
struct OnnxWeight {
  int initializer = -1;   // in GraphProto
  std::string parameter;  // "fc1.weight"
  /// Set: the quantized parameter; its scale, an initializer [], follows directly.
  std::optional<QuantizerSpec> quantizer = std::nullopt;
  std::string scaleName = {};  // of the state that contains the scale; empty: it follows from the amax
};

class OnnxGraph {
 public:
  /// Takes over names, inputs and value types of the graph, which must outlive it.
  explicit OnnxGraph(const Graph& graph, std::int64_t opset = kOnnxOpset);

  /// Version of the ops that may be written.
  std::int64_t opset() const { return m_opset; }

  /// Nodes that are added from now on are parts of this op.
  void beginOperation(NodeId id);
  NodeId id() const { return m_node; }
  const Node& operation() const { return m_graph.node(m_node); }

  // Tensors of the current op.
  OnnxValue input(int slot = 0) const;
  const TensorSpec& inputSpec(int slot = 0) const;
  const TensorSpec& outputSpec(int slot = 0) const;
  OnnxValue parameter(int slot = 0);
  /// Quantized parameter 0, and its dequantization scale.
  std::pair<OnnxValue, OnnxValue> quantizedParameter(const QuantizerSpec& quantizer, std::string scaleName);
  /// Ends an output: the last added node produces it, if that has the dtype; otherwise a Cast or an Identity does.
  void setOutput(int slot, OnnxValue value);

  /// Adds a node "norm/PART" with one output, of the dtype of its first input.
  OnnxValue add(const char* type, const std::vector<OnnxValue>& inputs, std::string_view part,
                OnnxAttributes attributes = {});
  /// Adds a node with several outputs.
  std::vector<OnnxValue> addSeveral(const char* type, const std::vector<OnnxValue>& inputs, std::size_t numOutputs,
                                    std::string_view part, OnnxAttributes attributes = {});
  /// A Reshape between these shapes. Extents that stay in front are copied, and the next is inferred: a model with
  /// another batch needs no other node.
  OnnxValue reshape(const OnnxValue& x, const Shape& from, const Shape& to, std::string_view part);
  /// Converts to another element type. Returns the value itself if it has that type.
  OnnxValue cast(const OnnxValue& value, DType dtype);
  /// Converts the result of a comparison to 1 and 0 in float32.
  OnnxValue castFromBool(const OnnxValue& value);

  // Constants are shared.
  OnnxValue number(double value);
  OnnxValue integers(const std::vector<std::int64_t>& values);
  OnnxValue integer(std::int64_t value);
  /// The extent of an axis of an input in the run, where the input has this extent; otherwise the number.
  OnnxValue extent(int slot, std::int64_t axis, std::int64_t value);
  /// float32 values of the current op.
  OnnxValue numbers(std::string_view part, const Shape& shape, const std::vector<float>& values);
  /// A scalar 0 of a float8 type, which determines the type of QuantizeLinear.
  OnnxValue zeroPoint(ElementFormat format);

  /// Adds the graph's outputs. Nothing is added afterwards. Outputs of External ops have no producer yet.
  ::onnx::GraphProto finish();
  /// Name of the tensor.
  const std::string& nameOf(ValueId value) const { return m_valueNames[static_cast<std::size_t>(value)]; }
  const std::vector<OnnxWeight>& weights() const { return m_weights; }

 private:
  std::string unique(const std::string& wish);
  std::string partName(std::string_view part) const;
  void nameValues();
  void declareInputs();
  OnnxValue castTo(const OnnxValue& value, DType dtype);
  template <class T>
  OnnxValue shared(const OnnxValue& wish, std::int32_t type, const Shape& shape, const std::vector<T>& values);
  ::onnx::TensorProto* addInitializer(const std::string& name, std::int32_t type, const Shape& shape);

  const Graph& m_graph;
  std::int64_t m_opset;
  NodeId m_node = -1;
  ::onnx::GraphProto m_proto;
  std::set<std::string, std::less<>> m_taken;
  std::map<std::string, int, std::less<>> m_numbers;  // last number appended to a name that was requested again
  std::vector<std::string> m_valueNames;
  std::map<std::pair<std::string, std::int32_t>, OnnxValue> m_constants;  // by wish and type
  std::vector<OnnxWeight> m_weights;
};

/// The type and shape of a tensor, its extents as numbers.
void setType(::onnx::ValueInfoProto& info, const TensorSpec& spec);

}  // namespace fuseline
