// The result of a GEMM that its step quantizes: complete in memory, then quantized block by block.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/quantize/row_copies.h"

#include <cstddef>
#include <functional>
#include <optional>

namespace fuseline::cpu {

class QuantizedProduct {
 public:
  /// Nothing for a step without fused quantization.
  static std::optional<QuantizedProduct> ifAny(const CompileRequest& request);

  /// The GEMM's result has this one: float32 if it is quantized before it is rounded.
  DType dtype() const { return m_copies.spec().dtype; }
  std::size_t workspaceBytes() const;
  /// multiply: computes the whole result at c. workspace: workspaceBytes().
  void run(Pointers pointers, std::byte* workspace, const std::function<void(std::byte* c)>& multiply);

 private:
  QuantizedProduct(RowCopies copies, int threads) : m_copies(std::move(copies)), m_threads(threads) {}

  RowCopies m_copies;
  int m_threads;
};

}  // namespace fuseline::cpu
