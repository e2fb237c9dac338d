// One function per operator whose attributes became inputs, or whose meaning changed.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/kept/old_forms.h"

#include "core/export/onnx/onnx_reading.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

void removeAttribute(::onnx::NodeProto& node, std::string_view name) {
  auto& attributes = *node.mutable_attribute();
  attributes.erase(
      std::remove_if(attributes.begin(), attributes.end(), [&](const auto& each) { return each.name() == name; }),
      attributes.end());
}

void setInteger(::onnx::NodeProto& node, const char* name, std::int64_t value) {
  removeAttribute(node, name);
  ::onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(::onnx::AttributeProto::INT);
  attribute.set_i(value);
}

void setText(::onnx::NodeProto& node, const char* name, const std::string& value) {
  removeAttribute(node, name);
  ::onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(::onnx::AttributeProto::STRING);
  attribute.set_s(value);
}

class Modernizer {
 public:
  /// Constants are added to `outer`, of which the nodes of `graph` may be a branch.
  Modernizer(::onnx::GraphProto& outer, ::onnx::GraphProto& graph, std::int64_t opset)
      : m_outer(outer), m_graph(graph), m_opset(opset) {}

  void run() {
    ::google::protobuf::RepeatedPtrField<::onnx::NodeProto> nodes;
    nodes.Swap(m_graph.mutable_node());
    for (auto& node : nodes) {
      for (auto& attribute : *node.mutable_attribute())
        if (attribute.has_g()) Modernizer(m_outer, *attribute.mutable_g(), m_opset).run();
      run(node);
    }
  }

 private:
  void run(::onnx::NodeProto& node) {
    const bool isStandard = node.domain().empty() || node.domain() == "ai.onnx";
    if (isStandard && isSoftmax(node) && m_opset < kOpsetOfSoftmaxOfOneAxis) return addSoftmax(node);
    if (isStandard) change(node);
    *m_graph.add_node() = std::move(node);
  }

  void change(::onnx::NodeProto& node) {
    const std::string& type = node.op_type();
    const bool hasAxes = type.starts_with("Reduce") || type == "Squeeze" || type == "Unsqueeze";
    const bool isEarly = type == "ReduceSum" || type == "Squeeze" || type == "Unsqueeze";
    if (hasAxes && m_opset < (isEarly ? 13 : 18)) toInput(node, "axes", 1);
    if (type == "Split") split(node);
    if (type == "Clip" && m_opset < 11) limits(node);
    if (type == "Pad" && m_opset < 11) pad(node);
    if (type == "Dropout" && m_opset < 12) removeAttribute(node, "ratio");
    if (type == "Slice" && m_opset < 10) slice(node);
    if (type == "TopK" && m_opset < 10) toInput(node, "k", 1);
    if (type == "BatchNormalization" && m_opset < 9) removeAttribute(node, "spatial");
    if (type == "Scatter") node.set_op_type("ScatterElements");
    if (type == "Upsample" || (type == "Resize" && m_opset < 11)) resize(node);
    if (type == "RoiAlign" && m_opset < 16) setText(node, "coordinate_transformation_mode", "output_half_pixel");
    if (type == "GridSample" && m_opset < 20) gridSample(node);
  }

  std::string constant(const ::onnx::AttributeProto& attribute) {
    ::onnx::TensorProto& tensor = *m_outer.add_initializer();
    tensor.set_name(fmt::format(":form{}", m_outer.initializer_size()));
    const bool isReal =
        attribute.type() == ::onnx::AttributeProto::FLOAT || attribute.type() == ::onnx::AttributeProto::FLOATS;
    tensor.set_data_type(isReal ? ::onnx::TensorProto::FLOAT : ::onnx::TensorProto::INT64);
    if (attribute.type() == ::onnx::AttributeProto::FLOAT) {
      tensor.add_float_data(attribute.f());
      return tensor.name();
    }
    const bool isOne = attribute.type() == ::onnx::AttributeProto::INT;
    tensor.add_dims(isOne ? 1 : isReal ? attribute.floats_size() : attribute.ints_size());
    *tensor.mutable_float_data() = attribute.floats();
    *tensor.mutable_int64_data() = attribute.ints();
    if (isOne) tensor.add_int64_data(attribute.i());
    return tensor.name();
  }

