// Attention whose queries, keys and values are columns of one tensor: which ones, and how their heads stand there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/step_operands.h"
#include "core/ops/attention_form.h"
#include "core/support/result.h"

#include <array>
#include <cstdint>
#include <span>

namespace fuseline {

/// Where a step has the tensors of an attention.
struct AttentionPlaces {
  /// Queries, keys or values, and their gradient.
  struct Heads {
    OperandKey input;
    OperandKey gradient;
    std::int64_t firstElement = 0;  // of each row of that tensor
    int rotary = -1;                // member that rotates them; -1: none
  };
  int attention = 0;  // member
  std::array<Heads, 3> heads;
};

/// The tensors of an attention that is a step by itself.
AttentionPlaces ownPlaces();

/// Members of a match: a Split, a RotaryPositionEmbedding of queries and of keys or neither, and a DotProductAttention.
struct PackedAttention {
  AttentionPlaces places;
  AttentionLayouts layouts;  // with the strides of the packed tensor
};

// Why these members cannot be fused: one function by condition, in the order in which they are checked.
Verdict readsThreeParts(const Graph& graph, std::span<const NodeId> members);
Verdict rotatesByTokens(const Graph& graph, std::span<const NodeId> members);

/// Precondition: both verdicts are yes.
PackedAttention packedAttention(const Graph& graph, std::span<const NodeId> members);

}  // namespace fuseline
