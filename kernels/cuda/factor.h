// One factor of a product as the library reads it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"
#include "core/quant/scale_map.h"
#include "core/tensor/tensor_spec.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/stream.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace fuseline::cuda {

/// How the library gets the factors of a product.
enum class FactorWay : std::uint8_t {
  AsTheyAre,
  /// Products of codes with plain numbers, or of two matrices in E5M2, are not the library's: of numbers they are.
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

}  // namespace fuseline::cuda
