// Steps that copy between a matrix and its pieces, which are groups of its columns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/kernel_def.h"

#include <memory>
#include <vector>

namespace fuseline::cuda {

/// ToPieces: pieces that are absent are not wanted. FromPieces: those that are absent are zeros.
enum class ColumnCopyDirection { ToPieces, FromPieces };

/// The columns of one slot of member 0.
struct BoundPiece {
  Binding binding;
  std::int64_t bytes = 0;  // of a row
};

/// specs: by slot of `kind`.
std::vector<BoundPiece> boundPieces(const CompileRequest& request, OperandKind kind,
                                    const std::vector<TensorSpec>& specs);

/// whole: [.., all columns].
std::unique_ptr<Kernel> makeColumnCopy(Binding whole, std::vector<BoundPiece> pieces, ColumnCopyDirection direction,
                                       Stream stream);

}  // namespace fuseline::cuda
