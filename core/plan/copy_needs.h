// Decides which rowwise and columnwise quantized tensors the GEMMs of a graph need.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan.h"
#include "core/plan/quantize_consumers.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace fuseline {

class CopyNeeds {
 public:
  /// The graph outlives it.
  CopyNeeds(const Graph& graph, const FusionReport& report) : m_graph(graph), m_handed(graph, report) {}

  /// The directions in which the GEMMs of one pass contract this tensor.
  std::vector<Usage> readDirections(Phase phase, const GemmOperand& operand) const;
  /// Does a GEMM of forward or backward contract this tensor in this direction?
  bool isNeeded(const GemmOperand& operand, Usage direction) const;
  const QuantizeConsumers& handed() const { return m_handed; }

 private:
  bool isNeededByReaders(const GemmOperand& source, Usage direction) const;

  const Graph& m_graph;
  QuantizeConsumers m_handed;
};

/// Do biases or their scales have gradients, which no GEMM makes?
bool isReadBesideGemms(const Node& node);
/// Groups of rows that are quantized by themselves inside one tensor; 0: the tensor is no group's or one group's.
std::int64_t groupsIn(const Graph& graph, const GemmOperand& operand);
/// The number of one of many weights, or of x, k and v of an attention; nothing: the op has one such tensor.
std::optional<std::int64_t> partNumber(const Graph& graph, const GemmOperand& operand);

}  // namespace fuseline
