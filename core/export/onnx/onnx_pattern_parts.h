// Shared parts of functions that find ops in an ONNX graph. Each begins at the last node and searches upstream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_patterns.h"

#include <optional>
#include <string>

namespace fuseline::patterns {

using Reading = const OnnxReading&;
using Found = std::optional<FoundOperation>;
using Name = const std::string&;

/// Calls f(a, b), then f(b, a), with the inputs of a node of two, until one finds something.
template <class Function>
auto eitherWay(const ::onnx::NodeProto& node, Function f) -> decltype(f(node.input(0), node.input(0))) {
  if (node.input_size() != 2) return {};
  if (auto found = f(node.input(0), node.input(1))) return found;
  return f(node.input(1), node.input(0));
}

/// The two inputs of a node of this type, as f finds them in either order.
template <class Function>
auto ofTwo(Reading graph, const char* type, Name tensor, Function f) -> decltype(f(std::string(), std::string())) {
  const ::onnx::NodeProto* const node = graph.makerOf(type, tensor);
  if (!node) return {};
  return eitherWay(*node, f);
}

inline bool isSame(Reading graph, Name a, Name b) { return graph.source(a) == graph.source(b); }

/// The shortest number that equals this one in f32, as the author of the model wrote it: 1e-05.
double shortest(double value);
/// A constant of floating-point numbers; nullptr: it is not one.
const ::onnx::TensorProto* weight(Reading graph, Name tensor);
/// The dtype in which nodes read a constant: the model may convert it first.
DType dtypeRead(Reading graph, Name tensor, const ::onnx::TensorProto& constant);
/// A constant vector, [H] or [1, .., H].
const ::onnx::TensorProto* vectorWeight(Reading graph, Name tensor);
/// One number a column of a tensor with `extent` columns, or one for all.
std::optional<FoundWeight> rowWeight(Reading graph, Name tensor, const char* parameter, std::int64_t extent);
/// The last extent of a tensor, if the graph declares it.
std::optional<std::int64_t> lastExtent(Reading graph, Name tensor);
/// Are the shapes the same, as far as the graph knows?
bool mayHaveSameShape(Reading graph, Name a, Name b);

/// How many of the last axes of x the node reduces. 0 for other axes, and for those that the graph does not say.
std::size_t numLastAxes(Reading graph, const ::onnx::NodeProto& reduction, Name x);

/// A node that stands for an op of Fuseline: onnx_attention.h.
Found wholeOperation(Reading graph, Name tensor);
/// Along the last axis, with widths that are numbers.
Found splitColumns(Reading graph, Name tensor);
Found joinColumns(Reading graph, Name tensor);

// The ops that end with the maker of a tensor.
Found layerNorm(Reading graph, Name tensor);
Found rmsNorm(Reading graph, Name tensor);
/// Without a weight: those of the op are 1.
Found plainNorm(Reading graph, Name tensor);
/// The same in any order of operations, found by computing them.
Found sampledNorm(Reading graph, Name tensor);
Found l2Normalization(Reading graph, Name tensor);
Found gate(Reading graph, Name tensor);
Found activation(Reading graph, Name tensor);
Found sampledActivation(Reading graph, Name tensor);
/// SoftmaxCrossEntropyLoss, or NegativeLogLikelihoodLoss of a LogSoftmax.
Found crossEntropy(Reading graph, Name tensor);
/// Any node with a function in Formula's language.
Found formula(Reading graph, Name tensor);

}  // namespace fuseline::patterns
