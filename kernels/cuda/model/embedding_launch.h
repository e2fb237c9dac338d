// Launches of Embedding. Plain C++: the kernels are in embedding_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/program.h"
#include "kernels/cuda/stream/stream.h"

#include <cstddef>
#include <cstdint>

namespace fuseline::cuda {

/// weight: [numRows, width]; y: [count, width].
struct EmbeddingTask {
  const std::int64_t* ids = nullptr;
  std::int64_t count = 0;   // of ids
  std::int64_t tokens = 0;  // more than 0: rows are positions among this number of tokens
  std::int64_t numRows = 0;
  std::int64_t width = 0;
  std::int64_t padding = -1;  // a row without a gradient; -1: none
  device::Element element = device::Element::F32;

  const void* weight = nullptr;
  void* y = nullptr;

  const void* dy = nullptr;      // null: there is none
  const void* dTable = nullptr;  // added to the sums; null: nothing is
  void* dWeight = nullptr;
};

void launchEmbedding(const EmbeddingTask& task, Stream stream);

/// Scratch memory of the gradient, in 32-bit integers.
std::size_t embeddingScratch(std::int64_t count);
void launchEmbeddingGradient(const EmbeddingTask& task, std::int32_t* scratch, Stream stream);

}  // namespace fuseline::cuda
