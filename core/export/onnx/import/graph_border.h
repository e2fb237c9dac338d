// GraphBorder: inputs and outputs of the pipeline, those of the model and those where nodes are left out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/import/found_graph.h"
#include "core/support/result.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

class GraphBorder {
 public:
  /// name: of the model. The graph must outlive it.
  GraphBorder(FoundGraph& graph, std::string_view name) : m_graph(graph), m_name(name) {}

  /// Those of the model. Weights may be among them, too. Inputs that a pipeline cannot have, such as the numbers of
  /// tokens, are left to the nodes that read them.
  void nameInputs();
  /// Makes a tensor that `reader` reads an input, unless it has a port. Errors: a pipeline has no such inputs.
  Result<void> cutInput(const std::string& tensor, const FoundOperation& reader);
  /// Outputs of the model, and tensors that nodes read which are left out. drawn: tensors with random values, which are
  /// no outputs. If there are no others, the outputs are the tensors without consumers.
  void addOutputs(const std::set<std::string>& drawn);

  /// Can a pipeline have such an input? type: may be null.
  static bool isInput(const ::onnx::TypeProto::Tensor* type);
  /// The dtype to which all consumers convert a tensor that is computed in f32. Nothing: it is not known, which
  /// isInput() of its type would be.
  std::optional<DType> dtypeOf(const std::string& tensor) const;

  /// As in a pipeline file.
  const Json& inputs() const { return m_inputs; }
  /// The dtype of the first input, if there is one.
  std::optional<DType> dtype() const { return m_dtype; }
  const std::vector<std::string>& outputs() const { return m_outputs; }  // tensors
  const std::vector<std::string>& drawnOutputs() const { return m_drawnOutputs; }
  /// Which nodes were left out, and what is an input or output for it.
  std::vector<std::string> cutNotes() const;

 private:
  void addInput(const std::string& tensor, DType dtype);
  void addOutput(const std::string& tensor, const std::set<std::string>& drawn);
  void cutOutputs(const LeftOutNode& left, const std::set<std::string>& drawn);
  void addLastOutputs();

  FoundGraph& m_graph;
  std::string m_name;
  Json m_inputs = Json::array();
  std::optional<DType> m_dtype;
  std::vector<std::string> m_outputs;
  std::set<std::string> m_outputSources;
  std::vector<std::string> m_drawnOutputs;
  std::vector<std::string> m_cutInputs, m_cutOutputs;
};

}  // namespace fuseline
