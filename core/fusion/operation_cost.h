// The least work of an op by itself: operations, and bytes by the minimum-traffic model.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace fuseline {

struct Work {
  std::int64_t flops = 0;
  std::int64_t bytes = 0;
};

struct OperationCost {
  Work forward;
  Work backward;  // 0 in a forward-only graph
};

/// Floating-point operations of an op's backward, without GEMMs for gradients that are not requested.
std::int64_t backwardFlops(const Graph& graph, NodeId id);

/// The ops one by one, unfused. Views cost nothing.
OperationCost costOf(const Graph& graph, std::span<const NodeId> nodes);

/// "forward 2.1 MFLOP and 4.00 MiB, backward 8.4 MFLOP and 6.00 MiB".
std::string toString(const OperationCost& cost);

/// Cost of training an op with x [1024, 1024] bf16, default attributes, and required sizes that fit x, or with its
/// exampleCall of as many elements. Nothing if such an x does not fit the op.
std::optional<OperationCost> sampleCost(const FusibleOperation& operation);
/// The x of sampleCost.
TensorSpec sampleInput(const FusibleOperation& operation);

}  // namespace fuseline
