// Steps of Split, Concat and Expand: copies between a matrix and its pieces, which are groups of its columns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/step_operand.h"

#include <cstdint>
#include <vector>

namespace fuseline {

/// ToPieces: absent pieces are not written. FromPieces: absent pieces are read as zeros.
enum class ColumnCopyDirection { ToPieces, FromPieces };

/// Some columns of the whole, of all its rows.
struct BoundPiece {
  Binding binding;
  std::int64_t bytes = 0;      // of a row
  std::int64_t firstByte = 0;  // in a row of the whole
  std::int64_t rowBytes = 0;   // from one row of the piece to the next
  bool isInPlace = false;      // it is these columns already
};

struct ColumnCopyStep {
  Binding whole;  // [.., all columns]
  std::vector<BoundPiece> pieces;
  ColumnCopyDirection direction = ColumnCopyDirection::ToPieces;
  std::int64_t rowBytes = 0;  // from one row of the whole to the next
  std::int64_t rows = 0;
};

/// Both passes of the op that is member 0. Errors: those of requireOperand().
Result<ColumnCopyStep> readSplit(const StepRequest& request);
Result<ColumnCopyStep> readConcat(const StepRequest& request);
/// Forward of Expand: x as every piece of a row of y. Errors: the same.
Result<ColumnCopyStep> readExpand(const StepRequest& request);

}  // namespace fuseline
