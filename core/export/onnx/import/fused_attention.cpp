// One function per op. Where a shape is needed, that of a constant or one that the model declares is taken.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/fused_attention.h"

#include "core/export/onnx/kept/old_forms.h"
#include "core/export/onnx/onnx_reading.h"
#include "core/export/onnx/onnx_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

using Names = std::vector<std::string>;
using Integers = std::vector<std::int64_t>;

constexpr const char* kMicrosoft = "com.microsoft";
/// The opset from which on Split and Unsqueeze read their numbers from an input.
constexpr std::int64_t kOpsetOfAxesAsInput = 13;

/// nonpad_kv_seqlen of the standard op.
bool hasKeyLengths(const ::onnx::NodeProto& node) {
  return node.domain().empty() && node.op_type() == "Attention" && node.output_size() > 0 && !inputOf(node, 6).empty();
}

/// An op that may give keys and values for a later call.
bool mayGivePresent(const ::onnx::NodeProto& node) {
  if (node.output_size() == 0) return false;
  const std::string& type = node.op_type();
  return node.domain() == kMicrosoft ? type == "GroupQueryAttention" || type == "MultiHeadAttention"
                                     : node.domain().empty() && type == "Attention";
}

class FusedAttention {
 public:
  FusedAttention(::onnx::ModelProto& model, const std::filesystem::path& folder)
      : m_graph(*model.mutable_graph()),
        m_opset(standardOpset(model.opset_import())),
        m_folder(folder),
        m_reading(m_graph) {}

  void run() {
    for (const ::onnx::NodeProto& node : m_graph.node()) add(node);
    m_graph.mutable_node()->Swap(&m_nodes);
  }

 private:
  /// The parts of a node may be nodes to take apart, too.
  void add(const ::onnx::NodeProto& node) {
    const bool isMicrosoft = node.domain() == kMicrosoft && node.output_size() > 0;
    m_node = node;
    if (isMicrosoft && node.op_type() == "Attention" && takeProjectionOut()) return;
    if (isMicrosoft && node.op_type() == "MultiHeadAttention") {
      takeBiasOut();
      takeKeyMaskOut();
    }
    if (isMicrosoft && node.op_type() == "GroupQueryAttention") takeRotationsOut();
    if (hasKeyLengths(node)) takeLengthsOut();
    if (mayGivePresent(node)) takePresentOut();
    *m_nodes.Add() = m_node;
  }

  // ---- new nodes

  std::string nameOf(const char* part) const { return fmt::format("{}/{}", m_node.output(0), part); }

  std::string make(const char* type, const Names& inputs, const char* part) {
    ::onnx::NodeProto& made = *m_nodes.Add();
    made.set_op_type(type);
    made.set_name(fmt::format("{}/{}", m_node.name().empty() ? m_node.output(0) : m_node.name(), part));
    for (const std::string& input : inputs) made.add_input(input);
    made.add_output(nameOf(part));
    return made.output(0);
  }

  static ::onnx::AttributeProto& attribute(::onnx::NodeProto& node, const char* name) {
    ::onnx::AttributeProto& made = *node.add_attribute();
    made.set_name(name);
    return made;
  }

  static void set(::onnx::NodeProto& node, const char* name, std::int64_t value) {
    ::onnx::AttributeProto& made = attribute(node, name);
    made.set_type(::onnx::AttributeProto::INT);
    made.set_i(value);
  }

  ::onnx::NodeProto& last() { return *m_nodes.rbegin(); }

  std::string constant(const char* part, const Integers& values) {
    ::onnx::TensorProto& tensor = *m_graph.add_initializer();
    tensor.set_name(nameOf(part));
    tensor.set_data_type(::onnx::TensorProto::INT64);
    tensor.add_dims(static_cast<std::int64_t>(values.size()));
    for (const std::int64_t value : values) tensor.add_int64_data(value);
    return tensor.name();
  }

  /// The numbers of the last node, as an attribute or an input.
  void setNumbers(const char* name, const Integers& values, const char* part) {
    if (m_opset >= kOpsetOfAxesAsInput) {
      last().add_input(constant(part, values));
      return;
    }
    ::onnx::AttributeProto& made = attribute(last(), name);
    made.set_type(::onnx::AttributeProto::INTS);
    for (const std::int64_t value : values) made.add_ints(value);
  }

