// Cuts a graph into modules that TransformerEngine can hold: te.ops.Sequential, and ops that te.ops has not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"
#include "core/graph/graph.h"

#include <map>
#include <string>
#include <vector>

namespace fuseline {

/// A te.ops.Sequential: a chain, in which every op reads the main output of the one before. An extra output is read
/// within the chain through a channel, and outside it through what the Sequential returns.
struct TeSequence {
  std::vector<NodeId> nodes;
  /// Otherwise a module of its own, of one op that te.ops has not.
  bool isTe = true;
  ValueId input = -1;
  ValueId output = -1;
  std::vector<ValueId> extraInputs;   // those from outside, in the order of ops and slots
  std::vector<ValueId> extraOutputs;  // those that somebody outside reads, or nobody, in the order of ops and slots
};

/// A module between sequences that the graph does not hold, an op External: what it reads, and what it makes.
struct ModuleBetween {
  std::string path;  // "attention"
  std::string call;  // what makes it: "te.DotProductAttention(32, 128)"; empty: the document does not say
  std::string description;
  std::string nodes;  // those of an ONNX model that it stands for
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

/// What values are computed from at last: their op, or the ops in front of the modules that make them.
class Makers {
 public:
  /// between: in an order in which each reads what earlier ones made. The graph must outlive this.
  Makers(const Graph& graph, const std::vector<ModuleBetween>& between);
  /// Each once.
  std::vector<NodeId> of(ValueId value) const;

 private:
  const Graph& m_graph;
  std::map<ValueId, std::vector<NodeId>> m_beforeModules;  // by what those make
};

/// Is the node an op of te.ops?
bool isTeOperation(const Node& node);
/// Is the value read within the sequence that makes it, as an extra input of a later op?
bool isChannel(const Graph& graph, const TeSequence& sequence, ValueId value);
/// Does somebody outside the sequence read the value, or nobody at all?
bool isReturned(const Graph& graph, const TeSequence& sequence, ValueId value);

/// Would the GEMM of one of two neighbours have to make the quantized tensor that the other one reads? Of all
/// quantizers, TransformerEngine's GEMM takes that of DelayedScaling alone, and raises otherwise, unless the two are in
/// different te.ops.Sequential. `from` hands its main output to `to`.
bool handsOverQuantized(const Graph& graph, NodeId from, NodeId to);

/// All nodes, each once, in an order in which every sequence reads what earlier ones made. Ops that `report` fuses, in
/// either pass, stay together where the wires allow it. A value that several ops read, or that is a pipeline output,
/// ends its sequence, and so does the border of a nested Sequential: no fusion of TransformerEngine crosses either, and
/// so do neighbours that handsOverQuantized() is about. A sequence that reads what a module makes comes behind all that
/// the module reads.
std::vector<TeSequence> teSequences(const Graph& graph, const FusionReport& report,
                                    const std::vector<ModuleBetween>& between = {});

}  // namespace fuseline
