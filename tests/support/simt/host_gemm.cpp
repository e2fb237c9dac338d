// Plain loops over matrices, in double; on request with the errors of a GPU.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simt/host_gemm.h"

#include "core/numerics/e8m0.h"
#include "core/numerics/minifloat.h"
#include "core/quant/scale_map.h"
#include "core/tensor/scaling.h"
#include "core/tensor/tensor.h"
#include "kernels/cuda/stream/launch_count.h"
#include "tests/support/cuda_test_backend.h"
#include "tests/support/simt/simt.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <span>
#include <stdexcept>
#include <tuple>
#include <vector>

#include <fmt/format.h>

namespace fuseline::testing {

namespace {

std::vector<double> decodedMatrix(const std::byte* data, DType dtype, std::int64_t elements) {
  std::vector<double> values(static_cast<std::size_t>(elements));
  decode(data, dtype, values);
  return values;
}

/// The scale of an element of a quantized factor: row `outer` of the dimension that is not contracted, position `inner`
/// of the contraction, which has `contracted` elements. Layouts from cuBLAS's documentation.
double scaleAt(const std::byte* scales, Scaling scaling, std::int64_t outer, std::int64_t inner, std::int64_t rows,
               std::int64_t contracted) {
  const auto pad4 = [](std::int64_t extent) { return (extent + 3) / 4 * 4; };
  const auto* const floats = reinterpret_cast<const float*>(scales);
  const auto blocks = [&](std::int64_t block) { return (contracted + block - 1) / block; };
  switch (scaling) {
    case Scaling::PerTensor: return static_cast<double>(*floats);
    case Scaling::Block1x128: return static_cast<double>(floats[inner / 128 * pad4(rows) + outer]);
    case Scaling::Block128x128: return static_cast<double>(floats[outer / 128 * pad4(blocks(128)) + inner / 128]);
    case Scaling::Nv1x16:
    case Scaling::Nv16x16:
      return static_cast<double>(
          E4m3::toFloat(static_cast<std::uint8_t>(scales[swizzledOffset(outer, inner / 16, pad4(blocks(16)))])));
    default:
      return static_cast<double>(
          E8m0::toFloat(static_cast<std::uint8_t>(scales[swizzledOffset(outer, inner / 32, pad4(blocks(32)))])));
  }
}

/// The encoded value at a position in rows of `cols` values; FP4 has two per byte, the even one in the lower half.
std::uint8_t codeAt(const std::byte* data, ElementFormat format, std::int64_t cols, std::int64_t row,
                    std::int64_t col) {
  if (format != ElementFormat::E2M1) return static_cast<std::uint8_t>(data[row * cols + col]);
  return static_cast<std::uint8_t>(data[(row * cols + col) / 2] >> (col % 2 == 0 ? 0 : 4) & std::byte{0x0f});
}

/// In [-1, 1), the same in every run, as a GPU's errors are.
double errorAt(std::size_t index) {
  const std::uint64_t bits = (index + 1) * 0x9E3779B97F4A7C15U;
  return static_cast<double>((bits ^ bits >> 29U) * 0xBF58476D1CE4E5B9U >> 11U) * 0x1p-52 - 1.0;
}

/// A Hopper keeps 14 bits of sums of FP8 products while it accumulates them (DeepSeek-V3, arXiv:2412.19437, section
/// 3.5.2).
void loseBits(std::vector<double>& row, std::int64_t index) {
  constexpr double kLost = 0x1p-12;  // by several additions
  const double squares = std::inner_product(row.begin(), row.end(), row.begin(), 0.0);
  const double rms = std::sqrt(squares / static_cast<double>(row.size()));
  for (std::size_t i = 0; i < row.size(); ++i)
    row[i] += rms * kLost * errorAt(static_cast<std::size_t>(index) * row.size() + i);
}

/// As precise as tanh.approx.f32 (PTX ISA), if GEMMs are a GPU's.
double tanhOfEpilogue(double x, std::size_t index) {
  return std::tanh(x) * (multipliesExactly() ? 1.0 : 1.0 + 0x1p-11 * errorAt(index));
}

/// A factor as stored: rows x cols. row: from one row to the next; 0: they follow each other. isAlongColumns: is it
/// contracted along the columns?
struct FactorMemory {
  const std::byte* data;
  const std::byte* scales;
  std::int64_t rows, cols, row;
  bool isAlongColumns;
};

/// Rows without what lies between them.
std::vector<double> gathered(const std::byte* data, DType dtype, std::int64_t rows, std::int64_t cols,
                             std::int64_t row) {
  std::vector<double> values(static_cast<std::size_t>(rows * cols));
  for (std::int64_t r = 0; r < rows; ++r)
    decode(data + r * (row > 0 ? row : cols) * sizeBytes(dtype), dtype,
           std::span(values).subspan(static_cast<std::size_t>(r * cols), static_cast<std::size_t>(cols)));
  return values;
}

std::vector<double> factor(const FactorMemory& memory, DType dtype, const std::optional<cuda::FactorCodes>& codes) {
  if (!codes) return gathered(memory.data, dtype, memory.rows, memory.cols, memory.row);
  std::vector<double> values;
  visitFormat(codes->format, [&](auto format) {
    for (std::int64_t row = 0; row < memory.rows; ++row)
      for (std::int64_t col = 0; col < memory.cols; ++col) {
        const std::uint8_t code = codeAt(memory.data, codes->format, memory.cols, row, col);
        const double scale = memory.isAlongColumns
                                 ? scaleAt(memory.scales, codes->scaling, row, col, memory.rows, memory.cols)
                                 : scaleAt(memory.scales, codes->scaling, col, row, memory.cols, memory.rows);
        values.push_back(static_cast<double>(format.toFloat(code)) * scale);
      }
  });
  return values;
}

class HostGemm final : public cuda::Gemm {
 public:
  explicit HostGemm(const cuda::GemmProblem& problem) : m_problem(problem) {}
  std::size_t workspaceBytes() const override { return 0; }

