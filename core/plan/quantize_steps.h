// The quantized operands of GEMMs: which step quantizes what, and which tensor each GEMM reads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/fused_quantization.h"

#include <set>
#include <vector>

namespace fuseline {

class QuantizeSteps {
 public:
  /// Adds to steps ahead of the step whose operands are requested. All outlive it.
  QuantizeSteps(const Graph& graph, const FusionReport& report, PlanTensors& tensors, std::vector<Step>& steps);

  /// Adds the operands that the GEMMs of an op read: the quantized tensors, or the tensor itself.
  void addGemmOperands(Step& step, const std::vector<NodeId>& nodes, const OperandKey& key, const GemmOperand& operand);
  /// A Quantize whose quantized values are all that anybody reads needs no step but this one. False: it needs its own.
  bool addHandedOnly(const FusedOperation& entry, Phase phase);
  /// Does the entry pass a quantized tensor on in this pass?
  bool isQuantizeIn(const FusedOperation& entry, Phase phase) const;
  /// At the end, when all steps are there.
  void dropUnreadSources(const PlanOptions& options);

 private:
  void addCopies(Phase phase, const GemmOperand& operand, int source);
  void keepResults(Step& step);

  const Graph& m_graph;
  PlanTensors& m_tensors;
  std::vector<Step>& m_steps;
  std::set<HandOver> m_handOvers;
  CopyNeeds m_needs;
  QuantizedCopies m_copies;
  FusedQuantization m_fused;
};

}  // namespace fuseline
