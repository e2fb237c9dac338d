// Normally distributed numbers; quantized as by a recipe, with the largest near the end of the format.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/gemm_sample.h"

#include "core/numerics/random.h"
#include "core/quant/scale_layout.h"
#include "core/tensor/scaling.h"
#include "core/tensor/tensor.h"

#include <span>
#include <tuple>
#include <utility>

namespace fuseline::cuda {

namespace {

/// A prime, so that rows of no usual length are the same.
constexpr std::size_t kPatternElements = 65537;

/// A normal number this large is one of some hundred thousand.
constexpr double kLargestNormal = 4.5;

std::vector<double> normals() {
  std::vector<double> values(kPatternElements);
  RandomStream(0, "sample").normals(0, values);
  return values;
}

std::vector<std::byte> patternOf(DType dtype) {
  std::vector<std::byte> pattern(kPatternElements * static_cast<std::size_t>(sizeBytes(dtype)));
  encode(normals(), dtype, pattern.data());
  return pattern;
}

/// Two encoded values per byte, the even one in the lower half.
std::vector<std::byte> packed(const std::vector<std::byte>& codes) {
  std::vector<std::byte> pairs;
  for (std::size_t i = 0; i + 1 < codes.size(); i += 2) pairs.push_back(codes[i] | codes[i + 1] << 4);
  return pairs;
}

std::vector<std::byte> codePattern(ElementFormat format) {
  std::vector<std::byte> pattern;
  const double factor = static_cast<double>(maxFinite(format)) / kLargestNormal;
  visitFormat(format, [&](auto codes) {
    for (const double value : normals())
      pattern.push_back(static_cast<std::byte>(codes.fromFloat(static_cast<float>(value * factor))));
  });
  return format == ElementFormat::E2M1 ? packed(pattern) : pattern;
}

std::vector<std::byte> patternOf(std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

/// Beside scales of 2^-7 as they are; an addend is added as it is.
SampleOperand factorsOf(const GemmProblem& problem) {
  if (!isScaledOnDevice(problem)) return {};
  const float alphaAndBeta[] = {problem.alpha, problem.hasAddend ? 1.0F : 0.0F};
  return {.sizeBytes = sizeof(alphaAndBeta), .pattern = patternOf(alphaAndBeta)};
}

/// The bytes of 2^-7, which scales E4M3 values to about 1.
std::vector<std::byte> scalePattern(ScaleFormat format) {
  switch (format) {
    case ScaleFormat::E8M0: return {std::byte{127 - 7}};
    case ScaleFormat::E4M3: return {std::byte{0x04}};  // 4 * 2^-9, a subnormal
    case ScaleFormat::F32: break;
  }
  return {std::byte{0x00}, std::byte{0x00}, std::byte{0x00}, std::byte{0x3c}};
}

SampleOperand plain(DType dtype, std::int64_t elements) {
  return {.sizeBytes = static_cast<std::size_t>(elements * sizeBytes(dtype)), .pattern = patternOf(dtype)};
}

/// A matrix [rows, cols] as it is read, in all of a batch.
std::int64_t elementsOf(std::int64_t rows, std::int64_t cols, Storage2d storage, const GemmBatch& batch,
                        std::int64_t row, std::int64_t stride) {
  if (storage == Storage2d::Transposed) std::swap(rows, cols);
  return spannedElements(rows, cols, row, batch.count, stride);
}

SampleOperand factor(const std::optional<FactorCodes>& codes, DType dtype, std::int64_t elements) {
  if (!codes) return plain(dtype, elements);
  return {.sizeBytes = static_cast<std::size_t>(codeBytes(codes->format, elements)),
          .pattern = codePattern(codes->format)};
}

/// Scales of a factor. rows: its extent that is not contracted.
SampleOperand scales(const std::optional<FactorCodes>& codes, std::int64_t rows, std::int64_t contracted) {
  if (!codes) return {};
  const TensorSpec nominal{.dtype = DType::F32, .shape = {rows, contracted}};
  const Shape shape = gemmScalesShape(nominal, codes->scaling, Usage::Rowwise);
  SampleOperand operand{.pattern = scalePattern(traitsOf(codes->scaling).scaleFormat)};
  operand.sizeBytes = static_cast<std::size_t>(numElements(shape)) * operand.pattern.size();
  return operand;
}

/// A quantized result needs no other numbers than a plain one.
SampleOperand result(const GemmProblem& problem) {
  if (problem.cFormat) return factor(FactorCodes{.format = *problem.cFormat}, problem.cType, problem.m * problem.n);
  const GemmBatch& batch = problem.batch;
  return plain(problem.cType, elementsOf(problem.m, problem.n, Storage2d::AsRead, batch, batch.cRow, batch.cStride));
}

SampleOperand scaleOfResult(const GemmProblem& problem) {
  if (!problem.cFormat) return {};
  return {.sizeBytes = sizeof(float), .pattern = scalePattern(ScaleFormat::F32)};
}

}  // namespace

GemmSample sampleOf(const GemmProblem& problem) {
  const auto& [m, n, k] = std::tie(problem.m, problem.n, problem.k);
  const GemmBatch& batch = problem.batch;
  return {
      .a = factor(problem.aCodes, problem.factorType, elementsOf(m, k, problem.a, batch, batch.aRow, batch.aStride)),
      .b = factor(problem.bCodes, problem.factorType, elementsOf(k, n, problem.b, batch, batch.bRow, batch.bStride)),
      .aScales = scales(problem.aCodes, m, k),
      .bScales = scales(problem.bCodes, n, k),
      .factors = factorsOf(problem),
      .bias = problem.hasBias ? plain(problem.cType, n) : SampleOperand{},
      .geluInput = problem.hasGeluGrad ? plain(problem.cType, m * n) : SampleOperand{},
      .c = result(problem),
      .cScale = scaleOfResult(problem),
      .cAmax = scaleOfResult(problem),
      .preActivation = problem.hasPreActivation ? plain(problem.cType, m * n) : SampleOperand{},
      .biasGrad = problem.biasGradType ? plain(*problem.biasGradType, m) : SampleOperand{}};
}

}  // namespace fuseline::cuda
