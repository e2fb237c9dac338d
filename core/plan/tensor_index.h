// Index of the tensors of a plan by their origin in the graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

#include <cstddef>
#include <vector>

namespace fuseline {

/// Where a tensor of the plan comes from: a value, a node's parameter or residual, or a gradient of one of these.
enum class PlanTensorSource {
  Value,
  Parameter,
  Residual,
  ValueGradient,
  PartialGradient,
  ParameterGradient,
  RowwiseCopy,
  ColumnwiseCopy,
  QuantizerScale,
  AmaxHistory
};
struct TensorKey {
  PlanTensorSource subject;
  int owner = 0;  // value or node
  int slot = 0;
};

/// The slot of a part of one of the three tensors of an op with quantizers: a group of rows, one of many weights, or of
/// x, k and v of an attention.
int partSlot(const Node& node, TensorType type, int part);

/// The tensor of every key, -1 at first. Entries of one value or node are adjacent, so that a walk along the
/// graph finds it in the cache, however many ops there are.
class TensorIndex {
 public:
  explicit TensorIndex(const Graph& graph);

  int& operator[](const TensorKey& key) { return m_tensors[place(key)]; }
  int operator[](const TensorKey& key) const { return m_tensors[place(key)]; }

 private:
  std::size_t place(const TensorKey& key) const;
  int firstOf(PlanTensorSource subject, std::size_t node) const;
  int firstGradient(std::size_t node) const { return 2 * m_numParameters[node] + m_numResiduals[node]; }

  std::vector<std::size_t> m_firstOfNode;
  std::vector<int> m_numParameters;
  std::vector<int> m_numResiduals;
  std::vector<int> m_numInputs;
  std::vector<int> m_numQuantized;
  std::vector<int> m_tensors;
};

}  // namespace fuseline