  Names split(const std::string& x, const Integers& sizes) {
    make("Split", {x}, "q");
    set(last(), "axis", -1);
    setNumbers("split", sizes, "sizes");
    last().add_output(nameOf("k"));
    last().add_output(nameOf("v"));
    return {last().output().begin(), last().output().end()};
  }

  // ---- the node at hand

  const std::string& input(int index) const { return inputOf(m_node, index); }
  bool hasInput(int index) const { return !input(index).empty(); }

  void setInput(int index, const std::string& name) {
    while (m_node.input_size() <= index) m_node.add_input("");
    m_node.set_input(index, name);
  }

  void clearAttribute(const char* name) {
    auto& attributes = *m_node.mutable_attribute();
    attributes.erase(
        std::remove_if(attributes.begin(), attributes.end(), [&](const auto& each) { return each.name() == name; }),
        attributes.end());
  }

  /// The last extent, where it is a number. Few models declare the shapes of inner tensors, but layers say it.
  std::optional<std::int64_t> widthOf(const std::string& tensor) const {
    if (const auto* const constant = m_reading.constant(tensor))
      return constant->dims_size() > 0 ? std::optional(*constant->dims().rbegin()) : std::nullopt;
    const auto* const type = m_reading.type(tensor);
    const int rank = type && type->has_shape() ? type->shape().dim_size() : 0;
    if (rank > 0 && type->shape().dim(rank - 1).has_dim_value()) return type->shape().dim(rank - 1).dim_value();
    const auto* const node = m_reading.maker(tensor);
    if (!node || !isEarlier(*node)) return std::nullopt;
    if (node->op_type() == "MatMul" || node->op_type() == "Add") return widthOf(inputOf(*node, 1));
    const auto extents = node->op_type() == "Reshape" ? m_reading.integers(inputOf(*node, 1)) : std::nullopt;
    return extents && !extents->empty() && extents->back() > 0 ? std::optional(extents->back()) : std::nullopt;
  }

  /// Files may have rings of nodes: only what stands before the node at hand is looked at.
  bool isEarlier(const ::onnx::NodeProto& node) const {
    return node.output_size() > 0 && m_reading.position(node.output(0)) < m_reading.position(m_node.output(0)) &&
           std::ranges::all_of(node.input(), [&](const std::string& input) {
             return m_reading.position(input) < m_reading.position(node.output(0));
           });
  }

  // ---- Attention

  Integers sizesOfProjection() const {
    if (const auto* const sizes = findAttribute(m_node, "qkv_hidden_sizes"); sizes && sizes->ints_size() == 3)
      return {sizes->ints().begin(), sizes->ints().end()};
    const auto width = widthOf(input(1));
    return width && *width > 0 && *width % 3 == 0 ? Integers(3, *width / 3) : Integers();
  }

  /// x weight + bias becomes a layer, and the rest MultiHeadAttention.
  bool takeProjectionOut() {
    const Integers sizes = sizesOfProjection();
    const bool hasKeptKeys = hasInput(4) || hasInput(6) || isRead(1);
    if (sizes.empty() || hasKeptKeys || integerOf(m_node, "do_rotary", 0) != 0) return false;
    std::string packed = make("MatMul", {input(0), input(1)}, "product");
    if (hasInput(2)) packed = make("Add", {packed, input(2)}, "projected");
    const Names parts = split(packed, sizes);
    const std::string mask = input(3), bias = input(5);
    m_node.set_op_type("MultiHeadAttention");
    m_node.clear_input();
    for (int part = 0; part < 3; ++part) setInput(part, parts[static_cast<std::size_t>(part)]);
    setInput(4, mask);
    setInput(5, bias);
    while (m_node.output_size() > 1) m_node.mutable_output()->RemoveLast();
    for (const char* const name : {"qkv_hidden_sizes", "do_rotary", "past_present_share_buffer"}) clearAttribute(name);
    takeBiasOut();
    takeKeyMaskOut();
    *m_nodes.Add() = m_node;
    return true;
  }

