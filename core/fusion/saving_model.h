// Savings of fusions by the minimum-traffic model.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/step_operands.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace fuseline {

/// The passes of training in which a rule's entry runs; in inference there is forward only.
std::vector<Phase> phasesOf(const Graph& graph, FusionPass pass);

class SavingModel {
 public:
  /// unfusedSaved: what the basic ops keep for backward. Both outlive it.
  SavingModel(const Graph& graph, const SavedSet& unfusedSaved) : m_graph(graph), m_unfusedSaved(unfusedSaved) {}

  Saving savingOf(const Match& match) const;
  /// Bytes that a joint fusion does not keep for backward, but its ops would.
  std::int64_t keptLess(const Match& match) const;

 private:
  Saving costOf(const FusedOperation& entry, Phase phase, const SavedSet& saved) const;
  const Saving& basicCost(NodeId id, Phase phase) const;
  SavedSet keptBy(const FusedOperation& entry) const { return savedTensors(m_graph, {&entry, 1}); }
  SavedSet keptByMembers(const FusedOperation& fusion) const;
  SavedSet savedWith(const FusedOperation& fusion) const;

  const Graph& m_graph;
  const SavedSet& m_unfusedSaved;
  mutable std::array<std::vector<std::optional<Saving>>, 2> m_basicCosts;  // by phase and op
};

}  // namespace fuseline
