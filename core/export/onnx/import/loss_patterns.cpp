// Classes are the last axis: of matrices only, because ONNX has them second.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_pattern_parts.h"

namespace fuseline::patterns {

namespace {

bool isMatrix(Reading graph, Name tensor) {
  const auto* const type = graph.type(tensor);
  return type && type->has_shape() && type->shape().dim_size() == 2;
}

/// The scores of a loss of logarithms of probabilities; nullptr: it has others.
const std::string* logitsOf(Reading graph, const ::onnx::NodeProto& loss) {
  if (loss.op_type() == "SoftmaxCrossEntropyLoss") return &loss.input(0);
  const auto* const softmax = graph.makerOf("LogSoftmax", loss.input(0));
  const bool isOfRows = softmax && graph.axisFromEnd(inputOf(*softmax, 0), integerOf(*softmax, "axis", -1)) == -1;
  return isOfRows ? &softmax->input(0) : nullptr;
}

}  // namespace

Found crossEntropy(Reading graph, Name tensor) {
  const auto* loss = graph.makerOf("SoftmaxCrossEntropyLoss", tensor);
  if (!loss) loss = graph.makerOf("NegativeLogLikelihoodLoss", tensor);
  if (!loss || loss->input_size() < 2 || !inputOf(*loss, 2).empty() || loss->output(0) != graph.source(tensor))
    return std::nullopt;
  const std::string &target = loss->input(1), *const logits = logitsOf(graph, *loss);
  if (!logits || !isMatrix(graph, *logits) || graph.elementType(target) != ::onnx::TensorProto::INT64)
    return std::nullopt;
  if (loss->output_size() > 1 && graph.numReaders(loss->output(1)) > 0) return std::nullopt;
  Json attributes = {{"reduction", textOf(*loss, "reduction", "mean")}};
  if (const auto* const ignored = findAttribute(*loss, "ignore_index")) attributes["ignore_index"] = ignored->i();
  return FoundOperation{
      .operation = "CrossEntropy", .attributes = std::move(attributes), .inputs = {{"x", *logits}, {"target", target}}};
}

}  // namespace fuseline::patterns