  bool isRead(int output) const {
    return output < m_node.output_size() && !m_node.output(output).empty() &&
           m_reading.numReaders(m_node.output(output)) > 0;
  }

  // ---- MultiHeadAttention

  /// One vector for queries, keys and values.
  void takeBiasOut() {
    if (!hasInput(1) || !hasInput(2) || !hasInput(3)) return;
    const auto* const bias = m_reading.constant(input(3));
    if (!bias || bias->dims_size() != 1) return;
    Integers sizes = Integers(3, bias->dims(0) / 3);
    const auto width = widthOf(input(0));
    if (width && 2 * *width < bias->dims(0)) sizes = {*width, *width, bias->dims(0) - 2 * *width};
    if (std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) != bias->dims(0)) return;
    const Result<std::vector<std::byte>> bytes = elementBytes(*bias, m_folder);
    if (!bytes) return;
    const std::int64_t size = elementSize(bias->data_type());
    std::int64_t first = 0;
    constexpr const char* kParts[] = {"q_biased", "k_biased", "v_biased"};
    constexpr const char* kBiases[] = {"q_bias", "k_bias", "v_bias"};
    for (int part = 0; part < 3; ++part) {
      const std::int64_t extent = sizes[static_cast<std::size_t>(part)];
      ::onnx::TensorProto& row = *m_graph.add_initializer();
      row.set_name(nameOf(kBiases[part]));
      row.set_data_type(bias->data_type());
      row.add_dims(extent);
      row.set_raw_data(bytes->data() + first * size, static_cast<std::size_t>(extent * size));
      first += extent;
      setInput(part, make("Add", {input(part), row.name()}, kParts[part]));
    }
    setInput(3, "");
  }

  /// 0: the graph does not say it.
  int rankOf(const std::string& tensor) const {
    if (const auto* const constant = m_reading.constant(tensor)) return constant->dims_size();
    const auto* const type = typeOf(tensor);
    return type && type->has_shape() ? type->shape().dim_size() : 0;
  }

  /// Declared, for it or for what it is cast from.
  const ::onnx::TypeProto::Tensor* typeOf(const std::string& tensor) const {
    const auto* const own = m_reading.type(tensor);
    return own ? own : m_reading.type(m_reading.source(tensor));
  }

  std::string number(const char* part, double value) {
    const DType dtype = floatTypeOf(m_reading.elementType(input(0))).value_or(DType::F32);
    const Tensor encoded = Tensor::fromDoubles({.dtype = dtype, .shape = {}}, std::array{value});
    ::onnx::TensorProto& tensor = *m_graph.add_initializer();
    tensor.set_name(nameOf(part));
    tensor.set_data_type(onnxType(dtype));
    tensor.set_raw_data(encoded.data.data(), encoded.data.size());
    return tensor.name();
  }

  /// A mask [B, Sk] or [B, Sq, Sk], not 0 where a key is kept, or numbers of keys [B] become a bias of the scores.
  void takeKeyMaskOut() {
    const int rank = hasInput(4) ? rankOf(input(4)) : 0;
    const bool isLength = rank == 1 && hasInput(1) && isOfBatch(input(4));
    if (rank != 2 && rank != 3 && !isLength) return;
    std::string isKept;
    if (isLength) {
      isKept = keptKeys(limitsOf(input(4)), rankOf(input(1)) == 4 ? 2 : 1);
    } else {
      isKept = make("Cast", {input(4)}, "is_kept");
      set(last(), "to", ::onnx::TensorProto::BOOL);
    }
    const double fill = realOf(m_node, "mask_filter_value", -10000.0);
    std::string added = make("Where", {isKept, number("kept", 0.0), number("masked", fill)}, "mask");
    if (!isLength) {
      added = make("Unsqueeze", {added}, "mask_of_heads");
      setNumbers("axes", rank == 2 ? Integers{1, 2} : Integers{1}, "mask_axes");
    }
    if (hasInput(5)) added = make("Add", {input(5), added}, "mask_and_bias");
    setInput(4, "");
    setInput(5, added);
    clearAttribute("mask_filter_value");
  }

  // ---- numbers of keys

  /// Has the vector one element for each entry of a batch, which an input of the model has, too?
  bool isOfBatch(const std::string& vector) const {
    const auto* const type = typeOf(vector);
    if (!type || type->shape().dim_size() != 1) return false;
    const auto& count = type->shape().dim(0);
    return std::ranges::any_of(m_graph.input(), [&](const ::onnx::ValueInfoProto& input) {
      const auto& shape = input.type().tensor_type().shape();
      return shape.dim_size() > 1 && shape.dim(0).dim_value() == count.dim_value() &&
             shape.dim(0).dim_param() == count.dim_param() && (count.has_dim_value() || !count.dim_param().empty());
    });
  }

  std::string scalar(const char* part, std::int64_t value) {
    ::onnx::TensorProto& tensor = *m_graph.add_initializer();
    tensor.set_name(nameOf(part));
    tensor.set_data_type(::onnx::TensorProto::INT64);
    tensor.add_int64_data(value);
    return tensor.name();
  }

  /// An extent of an input of the node at hand.
  std::string extent(int of, std::int64_t axis, const char* shape, const char* at, const char* part) {
    return make("Gather", {make("Shape", {input(of)}, shape), scalar(at, axis)}, part);
  }

  /// [B, 1, 1, 1]
  std::string limitsOf(const std::string& lengths) {
    const std::string wide = make("Cast", {lengths}, "lengths");
    set(last(), "to", ::onnx::TensorProto::INT64);
    const std::string limits = make("Unsqueeze", {wide}, "limits");
    setNumbers("axes", {1, 2, 3}, "limit_axes");
    return limits;
  }

  /// True for keys before the limits, [B, 1, 1, Sk]. axis: of tokens in keys.
  std::string keptKeys(const std::string& limits, std::int64_t axis) {
    const std::string count = extent(1, axis, "k_shape", "k_axis", "num_keys");
    const std::string keys = make("Range", {scalar("first_key", 0), count, scalar("key_step", 1)}, "keys");
    return make("Less", {keys, limits}, "is_kept");
  }

  /// True where keys are not after the diagonal, which ends at the last key of each sequence: [B, 1, Sq, Sk].
  std::string keptByDiagonal(const std::string& limits, std::int64_t axis) {
    const std::string count = extent(0, axis, "q_shape", "q_axis", "num_queries");
    const std::string rows = make("Range", {scalar("first_row", 0), count, scalar("row_step", 1)}, "rows");
    const std::string column = make("Unsqueeze", {rows}, "row_column");
    setNumbers("axes", {1}, "row_axes");
    const std::string ends = make("Add", {column, make("Sub", {limits, count}, "deltas")}, "last_keys");
    return make("LessOrEqual", {nameOf("keys"), ends}, "is_before");
  }

  /// nonpad_kv_seqlen becomes a mask.
  void takeLengthsOut() {
    const std::int64_t axis = integerOf(m_node, "q_num_heads", 0) > 0 ? 1 : 2;
    const std::string limits = limitsOf(input(6));
    std::string kept = keptKeys(limits, axis);
    if (integerOf(m_node, "is_causal", 0) != 0)
      kept = make("And", {kept, keptByDiagonal(limits, axis)}, "is_kept_before");
    const bool isFloat = hasInput(3) && floatTypeOf(m_reading.elementType(input(3))).has_value();
    if (isFloat) kept = make("Where", {kept, input(3), number("masked", -INFINITY)}, "mask");
    if (hasInput(3) && !isFloat) kept = make("And", {kept, input(3)}, "mask");
    setInput(3, kept);
    setInput(6, "");
    clearAttribute("is_causal");
  }

  // ---- GroupQueryAttention

  void takeRotationsOut() {
    const std::int64_t H = integerOf(m_node, "num_heads", 0), G = integerOf(m_node, "kv_num_heads", 0);
    const auto* const cosines = m_reading.constant(input(7));
    const bool hasKeptKeys = hasInput(3) || hasInput(4);
    const bool hasOpenPositions = hasInput(9) && !m_reading.constant(input(9));
    if (integerOf(m_node, "do_rotary", 0) == 0 || !cosines || cosines->dims_size() != 2 || hasKeptKeys ||
        hasOpenPositions || H <= 0 || G <= 0)
      return;
    const bool isPacked = !hasInput(1);
    const auto width = widthOf(input(0));
    if (!width || *width % (isPacked ? H + 2 * G : H) != 0) return;
    const std::int64_t D = *width / (isPacked ? H + 2 * G : H);
    Names parts = {input(0), input(1), input(2)};
    if (isPacked) parts = split(input(0), {H * D, G * D, G * D});
    const std::string begin = hasInput(9) ? input(9) : constant("begin", {0});
    const std::int64_t rotated = 2 * cosines->dims(1);
    for (const int part : {0, 1}) {
      parts[static_cast<std::size_t>(part)] =
          make("RotaryEmbedding", {parts[static_cast<std::size_t>(part)], begin, input(7), input(8)},
               part == 0 ? "q_rotated" : "k_rotated");
      last().set_domain(kMicrosoft);
      set(last(), "interleaved", integerOf(m_node, "rotary_interleaved", 0));
      set(last(), "num_heads", part == 0 ? H : G);
      set(last(), "rotary_embedding_dim", rotated == D ? 0 : rotated);
    }
    for (int part = 0; part < 3; ++part) setInput(part, parts[static_cast<std::size_t>(part)]);
    setInput(7, "");
    setInput(8, "");
    setInput(9, "");
    for (const char* const name : {"do_rotary", "rotary_interleaved"}) clearAttribute(name);
  }

  // ---- keys and values for a later call

  /// Without those of earlier calls, they are the node's own keys and values, [B, G, S, D].
  void takePresentOut() {
    const bool isStandard = m_node.domain().empty();
    const int past = isStandard ? 4 : m_node.op_type() == "GroupQueryAttention" ? 3 : 6;
    const bool isMultiHead = m_node.op_type() == "MultiHeadAttention";
    const std::int64_t G = integerOf(m_node, isMultiHead ? "num_heads" : "kv_num_heads", 0);
    const bool isMade =
        !hasInput(past) && !hasInput(past + 1) && hasInput(1) && hasInput(2) && !(isMultiHead && hasInput(3));
    if (!isMade || integerOf(m_node, "do_rotary", 0) != 0 || (G <= 0 && !isStandard)) return;
    for (const int output : {1, 2})
      if (isRead(output)) addPresent(output, G);
  }

  void addPresent(int output, std::int64_t groups) {
    constexpr int kApart = 4;  // axes of heads that stand apart
    const bool isKey = output == 1;
    const int rank = rankOf(input(output));  // 0: not known, as of [B, S, G D] that other nodes make
    if (groups > 0 && rank != 0 && rank != 3 && rank != kApart) return;
    if (groups <= 0 || rank == kApart) {
      make("Identity", {input(output)}, isKey ? "present_k" : "present_v");
    } else {
      const std::string shape = constant(isKey ? "present_k_shape" : "present_v_shape", {0, 0, groups, -1});
      make("Transpose", {make("Reshape", {input(output), shape}, isKey ? "present_k" : "present_v")},
           isKey ? "turned_k" : "turned_v");
      ::onnx::AttributeProto& order = attribute(last(), "perm");
      order.set_type(::onnx::AttributeProto::INTS);
      for (const int axis : {0, 2, 1, 3}) order.add_ints(axis);
    }
    last().set_output(0, m_node.output(output));
    m_node.set_output(output, "");
  }

  ::onnx::GraphProto& m_graph;
  std::int64_t m_opset;
  const std::filesystem::path& m_folder;
  const OnnxReading m_reading;
  ::google::protobuf::RepeatedPtrField<::onnx::NodeProto> m_nodes;  // those of the graph afterwards
  ::onnx::NodeProto m_node;                                         // being taken apart
};

bool isFusedAttention(const ::onnx::NodeProto& node) {
  return node.op_type().ends_with("Attention") && (node.domain() == kMicrosoft || node.domain().empty());
}

}  // namespace

void splitFusedAttention(::onnx::ModelProto& model, const std::filesystem::path& folder) {
  if (std::ranges::any_of(model.graph().node(), isFusedAttention)) FusedAttention(model, folder).run();
}

}  // namespace fuseline
