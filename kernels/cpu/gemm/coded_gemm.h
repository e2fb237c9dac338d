// GEMMs of few rows with a matrix of 8-bit encoded values, which is read at one byte per value: its tiles are converted
// to bf16 in the cache, directly before the CPU's matrix instructions. Such a GEMM is bound by reading the matrix.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/dtype.h"
#include "core/tensor/element_format.h"

#include <cstddef>
#include <cstdint>

namespace fuseline::cpu {

/// Has this CPU the instructions (AMX in bf16, AVX-512 VBMI), and may this process use them?
bool canMultiplyCodes();

/// The most rows of A for which this is worth it.
constexpr std::int64_t kMostCodedRows = 64;

/// C[M,N] = scale A[M,K] B^T: A in bf16, B[N,K] encoded in E4M3 or E5M2, sums in float32, C in float32 or bf16.
class CodedGemm {
 public:
  CodedGemm(std::int64_t m, std::int64_t n, std::int64_t k, ElementFormat format);

  std::size_t packedBytes() const;
  std::size_t workspaceBytes() const;

  /// Packs B's encoded values in the order in which they are multiplied.
  void pack(const std::byte* codes, std::byte* packed) const;
  /// rows: at most M. workspace, packed: aligned to 64 bytes.
  void multiply(const std::byte* a, const std::byte* packed, float scale, std::byte* c, DType cType, std::int64_t rows,
                std::byte* workspace) const;

 private:
  std::int64_t m_m;
  std::int64_t m_n;
  std::int64_t m_k;
  ElementFormat m_format;
};

}  // namespace fuseline::cpu
