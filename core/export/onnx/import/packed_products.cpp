// One function per op. Source: ONNX Runtime, docs/ContribOperators.md.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/packed_products.h"

#include "core/export/onnx/onnx_reading.h"
#include "core/export/onnx/onnx_weights.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

using Names = std::vector<std::string>;
using Bytes = std::vector<std::byte>;

constexpr const char* kContribDomain = "com.microsoft";
constexpr std::int64_t kMostCodes = std::int64_t{1} << 33;

/// Elements of a few bits in rows that begin with a byte, the first in the lowest bits; each becomes a byte.
std::optional<std::string> unpacked(const Bytes& packed, std::int64_t rows, std::int64_t cols, std::int64_t bits) {
  if (rows <= 0 || packed.size() % static_cast<std::size_t>(rows) != 0) return std::nullopt;
  const std::int64_t rowBytes = static_cast<std::int64_t>(packed.size()) / rows;
  if (rowBytes * 8 < cols * bits) return std::nullopt;
  std::string codes;
  codes.reserve(static_cast<std::size_t>(rows * cols));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t col = 0; col < cols; ++col) {
      const std::int64_t bit = col * bits;
      const auto byte = std::to_integer<unsigned>(packed[static_cast<std::size_t>(row * rowBytes + bit / 8)]);
      codes.push_back(static_cast<char>(byte >> (bit % 8) & ((1U << bits) - 1)));
    }
  return codes;
}

class PackedProducts {
 public:
  PackedProducts(::onnx::GraphProto& graph, const std::filesystem::path& folder)
      : m_graph(graph), m_folder(folder), m_reading(graph) {}

  void run() {
    for (const ::onnx::NodeProto& node : m_graph.node()) {
      m_node = node;
      if (!isSplit()) *m_nodes.Add() = node;
    }
    m_graph.mutable_node()->Swap(&m_nodes);
    for (::onnx::TensorProto& constant : m_constants) *m_graph.add_initializer() = std::move(constant);
  }

 private:
  bool isSplit() {
    if (m_node.domain() != kContribDomain || m_node.output_size() == 0) return false;
    if (m_node.op_type() == "MatMulNBits") return isDequantized();
    if (m_node.op_type() == "DynamicQuantizeMatMul") return addDynamicProduct();
    if (m_node.op_type() != "MatMulIntegerToFloat") return false;
    addIntegerProduct({input(0), input(1), input(4), input(5)}, input(2), input(3), input(6));
    return true;
  }

  // ---- new nodes

  const std::string& input(int index) const { return inputOf(m_node, index); }
  std::string nameOf(const char* part) const { return fmt::format("{}/{}", m_node.output(0), part); }

  std::string make(const char* type, const Names& inputs, const std::string& output, const char* part) {
    ::onnx::NodeProto& made = *m_nodes.Add();
    made.set_op_type(type);
    // Ops are named after the product.
    const bool isProduct = output == lastOf("") || output == lastOf("bias");
    made.set_name(isProduct ? m_node.name() : fmt::format("{}/{}", m_node.name(), part));
    for (const std::string& each : inputs) made.add_input(each);
    made.add_output(output);
    return output;
  }
  std::string make(const char* type, const Names& inputs, const char* part) {
    return make(type, inputs, nameOf(part), part);
  }

  void set(const char* name, std::int64_t value) {
    ::onnx::AttributeProto& made = *m_nodes.rbegin()->add_attribute();
    made.set_name(name);
    made.set_type(::onnx::AttributeProto::INT);
    made.set_i(value);
  }

  std::string codes(const char* part, std::int64_t rows, std::int64_t cols, std::string bytes) {
    ::onnx::TensorProto& tensor = m_constants.emplace_back();
    tensor.set_name(nameOf(part));
    tensor.set_data_type(::onnx::TensorProto::UINT8);
    tensor.add_dims(rows);
    tensor.add_dims(cols);
    tensor.set_raw_data(std::move(bytes));
    return tensor.name();
  }

  std::string lastOf(const std::string& bias) const { return bias.empty() ? m_node.output(0) : nameOf("product"); }
  void addBias(const std::string& bias) {
    if (!bias.empty()) make("Add", {nameOf("product"), bias}, m_node.output(0), "bias");
  }

  // ---- MatMulNBits

