// All-gathers that carry quantized values in place of the tensor that a GEMM reads quantized.
// Source: TransformerEngine gathers the encoded values of inputs and gradients with one scale a tensor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/quantized_copies.h"

#include <map>
#include <utility>
#include <vector>

namespace fuseline {

class QuantizedGathers {
 public:
  /// Adds to steps. All outlive it.
  QuantizedGathers(const Graph& graph, const FusionReport& report, PlanTensors& tensors, QuantizedCopies& copies,
                   std::vector<Step>& steps);

  /// Is this the gather of a tensor that is quantized before it is sent? It needs no step of its own.
  bool isQuantized(const FusedOperation& entry, Phase phase) const;
  bool isGathered(const GemmOperand& reader) const { return m_gathers.contains({reader.node, reader.type}); }
  /// Quantizes the rows of this rank, gathers the encoded values, and makes the quantized tensors of them that the
  /// reader's GEMMs need. isGathered(reader) holds.
  void addSteps(Phase phase, const GemmOperand& reader, const CopyNeeds& needs);

 private:
  void findForward(NodeId gather);
  void findBackward(const FusionReport& report, NodeId gather);
  void addIfOneScale(const GemmOperand& reader, NodeId gather);

  int rowsOfRank(Phase phase, NodeId gather);
  int quantizeRows(Phase phase, const GemmOperand& reader, int source);
  int amaxOfAllRanks(Phase phase, const GemmOperand& reader, int source);
  int gatherCodes(Phase phase, const GemmOperand& reader, int rows);
  void addStep(Step step);

  const Graph& m_graph;
  PlanTensors& m_tensors;
  QuantizedCopies& m_copies;
  std::vector<Step>& m_steps;
  std::map<std::pair<NodeId, TensorType>, NodeId> m_gathers;  // by the tensor's reader
};

}  // namespace fuseline
