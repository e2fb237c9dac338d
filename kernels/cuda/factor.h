// One factor of a product as the library reads it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/scale_map.h"
#include "core/tensor/tensor_spec.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/stream.h"

#include <cstddef>
#include <optional>

namespace fuseline::cuda {

/// Products of codes with plain numbers, or of two matrices in E5M2, are not the library's.
bool needsDecoding(const GemmProblem& problem);
/// The same of numbers.
GemmProblem decoded(GemmProblem problem);

/// As it is; codes, with scales in cuBLASLt's layout; or codes that are decoded first.
class Factor {
 public:
  Factor(TensorSpec spec, bool isDecoded);

  std::size_t workspaceBytes() const;

  struct Memory {
    const std::byte* data = nullptr;
    const std::byte* scales = nullptr;
  };
  /// workspace: as many bytes as asked for.
  Memory prepare(const std::byte* data, std::byte* workspace, Stream stream) const;

 private:
  TensorSpec m_spec;
  bool m_isDecoded = false;
  std::optional<ScaleMap> m_map;
  std::size_t m_scaleBytes = 0;
};

}  // namespace fuseline::cuda
