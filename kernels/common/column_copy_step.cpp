// Finds the whole and the pieces of Split, Concat and Expand.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/column_copy_step.h"

namespace fuseline {

namespace {

bool isForward(const StepRequest& request) { return request.step.phase == Phase::Forward; }

/// whole, pieces: their kinds in this pass. specs: of the pieces, by slot.
Result<ColumnCopyStep> readCopy(const StepRequest& request, OperandKind whole, OperandKind pieces,
                                const std::vector<TensorSpec>& specs, ColumnCopyDirection direction) {
  const Result<Binding> all = requireOperand(request, {0, whole, 0});
  if (!all) return all.error();
  ColumnCopyStep step{.whole = *all, .direction = direction};
  for (std::size_t slot = 0; slot < specs.size(); ++slot)
    step.pieces.push_back({.binding = findOperand(request, {0, pieces, static_cast<int>(slot)}),
                           .bytes = specs[slot].cols() * sizeBytes(specs[slot].dtype)});
  return step;
}

}  // namespace

std::int64_t ColumnCopyStep::rowBytes() const {
  std::int64_t bytes = 0;
  for (const BoundPiece& piece : pieces) bytes += piece.bytes;
  return bytes;
}

std::int64_t ColumnCopyStep::rows() const { return rowBytes() == 0 ? 0 : whole.spec.bytes() / rowBytes(); }

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
  const BoundPiece piece{.binding = *x, .bytes = x->spec.cols() * sizeBytes(x->spec.dtype)};
  const auto copies = static_cast<std::size_t>(y->spec.shape[y->spec.shape.size() - 2]);
  return ColumnCopyStep{
      .whole = *y, .pieces = std::vector<BoundPiece>(copies, piece), .direction = ColumnCopyDirection::FromPieces};
}

}  // namespace fuseline
