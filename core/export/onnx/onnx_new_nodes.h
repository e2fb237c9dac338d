// OnnxNewNodes: nodes that are added to a graph in front of its own, with the types of what they make.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_views.h"
#include "core/support/json.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fuseline {

using OnnxNode = ::onnx::NodeProto;

class OnnxNewNodes {
 public:
  /// All must outlive it. The reading is that of the graph as it is now.
  OnnxNewNodes(::onnx::GraphProto& graph, const OnnxReading& reading, OnnxViews& views);

  /// New nodes stand in front of this one of the graph from now on, and are called like it.
  void setPosition(int position) { m_position = position; }
  int position() const { return m_position; }

  OnnxNode& add(const char* type, const std::vector<std::string>& inputs, const std::string& output);
  /// One that stands for an op of Fuseline: onnx_attention.h.
  OnnxNode& addOperation(const char* operation, const std::vector<std::string>& inputs, const std::string& output,
                         const Json& attributes, const std::string& ports, const std::string& note = {});
  std::string addConstant(const std::string& name, const ::onnx::TensorProto& tensor);
  std::string addNumber(const std::string& name, float number);
  std::string addNumbers(const std::string& name, const std::vector<double>& numbers);  // in float32
  std::string addIntegers(const std::string& name, const std::vector<std::int64_t>& integers);
  /// A transpose of axes.
  void addTranspose(const std::string& tensor, const std::string& output, const std::vector<std::int64_t>& order);
  /// The tensor itself where it has this shape.
  std::string reshaped(const std::string& tensor, const Shape& extents);
  /// Behind the new node that makes its input, if there is one at this position, else in front of all.
  void insertBehindInput(int position, OnnxNode node);
  void removeLast() { m_added[m_position].pop_back(); }

  /// Says the type of a new tensor: extents are those of OnnxViews. like: a tensor of the same element type.
  void declare(const std::string& tensor, const Shape& extents, const std::string& like);
  void noteMade(const std::string& tensor) { m_made.insert(tensor); }
  bool hasMade(const std::string& tensor) const { return m_made.contains(tensor); }
  bool isEmpty() const { return m_made.empty(); }

  /// Puts them into the graph, without its nodes at these positions, and leaves out what nobody reads.
  void write(const std::set<int>& replaced);

 private:
  void noteExtents(const ::onnx::ValueInfoProto& value);
  std::optional<std::string> textOf(std::int64_t number) const;

  ::onnx::GraphProto& m_graph;
  const OnnxReading& m_reading;
  OnnxViews& m_views;
  int m_position = 0;
  std::map<std::int64_t, std::string> m_texts;         // of extents, by their numbers here
  std::set<std::string> m_made;                        // new tensors
  std::map<std::string, std::int32_t> m_elementTypes;  // of these
  std::map<int, std::vector<OnnxNode>> m_added;        // by the position of the node behind them
};

void setTextOf(OnnxNode& node, const char* attribute, const std::string& text);

}  // namespace fuseline