  void multiply(const cuda::GemmPointers& pointers, std::byte*, cuda::Stream stream) override {
    checkAlignment(pointers);
    ++cuda::numLaunched;
    simt::submit(stream, [this, pointers] { multiplyNow(pointers); });
  }

 private:
  void checkAlignment(const cuda::GemmPointers& pointers) const {
    for (const std::byte* const matrix :
         {pointers.a, pointers.b, pointers.bias, pointers.addend, pointers.geluInput,
          static_cast<const std::byte*>(pointers.c), static_cast<const std::byte*>(pointers.preActivation),
          static_cast<const std::byte*>(pointers.biasGrad)})
      if (reinterpret_cast<std::uintptr_t>(matrix) % m_problem.alignmentBytes != 0)
        throw std::invalid_argument(
            fmt::format("The problem says that addresses are multiples of {}.", m_problem.alignmentBytes));
  }

  void multiplyNow(const cuda::GemmPointers& pointers) const {
    const auto& [m, n, k] = std::tie(m_problem.m, m_problem.n, m_problem.k);
    if (m * n == 0) return;
    if (m_problem.batch.count > 1) return multiplyBatch(pointers);
    const auto& [aRow, bRow, cRow] = std::tie(m_problem.batch.aRow, m_problem.batch.bRow, m_problem.batch.cRow);
    const bool isAFlipped = m_problem.a == Storage2d::Transposed;
    const bool isBFlipped = m_problem.b == Storage2d::Transposed;
    const std::vector<double> left =
        factor({pointers.a, pointers.aScales, isAFlipped ? k : m, isAFlipped ? m : k, aRow, !isAFlipped},
               m_problem.factorType, m_problem.aCodes);
    const std::vector<double> right =
        factor({pointers.b, pointers.bScales, isBFlipped ? n : k, isBFlipped ? k : n, bRow, isBFlipped},
               m_problem.factorType, m_problem.bCodes);
    std::vector<double> sums(static_cast<std::size_t>(m * n));
    const double alpha = alphaFor(pointers);
    if (m_problem.hasAddend) sums = gathered(pointers.addend, m_problem.cType, m, n, cRow);
    const std::vector<double> a = isAFlipped ? transposed(left, k) : left;
    addProduct(a, isBFlipped ? transposed(right, n) : right, alpha, sums);
    if (m_problem.hasBias) addBias(decodedMatrix(pointers.bias, m_problem.cType, n), sums);
    if (m_problem.hasPreActivation) encode(sums, m_problem.cType, pointers.preActivation);
    activate(sums);
    if (m_problem.hasGeluGrad) multiplyByGeluGrad(decodedMatrix(pointers.geluInput, m_problem.cType, m * n), sums);
    if (m_problem.cFormat) return quantize(sums, pointers);
    scatter(sums, pointers.c);
    if (m_problem.biasGradType) encode(rowSums(a), *m_problem.biasGradType, pointers.biasGrad);
  }

