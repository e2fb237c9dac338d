// Launches before and after a graph whose batch entries are sequences with lengths.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/attention/attention_graph.h"
#include "kernels/cuda/attention/attention_operands.h"
#include "kernels/cuda/attention/sequence_launch.h"
#include "kernels/cuda/kernel_def.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace fuseline::cuda {

/// The graph's tables are written in each run. Rows outside of sequences, and those that see no key, are 0 at the end,
/// whatever the library leaves there.
class GraphSequences {
 public:
  /// Nothing for a graph without lengths.
  static std::optional<GraphSequences> ifAny(const CompileRequest& request, const AttentionProblem& problem,
                                             const SequenceTensors& tensors);

  /// tensor: of the log-sum-exp, which the graph reads from a copy.
  void readStatistics(int tensor, Binding lse);
  /// Results that become 0 in such rows. Without memory: nothing.
  void clearQueries(HeadBinding heads, const TokenLayout& layout, Binding lse = {});
  void clearKeys(HeadBinding heads, const TokenLayout& layout);

  std::size_t workspaceBytes() const;
  /// Returns the rest of the workspace. tensors: those of the graph. Throws std::runtime_error where lengths are not
  /// legal.
  std::byte* begin(Pointers pointers, std::byte* workspace, std::vector<std::byte*>& tensors);
  void end(Pointers pointers) const;

 private:
  struct Cleared {
    HeadBinding heads;
    TokenLayout layout;
    Binding lse;
    bool isOfQueries = true;
  };

  GraphSequences(const CompileRequest& request, const AttentionProblem& problem, const SequenceTensors& tensors);
  bool hasSums() const { return m_problem.form.cuSeqlensQSlot >= 0; }
  std::size_t lengthsBytes() const;
  std::size_t offsetsBytes() const;
  std::size_t statisticsBytes() const;
  std::byte* copyStatistics(const ScoreRules& rules, Pointers pointers, std::byte* workspace,
                            std::vector<std::byte*>& tensors) const;

  AttentionProblem m_problem;
  SequenceTensors m_tensors;
  AttentionRuleOperands m_rules;
  int m_statistics = -1;
  Binding m_lse;
  std::vector<Cleared> m_cleared;
  const DeviceContext* m_device;
};

}  // namespace fuseline::cuda
