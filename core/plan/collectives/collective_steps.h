// The communication of a plan that runs on several ranks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/step_operands.h"
#include "core/plan/plan.h"
#include "core/plan/plan_tensors.h"

#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// Does this graph belong to one of several ranks?
bool isOfSeveralRanks(const Graph& graph);

/// The communication of a step of this node alone; nothing: it has none in this pass.
std::optional<CollectiveWork> collectiveWork(const Node& node, Phase phase);

/// Gathers the input of a column-parallel layer again in backward, as TransformerEngine does: until then a rank keeps
/// its own rows only. A layer that multiplies quantized values keeps those of all ranks.
class Regathers {
 public:
  Regathers(const Graph& graph, PlanTensors& tensors) : m_graph(graph), m_tensors(tensors) {}

  /// The same saved tensors, with gathered ones replaced by the rows of this rank.
  SavedSet withoutGathered(const SavedSet& saved) const;
  /// The gathers in front of a backward entry that reads what they produce. It then reads the new tensors.
  std::vector<Step> before(const FusedOperation& entry);

 private:
  bool isRegathered(ValueId value) const;
  Step gather(ValueId value);

  const Graph& m_graph;
  PlanTensors& m_tensors;
};

/// Adds the gradients of replicated parameters, of which each rank has those of its rows, in one launch. Nothing: there
/// are none.
std::optional<Step> sumOfPartialGradients(const Graph& graph, PlanTensors& tensors);

/// Makes the amaxes of a pass those of all ranks, before `update` reads them. Nothing: there is one rank, or the recipe
/// does not want it (reduce_amax).
std::optional<Step> amaxesOfAllRanks(const Graph& graph, const PlanTensors& tensors, const Step& update);

/// Adds the first element of a tensor over the ranks.
Step sumOfShards(std::string name, Phase phase, int tensor, const PlanTensors& tensors);

}  // namespace fuseline
