// Lays the keys of a graph out in one array.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/tensor_index.h"

#include "core/quant/apply_recipe.h"
#include "core/quant/attention_quantizers.h"

#include <algorithm>
#include <cstdint>

namespace fuseline {

namespace {

constexpr int kQuantizedSubjects = 4;
constexpr int kNumTensorTypes = 3;
constexpr int kAttentionInputs = 3;  // x, k and v

int numParts(const Node& node) {
  if (isQuantizedAttention(node)) return kAttentionInputs;
  return static_cast<int>(std::max<std::int64_t>(rowGroups(node), 1));
}

}  // namespace

int partSlot(const Node& node, TensorType type, int part) { return static_cast<int>(type) * numParts(node) + part; }

TensorIndex::TensorIndex(const Graph& graph) {
  std::size_t size = 2 * graph.values().size();
  m_firstOfNode.reserve(graph.nodes().size());
  for (const Node& node : graph.nodes()) {
    m_firstOfNode.push_back(size);
    m_numParameters.push_back(static_cast<int>(node.parameters.size()));
    size += 2 * node.parameters.size() + node.residuals.size() + node.inputs.size();
    m_numResiduals.push_back(static_cast<int>(node.residuals.size()));
    m_numInputs.push_back(static_cast<int>(node.inputs.size()));
    m_numQuantized.push_back(node.quantizers.any() ? kNumTensorTypes * numParts(node) : 0);
    size += static_cast<std::size_t>(kQuantizedSubjects * m_numQuantized.back());
  }
  m_tensors.assign(size, -1);
}

std::size_t TensorIndex::place(const TensorKey& key) const {
  const auto owner = static_cast<std::size_t>(key.owner);
  if (key.subject == PlanTensorSource::Value) return 2 * owner;
  if (key.subject == PlanTensorSource::ValueGradient) return 2 * owner + 1;
  return m_firstOfNode[owner] + static_cast<std::size_t>(firstOf(key.subject, owner) + key.slot);
}

/// A node has its parameters, their gradients, its residuals, the gradients of its inputs and, if it has quantizers,
/// two copies, a scale and a history for each part of three tensors.
int TensorIndex::firstOf(PlanTensorSource subject, std::size_t node) const {
  switch (subject) {
    case PlanTensorSource::Parameter: return 0;
    case PlanTensorSource::ParameterGradient: return m_numParameters[node];
    case PlanTensorSource::Residual: return 2 * m_numParameters[node];
    case PlanTensorSource::PartialGradient: return firstGradient(node);
    default: break;
  }
  const int subjectBehind = static_cast<int>(subject) - static_cast<int>(PlanTensorSource::RowwiseCopy);
  return firstGradient(node) + m_numInputs[node] + subjectBehind * m_numQuantized[node];
}

}  // namespace fuseline
