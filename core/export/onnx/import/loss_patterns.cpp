// Classes are the last axis. ONNX has them second, so that exporters move those of more than two axes.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/kept/old_forms.h"
#include "core/export/onnx/onnx_pattern_parts.h"

namespace fuseline::patterns {

namespace {

int rankOf(Reading graph, Name tensor) {
  const auto* const type = graph.type(tensor);
  return type && type->has_shape() ? type->shape().dim_size() : 0;
}

/// Does the node make the last axis the second?
bool movesClasses(const ::onnx::NodeProto& transpose) {
  const auto* const order = findAttribute(transpose, "perm");
  if (!order || order->ints_size() < 3 || order->ints(0) != 0 || order->ints(1) != order->ints_size() - 1) return false;
  for (int axis = 2; axis < order->ints_size(); ++axis)
    if (order->ints(axis) != axis - 1) return false;
  return true;
}

/// The tensor whose last axis is the second of this one; nullptr: there is none.
const std::string* withClassesLast(Reading graph, Name tensor) {
  if (rankOf(graph, tensor) == 2) return &tensor;
  const auto* const transpose = graph.makerOf("Transpose", tensor);
  return transpose && movesClasses(*transpose) ? &transpose->input(0) : nullptr;
}

/// The scores of a loss of logarithms of probabilities, with classes last; nullptr: it has others.
const std::string* logitsOf(Reading graph, const ::onnx::NodeProto& loss) {
  if (loss.op_type() == "SoftmaxCrossEntropyLoss") return withClassesLast(graph, loss.input(0));
  const auto softmaxOver = [&](Name tensor, std::int64_t fromEnd) -> const std::string* {
    const auto* const softmax = graph.makerOf("LogSoftmax", tensor);
    const bool isIt = softmax && graph.axisFromEnd(inputOf(*softmax, 0), integerOf(*softmax, "axis", -1)) == fromEnd;
    return isIt ? &softmax->input(0) : nullptr;
  };
  if (const std::string* const moved = withClassesLast(graph, loss.input(0)))
    if (const std::string* const logits = softmaxOver(*moved, -1)) return logits;
  const int rank = rankOf(graph, loss.input(0));
  if (rank > 2 && graph.opset() < kOpsetOfSoftmaxOfOneAxis) return nullptr;  // it joins the other axes with the classes
  const std::string* const logits = softmaxOver(loss.input(0), 1 - rank);
  return logits ? withClassesLast(graph, *logits) : nullptr;
}

}  // namespace

Found crossEntropy(Reading graph, Name tensor) {
  const auto* loss = graph.makerOf("SoftmaxCrossEntropyLoss", tensor);
  if (!loss) loss = graph.makerOf("NegativeLogLikelihoodLoss", tensor);
  if (!loss || loss->input_size() < 2 || !inputOf(*loss, 2).empty() || loss->output(0) != graph.source(tensor))
    return std::nullopt;
  const std::string &target = loss->input(1), *const logits = logitsOf(graph, *loss);
  if (!logits || graph.elementType(target) != ::onnx::TensorProto::INT64) return std::nullopt;
  if (loss->output_size() > 1 && graph.numReaders(loss->output(1)) > 0) return std::nullopt;
  Json attributes = {{"reduction", textOf(*loss, "reduction", "mean")}};
  if (const auto* const ignored = findAttribute(*loss, "ignore_index")) attributes["ignore_index"] = ignored->i();
  return FoundOperation{
      .operation = "CrossEntropy", .attributes = std::move(attributes), .inputs = {{"x", *logits}, {"target", target}}};
}

}  // namespace fuseline::patterns
