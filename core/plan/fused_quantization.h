// Fused quantization: the step that produces a tensor also quantizes it, or finds its amax.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/quantized_copies.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace fuseline {

class FusedQuantization {
 public:
  /// steps: those so far, which it changes. All outlive it.
  FusedQuantization(const Graph& graph, RuleBook book, PlanTensors& tensors, QuantizedCopies& copies,
                    std::vector<Step>& steps)
      : m_graph(graph), m_book(book), m_tensors(tensors), m_copies(copies), m_steps(steps) {}

  /// Lets the producer of tensor `source` also quantize it, or a Bias that hands it on and reads it.
  void addToProducer(const GemmOperand& operand, int source);
  /// The amax that the producer of tensor `source` finds, for all steps that quantize it.
  int amaxFromProducer(const GemmOperand& operand, int source);
  /// At the end: a tensor that only its producer quantizes is not written.
  void dropUnreadSources(const PlanOptions& options);

 private:
  /// A step, and its key of a tensor.
  struct WorkPlace {
    Step& step;
    OperandKey key;
  };
  WorkPlace placeOf(const GemmOperand& operand, int produced);
  bool isMade(int tensor) const;
  Step* biasBehind(NodeId node);
  const std::vector<Use>& usesOf(NodeId node) const;
  Step* backwardStepOf(NodeId node);
  Step& producerOf(int tensor);
  std::vector<bool> neededTensors(const PlanOptions& options) const;
  NodeId makerOf(const Step& producer, const OperandKey& result) const;
  bool areNeighbors(NodeId maker, const GemmOperand& operand) const;
  bool isActivation(NodeId id) const;
  bool isNorm(NodeId id) const;
  bool isProduct(const Step& producer) const;
  std::string nameOf(const GemmOperand& operand) const;
  void orderWrites(int amax);

  const Graph& m_graph;
  RuleBook m_book;
  PlanTensors& m_tensors;
  QuantizedCopies& m_copies;
  std::vector<Step>& m_steps;
  std::map<int, int> m_amaxOf;              // by the tensor whose amax it is
  std::map<NodeId, int> m_amaxOfAttention;  // that of x, k and v
  std::vector<int> m_backwardSteps;         // by node, of the first m_numIndexed steps; -1: none
  std::size_t m_numIndexed = 0;
};

}  // namespace fuseline
