// Copies between a matrix and pieces of its columns. Plain C++: the kernel stands in column_copy_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/stream/stream.h"

#include <cstddef>
#include <cstdint>

namespace fuseline::cuda {

/// Some columns, of all rows.
struct ColumnPiece {
  const std::byte* from = nullptr;  // null: zeros are written
  std::byte* to = nullptr;          // null: nothing is wanted
  std::int64_t fromRowBytes = 0;    // from one row to the next
  std::int64_t toRowBytes = 0;
  std::int64_t bytes = 0;  // of a row of the piece
};

/// Several pieces go with one launch.
struct ColumnPieces {
  static constexpr int kMax = 32;
  ColumnPiece pieces[kMax];
  int count = 0;
  std::int64_t rows = 0;
};

void launchColumnCopy(const ColumnPieces& pieces, Stream stream);

}  // namespace fuseline::cuda
