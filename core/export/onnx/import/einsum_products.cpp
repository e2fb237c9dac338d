// Finds them by their equations.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/einsum_products.h"

#include "core/export/onnx/import/einsum_terms.h"
#include "core/export/onnx/onnx_reading.h"

#include <algorithm>
#include <optional>
#include <string>

namespace fuseline {

namespace {

enum class MatrixOrder { InOut, OutIn };

/// Nothing: it is another sum.
std::optional<MatrixOrder> matrixOrder(const EinsumTerms& terms) {
  if (terms.inputs.size() != 2 || terms.inputs[0].size() < 2 || terms.inputs[1].size() != 2 || terms.output.empty())
    return std::nullopt;
  const std::string &x = terms.inputs[0], &matrix = terms.inputs[1];
  const std::string rows = x.substr(0, x.size() - 1);
  const char in = x.back(), out = terms.output.back();
  const bool isShared = rows.find_first_of(matrix) != std::string::npos || rows.find(in) != std::string::npos;
  if (terms.output != rows + out || in == '.' || out == '.' || in == out || isShared) return std::nullopt;
  if (matrix == std::string{in, out}) return MatrixOrder::InOut;
  return matrix == std::string{out, in} ? std::optional(MatrixOrder::OutIn) : std::nullopt;
}

bool isEinsum(const ::onnx::NodeProto& node) {
  return node.domain().empty() && node.op_type() == "Einsum" && node.input_size() == 2 && node.output_size() == 1;
}

/// Makes the second input the transposed one.
void turnMatrix(::onnx::NodeProto& product, ::onnx::NodeProto& transpose) {
  transpose.set_op_type("Transpose");
  transpose.set_name(product.name() + "/matrix");
  transpose.add_input(product.input(1));
  transpose.add_output(product.output(0) + "/matrix");
  product.set_input(1, transpose.output(0));
}

}  // namespace

void writeEinsumsAsProducts(::onnx::GraphProto& graph) {
  if (std::ranges::none_of(graph.node(), isEinsum)) return;
  ::google::protobuf::RepeatedPtrField<::onnx::NodeProto> nodes;
  for (::onnx::NodeProto& node : *graph.mutable_node()) {
    const auto terms = isEinsum(node) ? einsumTerms(textOf(node, "equation", "")) : std::nullopt;
    if (const auto order = terms ? matrixOrder(*terms) : std::nullopt) {
      node.set_op_type("MatMul");
      node.clear_attribute();
      if (*order == MatrixOrder::OutIn) turnMatrix(node, *nodes.Add());
    }
    *nodes.Add() = node;
  }
  graph.mutable_node()->Swap(&nodes);
}

}  // namespace fuseline
