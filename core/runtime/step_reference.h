// Runs one step of a plan, fused or not, through the references of the ops it came from.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan.h"

#include <map>
#include <vector>

namespace fuseline {

/// The tensors of one step in double precision, by operand key.
using StepTensors = std::map<OperandKey, ReferenceTensor>;

/// Expands a step to its member ops, and computes only the requested results. Values between members stay in double
/// precision. Tensors that a joint fusion did not keep for backward are recomputed from the ones it kept.
class StepReference {
 public:
  /// operands: everything the step reads. `graph` and `step` must outlive the object.
  StepReference(const Graph& graph, const Step& step, StepTensors operands);

  /// An operand's value: given, computed by its member, recomputed, or (for gradients that do not flow) zero.
  /// Throws std::logic_error when that needs an operand that was not given.
  const ReferenceTensor& value(OperandKey key);

 private:
  ReferenceTensor make(OperandKey key);
  ReferenceTensor sumOfInputs() const;
  void runForward(int member);
  void runBackward(int member);
  const ReferenceTensor& inputValue(OperandKey key);
  ReferenceTensor outputGradient(OperandKey key);
  /// Adds results that are not known yet: a tensor that was given is never replaced.
  void keep(int member, OperandKind kind, std::vector<ReferenceTensor> tensors);

  Attributes attributesOf(int member) const;
  const Node& node(int member) const { return m_graph.node(m_step.nodes[static_cast<std::size_t>(member)]); }
  /// The member that computes this node; -1 if it is outside the step.
  int memberOf(NodeId id) const;

  const Graph& m_graph;
  const Step& m_step;
  StepTensors m_tensors;
};

}  // namespace fuseline
