// Which tensors an entry of the forward or backward list reads and writes, seen from outside.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"

#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

namespace fuseline {

enum class OperandAccess { Read, Write };

/// A tensor that backward keeps: of which node, which one.
using SavedKey = std::tuple<NodeId, SavedTensor>;

/// Everything the backward entries of a report will read from the forward pass.
std::set<SavedKey> savedTensors(const Graph& graph, const FusionReport& report);
/// What one backward entry reads from the forward pass.
std::vector<MemberTensor> savedReads(const Graph& graph, const FusedOperation& entry);

struct OperandUse {
  OperandKey key;
  OperandAccess access = OperandAccess::Read;
};

/// Operands of a forward entry. Outputs that nobody outside reads and nobody saves are left out: they never exist.
std::vector<OperandUse> forwardOperands(const Graph& graph, const FusedOperation& entry,
                                        const std::set<SavedKey>& saved);
/// Operands of a backward entry: saved tensors and output gradients in, input and parameter gradients out.
std::vector<OperandUse> backwardOperands(const Graph& graph, const FusedOperation& entry);

/// Minimum traffic of an entry in bytes: each outside operand once. Pure views cost nothing.
std::int64_t trafficBytes(const Graph& graph, const FusedOperation& entry, Phase phase,
                          const std::set<SavedKey>& saved);

}  // namespace fuseline
