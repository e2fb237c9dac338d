// Names inputs and outputs.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/graph_border.h"

#include "core/export/onnx/name_list.h"
#include "core/export/onnx/onnx_node_names.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// A layer may know an extent that the graph does not.
void learnFrom(const FoundOperation& reader, Json& extents) {
  if (reader.attributes.contains("in_features") && !extents.empty()) extents.back() = reader.attributes["in_features"];
}

/// Names the first node whose outputs have no shape, on the way to this tensor.
std::string unknownShapeText(const OnnxReading& reading, const std::string& tensor) {
  const auto isUnknown = [&](const std::string& name) {
    return !name.empty() && !reading.constant(name) && !reading.type(name);
  };
  const ::onnx::NodeProto* node = reading.maker(tensor);
  for (int step = 0; node && step < reading.graph().node_size(); ++step) {
    const auto unknown = std::ranges::find_if(node->input(), isUnknown);
    const ::onnx::NodeProto* const before = unknown == node->input().end() ? nullptr : reading.maker(*unknown);
    if (!before) break;
    node = before;
  }
  if (!node) return "Add its shape to the model.";
  return fmt::format("The output shapes of {} ({}) cannot be inferred. Add them to the model's value_info.",
                     shown(node->name().empty() ? node->output(0) : node->name()), shown(node->op_type()));
}

}  // namespace

bool GraphBorder::isInput(const ::onnx::TypeProto::Tensor* type) { return type && floatTypeOf(type->elem_type()); }

void GraphBorder::nameInputs() {
  const OnnxReading& reading = m_graph.reading;
  for (const auto& input : reading.graph().input())
    if (!reading.constant(input.name()) && isInput(reading.type(input.name())))
      addInput(input.name(), *floatTypeOf(reading.type(input.name())->elem_type()));
}

/// Precondition: isInput() of its type, or it is the target of a loss.
void GraphBorder::addInput(const std::string& tensor, DType dtype) {
  const ::onnx::TypeProto::Tensor& type = *m_graph.reading.type(tensor);
  if (!m_dtype && dtype != DType::I64) m_dtype = dtype;
  const std::string id = m_graph.ids.of(tensor);
  m_inputs.push_back({{"id", id}, {"dtype", dtypeName(dtype)}, {"shape", m_graph.symbols.shapeOf(type.shape())}});
  m_graph.ports.emplace(tensor, id);
}

Result<void> GraphBorder::cutInput(const std::string& tensor, const FoundOperation& reader) {
  if (m_graph.ports.contains(tensor)) return {};
  const auto* const type = m_graph.reading.type(tensor);
  const bool isTarget = reader.operation == "CrossEntropy" && type && type->elem_type() == ::onnx::TensorProto::INT64;
  if (isTarget) {
    addInput(tensor, DType::I64);
    if (m_graph.reading.maker(tensor)) m_cutInputs.push_back(shown(tensor));
    return {};
  }
  if (!isInput(type))
    return Error{
        fmt::format("{}: the {} {} is {}; expected float32, float16 or bfloat16, with a shape. {}", m_name,
                    m_graph.reading.maker(tensor) ? "tensor" : "input", shown(tensor),
                    type ? onnxTypeName(type->elem_type()) : "without a shape",
                    type ? "Cut the model after it, or convert it." : unknownShapeText(m_graph.reading, tensor))};
  addInput(tensor, dtypeOf(tensor).value_or(*floatTypeOf(type->elem_type())));
  learnFrom(reader, m_inputs.back()["shape"]);
  m_cutInputs.push_back(shown(tensor));
  return {};
}

std::optional<DType> GraphBorder::dtypeOf(const std::string& tensor) const {
  const std::optional<DType> dtype = floatTypeOf(m_graph.reading.elementType(tensor));
  return dtype == DType::F32 ? m_graph.reading.readAs(tensor).value_or(*dtype) : dtype;
}

void GraphBorder::addOutputs(const std::set<std::string>& drawn) {
  for (const auto& output : m_graph.reading.graph().output()) addOutput(output.name(), drawn);
  for (const LeftOutNode& left : m_graph.leftOut) cutOutputs(left, drawn);
  if (m_outputs.empty()) addLastOutputs();
}

void GraphBorder::addOutput(const std::string& tensor, const std::set<std::string>& drawn) {
  const std::string& source = m_graph.reading.source(tensor);
  if (drawn.contains(source))
    m_drawnOutputs.push_back(shown(tensor));
  else if (m_graph.made.contains(source))
    m_outputs.push_back(tensor);
  m_outputSources.insert(source);
}

void GraphBorder::cutOutputs(const LeftOutNode& left, const std::set<std::string>& drawn) {
  for (const std::string& tensor : left.part.inputs) {
    if (drawn.contains(tensor) || !m_graph.made.contains(tensor) || !m_outputSources.insert(tensor).second) continue;
    m_outputs.push_back(tensor);
    m_cutOutputs.push_back(shown(tensor));
  }
}

/// Externals produce all outputs of the model.
void GraphBorder::addLastOutputs() {
  std::set<std::string> read;
  for (const ImportedOperation& each : m_graph.operations)
    for (const auto& [port, tensor] : each.found.inputs)
      if (each.found.operation != "External") read.insert(m_graph.reading.source(tensor));
  for (const ImportedOperation& each : m_graph.operations)
    if (each.found.operation != "External" && !read.contains(each.tensor)) m_outputs.push_back(each.tensor);
}

std::vector<std::string> GraphBorder::cutNotes() const {
  std::vector<std::string> notes = {m_graph.unknownText(", or are between such nodes") + " They were left out."};
  if (!m_cutInputs.empty())
    notes.push_back(fmt::format("Outputs of nodes that were left out became inputs: {}.", nameList(m_cutInputs)));
  if (!m_cutOutputs.empty())
    notes.push_back(fmt::format("Inputs of nodes that were left out became outputs: {}.", nameList(m_cutOutputs)));
  return notes;
}

}  // namespace fuseline
