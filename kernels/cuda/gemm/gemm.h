// GEMMs of the CUDA backend: the problem as data, and the library that solves it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"
#include "core/tensor/dtype.h"
#include "core/tensor/quantized_form.h"
#include "kernels/common/matrix_storage.h"
#include "kernels/cuda/stream/stream.h"
#include "kernels/cuda/support/timed_step.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace fuseline::cuda {

/// Encoding in FP8 or FP4, and its scaling.
struct FactorCodes {
  ElementFormat format = ElementFormat::E4M3;
  Scaling scaling = Scaling::PerTensor;
  bool isTransformed = false;  // the contracted dimension, by a transform that cancels in GEMMs of two such factors
  bool operator==(const FactorCodes&) const = default;
};

/// Applied to every element of a result. GELU is its tanh form. NaN and infinity are handled as the library does; ReLU
/// may turn them into 0.
enum class GemmActivation : std::uint8_t { None, Relu, Gelu };

/// Several products of one kind, whose matrices begin `stride` elements after each other. Their rows as they are stored
/// may be further apart than they are long, such as those of one head among others.
struct GemmBatch {
  std::int64_t count = 1;
  std::int64_t aStride = 0;
  std::int64_t bStride = 0;
  std::int64_t cStride = 0;  // of the addend, too
  // From one stored row to the next, in elements; 0: they follow each other.
  std::int64_t aRow = 0;
  std::int64_t bRow = 0;
  std::int64_t cRow = 0;

  bool operator==(const GemmBatch&) const = default;
};

/// c = activation(z), z = alpha a b + bias + addend. a: [m, k], b: [k, n], c, z: [m, n], all row-major. bias: [n],
/// addend: [m, n], which may be c itself; both, and z where it is a result, have c's dtype. Sums are accumulated in
/// float32 (float32 factors are not rounded first), and results are rounded once. biasGrad: [m], a summed over k in
/// float32: where a is the transpose of an output gradient, it is the gradient of the upstream bias. Where c is the
/// gradient of GELU's input x, c = GELU'(x) z with x: [m, n] in c's dtype; z is then the gradient of GELU's output.
struct GemmProblem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  Storage2d a = Storage2d::AsRead;
  Storage2d b = Storage2d::AsRead;
  DType factorType = DType::F32;                     // of a and b, where they are not quantized
  std::optional<FactorCodes> aCodes = std::nullopt;  // both factors are quantized, or neither
  std::optional<FactorCodes> bCodes = std::nullopt;
  bool isFastAccumulated = false;  // of quantized factors: partial sums may have fewer bits than float32
  bool isTf32 = false;             // of float32: factors are rounded to TF32 first
  DType cType = DType::F32;
  /// c is quantized: sums and bias, in float32 and times a scale that is known beforehand, are rounded to this format.
  std::optional<ElementFormat> cFormat = std::nullopt;
  float alpha = 1.0F;
  bool hasBias = false;
  bool hasAddend = false;
  GemmActivation activation = GemmActivation::None;
  bool hasPreActivation = false;                     // z is a result, too
  bool hasGeluGrad = false;                          // c is the gradient of GELU's input
  std::optional<DType> biasGradType = std::nullopt;  // a's sums are a result, too
  GemmBatch batch = {};  // with plain factors and without an epilogue; more than one, or rows apart
  /// The addresses of all of these are multiples of it; a plan's tensors begin at multiples of 64.
  std::uint32_t alignmentBytes = 64;
  /// Prepared before a run, and for many: how fast it is may be tried out first.
  bool hasTimeToTune = true;

  bool operator==(const GemmProblem&) const = default;
};

/// Elements from the first one of the matrices of a batch to their last one. rows, cols: as each is stored.
constexpr std::int64_t spannedElements(std::int64_t rows, std::int64_t cols, std::int64_t row, std::int64_t count,
                                       std::int64_t stride) {
  if (rows == 0 || cols == 0 || count == 0) return 0;
  return (count - 1) * stride + (rows - 1) * (row > 0 ? row : cols) + cols;
}

/// Is alpha known on the device only? NVFP4 tensors have a tensor scale in addition to their block scales.
inline bool isScaledOnDevice(const GemmProblem& problem) {
  return problem.aCodes && problem.aCodes->format == ElementFormat::E2M1;
}

/// The memory of one GEMM; nullptr for parts that the problem does not have.
struct GemmPointers {
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  const std::byte* bias = nullptr;
  const std::byte* addend = nullptr;
  const std::byte* aScales = nullptr;  // dequantization scales in cuBLASLt's layout (ScaleMap::gemm)
  const std::byte* bScales = nullptr;
  /// Two floats on the device: alpha, and 1 or 0 as the factor of the addend; used if isScaledOnDevice().
  const std::byte* factors = nullptr;
  const std::byte* geluInput = nullptr;
  const float* cScale = nullptr;  // of a quantized c
  float* cAmax = nullptr;         // becomes its largest magnitude before scaling
  std::byte* c = nullptr;
  std::byte* preActivation = nullptr;
  std::byte* biasGrad = nullptr;
};

/// One problem, prepared.
class Gemm {
 public:
  virtual ~Gemm() = default;
  virtual std::size_t workspaceBytes() const = 0;
  /// Asynchronous. Throws when the library refuses.
  virtual void multiply(const GemmPointers& pointers, std::byte* workspace, Stream stream) = 0;
  /// Kernel::ways.
  virtual std::string way() const { return {}; }
};

/// Which of its extents groups of rows differ in.
using GroupExtent = std::int64_t GemmProblem::*;

/// One of the GEMMs of a launch: the rows of its group, at least one, and its memory.
struct GroupGemm {
  std::int64_t rows = 0;
  GemmPointers pointers;
};

/// The GEMMs of all groups of rows in one launch.
class GroupedGemm {
 public:
  virtual ~GroupedGemm() = default;
  virtual std::size_t workspaceBytes() const = 0;
  /// Does the library multiply groups with these numbers of rows, at most as many groups as were prepared for?
  virtual bool fits(std::span<const std::int64_t> rows) = 0;
  /// groups: ones that fit. Asynchronous. Throws when the library refuses.
  virtual void multiply(std::span<const GroupGemm> groups, std::byte* workspace, Stream stream) = 0;
};

/// Keeps the choices for steps with its own.
class GemmLibrary : public StepTimer {
 public:
  /// Errors: the library cannot solve it, or is not there; a sentence.
  virtual Result<std::unique_ptr<Gemm>> prepare(const GemmProblem& problem) = 0;
  /// problem: of the rows of all groups together. Errors: the library has no such GEMM; a sentence.
  virtual Result<std::unique_ptr<GroupedGemm>> prepareGrouped(const GemmProblem& /*problem*/, GroupExtent /*extent*/,
                                                              std::size_t /*numGroups*/) {
    return Error{"This library has no grouped GEMM.", ErrorKind::RunFailed};
  }
  /// A GEMM without a bias gradient requests at most this.
  virtual std::size_t maxWorkspaceBytes() const = 0;
  /// The fastest of several implementations on this device; the first if they are not timed.
  virtual std::size_t fastest(const GemmProblem& /*problem*/, std::span<Gemm* const> /*ways*/) { return 0; }
  std::size_t fastest(const TimedStep& /*step*/) override { return 0; }
};

}  // namespace fuseline::cuda
