// Finds a kernel's tensors among the operands of a step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace fuseline {

/// The pointers of one call, in the order of Step::operands.
using Pointers = std::span<std::byte* const>;

/// One operand of a step: the index of its pointer in a call, and its spec. May be absent.
struct Binding {
  int index = -1;
  TensorSpec spec;
  OperandAccess access = OperandAccess::Read;
  /// Describe a quantized operand whose decoded values the kernel reads: the matrix is stored transposed, and all its
  /// values are to be multiplied by the factor.
  bool isTransposed = false;
  const float* factor = nullptr;
  /// Columns of a wider tensor: elements in each of its rows, and from one row to the next; 0: contiguous.
  std::int64_t rowWidth = 0;
  std::int64_t rowStride = 0;
  /// The kernel gets encoded values in this format instead of decoded ones.
  std::optional<ElementFormat> codes;

  explicit operator bool() const { return index >= 0; }
  /// nullptr when absent or empty.
  std::byte* at(Pointers pointers) const { return index < 0 ? nullptr : pointers[static_cast<std::size_t>(index)]; }
};

/// The step that a kernel is made for. Backends add further fields. Only valid during the kernel's construction.
struct StepRequest {
  const Graph& graph;
  const Plan& plan;
  const Step& step;
  const CompileOptions& options;
  /// Operands that the kernel gets decoded, in place of those of the step with the same index.
  std::span<const Binding> decoded = {};

  const Node& member(std::size_t index) const { return graph.node(step.nodes[index]); }
};

/// Absent if the step has no such operand. gemm: selects one of two quantized tensors, if the step has two.
Binding findOperand(const StepRequest& request, const OperandKey& key, std::optional<Usage> gemm = std::nullopt);

/// The operand of member 0 in this slot; slot -1: the op has no such tensor.
Binding findSlot(const StepRequest& request, OperandKind kind, int slot);

/// The plain tensor next to its quantized tensors. Absent if it has no consumer.
Binding findPlainOperand(const StepRequest& request, const OperandKey& key);

/// Errors: the step has no such operand. It is a fault of the plan, so the message names step and operand.
Result<Binding> requireOperand(const StepRequest& request, const OperandKey& key,
                               std::optional<Usage> gemm = std::nullopt);
/// A result of the step. One that is only quantized has a spec, but no pointer. Errors: the same.
Result<Binding> requireResult(const StepRequest& request, const OperandKey& key);
Error missingOperand(const StepRequest& request, const OperandKey& key);

/// The index of the residual port with this name; -1 if the op has none.
int residualSlot(const FusibleOperation& operation, std::string_view port);

}  // namespace fuseline
