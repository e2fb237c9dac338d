// Launches of norms whose rows are looked up in a table. Plain C++: the kernels are in embedding_norm_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/norm/norm_launch.h"

#include <cstdint>

namespace fuseline::cuda {

/// norm.x: the table, of the element type of the problem's x, with rows of whole packets; nothing is added.
struct EmbeddingNorm {
  NormForward norm;
  const std::int64_t* ids = nullptr;  // of each row
  std::int64_t tokens = 0;            // more than 0: rows are positions among this number of tokens
  void* rows = nullptr;               // the rows that are looked up; null: not stored
};

/// Without norm.y: norm.mean, norm.rstd and the rows only.
void launchEmbeddingNorm(const EmbeddingNorm& task, Stream stream);

}  // namespace fuseline::cuda
