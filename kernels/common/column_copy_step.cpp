// Finds the whole and the pieces of Split, Concat and Expand.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/column_copy_step.h"

#include <utility>

namespace fuseline {

namespace {

bool isForward(const StepRequest& request) { return request.step.phase == Phase::Forward; }

/// Is the operand columns of the whole?
bool isShownBy(const StepRequest& request, const OperandKey& key, const OperandKey& whole) {
  const auto tensorOf = [&](const OperandKey& wanted) -> const PlanTensor& {
    return request.plan.tensors[static_cast<std::size_t>(request.step.find(wanted)->tensor)];
  };
  return request.step.find(key) && tensorOf(key).columns && tensorOf(key).storage == tensorOf(whole).storage;
}

/// whole, pieces: their kinds in this pass. specs: of the pieces, by slot.
Result<ColumnCopyStep> readCopy(const StepRequest& request, OperandKind whole, OperandKind pieces,
                                const std::vector<TensorSpec>& specs, ColumnCopyDirection direction) {
  const Result<Binding> all = requireOperand(request, {0, whole, 0});
  if (!all) return all.error();
  ColumnCopyStep step{.whole = *all, .direction = direction};
  for (std::size_t slot = 0; slot < specs.size(); ++slot) {
    const OperandKey key = {0, pieces, static_cast<int>(slot)};
    const std::int64_t elementBytes = sizeBytes(specs[slot].dtype);
    BoundPiece piece{.binding = findOperand(request, key),
                     .bytes = specs[slot].cols() * elementBytes,
                     .firstByte = step.rowBytes,
                     .isInPlace = isShownBy(request, key, {0, whole, 0})};
    piece.rowBytes = piece.binding.rowStride > 0 ? piece.binding.rowStride * elementBytes : piece.bytes;
    step.rowBytes += piece.bytes;
    step.pieces.push_back(std::move(piece));
  }
  step.rows = step.rowBytes == 0 ? 0 : all->spec.bytes() / step.rowBytes;
  return step;
}

}  // namespace

Result<ColumnCopyStep> readSplit(const StepRequest& request) {
  std::vector<TensorSpec> outputs;
  for (const ValueId output : request.member(0).outputs) outputs.push_back(request.graph.value(output).spec);
  if (isForward(request))
    return readCopy(request, OperandKind::Input, OperandKind::Output, outputs, ColumnCopyDirection::ToPieces);
  return readCopy(request, OperandKind::GradInput, OperandKind::GradOutput, outputs, ColumnCopyDirection::FromPieces);
}

Result<ColumnCopyStep> readConcat(const StepRequest& request) {
  const std::vector<TensorSpec> inputs = request.graph.inputSpecs(request.step.nodes.front());
  if (isForward(request))
    return readCopy(request, OperandKind::Output, OperandKind::Input, inputs, ColumnCopyDirection::FromPieces);
  return readCopy(request, OperandKind::GradOutput, OperandKind::GradInput, inputs, ColumnCopyDirection::ToPieces);
}

Result<ColumnCopyStep> readExpand(const StepRequest& request) {
  const Result<Binding> y = requireOperand(request, {0, OperandKind::Output, 0});
  if (!y) return y.error();
  const Result<Binding> x = requireOperand(request, {0, OperandKind::Input, 0});
  if (!x) return x.error();
  const std::int64_t elementBytes = sizeBytes(x->spec.dtype);
  const std::int64_t bytes = x->spec.cols() * elementBytes;
  const std::int64_t apart = y->rowStride > 0 ? y->rowStride * elementBytes : bytes;
  const std::int64_t copies = y->spec.shape[y->spec.shape.size() - 2];
  ColumnCopyStep step{.whole = *y,
                      .direction = ColumnCopyDirection::FromPieces,
                      .rowBytes = copies * apart,
                      .rows = bytes == 0 ? 0 : x->spec.bytes() / bytes};
  for (std::int64_t copy = 0; copy < copies; ++copy)
    step.pieces.push_back({.binding = *x, .bytes = bytes, .firstByte = copy * apart, .rowBytes = bytes});
  return step;
}

}  // namespace fuseline
