// The external inputs and outputs of an entry of the forward or backward list, and its elementwise program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"
#include "core/quant/recipe.h"
#include "core/support/sorted_set.h"

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace fuseline {

/// Accumulate: the result is added to the tensor's content.
enum class OperandAccess { Read, Write, Accumulate };

struct OperandUse {
  OperandKey key;
  OperandAccess access = OperandAccess::Read;
};

/// An output that needs no memory: it is the same tensor as `source`, or has the same elements in the same order in
/// another shape.
struct ViewOperand {
  OperandKey view;
  OperandKey source;
};

/// The external tensors of an entry. A tensor that is neither here nor a view never exists.
struct EntryOperands {
  std::vector<OperandUse> operands;
  std::vector<ViewOperand> views;

  /// Nothing to launch: every output is a view.
  bool isView() const;
};

/// Forward tensors that backward reads. Parameters are not listed: they are always available.
struct SavedSet {
  SortedSet<ValueId> values;
  SortedSet<std::pair<NodeId, int>> residuals;
};

/// An operand of the GEMMs of a quantizable op or a quantized attention, or its replacement.
struct GemmOperand {
  NodeId node = -1;  // the linear op, or the one that passes the tensor on
  TensorType type = TensorType::Input;
  int slot = 0;  // of a weight, or of x, k and v of an attention: its index in the op
};
/// The weights of a quantizable op are its first parameters.
int numWeights(const Node& node);
/// Nothing for other operands.
std::optional<GemmOperand> gemmOperand(const Graph& graph, const FusedOperation& entry, const OperandKey& key);

/// Forward tensors that one backward entry reads.
std::vector<MemberTensor> savedReads(const Graph& graph, const FusedOperation& entry);
/// Forward tensors that all backward entries together read.
SavedSet savedTensors(const Graph& graph, std::span<const FusedOperation> backward);

/// Inputs and parameters in; outputs with outside consumers, or kept for backward, out.
EntryOperands forwardOperands(const Graph& graph, const FusedOperation& entry, const SavedSet& saved);
/// Saved tensors and output gradients in; input and parameter gradients out.
EntryOperands backwardOperands(const Graph& graph, const FusedOperation& entry);

/// Some of the gradients of an op, and the tensors that backward reads for these.
struct BackwardShare {
  GradientNeeds needs;
  OperationContext context;
};
BackwardShare shareOf(const Graph& graph, NodeId id, GradientNeeds needs);
/// The same for a separate share of an op.
EntryOperands backwardOperands(const Graph& graph, NodeId id, const BackwardShare& share);

/// Minimum traffic in bytes: every outside tensor once; one that is accumulated to is read and written.
std::int64_t trafficBytes(const Graph& graph, const FusedOperation& entry, const EntryOperands& operands);

/// Composes the elementwise members in [first, last) of an entry. A backward program runs the members back to front.
/// Outputs that are not among `present` are not stored; gradients that are not among them are absent. The result of a
/// member outside the range is loaded from that member's own key. firstRow: of the tensors, where the program begins.
ElementwiseProgram composeMembers(const Graph& graph, std::span<const NodeId> nodes, Phase phase,
                                  const SortedSet<OperandKey>& present, int first, int last, std::int64_t firstRow = 0);

}  // namespace fuseline