  /// Not a result that is added to one before: the amax is that of this GEMM.
  void quantize(const std::vector<double>& sums, const cuda::GemmPointers& pointers) const {
    float amax = 0.0F;
    visitFormat(*m_problem.cFormat, [&](auto format) {
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const auto value = static_cast<float>(sums[i]);
        amax = std::fmax(amax, std::abs(value));
        pointers.c[i] = static_cast<std::byte>(format.fromFloat(value * *pointers.cScale));
      }
    });
    *pointers.cAmax = amax;
  }

  void multiplyBatch(const cuda::GemmPointers& pointers) const {
    const auto& [m, n, k] = std::tie(m_problem.m, m_problem.n, m_problem.k);
    const cuda::GemmBatch& batch = m_problem.batch;
    const bool isAFlipped = m_problem.a == Storage2d::Transposed;
    const bool isBFlipped = m_problem.b == Storage2d::Transposed;
    for (std::int64_t i = 0; i < batch.count; ++i) {
      const auto at = [&](auto* data, std::int64_t stride, DType dtype) {
        return data + i * stride * sizeBytes(dtype);
      };
      std::vector<double> a = gathered(at(pointers.a, batch.aStride, m_problem.factorType), m_problem.factorType,
                                       isAFlipped ? k : m, isAFlipped ? m : k, batch.aRow);
      std::vector<double> b = gathered(at(pointers.b, batch.bStride, m_problem.factorType), m_problem.factorType,
                                       isBFlipped ? n : k, isBFlipped ? k : n, batch.bRow);
      std::byte* const c = at(pointers.c, batch.cStride, m_problem.cType);
      std::vector<double> sums(static_cast<std::size_t>(m * n));
      if (m_problem.hasAddend)
        sums = gathered(at(pointers.addend, batch.cStride, m_problem.cType), m_problem.cType, m, n, batch.cRow);
      addProduct(isAFlipped ? transposed(a, k) : a, isBFlipped ? transposed(b, n) : b,
                 static_cast<double>(m_problem.alpha), sums);
      scatter(sums, c);
    }
  }

  /// Writes the rows of a result; what lies between them stays.
  void scatter(const std::vector<double>& values, std::byte* c) const {
    const auto& [m, n] = std::tie(m_problem.m, m_problem.n);
    const std::int64_t stride = m_problem.batch.cRow > 0 ? m_problem.batch.cRow : n;
    for (std::int64_t row = 0; row < m; ++row)
      encode(std::span(values).subspan(static_cast<std::size_t>(row * n), static_cast<std::size_t>(n)), m_problem.cType,
             c + row * stride * sizeBytes(m_problem.cType));
  }

  /// a: [m, k]
  std::vector<double> rowSums(const std::vector<double>& a) const {
    std::vector<double> sums(static_cast<std::size_t>(m_problem.m));
    for (std::size_t i = 0; i < a.size(); ++i) sums[i / static_cast<std::size_t>(m_problem.k)] += a[i];
    return sums;
  }

  static std::vector<double> transposed(const std::vector<double>& values, std::int64_t rows) {
    const auto cols = static_cast<std::int64_t>(values.size()) / std::max<std::int64_t>(rows, 1);
    std::vector<double> result(values.size());
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t col = 0; col < cols; ++col)
        result[static_cast<std::size_t>(col * rows + row)] = values[static_cast<std::size_t>(row * cols + col)];
    return result;
  }

  /// For NVFP4 it is on the device, with 1 or 0 for the addend.
  double alphaFor(const cuda::GemmPointers& pointers) const {
    if (!cuda::isScaledOnDevice(m_problem)) return static_cast<double>(m_problem.alpha);
    const auto* const factors = reinterpret_cast<const float*>(pointers.factors);
    if (factors[1] != (m_problem.hasAddend ? 1.0F : 0.0F))
      throw std::invalid_argument("beta is not that of the problem");
    return static_cast<double>(factors[0]);
  }

