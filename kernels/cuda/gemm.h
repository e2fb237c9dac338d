// Matrix products as the CUDA backend needs them: the problem as data, and the library that solves it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"
#include "core/tensor/dtype.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace fuseline::cuda {

/// How a factor stands in memory: as the product reads it, or as its transpose.
enum class Storage2d : std::uint8_t { AsRead, Transposed };

/// c = a b + bias, or c += a b. a: [m, k], b: [k, n], c: [m, n], all row-major; bias: [n] of c's dtype.
/// Products are added in float32 (float32 factors are not rounded first) and rounded once.
struct GemmProblem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  Storage2d a = Storage2d::AsRead;
  Storage2d b = Storage2d::AsRead;
  DType aType = DType::F32;
  DType bType = DType::F32;
  DType cType = DType::F32;
  float alpha = 1.0F;
  bool accumulates = false;
  bool hasBias = false;

  bool operator==(const GemmProblem&) const = default;
};

/// One problem, prepared.
class Gemm {
 public:
  virtual ~Gemm() = default;
  virtual std::size_t workspaceBytes() const = 0;
  /// Asynchronous on the stream of the library. bias: nullptr where the problem has none. Throws when the library
  /// refuses.
  virtual void multiply(const std::byte* a, const std::byte* b, const std::byte* bias, std::byte* c,
                        std::byte* workspace) = 0;
};

class GemmLibrary {
 public:
  virtual ~GemmLibrary() = default;
  /// Errors: the library cannot solve it, or is not there; a sentence.
  virtual Result<std::unique_ptr<Gemm>> prepare(const GemmProblem& problem) = 0;
};

}  // namespace fuseline::cuda
