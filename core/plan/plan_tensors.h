// The tensors of a plan that is being made: names, roles, and which shows whose memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan.h"
#include "core/plan/tensor_index.h"

#include <string>
#include <utility>
#include <vector>

namespace fuseline {

/// Tensors are numbered in the order in which steps first use them.
class PlanTensors {
 public:
  /// Begins with the inputs and the parameters of the graph.
  explicit PlanTensors(const Graph& graph);

  int add(std::string name, TensorSpec spec, TensorRole role);
  int add(const TensorKey& key, std::string name, TensorSpec spec, TensorRole role);
  /// The tensor of an operand of a step of these nodes; added if no step used it before.
  int of(const std::vector<NodeId>& nodes, const OperandKey& key);

  /// -1: no step used it so far.
  int find(const TensorKey& key) const { return m_index[key]; }
  void set(const TensorKey& key, int tensor) { m_index[key] = tensor; }

  void makeView(int tensor, int source);
  /// The tensor whose memory this one shows.
  int root(int tensor) const;

  PlanTensor& operator[](int tensor) { return m_tensors[static_cast<std::size_t>(tensor)]; }
  const PlanTensor& operator[](int tensor) const { return m_tensors[static_cast<std::size_t>(tensor)]; }
  int size() const { return static_cast<int>(m_tensors.size()); }

  /// How many gradients are added to that of a value: one from every reader that gives one, and one from each output.
  int numGradients(ValueId id) const;
  /// "grad.fc1:y"
  std::string gradientName(ValueId id) const;
  /// Sets the traffic of a step: every tensor once, even where two members read it.
  void countBytes(Step& step) const;

  struct Parts {
    std::vector<PlanTensor> tensors;
    std::vector<int> viewOf;  // by tensor, the one whose memory it shows, or itself
  };
  Parts take() && { return {std::move(m_tensors), std::move(m_viewOf)}; }

 private:
  TensorKey keyOf(const std::vector<NodeId>& nodes, const OperandKey& key) const;
  std::string nameOf(const Node& node, const OperandKey& key) const;
  std::string partialName(const Node& node, int slot) const;
  TensorRole roleOf(const std::vector<NodeId>& nodes, const OperandKey& key) const;

  const Graph& m_graph;
  std::vector<int> m_numGradients;  // by value
  TensorIndex m_index;
  std::vector<PlanTensor> m_tensors;
  std::vector<int> m_viewOf;
};

}  // namespace fuseline