  /// a: [m, k], b: [k, n]
  void addProduct(const std::vector<double>& a, const std::vector<double>& b, double alpha,
                  std::vector<double>& sums) const {
    const auto [m, n, k] = std::tuple(m_problem.m, m_problem.n, m_problem.k);
    std::vector<double> row(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < m; ++i) {
      std::ranges::fill(row, 0.0);
      for (std::int64_t term = 0; term < k; ++term) {
        const double factor = a[static_cast<std::size_t>(i * k + term)];
        const double* const from = b.data() + term * n;
        for (std::size_t col = 0; col < row.size(); ++col) row[col] += factor * from[col];
      }
      const bool isOfFp8 = m_problem.aCodes && m_problem.aCodes->format != ElementFormat::E2M1;
      if (isOfFp8 && !multipliesExactly()) loseBits(row, i);
      for (std::size_t col = 0; col < row.size(); ++col)
        sums[static_cast<std::size_t>(i * n) + col] += alpha * row[col];
    }
  }

  /// GELU from Hendrycks & Gimpel 2016, arXiv:1606.08415, section 2.
  void activate(std::vector<double>& values) const {
    const double root = std::sqrt(2.0 / std::numbers::pi);
    const auto gelu = [&](double x, std::size_t index) {
      return 0.5 * x * (1.0 + tanhOfEpilogue(root * (x + 0.044715 * x * x * x), index));
    };
    if (m_problem.activation == cuda::GemmActivation::Gelu)
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = gelu(values[i], i);
    if (m_problem.activation == cuda::GemmActivation::Relu)
      for (double& value : values) value = std::max(value, 0.0);
  }

  /// The derivative of that GELU, by the product rule.
  static void multiplyByGeluGrad(const std::vector<double>& inputs, std::vector<double>& sums) {
    const double root = std::sqrt(2.0 / std::numbers::pi);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const double x = inputs[i];
      const double tanh = tanhOfEpilogue(root * (x + 0.044715 * x * x * x), i);
      sums[i] *= 0.5 * (1.0 + tanh) + 0.5 * x * (1.0 - tanh * tanh) * root * (1.0 + 3.0 * 0.044715 * x * x);
    }
  }

  static void addBias(const std::vector<double>& bias, std::vector<double>& sums) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += bias[i % bias.size()];
  }

  cuda::GemmProblem m_problem;
};

/// cuBLASLt's documented limits of activations (cublasLt.h, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD): rows of GELU's
/// argument are multiples of 8 elements, and ReLU stores only bits. TransformerEngine requests none for quantized
/// factors with block scales.
Verdict hasActivation(const cuda::GemmProblem& problem) {
  if (problem.activation == cuda::GemmActivation::None) return Verdict::yes();
  if (problem.k == 0) return Verdict::no("There is no product.");
  if (problem.aCodes && problem.aCodes->scaling != Scaling::PerTensor) return Verdict::no("The codes have blocks.");
  if (!problem.hasPreActivation) return Verdict::yes();
  if (problem.activation == cuda::GemmActivation::Relu) return Verdict::no("ReLU keeps bits.");
  return problem.n % 8 == 0 ? Verdict::yes() : Verdict::no("Rows are no multiples of 8.");
}

/// The same for GELU's gradient, which has no other epilogue (cublasLtEpilogue_t). NVIDIA's own nvmath-python documents
/// that it does not support GEMMs of vectors.
Verdict hasGeluGrad(const cuda::GemmProblem& problem) {
  if (!problem.hasGeluGrad) return Verdict::yes();
  if (problem.hasBias || problem.biasGradType || problem.activation != cuda::GemmActivation::None)
    return Verdict::no("GELU's gradient is an epilogue by itself.");
  if (problem.aCodes && problem.aCodes->scaling != Scaling::PerTensor) return Verdict::no("The codes have blocks.");
  if (problem.k < 2) return Verdict::no("The factors are vectors, or empty.");
  return problem.n % 8 == 0 ? Verdict::yes() : Verdict::no("Rows are no multiples of 8.");
}

