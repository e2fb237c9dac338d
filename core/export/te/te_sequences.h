// Cuts a graph into modules that TransformerEngine can hold: te.ops.Sequential, and ops that te.ops has not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"
#include "core/graph/graph.h"

#include <map>
#include <string>
#include <vector>

namespace fuseline {

/// A te.ops.Sequential: a chain of ops, each of which reads the main output of its predecessor. An extra output is read
/// within the chain through a channel, and outside through the Sequential's return value.
struct TeSequence {
  std::vector<NodeId> nodes;
  /// Otherwise a separate module, with one op that te.ops does not have.
  bool isTe = true;
  ValueId input = -1;
  ValueId output = -1;
  std::vector<ValueId> extraInputs;   // from outside, in the order of ops and slots
  std::vector<ValueId> extraOutputs;  // with a consumer outside, or without any, in the order of ops and slots
};

/// A module between sequences that the graph does not contain, an op External: its inputs and its outputs.
struct ModuleBetween {
  std::string path;  // "attention"
  std::string call;  // its constructor: "te.DotProductAttention(32, 128)"; empty: the document does not contain it
  std::string description;
  std::string nodes;  // the nodes of an ONNX model that it replaces
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

/// The producers of values: their op, or the ops upstream of the modules that compute them.
class Makers {
 public:
  /// between: in an order in which each reads outputs of earlier ones. The graph must outlive this.
  Makers(const Graph& graph, const std::vector<ModuleBetween>& between);
  /// Each once.
  std::vector<NodeId> of(ValueId value) const;

 private:
  const Graph& m_graph;
  std::map<ValueId, std::vector<NodeId>> m_beforeModules;  // by the modules' outputs
};

/// Is the node an op of te.ops?
bool isTeOperation(const Node& node);
/// Is the value read within the sequence that produces it, as an extra input of a later op?
bool isChannel(const Graph& graph, const TeSequence& sequence, ValueId value);
/// Does the value have a consumer outside the sequence, or none at all?
bool isReturned(const Graph& graph, const TeSequence& sequence, ValueId value);

/// Would the GEMM of one of two adjacent ops have to produce the quantized input of the other one? TransformerEngine's
/// GEMM supports only the quantizer of DelayedScaling, and raises otherwise, unless the two are in different
/// te.ops.Sequential. The main output of `from` is the input of `to`. recipe: of the whole module; may be null.
bool writesQuantized(const Graph& graph, NodeId from, NodeId to, const Recipe* recipe);

/// All nodes, each once, in an order in which every sequence reads the outputs of earlier ones. Ops that `report`
/// fuses, in either pass, stay together if the wires allow it. A value with several consumers, or that is a pipeline
/// output, ends its sequence, and so does the border of a nested Sequential: no fusion of TransformerEngine crosses
/// either; pairs for which writesQuantized() holds are separated as well. A sequence that reads a module's output
/// comes after all producers of the module's inputs.
std::vector<TeSequence> teSequences(const Graph& graph, const FusionReport& report,
                                    const std::vector<ModuleBetween>& between = {}, const Recipe* recipe = nullptr);

}  // namespace fuseline