  /// B: [N, blocks, bytes of a block]; scales: one for each block; zero points: codes of a row beside each other.
  bool isDequantized() {
    const std::int64_t K = integerOf(m_node, "K", 0), N = integerOf(m_node, "N", 0),
                       bits = integerOf(m_node, "bits", 4), block = integerOf(m_node, "block_size", 0);
    const bool isKnown = K > 0 && N > 0 && block > 0 && K <= kMostCodes / N && (bits == 2 || bits == 4 || bits == 8);
    if (!isKnown || !input(4).empty()) return false;
    const std::int64_t blocks = (K + block - 1) / block;
    const auto weight = unpackedInput(1, N, K, bits);
    auto zeros =
        input(3).empty()
            ? std::optional(std::string(static_cast<std::size_t>(N * blocks), static_cast<char>(1 << (bits - 1))))
            : unpackedInput(3, N, blocks, bits);
    const auto* const scale = m_reading.constant(input(2));
    if (!weight || !zeros || !scale || numElements(shapeOf(*scale)) != N * blocks) return false;
    ::onnx::TensorProto& scales = m_constants.emplace_back(*scale);
    scales.set_name(nameOf("scales"));
    scales.clear_dims();
    scales.add_dims(N);
    scales.add_dims(blocks);
    const std::string ofScales = scales.name();
    const std::string W = make("DequantizeLinear",
                               {codes("codes", N, K, *weight), ofScales, codes("zero_points", N, blocks, *zeros)}, "W");
    set("axis", 1);
    set("block_size", block);
    const std::string turned = make("Transpose", {W}, "W_turned");
    ::onnx::AttributeProto& perm = *m_nodes.rbegin()->add_attribute();
    perm.set_name("perm");
    perm.set_type(::onnx::AttributeProto::INTS);
    perm.add_ints(1);
    perm.add_ints(0);
    make("MatMul", {input(0), turned}, lastOf(input(5)), "product");
    addBias(input(5));
    return true;
  }

  std::optional<std::string> unpackedInput(int index, std::int64_t rows, std::int64_t cols, std::int64_t bits) const {
    const auto* const packed = m_reading.constant(input(index));
    if (!packed || packed->data_type() != ::onnx::TensorProto::UINT8) return std::nullopt;
    const Result<Bytes> bytes = elementBytes(*packed, m_folder);
    return bytes ? unpacked(*bytes, rows, cols, bits) : std::nullopt;
  }

  // ---- products of integers

  bool addDynamicProduct() {
    const Names parts = {nameOf("codes"), nameOf("scale"), nameOf("zero_point")};
    make("DynamicQuantizeLinear", {input(0)}, parts[0], "quantize");
    m_nodes.rbegin()->add_output(parts[1]);
    m_nodes.rbegin()->add_output(parts[2]);
    addIntegerProduct({parts[0], input(1), parts[2], input(3)}, parts[1], input(2), input(4));
    return true;
  }

  /// operands: both codes, and their zero points.
  void addIntegerProduct(Names operands, const std::string& scaleOfA, const std::string& scaleOfB,
                         const std::string& bias) {
    while (operands.back().empty()) operands.pop_back();
    const std::string sum = make("MatMulInteger", operands, "sum");
    const std::string real = make("Cast", {sum}, "real");
    set("to", ::onnx::TensorProto::FLOAT);
    const std::string scales = make("Mul", {scaleOfA, scaleOfB}, "scales");
    make("Mul", {real, scales}, lastOf(bias), "product");
    addBias(bias);
  }

  ::onnx::GraphProto& m_graph;
  const std::filesystem::path& m_folder;
  const OnnxReading m_reading;
  ::google::protobuf::RepeatedPtrField<::onnx::NodeProto> m_nodes;  // those of the graph afterwards
  std::vector<::onnx::TensorProto> m_constants;
  ::onnx::NodeProto m_node;  // being taken apart
};

bool isPacked(const ::onnx::NodeProto& node) {
  return node.domain() == kContribDomain && node.op_type().find("MatMul") != std::string::npos;
}

}  // namespace

void splitPackedProducts(::onnx::GraphProto& graph, const std::filesystem::path& folder) {
  if (std::ranges::any_of(graph.node(), isPacked)) PackedProducts(graph, folder).run();
}

}  // namespace fuseline
