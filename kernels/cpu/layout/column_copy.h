// Copies between a matrix and its pieces, which are groups of its columns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/step_operand.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace fuseline::cpu {

/// ToPieces: pieces that are absent are not wanted. FromPieces: those that are absent are zeros.
enum class ColumnCopyDirection { ToPieces, FromPieces };

/// Some columns of the whole, of all its rows.
struct ColumnPiece {
  Binding binding;
  std::int64_t bytes = 0;  // of a row
};

/// whole: [.., all columns].
std::unique_ptr<Kernel> makeColumnCopy(Binding whole, std::vector<ColumnPiece> pieces, ColumnCopyDirection direction,
                                       int threads);

/// The pieces of member 0 of a step: one for each of its outputs or inputs. key: of the operand that stands for the
/// slot in this step; specs: by slot.
std::vector<ColumnPiece> columnPieces(const CompileRequest& request, OperandKind kind,
                                      const std::vector<TensorSpec>& specs);

}  // namespace fuseline::cpu
