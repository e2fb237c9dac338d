// Prepares a graph for the search for ops: functions written out, shapes of all tensors, constants folded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_facts.h"
#include "core/export/onnx/onnx_proto.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace fuseline {

/// A model whose graph, after prepare(), contains the type and shape of every tensor, if known. Extents are numbers, or
/// expressions of symbols in dim_param.
class OnnxPreparation {
 public:
  /// Expands functions, sorts nodes into an executable order, and records the shapes declared in the model. The model
  /// must outlive it.
  /// `defaults`: of symbols of the model, by name.
  explicit OnnxPreparation(::onnx::ModelProto& model, std::map<std::string, std::int64_t> defaults = {});

  /// Literal extents of batch and sequence become symbols, except for those in `asNumbers` and those that the graph can
  /// only handle as numbers. Branches replace their If; computable tensors become initializers. May be called again
  /// with more numbers.
  void prepare(const std::set<std::string>& asNumbers = {});

  const ::onnx::GraphProto& graph() const { return m_graph; }
  /// The default of every symbol, by name.
  const std::map<std::string, std::int64_t>& symbols() const { return m_symbols.defaults(); }
  /// Symbols that are numbers in the model.
  const std::set<std::string>& literals() const { return m_symbols.literals(); }
  /// If nodes with a condition that is known only at run time: the larger branch was chosen.
  const std::vector<std::string>& guessedBranches() const { return m_guessedBranches; }

 private:
  using Facts = std::map<std::string, OnnxFact, std::less<>>;

  void noteDeclared();
  void noteConstants(const ::onnx::GraphProto& graph);
  void noteInputs();
  OnnxFact inputFact(const ::onnx::ValueInfoProto& input);
  bool isBroadcast(const ::onnx::TypeProto::Tensor& type, int axis) const;
  void setBatchDefault(const OnnxExtent& batch, const ::onnx::TypeProto::Tensor& type);
  void inferUntilKnown();
  std::set<std::string> symbolsOfInputs() const;
  void setComputedDefaults();
  void inferNodes(const ::onnx::GraphProto& graph);
  void inferNode(const ::onnx::NodeProto& node);
  void inferBranches(const ::onnx::NodeProto& node, std::vector<OnnxFact>& outputs);
  void inferLoop(const ::onnx::NodeProto& node, std::vector<OnnxFact>& outputs);
  void mergeDeclared(const std::string& tensor, OnnxFact& fact);
  const OnnxFact* find(const std::string& tensor) const;
  bool takeBranches(bool isGuessing);
  const ::onnx::GraphProto* branchOf(const ::onnx::NodeProto& node, bool isGuessing);
  void writeTypes();
  void writeConstants();

  ::onnx::GraphProto& m_graph;
  std::map<std::string, std::int64_t> m_defaults;
  std::int64_t m_opset = 0;
  std::map<std::string, ::onnx::TypeProto, std::less<>> m_declared;
  OnnxFactSymbols m_symbols;
  Facts m_facts;
  std::vector<std::string> m_guessedBranches;
};

}  // namespace fuseline
