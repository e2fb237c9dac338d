// The columns of a packed tensor that a Split divides and rotary embeddings turn.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/step_operands.h"
#include "core/support/result.h"

#include <cstdint>
#include <span>
#include <vector>

namespace fuseline {

/// Members of a match: perhaps a Bias, a Split, and rotary embeddings of some of its outputs; or a rotary embedding
/// alone.
struct SplitRotary {
  /// One output of the split.
  struct Part {
    OperandKey output;    // after its rotary embedding, if it has one
    OperandKey gradient;  // of that
    int rotary = -1;      // member; -1: the part is copied
    std::int64_t first = 0;
    std::int64_t width = 0;
  };
  int bias = -1;  // member
  int split = 0;
  std::int64_t width = 0;  // of a row of the packed tensor
  std::vector<Part> parts;

  bool hasBias() const { return bias >= 0; }
};

SplitRotary splitRotary(const Graph& graph, std::span<const NodeId> members);

/// Why these members cannot be fused: a split within heads.
Verdict splitsBetweenHeads(const Graph& graph, std::span<const NodeId> members);

}  // namespace fuseline