/// cuBLASLt's documented limits of bias gradients (cublasLt.h, cublasLtEpilogue_t): they have no other epilogue and
/// have c's dtype. NVIDIA's own nvmath-python refuses sums of quantized factors, and of vectors with one element.
Verdict hasBiasGrad(const cuda::GemmProblem& problem) {
  if (!problem.biasGradType) return Verdict::yes();
  if (problem.hasBias || problem.activation != cuda::GemmActivation::None)
    return Verdict::no("A bias gradient is an epilogue by itself.");
  if (*problem.biasGradType != problem.cType) return Verdict::no("The bias gradient is not of the result's dtype.");
  if (problem.aCodes) return Verdict::no("Codes are not summed.");
  if (problem.m < 2 || problem.n < 2 || problem.k == 0) return Verdict::no("A factor is a vector, or empty.");
  return Verdict::yes();
}

/// cublasLtMatmul's table of FP8: a quantized result has two factors with one scale each, and at most a bias, which is
/// not in float32.
Verdict hasQuantizedResult(const cuda::GemmProblem& problem) {
  if (!problem.cFormat) return Verdict::yes();
  if (!problem.aCodes || problem.aCodes->scaling != Scaling::PerTensor || problem.n % 16 != 0)
    return Verdict::no("The factors have no codes with one scale, or rows are not aligned.");
  if (problem.hasAddend || problem.hasGeluGrad || problem.activation != cuda::GemmActivation::None)
    return Verdict::no("The result has more than a bias.");
  return problem.hasBias && problem.cType == DType::F32 ? Verdict::no("The bias is float32.") : Verdict::yes();
}

/// As the backend asks cuBLASLt.
Verdict hasAlignedBias(const cuda::GemmProblem& problem) {
  const bool isAligned = !problem.hasBias || problem.alignmentBytes >= 16;
  return isAligned ? Verdict::yes() : Verdict::no("The bias is not aligned.");
}

/// cuBLASLt's documented limits of FP8: both factors are quantized, not both in E5M2, and on Hopper, with float32
/// scales, the contraction is the inner direction of both. The latter holds for FP4, too, with rows that begin at
/// multiples of 16 bytes.
Verdict isDocumented(const cuda::GemmProblem& problem) {
  const auto& [a, b] = std::tie(problem.aCodes, problem.bCodes);
  if (!a && !b) return Verdict::yes();
  if (!a || !b) return Verdict::no("One factor is codes, and the other is not.");
  if (a->format == ElementFormat::E5M2 && b->format == ElementFormat::E5M2)
    return Verdict::no("Both factors are E5M2.");
  if ((a->format == ElementFormat::E2M1) != (b->format == ElementFormat::E2M1)) return Verdict::no("One is of FP4.");
  if (a->format == ElementFormat::E2M1 && problem.k % 32 != 0) return Verdict::no("Rows are not aligned.");
  const bool isHopper = traitsOf(a->scaling).scaleFormat != ScaleFormat::E8M0;
  const bool isInner = problem.a == Storage2d::AsRead && problem.b == Storage2d::Transposed;
  return isHopper && !isInner ? Verdict::no("The contraction is not the inner direction.") : Verdict::yes();
}

bool isOf128(const std::optional<cuda::FactorCodes>& codes) {
  return codes && (codes->scaling == Scaling::Block1x128 || codes->scaling == Scaling::Block128x128);
}

class HostGemms final : public cuda::GemmLibrary {
 public:
  explicit HostGemms(bool hasBlocksOf128) : m_hasBlocksOf128(hasBlocksOf128) {}
  Result<std::unique_ptr<cuda::Gemm>> prepare(const cuda::GemmProblem& problem) override {
    if (!m_hasBlocksOf128 && (isOf128(problem.aCodes) || isOf128(problem.bCodes)))
      return Error{"There are no blocks of 128."};
    for (const Verdict& documented : {isDocumented(problem), hasAlignedBias(problem), hasActivation(problem),
                                      hasGeluGrad(problem), hasBiasGrad(problem), hasQuantizedResult(problem)})
      if (!documented) return Error{documented.reason()};
    return std::unique_ptr<cuda::Gemm>(std::make_unique<HostGemm>(problem));
  }
  std::size_t maxWorkspaceBytes() const override { return 0; }

 private:
  bool m_hasBlocksOf128;
};

}  // namespace

std::unique_ptr<cuda::GemmLibrary> makeHostGemms(bool hasBlocksOf128) {
  return std::make_unique<HostGemms>(hasBlocksOf128);
}

}  // namespace fuseline::testing
