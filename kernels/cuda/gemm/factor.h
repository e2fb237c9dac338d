// One factor of a GEMM as the library reads it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"
#include "core/quant/scale_map.h"
#include "core/tensor/tensor_spec.h"
#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/stream/stream.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace fuseline::cuda {

/// FP4 rows begin at multiples of 16 bytes, which is this number of elements. Recipes do not require it.
inline constexpr std::int64_t kFp4RowMultiple = 32;

/// How the library gets the factors of a GEMM.
enum class FactorWay : std::uint8_t {
  AsTheyAre,
  /// The library does not multiply quantized with plain matrices, two matrices in E5M2, FP4 with rows that are not a
  /// multiple of 16 bytes, or formats without tensor cores on this GPU. Such factors are dequantized first.
  Decoded,
  /// Blocks of 128 are multiplied on Hopper only. On newer GPUs they are read as blocks of 32 that have one scale.
  AsMxfp8,
};
/// gpu: 0.0 if it is not known.
FactorWay factorWayOf(const GemmProblem& problem, ComputeCapability gpu);
/// The problem that the library solves.
GemmProblem inWay(GemmProblem problem, FactorWay way);
/// For Kernel::ways; empty: no remark.
std::string describe(FactorWay way);

/// A plain matrix, or encoded values with scales in cuBLASLt's layout.
class Factor {
 public:
  Factor(TensorSpec spec, FactorWay way);

  std::size_t workspaceBytes() const;

  struct Memory {
    const std::byte* data = nullptr;
    const std::byte* scales = nullptr;
    const float* amax = nullptr;  // of NVFP4 tensors
  };
  /// workspace: of the requested size.
  Memory prepare(const std::byte* data, std::byte* workspace, Stream stream) const;

 private:
  bool isDecoded() const { return m_spec.quantized && m_way == FactorWay::Decoded; }

  TensorSpec m_spec;
  FactorWay m_way;
  std::optional<ScaleMap> m_map;
  std::size_t m_scaleBytes = 0;
};

/// Both factors of a GEMM. a, b: the factors of `problem`, which is in this state.
class FactorPair {
 public:
  FactorPair(TensorSpec a, TensorSpec b, FactorWay way, const GemmProblem& problem);

  std::size_t workspaceBytes() const;
  /// Fills in the pointers of the factors, whose data are a and b. workspace: of the requested size.
  void prepare(GemmPointers& pointers, std::byte* workspace, Stream stream) const;

 private:
  Factor m_a, m_b;
  bool m_isScaledOnDevice, m_hasAddend;
  float m_alpha;
};

}  // namespace fuseline::cuda
