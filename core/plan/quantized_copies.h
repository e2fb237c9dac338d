// The quantized tensors of a plan that is being made: which are there, and the work that computes them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/copy_needs.h"
#include "core/plan/plan_tensors.h"

#include <span>
#include <string>
#include <vector>

namespace fuseline {

class QuantizedCopies {
 public:
  /// All outlive it.
  QuantizedCopies(const Graph& graph, const CopyNeeds& needs, PlanTensors& tensors)
      : m_graph(graph), m_needs(needs), m_tensors(tensors) {}

  /// Another step of the same op may have computed them.
  bool has(const GemmOperand& operand) const;
  bool hasScale(const GemmOperand& operand) const;
  /// The tensor that a GEMM reads in this direction: a quantized one or, without one, `plain`.
  int readBy(const GemmOperand& operand, Usage direction, int plain) const;
  /// Takes the quantized tensors of a Quantize for the reader's own, if it hands them over.
  bool takeHanded(const GemmOperand& reader);
  /// The reader's quantized tensors are those of the source from here on.
  void takeFrom(const GemmOperand& source, const GemmOperand& reader);

  /// Lets a step quantize tensor `source`, which is its operand `key`; `member` numbers the work. False: there is
  /// nothing to quantize.
  bool addWork(Step& step, const GemmOperand& operand, int source, int member, const OperandKey& key);
  /// The same for the rows of one rank, [rows / ranks, cols], of a tensor whose quantized form is that of all ranks.
  /// Returns the quantized tensors, one a direction.
  std::vector<int> addWorkOnRows(Step& step, const GemmOperand& operand, int source, std::span<const Usage> directions);
  /// Adds the quantized tensor that a GEMM reads in this direction, of a tensor of this spec.
  int addTensor(const GemmOperand& operand, Usage direction, TensorSpec spec);
  /// The name of a step that quantizes only this: "fc1.quantize_input".
  std::string workName(const GemmOperand& operand) const;

 private:
  TensorKey keyOf(const GemmOperand& operand, Usage direction) const;
  int slotOf(const GemmOperand& operand, int part = 0) const;
  int stateSlotOf(const GemmOperand& operand, int group = 0) const;
  QuantizeWork& beginWork(Step& step, const GemmOperand& operand, int source, int member, const OperandKey& key);
  std::string tensorName(const GemmOperand& operand, Usage direction) const;
  void addCopy(Step& step, const GemmOperand& operand, Usage direction);
  void addGroupSizes(Step& step, const GemmOperand& operand);
  void addStates(Step& step, const GemmOperand& operand) const;

  const Graph& m_graph;
  const CopyNeeds& m_needs;
  PlanTensors& m_tensors;
};

}  // namespace fuseline
