// One factor of a product as the library reads it.
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

/// Rows of FP4 begin at multiples of 16 bytes: so many codes. Recipes do not ask for that.
inline constexpr std::int64_t kFp4RowMultiple = 32;

/// How the library gets the factors of a product.
enum class FactorWay : std::uint8_t {
  AsTheyAre,
  /// Products of codes with plain numbers, of two matrices in E5M2, of FP4 in rows that are no multiples of 16 bytes,
  /// and of what the GPU has no tensor cores for, are not the library's: of numbers they are.
  Decoded,
  /// Blocks of 128 are multiplied on Hopper only. On newer GPUs they are read as blocks of 32 that have one scale.
  AsMxfp8,
};
/// gpu: 0.0 where it is not known.
FactorWay factorWayOf(const GemmProblem& problem, ComputeCapability gpu);
/// The problem that the library solves.
GemmProblem inWay(GemmProblem problem, FactorWay way);
/// For Kernel::ways; empty: there is nothing to say.
std::string describe(FactorWay way);

/// A plain matrix, or codes with scales in cuBLASLt's layout.
class Factor {
 public:
  Factor(TensorSpec spec, FactorWay way);

  std::size_t workspaceBytes() const;

  struct Memory {
    const std::byte* data = nullptr;
    const std::byte* scales = nullptr;
    const float* amax = nullptr;  // of NVFP4's codes
  };
  /// workspace: as many bytes as asked for.
  Memory prepare(const std::byte* data, std::byte* workspace, Stream stream) const;

 private:
  bool isDecoded() const { return m_spec.quantized && m_way == FactorWay::Decoded; }

  TensorSpec m_spec;
  FactorWay m_way;
  std::optional<ScaleMap> m_map;
  std::size_t m_scaleBytes = 0;
};

/// Both factors of a product. a, b: of those that `problem`, which is in this way, has.
class FactorPair {
 public:
  FactorPair(TensorSpec a, TensorSpec b, FactorWay way, const GemmProblem& problem);

  std::size_t workspaceBytes() const;
  /// Fills in pointers to the factors, of which a and b are the data. workspace: as many bytes as asked for.
  void prepare(GemmPointers& pointers, std::byte* workspace, Stream stream) const;

 private:
  Factor m_a, m_b;
  bool m_isScaledOnDevice, m_hasAddend;
  float m_alpha;
};

}  // namespace fuseline::cuda
