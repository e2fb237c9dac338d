// Tables first, then the graph, then zeros.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/graph_sequences.h"

#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/support/workspace.h"

#include <utility>

namespace fuseline::cuda {

std::optional<GraphSequences> GraphSequences::ifAny(const CompileRequest& request, const AttentionProblem& problem,
                                                    const SequenceTensors& tensors) {
  if (tensors.lengthsQ < 0) return std::nullopt;
  return GraphSequences(request, problem, tensors);
}

GraphSequences::GraphSequences(const CompileRequest& request, const AttentionProblem& problem,
                               const SequenceTensors& tensors)
    : m_problem(problem), m_tensors(tensors), m_rules(request, problem), m_device(&request.device) {}

void GraphSequences::readStatistics(int tensor, Binding lse) {
  if (!hasSums()) return;
  m_statistics = tensor;
  m_lse = std::move(lse);
}

void GraphSequences::clearQueries(HeadBinding heads, const TokenLayout& layout, Binding lse) {
  if (hasSums() && heads) m_cleared.push_back({std::move(heads), layout, std::move(lse), true});
}

void GraphSequences::clearKeys(HeadBinding heads, const TokenLayout& layout) {
  if (hasSums() && heads) m_cleared.push_back({std::move(heads), layout, {}, false});
}

std::size_t GraphSequences::lengthsBytes() const {
  return workspacePart(static_cast<std::size_t>(m_problem.numSequences) * sizeof(std::int32_t));
}

std::size_t GraphSequences::offsetsBytes() const {
  return workspacePart(static_cast<std::size_t>(m_problem.numSequences + 1) * sizeof(std::int64_t));
}

std::size_t GraphSequences::statisticsBytes() const {
  const TokenLayout& q = m_problem.layouts.q;
  return m_statistics < 0 ? 0 : workspacePart(static_cast<std::size_t>(q.batch * q.heads * q.tokens) * sizeof(float));
}

std::size_t GraphSequences::workspaceBytes() const {
  return 2 * lengthsBytes() + m_tensors.offsets.size() * offsetsBytes() + statisticsBytes();
}

std::byte* GraphSequences::begin(Pointers pointers, std::byte* workspace, std::vector<std::byte*>& tensors) {
  m_rules.checkOnce(m_problem, pointers, *m_device);
  const ScoreRules rules = m_rules.at(m_problem, pointers);
  SequenceTables tables{.numSequences = m_problem.numSequences,
                        .sumsQ = rules.sumsQ,
                        .sumsKv = rules.sumsKv,
                        .queries = rules.queries,
                        .keys = rules.keys};
  const auto take = [&](int tensor, std::size_t bytes) {
    tensors[static_cast<std::size_t>(tensor)] = workspace;
    return std::exchange(workspace, workspace + bytes);
  };
  tables.lengthsQ = reinterpret_cast<std::int32_t*>(take(m_tensors.lengthsQ, lengthsBytes()));
  tables.lengthsKv = reinterpret_cast<std::int32_t*>(take(m_tensors.lengthsKv, lengthsBytes()));
  for (const SequenceTensors::Offsets& offsets : m_tensors.offsets)
    tables.offsets[tables.numOffsets++] = {.to = reinterpret_cast<std::int64_t*>(take(offsets.tensor, offsetsBytes())),
                                           .sums = offsets.isOfQueries ? rules.sumsQ : rules.sumsKv,
                                           .tokenStride = offsets.tokenStride};
  launchSequenceTables(tables, m_device->stream);
  return copyStatistics(rules, pointers, workspace, tensors);
}

std::byte* GraphSequences::copyStatistics(const ScoreRules& rules, Pointers pointers, std::byte* workspace,
                                          std::vector<std::byte*>& tensors) const {
  if (m_statistics < 0) return workspace;
  launchSeenStatistics({.rules = rules,
                        .entries = m_problem.layouts.q.batch,
                        .lse = reinterpret_cast<const float*>(m_lse.at(pointers)),
                        .to = reinterpret_cast<float*>(workspace)},
                       m_device->stream);
  tensors[static_cast<std::size_t>(m_statistics)] = workspace;
  return workspace + statisticsBytes();
}

void GraphSequences::end(Pointers pointers) const {
  if (m_cleared.empty()) return;
  const ScoreRules ofQueries = m_rules.at(m_problem, pointers);
  // A key counts if it is in a sequence, as a row of keys that would see all of them.
  ScoreRules ofKeys = ofQueries;
  ofKeys.queries = ofKeys.keys;
  ofKeys.sumsQ = ofKeys.sumsKv;
  ofKeys.left = ofKeys.right = -1;
  for (const Cleared& cleared : m_cleared)
    launchClearUnseen({.rules = cleared.isOfQueries ? ofQueries : ofKeys,
                       .element = elementOf(m_problem.dtype),
                       .data = cleared.heads.at(pointers),
                       .lse = reinterpret_cast<float*>(cleared.lse.at(pointers)),
                       .entries = cleared.layout.batch,
                       .heads = cleared.layout.heads,
                       .channels = cleared.layout.channels,
                       .batchStride = cleared.layout.batchStride,
                       .tokenStride = cleared.layout.tokenStride,
                       .headStride = cleared.layout.headStride},
                      m_device->stream);
}

}  // namespace fuseline::cuda
