// The quantized operands of GEMMs: which step quantizes what, and which tensor each GEMM reads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/collectives/quantized_gathers.h"
#include "core/plan/fused_quantization.h"

#include <map>
#include <set>
#include <string>
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
  /// Is it a gather in front of a GEMM that carries quantized values? The GEMM's op adds its steps.
  bool isGatherOfQuantized(const FusedOperation& entry, Phase phase) const {
    return m_gathers.isQuantized(entry, phase);
  }
  std::string gatherNote(const FusedOperation& entry, Phase phase) const { return m_gathers.noteOf(entry, phase); }
  /// See QuantizedGathers.
  void addRegathers(const FusedOperation& entry) { m_gathers.addRegathers(entry); }
  /// At the end, when all steps are there.
  void dropUnreadSources(const PlanOptions& options);
  /// At the end, too: marks the parameters that are stored quantized only.
  void dropStoredWeights(const PlanOptions& options);

 private:
  struct QuantizedReader {
    GemmOperand operand;
    int source = -1;
  };

  void addCopies(Phase phase, const GemmOperand& operand, int source);
  void addStep(Phase phase, const GemmOperand& operand, int source);
  bool takesCopiesOfAnother(const GemmOperand& operand, int source);
  bool areNeededAlike(const GemmOperand& a, const GemmOperand& b) const;
  bool isWeightOfTraining(const GemmOperand& operand) const;
  void addWeight(const GemmOperand& operand, int source);
  /// nullptr: the weight needs a step of its own.
  Step* stepForWeight(const GemmOperand& operand, int source) const;
  Step* stepOfAttention(const GemmOperand& operand) const;
  void join(Step& step, const GemmOperand& operand, int source);
  void addKnownAmax(Step& step, const GemmOperand& operand, int source);
  void keepResults(Step& step);
  bool isQuantizedOnce(const GemmOperand& operand) const;
  bool isUpdated(const GemmOperand& weight) const;

  const Graph& m_graph;
  PlanTensors& m_tensors;
  std::vector<Step>& m_steps;
  std::set<FusedOperand> m_fusedOperands;
  CopyNeeds m_needs;
  QuantizedCopies m_copies;
  FusedQuantization m_fused;
  QuantizedGathers m_gathers;
  std::map<int, std::vector<QuantizedReader>> m_readersOf;  // by tensor: those with quantized tensors of their own
  int m_weightStep = -1;                                    // the last step that quantizes weights; -1: there is none
};

}  // namespace fuseline
