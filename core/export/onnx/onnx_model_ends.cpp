// Gather, MatMul and SoftmaxCrossEntropyLoss.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_model_ends.h"

#include "core/ops/cross_entropy_form.h"
#include "core/ops/embedding_form.h"

#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// 0, 1, 2 and so on along the last axis of the ids.
OnnxValue positionsOf(OnnxGraph& graph) {
  const std::int64_t tokens = graph.inputSpec().cols();
  const OnnxValue range = graph.add("Range", {graph.integer(0), graph.integer(tokens), graph.integer(1)}, "range");
  return graph.add("Expand", {range, graph.add("Shape", {graph.input()}, "shape")}, "positions");
}

}  // namespace

void addOnnxEmbedding(OnnxGraph& graph) {
  const EmbeddingForm form = embeddingForm(graph.operation().attributes);
  const OnnxValue rows = form.usesPositions ? positionsOf(graph) : graph.input();
  const OnnxValue table = graph.parameter();
  graph.setOutput(0, graph.add("Gather", {table, rows}, "rows", {{"axis", std::int64_t{0}}}));
  if (form.sharesWeight) graph.setOutput(1, table);
}

void addOnnxTiedLinear(OnnxGraph& graph) {
  const OnnxValue weight =
      graph.add("Transpose", {graph.input(1)}, "weight_transposed", {{"perm", std::vector<std::int64_t>{1, 0}}});
  graph.setOutput(0, graph.add("MatMul", {graph.input(), weight}, "product"));
}

Result<void> addOnnxCrossEntropy(OnnxGraph& graph) {
  const Node& node = graph.operation();
  const CrossEntropyForm form = crossEntropyForm(node.attributes);
  if (form.smoothing > 0.0 || form.lseSquareScale > 0.0)
    return Error{fmt::format("{}: CrossEntropy cannot be expressed in ONNX with {}. Set it to 0.", node.id,
                             form.smoothing > 0.0 ? "label_smoothing" : "lse_square_scale")};
  const OnnxValue x = graph.cast(graph.input(CrossEntropyForm::kLogits), DType::F32);
  const OnnxValue rows = graph.add("Reshape", {x, graph.integers({-1, graph.inputSpec().cols()})}, "rows");
  const OnnxValue target = graph.input(CrossEntropyForm::kTarget);
  const OnnxValue labels = graph.add("Reshape", {target, graph.integers({-1})}, "labels");
  const OnnxValue loss =
      graph.add("SoftmaxCrossEntropyLoss", {rows, labels}, "loss",
                {{"ignore_index", form.ignoreIndex}, {"reduction", node.attributes.text("reduction")}});
  const bool isByRow = form.reduction == LossReduction::None;
  graph.setOutput(0, isByRow ? graph.add("Reshape", {loss, graph.add("Shape", {target}, "shape")}, "shaped") : loss);
  return {};
}

}  // namespace fuseline