  void toInput(::onnx::NodeProto& node, const char* name, int index) {
    const auto* const attribute = findAttribute(node, name);
    if (!attribute) return;
    const std::string input = constant(*attribute);
    while (node.input_size() <= index) node.add_input("");
    node.set_input(index, input);
    removeAttribute(node, name);
  }

  /// Without sizes the parts are equal, which is said since opset 18.
  void split(::onnx::NodeProto& node) {
    if (m_opset < 13) toInput(node, "split", 1);
    if (m_opset < 18 && inputOf(node, 1).empty() && !findAttribute(node, "num_outputs"))
      setInteger(node, "num_outputs", node.output_size());
  }

  void limits(::onnx::NodeProto& node) {
    toInput(node, "min", 1);
    toInput(node, "max", 2);
  }

  void pad(::onnx::NodeProto& node) {
    toInput(node, "pads", 1);
    toInput(node, "value", 2);
  }

  void slice(::onnx::NodeProto& node) {
    toInput(node, "starts", 1);
    toInput(node, "ends", 2);
    toInput(node, "axes", 3);
  }

  /// Scales were the second input, and the result was floored from coordinates without an offset.
  void resize(::onnx::NodeProto& node) {
    toInput(node, "scales", 1);
    const std::string scales = inputOf(node, 1);
    while (node.input_size() > 1) node.mutable_input()->RemoveLast();
    node.add_input("");
    node.add_input(scales);
    node.set_op_type("Resize");
    setText(node, "coordinate_transformation_mode", "asymmetric");
    setText(node, "nearest_mode", "floor");
  }

  static void gridSample(::onnx::NodeProto& node) {
    constexpr std::array kModes = {std::pair("bilinear", "linear"), std::pair("bicubic", "cubic")};
    const std::string mode = textOf(node, "mode", "bilinear");
    for (const auto& [before, now] : kModes)
      if (mode == before) setText(node, "mode", now);
  }

  ::onnx::NodeProto& add(const char* type, const std::string& output) {
    ::onnx::NodeProto& node = *m_graph.add_node();
    node.set_op_type(type);
    node.add_output(output);
    return node;
  }

  /// All axes from its own on are joined.
  void addSoftmax(::onnx::NodeProto& node) {
    const std::int64_t axis = integerOf(node, "axis", 1);
    if (axis == -1 || node.input_size() == 0 || node.output_size() == 0) {
      *m_graph.add_node() = std::move(node);
      return;
    }
    const std::string x = node.input(0), y = node.output(0);
    ::onnx::NodeProto& shape = add("Shape", y + "_shape");
    shape.add_input(x);
    ::onnx::NodeProto& flat = add("Flatten", y + "_flat");
    flat.add_input(x);
    setInteger(flat, "axis", axis);
    node.set_input(0, y + "_flat");
    node.set_output(0, y + "_rows");
    setInteger(node, "axis", -1);
    *m_graph.add_node() = std::move(node);
    ::onnx::NodeProto& back = add("Reshape", y);
    back.add_input(y + "_rows");
    back.add_input(y + "_shape");
  }

  ::onnx::GraphProto& m_outer;
  ::onnx::GraphProto& m_graph;
  std::int64_t m_opset;
};

}  // namespace

bool isSoftmax(const ::onnx::NodeProto& node) {
  return node.op_type() == "Softmax" || node.op_type() == "LogSoftmax" || node.op_type() == "Hardmax";
}

void writeAxesOfSoftmaxes(::onnx::GraphProto& graph) {
  for (::onnx::NodeProto& node : *graph.mutable_node()) {
    const bool isStandard = node.domain().empty() || node.domain() == "ai.onnx";
    if (!isStandard || !isSoftmax(node) || findAttribute(node, "axis")) continue;
    ::onnx::AttributeProto& axis = *node.add_attribute();
    axis.set_name("axis");
    axis.set_type(::onnx::AttributeProto::INT);
    axis.set_i(1);
  }
}

std::int64_t standardOpset(const ::google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& opsets) {
  for (const auto& opset : opsets)
    if (opset.domain().empty() || opset.domain() == "ai.onnx") return opset.version();
  return kOnnxOpset;
}

void writeNewForms(::onnx::ModelProto& model) {
  Modernizer(*model.mutable_graph(), *model.mutable_graph(), standardOpset(model.opset_import())).run();
}

}  // namespace fuseline
