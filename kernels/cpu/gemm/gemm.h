// GEMMs by oneDNN: C = A B with packed B, any mix of dtypes, whole or in panels of rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/dtype.h"
#include "core/tensor/element_format.h"
#include "kernels/common/matrix_storage.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace fuseline::cpu {

/// When B is converted to the library's internal layout.
enum class Packing {
  OnceForever,  // B has the same values in every run: inference
  EveryRun,     // B changes from run to run: packed each time, or by the library if that is faster
};

/// C[M,N] = alpha A[M,K] B[K,N] (+ bias[N], with alpha 1), summed in float32 and rounded once to cType.
struct GemmProblem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  Storage2d a = Storage2d::AsRead;
  Storage2d b = Storage2d::AsRead;
  DType aType = DType::F32;
  DType bType = DType::F32;
  /// B is encoded in this format, [N,K], packed once: for A in bf16 as read, with at most kMostCodedRows rows, without
  /// a bias, if canMultiplyCodes().
  std::optional<ElementFormat> bCodes;
  DType cType = DType::F32;
  /// From one stored row to the next, in elements, where they are columns of a wider matrix; 0: rows are contiguous.
  /// Not of an encoded B, nor of an A that it multiplies.
  std::int64_t aRow = 0;
  std::int64_t bRow = 0;
  std::int64_t cRow = 0;
  /// Added to every row. Float32, or bf16 in a native bf16 GEMM; not for A stored transposed.
  std::optional<DType> biasType;
  /// Multiplies the float32 sums.
  float alpha = 1.0F;
  /// Factors of A and B, read at every call; not with a bias. Null: 1.
  const float* aFactor = nullptr;
  const float* bFactor = nullptr;
  /// C += instead of C =. Without a bias.
  bool accumulates = false;
  Packing packing = Packing::EveryRun;
  /// Rows that one call of multiplyRows computes at most; 0: m.
  std::int64_t maxPanelRows = 0;
  /// bf16 times bf16 on the CPU's own instructions; otherwise bf16 (and always f16) goes through float32 copies.
  bool isBf16Native = true;

  /// Elements of a stored row.
  std::int64_t aCols() const { return a == Storage2d::AsRead ? k : m; }
  std::int64_t bCols() const { return b == Storage2d::AsRead ? n : k; }
  /// From one of them to the next.
  std::int64_t aStride() const { return aRow > 0 ? aRow : aCols(); }
  std::int64_t bStride() const { return bRow > 0 ? bRow : bCols(); }
  std::int64_t cStride() const { return cRow > 0 ? cRow : n; }
};

/// Throws dnnl::error when the library refuses; CpuBackend turns that into a sentence.
class Gemm {
 public:
  explicit Gemm(const GemmProblem& problem);
  ~Gemm();
  Gemm(Gemm&&) noexcept;
  Gemm& operator=(Gemm&&) noexcept;

  const GemmProblem& problem() const;
  std::size_t workspaceBytes() const;

  /// The bias of the calls that follow, where the problem has one.
  void setBias(const std::byte* bias);
  /// The whole GEMM. Empty extents are legal: k == 0 gives zeros (or leaves C unchanged), without the bias. c must not
  /// overlap a or b.
  void multiply(const std::byte* a, const std::byte* b, std::byte* c, std::byte* workspace);

  /// In two halves, for callers that work panel by panel: B first, then any number of panels of A's rows.
  void prepareB(const std::byte* b, std::byte* workspace);
  /// a: first row of the panel (A must be stored as read unless the panel is all of it); c: [rows, N].
  void multiplyRows(const std::byte* a, std::byte* c, std::int64_t rows, std::byte* workspace);

 private:
  struct State;
  std::unique_ptr<State> m_state;
};

}  // namespace fuseline::cpu
