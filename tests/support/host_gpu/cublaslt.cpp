// cuBLASLt for the host's GPU: descriptors, and GEMMs in plain loops over column-major matrices, in double.
// SPDX-License-Identifier: Apache-2.0
// Its refusals, and its layouts of scales, follow NVIDIA's documentation of each compute capability (cublasLt.h, and
// the chapter on narrow precision of cuBLAS's documentation). On 12.x it behaves as cuBLASLt 13.1, which has
// block-scaled kernels of one layout only there.
#include "kernels/cuda/gemm/cublaslt.h"

#include "core/numerics/minifloat.h"
#include "core/tensor/element_format.h"
#include "core/tensor/tensor.h"
#include "tests/support/host_gpu/host_gpu.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <numbers>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace fuseline::host_gpu {

namespace {

constexpr std::uint64_t kRequiredAlignment = 16;  // of quantized matrices, in bytes

std::size_t firstVersion() {
  const char* const wanted = std::getenv("FUSELINE_HOST_CUBLASLT");
  return wanted ? std::strtoul(wanted, nullptr, 10) : CUBLAS_VERSION;
}

std::size_t libraryVersion = firstVersion();
std::atomic<int> numGrouped = 0;
int fewestGroups = 1;

struct Operation {
  std::map<cublasLtMatmulDescAttributes_t, std::vector<std::byte>> attributes;

  template <class T>
  T value(cublasLtMatmulDescAttributes_t attribute, T fallback) const {
    const auto found = attributes.find(attribute);
    if (found == attributes.end()) return fallback;
    if (found->second.size() != sizeof(T)) std::abort();  // the library's own reading would be of other bytes
    T read;
    std::memcpy(&read, found->second.data(), sizeof(T));
    return read;
  }
  bool isTransposed(cublasLtMatmulDescAttributes_t attribute) const {
    return value<std::int32_t>(attribute, CUBLAS_OP_N) == CUBLAS_OP_T;
  }
  cublasLtEpilogue_t epilogue() const { return value(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT); }
};

struct Layout {
  cudaDataType_t type;
  std::int64_t rows, cols, leadingDimension;
  std::int32_t count = 1;   // of a batch
  std::int64_t stride = 0;  // from one to the next, in elements
  bool isGrouped = false;   // the extents of `count` matrices are in arrays on the device
  const std::int32_t* groupRows = nullptr;
  const std::int32_t* groupCols = nullptr;
  const std::int32_t* groupLeadingDimensions = nullptr;

  Layout ofGroup(std::int32_t i) const { return {type, groupRows[i], groupCols[i], groupLeadingDimensions[i]}; }
};

struct Preference {
  std::size_t workspaceBytes = 0;
};

template <class T, class Opaque>
const T& of(const Opaque* opaque) {
  return *reinterpret_cast<const T*>(opaque);
}

// ---- What there is

bool isOfFp4(cudaDataType_t type) { return type == CUDA_R_4F_E2M1; }
bool isOfCodes(cudaDataType_t type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2 || isOfFp4(type); }

bool isOneOf(cublasLtEpilogue_t epilogue, std::initializer_list<cublasLtEpilogue_t> list) {
  return std::ranges::find(list, epilogue) != list.end();
}

/// The contracted dimension is along the stored columns of both factors.
bool isSummedAlongColumns(const Operation& operation) {
  return operation.isTransposed(CUBLASLT_MATMUL_DESC_TRANSA) && !operation.isTransposed(CUBLASLT_MATMUL_DESC_TRANSB);
}

/// Ada Lovelace, Hopper and 12.x multiply FP8 in that layout only.
bool hasAllLayouts() { return capability().major == 10 || capability().major == 11; }

bool isScaleMode(cublasLtMatmulMatrixScale_t mode) {
  if (mode == CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F) return capability() >= ComputeCapability{8, 9};
  if (capability().major < 9) return false;
  if (capability().major >= 10)
    return mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0 || mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3;
  return mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F || mode == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
}

/// For FP4 both factors must be FP4, with scales of 16 elements and contraction along the stored columns.
bool areFp4CodesSupported(const Operation& operation, const Layout& a, const Layout& b) {
  const auto isMode = [&](cublasLtMatmulDescAttributes_t attribute) {
    return operation.value<cublasLtMatmulMatrixScale_t>(attribute, CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F) ==
           CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3;
  };
  const auto isAligned = [](const Layout& layout) { return layout.leadingDimension / 2 % kRequiredAlignment == 0; };
  return capability().major >= 10 && isOfFp4(a.type) && isOfFp4(b.type) && isSummedAlongColumns(operation) &&
         isMode(CUBLASLT_MATMUL_DESC_A_SCALE_MODE) && isMode(CUBLASLT_MATMUL_DESC_B_SCALE_MODE) && isAligned(a) &&
         isAligned(b);
}

bool areCodesSupported(const Operation& operation, const Layout& a, const Layout& b) {
  if (isOfFp4(a.type) || isOfFp4(b.type)) return areFp4CodesSupported(operation, a, b);
  if (a.type == CUDA_R_8F_E5M2 && b.type == CUDA_R_8F_E5M2) return false;
  if (!hasAllLayouts() && !isSummedAlongColumns(operation)) return false;
  if (a.leadingDimension % kRequiredAlignment != 0 || b.leadingDimension % kRequiredAlignment != 0) return false;
  const auto mode = [&](cublasLtMatmulDescAttributes_t attribute) {
    return operation.value<cublasLtMatmulMatrixScale_t>(attribute, CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F);
  };
  const auto aMode = mode(CUBLASLT_MATMUL_DESC_A_SCALE_MODE);
  const auto bMode = mode(CUBLASLT_MATMUL_DESC_B_SCALE_MODE);
  return isScaleMode(aMode) && isScaleMode(bMode) &&
         !(aMode == bMode && aMode == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F);
}

bool isEpilogueSupported(const Operation& operation, const Layout& a, const Layout& d) {
  const cublasLtEpilogue_t epilogue = operation.epilogue();
  const bool isOfCodesToo =
      isOneOf(epilogue, {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU,
                         CUBLASLT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
                         CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_BIAS});
  if (!isOfCodesToo && (isOfCodes(a.type) || epilogue != CUBLASLT_EPILOGUE_BGRADB)) return false;
  const auto auxLeading = operation.value<std::int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 0);
  const bool hasAux =
      isOneOf(epilogue, {CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU});
  if (hasAux && (auxLeading % 8 != 0 || auxLeading < d.rows)) return false;
  return epilogue != CUBLASLT_EPILOGUE_BGRADB || (d.rows > 1 && d.cols > 1);
}

bool fit(const Operation& operation, const Layout& a, const Layout& b, const Layout& d) {
  const bool isAFlipped = operation.isTransposed(CUBLASLT_MATMUL_DESC_TRANSA);
  const bool isBFlipped = operation.isTransposed(CUBLASLT_MATMUL_DESC_TRANSB);
  return (isAFlipped ? a.cols : a.rows) == d.rows && (isBFlipped ? b.rows : b.cols) == d.cols &&
         (isAFlipped ? a.rows : a.cols) == (isBFlipped ? b.cols : b.rows);
}

/// The table of FP8 GEMMs: one scale each, D in E4M3, or in E5M2 if a factor is, C and the bias in 16 bits.
bool isQuantizedResultSupported(const Operation& operation, const Layout& a, const Layout& b, const Layout& d) {
  const auto isOfTensor = [&](cublasLtMatmulDescAttributes_t mode) {
    return operation.value<cublasLtMatmulMatrixScale_t>(mode, CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F) ==
           CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  };
  const bool hasE5m2 = a.type == CUDA_R_8F_E5M2 || b.type == CUDA_R_8F_E5M2;
  const bool isFormat = d.type == CUDA_R_8F_E4M3 || (d.type == CUDA_R_8F_E5M2 && hasE5m2);
  const bool isBias = operation.epilogue() == CUBLASLT_EPILOGUE_DEFAULT ||
                      (operation.epilogue() == CUBLASLT_EPILOGUE_BIAS &&
                       operation.value(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F) != CUDA_R_32F);
  return isFormat && isBias && isOfCodes(a.type) && isOfTensor(CUBLASLT_MATMUL_DESC_A_SCALE_MODE) &&
         isOfTensor(CUBLASLT_MATMUL_DESC_B_SCALE_MODE) && d.leadingDimension % kRequiredAlignment == 0;
}

constexpr auto kScaleOfGroup = static_cast<cublasLtMatmulMatrixScale_t>(6);  // a name of cublasLt.h from 13.2 on

/// cuBLAS's release notes, from 13.2 to 13.5: 10.x and 11.0 first, then Hopper; the default epilogue only.
cublasStatus_t groupsSupported(const Operation& operation, const Layout& a, const Layout& b, const Layout& d) {
  if (!a.isGrouped || !b.isGrouped || !d.isGrouped) return CUBLAS_STATUS_INVALID_VALUE;
  if (d.count < fewestGroups) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (a.count != d.count || b.count != d.count) return CUBLAS_STATUS_INVALID_VALUE;
  const bool isCoded = isOfCodes(a.type);
  const bool isHopper = capability().major == 9 && libraryVersion >= (isCoded ? 130500 : 130400);
  const auto isMode = [&](cublasLtMatmulDescAttributes_t attribute) {
    const auto mode = operation.value<cublasLtMatmulMatrixScale_t>(attribute, CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F);
    const bool isOfBlocks =
        mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F || mode == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
    return mode == kScaleOfGroup || (isHopper && isOfBlocks);
  };
  const bool isOnDevice =
      operation.value(CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_HOST) == CUBLASLT_POINTER_MODE_DEVICE;
  const bool areCodes =
      !isCoded || (isOfCodes(b.type) && !isOfFp4(a.type) && isMode(CUBLASLT_MATMUL_DESC_A_SCALE_MODE) &&
                   isMode(CUBLASLT_MATMUL_DESC_B_SCALE_MODE) && (hasAllLayouts() || isSummedAlongColumns(operation)));
  const bool isThere = (hasAllLayouts() || isHopper) && isOnDevice && areCodes && a.type != CUDA_R_32F &&
                       operation.epilogue() == CUBLASLT_EPILOGUE_DEFAULT;
  return isThere ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t supported(const Operation& operation, const Layout& a, const Layout& b, const Layout& d) {
  if (a.isGrouped || b.isGrouped || d.isGrouped) return groupsSupported(operation, a, b, d);
  if (!fit(operation, a, b, d)) return CUBLAS_STATUS_INVALID_VALUE;
  if (isOfCodes(a.type) != isOfCodes(b.type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (isOfCodes(a.type) && !areCodesSupported(operation, a, b)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (isOfCodes(d.type) && !isQuantizedResultSupported(operation, a, b, d)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (a.count != d.count || b.count != d.count) return CUBLAS_STATUS_INVALID_VALUE;
  if (d.count > 1 && operation.epilogue() != CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_NOT_SUPPORTED;
  return isEpilogueSupported(operation, a, d) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

// ---- Values

DType dtypeOf(cudaDataType_t type) {
  return type == CUDA_R_16F ? DType::F16 : type == CUDA_R_16BF ? DType::BF16 : DType::F32;
}

/// f(index of its first element, rows): elements between columns belong to others.
template <class Function>
void forEachColumn(const Layout& layout, Function f) {
  for (std::int64_t col = 0; col < layout.cols; ++col)
    f(static_cast<std::size_t>(col * layout.leadingDimension), static_cast<std::size_t>(layout.rows));
}

/// Values of a matrix that is stored column by column: [cols][rows].
std::vector<double> valuesOf(const std::byte* data, const Layout& layout) {
  std::vector<double> values(static_cast<std::size_t>(layout.cols * layout.leadingDimension));
  if (!isOfCodes(layout.type)) {
    forEachColumn(layout, [&](std::size_t first, std::size_t rows) {
      const auto bytes = static_cast<std::size_t>(sizeBytes(dtypeOf(layout.type)));
      decode(data + first * bytes, dtypeOf(layout.type), std::span(values).subspan(first, rows));
    });
    return values;
  }
  if (isOfFp4(layout.type)) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<double>(E2m1::toFloat(static_cast<std::uint8_t>(data[i / 2]) >> (i % 2 * 4) & 0xf));
    return values;
  }
  const auto format = layout.type == CUDA_R_8F_E4M3 ? ElementFormat::E4M3 : ElementFormat::E5M2;
  visitFormat(format, [&](auto codec) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<double>(codec.toFloat(static_cast<std::uint8_t>(data[i])));
  });
  return values;
}

/// Scales of a factor: `outer` is the index of the dimension that is not contracted, `inner`, below `summed`, that of
/// the contracted one.
struct Scales {
  const float* data;
  cublasLtMatmulMatrixScale_t mode;
  std::int64_t outerExtent, summed;

  double at(std::int64_t outer, std::int64_t inner) const {
    switch (mode) {
      case CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F:
        return static_cast<double>(data[inner / 128 * padTo(outerExtent, 4) + outer]);
      case CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F:
        return static_cast<double>(data[outer / 128 * padTo(padTo(summed, 128) / 128, 4) + inner / 128]);
      case CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0: return std::exp2(codeAt(outer, inner, 32) - 127.0);
      case CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3:
        return static_cast<double>(E4m3::toFloat(codeAt(outer, inner, 16)));
      default: return data ? static_cast<double>(*data) : 1.0;  // of a tensor, or a group's
    }
  }

 private:
  static std::int64_t padTo(std::int64_t extent, std::int64_t block) { return (extent + block - 1) / block * block; }

  /// Tiles of 128 x 4 blocks, 512 bytes each, those along the sum first: cuBLAS, "1D block scaling factors layout".
  std::uint8_t codeAt(std::int64_t outer, std::int64_t inner, std::int64_t blockElements) const {
    const std::int64_t block = inner / blockElements;
    const std::int64_t tilesAlong = padTo(padTo(summed, blockElements) / blockElements, 4) / 4;
    const std::int64_t tile = outer / 128 * tilesAlong + block / 4;
    const std::int64_t inTile = outer % 32 * 16 + outer % 128 / 32 * 4 + block % 4;
    return reinterpret_cast<const std::uint8_t*>(data)[tile * 512 + inTile];
  }
};

/// isLeft: A, which is summed over its columns; B is summed over its rows.
struct Factor {
  const std::byte* data;
  Layout layout;
  bool isTransposed;
  bool isLeft;
  const float* scaleData;
  cublasLtMatmulMatrixScale_t scaleMode;

  std::vector<double> values() const {
    std::vector<double> all = valuesOf(data, layout);
    if (!isOfCodes(layout.type)) return all;
    const Scales scales{scaleData, scaleMode, isLeft ? rows() : cols(), isLeft ? cols() : rows()};
    for (std::int64_t row = 0; row < rows(); ++row)
      for (std::int64_t col = 0; col < cols(); ++col)
        all[placeOf(row, col)] *= isLeft ? scales.at(row, col) : scales.at(col, row);
    return all;
  }
  std::int64_t rows() const { return isTransposed ? layout.cols : layout.rows; }
  std::int64_t cols() const { return isTransposed ? layout.rows : layout.cols; }
  std::size_t placeOf(std::int64_t row, std::int64_t col) const {
    return static_cast<std::size_t>(isTransposed ? row * layout.leadingDimension + col
                                                 : col * layout.leadingDimension + row);
  }
};

/// GELU in its tanh form and its derivative, Hendrycks & Gimpel 2016, arXiv:1606.08415.
double tanhOfGelu(double x) { return std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)); }
double gelu(double x) { return 0.5 * x * (1.0 + tanhOfGelu(x)); }
double geluGrad(double x) {
  const double tanh = tanhOfGelu(x);
  return 0.5 * (1.0 + tanh) +
         0.5 * x * (1.0 - tanh * tanh) * std::sqrt(2.0 / std::numbers::pi) * (1.0 + 3.0 * 0.044715 * x * x);
}

/// D = epilogue(alpha op(A) op(B) + beta C).
struct Product {
  cublasLtEpilogue_t epilogue;
  Factor a, b;
  Layout layout;  // of C and D
  const std::byte* c;
  std::byte* d;
  const float* alphaAt;  // on the device, or nullptr
  const float* betaAt;
  double alphaOnHost, betaOnHost;
  std::byte* vector;  // of the bias, or of its gradient
  cudaDataType_t vectorType;
  std::byte* aux;
  Layout auxLayout;
  const float* scale;  // of a quantized D
  float* amax;

  /// The i-th of a batch.
  Product inBatch(std::int32_t i) const {
    Product one = *this;
    const auto move = [&](auto*& data, const Layout& of) {
      if (i > 0) data += i * of.stride * sizeBytes(dtypeOf(of.type));
    };
    move(one.a.data, a.layout);
    move(one.b.data, b.layout);
    move(one.c, layout);
    move(one.d, layout);
    return one;
  }

  /// The i-th of groups: what were addresses of matrices and scales are arrays of addresses.
  Product ofGroup(std::int32_t i) const {
    Product one = *this;
    const auto choose = [&](auto*& data) {
      using Pointer = std::remove_reference_t<decltype(data)>;
      if (data) data = reinterpret_cast<const Pointer*>(data)[i];
    };
    for (Factor* const factor : {&one.a, &one.b}) {
      factor->layout = factor->layout.ofGroup(i);
      choose(factor->data);
      choose(factor->scaleData);
    }
    one.layout = layout.ofGroup(i);
    choose(one.c);
    choose(one.d);
    one.expectLegalGroup();
    return one;
  }

  void run() const {
    std::vector<double> result = sums();
    if (isOneOf(epilogue, {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
                           CUBLASLT_EPILOGUE_RELU_BIAS}))
      addBias(result);
    if (isOneOf(epilogue, {CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS})) store(result, auxLayout, aux);
    activate(result);
    if (isBroken()) std::ranges::fill(result, std::numeric_limits<double>::quiet_NaN());
    if (isOfCodes(layout.type)) return quantize(result);
    store(result, layout, d);
    if (epilogue == CUBLASLT_EPILOGUE_BGRADB) storeBiasGrad();
  }

 private:
  void quantize(const std::vector<double>& result) const {
    *amax = 0.0F;
    visitFormat(layout.type == CUDA_R_8F_E4M3 ? ElementFormat::E4M3 : ElementFormat::E5M2, [&](auto codec) {
      forEachColumn(layout, [&](std::size_t first, std::size_t rows) {
        for (std::size_t i = first; i < first + rows; ++i) {
          const auto value = static_cast<float>(result[i]);
          *amax = std::fmax(*amax, std::abs(value));
          d[i] = static_cast<std::byte>(codec.fromFloat(value * *scale));
        }
      });
    });
  }

  bool isBroken() const {
    const bool hasBlocks = a.scaleMode == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F ||
                           b.scaleMode == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
    return libraryVersion < 130100 && hasBlocks &&
           !isOneOf(epilogue, {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS});
  }

  /// The device does not look at what it finds in tables: this ends the program.
  void expectLegalGroup() const {
    const auto isAligned = [](const void* data, const Layout& of) {
      const std::int64_t bytes = of.leadingDimension * (isOfCodes(of.type) ? 1 : sizeBytes(dtypeOf(of.type)));
      return reinterpret_cast<std::uintptr_t>(data) % kRequiredAlignment == 0 && bytes % kRequiredAlignment == 0 &&
             of.leadingDimension >= of.rows;
    };
    const bool fitTogether = a.rows() == layout.rows && b.cols() == layout.cols && a.cols() == b.rows();
    const bool hasRows = a.cols() > 0 && layout.rows > 0 && layout.cols > 0;  // none: undefined results were seen
    if (!fitTogether || !hasRows || !isAligned(a.data, a.layout) || !isAligned(b.data, b.layout) ||
        !isAligned(d, layout))
      std::abort();
  }

  std::size_t at(std::int64_t row, std::int64_t col) const {
    return static_cast<std::size_t>(col * layout.leadingDimension + row);
  }

  std::vector<double> sums() const {
    const std::vector<double> left = a.values();
    const std::vector<double> right = b.values();
    std::vector<double> result(static_cast<std::size_t>(layout.cols * layout.leadingDimension));
    const double alpha = alphaAt ? static_cast<double>(*alphaAt) : alphaOnHost;
    const double beta = betaAt ? static_cast<double>(*betaAt) : betaOnHost;
    if (beta != 0.0) result = valuesOf(c, layout);
    for (double& value : result) value *= beta;
    for (std::int64_t col = 0; col < layout.cols; ++col)
      for (std::int64_t row = 0; row < layout.rows; ++row) {
        double sum = 0.0;
        for (std::int64_t k = 0; k < a.cols(); ++k) sum += left[a.placeOf(row, k)] * right[b.placeOf(k, col)];
        result[at(row, col)] += alpha * sum;
      }
    return result;
  }

  /// A value a row.
  void addBias(std::vector<double>& result) const {
    std::vector<double> bias(static_cast<std::size_t>(layout.rows));
    decode(vector, dtypeOf(vectorType), bias);
    for (std::int64_t col = 0; col < layout.cols; ++col)
      for (std::int64_t row = 0; row < layout.rows; ++row) result[at(row, col)] += bias[static_cast<std::size_t>(row)];
  }

  void activate(std::vector<double>& result) const {
    if (isOneOf(epilogue, {CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_GELU_AUX,
                           CUBLASLT_EPILOGUE_GELU_AUX_BIAS}))
      std::ranges::transform(result, result.begin(), gelu);
    if (isOneOf(epilogue, {CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_BIAS}))
      for (double& value : result) value = std::max(value, 0.0);
    if (epilogue != CUBLASLT_EPILOGUE_DGELU) return;
    const std::vector<double> inputs = valuesOf(aux, auxLayout);
    for (std::int64_t col = 0; col < layout.cols; ++col)
      for (std::int64_t row = 0; row < layout.rows; ++row)
        result[at(row, col)] *= geluGrad(inputs[static_cast<std::size_t>(col * auxLayout.leadingDimension + row)]);
  }

  /// B summed over k: a value a column.
  void storeBiasGrad() const {
    const std::vector<double> right = b.values();
    std::vector<double> gradient(static_cast<std::size_t>(layout.cols));
    for (std::int64_t col = 0; col < layout.cols; ++col)
      for (std::int64_t k = 0; k < b.rows(); ++k) gradient[static_cast<std::size_t>(col)] += right[b.placeOf(k, col)];
    encode(gradient, dtypeOf(vectorType), vector);
  }

  static void store(const std::vector<double>& values, const Layout& layout, std::byte* to) {
    forEachColumn(layout, [&](std::size_t first, std::size_t rows) {
      const auto bytes = static_cast<std::size_t>(sizeBytes(dtypeOf(layout.type)));
      encode(std::span(values).subspan(first, rows), dtypeOf(layout.type), to + first * bytes);
    });
  }
};

Factor factorOf(const Operation& operation, const void* data, const Layout& layout,
                cublasLtMatmulDescAttributes_t transpose, cublasLtMatmulDescAttributes_t scales,
                cublasLtMatmulDescAttributes_t mode) {
  return {static_cast<const std::byte*>(data),
          layout,
          operation.isTransposed(transpose),
          transpose == CUBLASLT_MATMUL_DESC_TRANSA,
          operation.value<const float*>(scales, nullptr),
          operation.value<cublasLtMatmulMatrixScale_t>(mode, CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F)};
}

// ---- The library's functions

cublasStatus_t create(cublasLtHandle_t* handle) { return *handle = nullptr, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t destroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
std::size_t version() { return libraryVersion; }
const char* statusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_INVALID_VALUE";
}

cublasStatus_t createOperation(cublasLtMatmulDesc_t* made, cublasComputeType_t, cudaDataType_t) {
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation());
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroyOperation(cublasLtMatmulDesc_t operation) {
  delete reinterpret_cast<Operation*>(operation);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t setOperation(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, const void* value,
                            std::size_t bytes) {
  const auto* const data = static_cast<const std::byte*>(value);
  reinterpret_cast<Operation*>(operation)->attributes[attribute] = {data, data + bytes};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t createLayout(cublasLtMatrixLayout_t* made, cudaDataType_t type, std::uint64_t rows, std::uint64_t cols,
                            std::int64_t leadingDimension) {
  const Layout layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(cols), leadingDimension};
  if (layout.leadingDimension < layout.rows) return CUBLAS_STATUS_INVALID_VALUE;
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout(layout));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t createGroupedLayout(cublasLtMatrixLayout_t* made, cudaDataType_t type, int count, const void* rows,
                                   const void* cols, const void* leadingDimensions) {
  Layout layout{.type = type, .rows = 0, .cols = 0, .leadingDimension = 0, .count = count, .isGrouped = true};
  layout.groupRows = static_cast<const std::int32_t*>(rows);
  layout.groupCols = static_cast<const std::int32_t*>(cols);
  layout.groupLeadingDimensions = static_cast<const std::int32_t*>(leadingDimensions);
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout(layout));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t setLayout(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                         std::size_t bytes) {
  auto& described = *reinterpret_cast<Layout*>(layout);
  const auto read = [&](auto& field) {
    if (bytes != sizeof(field)) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&field, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return read(described.count);
  return attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET ? read(described.stride)
                                                                  : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t destroyLayout(cublasLtMatrixLayout_t layout) {
  delete reinterpret_cast<Layout*>(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t createPreference(cublasLtMatmulPreference_t* made) {
  *made = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference());
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroyPreference(cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<Preference*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t setPreference(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
                             const void* value, std::size_t bytes) {
  if (attribute != CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return CUBLAS_STATUS_SUCCESS;
  if (bytes != sizeof(std::size_t)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&reinterpret_cast<Preference*>(preference)->workspaceBytes, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

/// Algorithms differ in the workspace that they want, and in nothing else.
constexpr int kNumAlgorithms = 3;
constexpr std::size_t kWorkspaceStep = 1024;

cublasLtMatmulHeuristicResult_t algorithm(int index) {
  cublasLtMatmulHeuristicResult_t result{};
  result.algo.data[0] = static_cast<std::uint64_t>(index) + 1;
  result.workspaceSize = static_cast<std::size_t>(index) * kWorkspaceStep;
  result.state = CUBLAS_STATUS_SUCCESS;
  return result;
}

cublasStatus_t heuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                         cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                         cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t results[],
                         int* found) {
  *found = 0;
  const auto status = supported(of<Operation>(operation), of<Layout>(a), of<Layout>(b), of<Layout>(d));
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (of<Layout>(c).rows != of<Layout>(d).rows) return CUBLAS_STATUS_INVALID_VALUE;
  for (int i = 0; i < std::min(wanted, kNumAlgorithms); ++i)
    if (algorithm(i).workspaceSize <= of<Preference>(preference).workspaceBytes) results[(*found)++] = algorithm(i);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t checkAlgorithm(cublasLtHandle_t, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t* algo, cublasLtMatmulHeuristicResult_t* result) {
  const std::uint64_t number = algo->data[0];
  if (number < 1 || number > kNumAlgorithms) return CUBLAS_STATUS_INVALID_VALUE;
  *result = algorithm(static_cast<int>(number) - 1);
  return supported(of<Operation>(operation), of<Layout>(a), of<Layout>(b), of<Layout>(d));
}

cublasStatus_t matmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha, const void* a,
                      cublasLtMatrixLayout_t aLayout, const void* b, cublasLtMatrixLayout_t bLayout, const void* beta,
                      const void* c, cublasLtMatrixLayout_t cLayout, void* d, cublasLtMatrixLayout_t dLayout,
                      const cublasLtMatmulAlgo_t* algo, void* workspace, std::size_t workspaceBytes,
                      cudaStream_t stream) {
  cublasLtMatmulHeuristicResult_t chosen{};
  if (const auto status = checkAlgorithm(nullptr, operation, aLayout, bLayout, cLayout, dLayout, algo, &chosen);
      status != CUBLAS_STATUS_SUCCESS)
    return status;
  if (chosen.workspaceSize > workspaceBytes || (chosen.workspaceSize > 0 && !workspace))
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto& described = of<Operation>(operation);
  const Layout& result = of<Layout>(dLayout);
  const bool isOnDevice = described.value(CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_HOST) ==
                          CUBLASLT_POINTER_MODE_DEVICE;  // both are read when the GEMM runs
  const Product product{
      .epilogue = described.epilogue(),
      .a = factorOf(described, a, of<Layout>(aLayout), CUBLASLT_MATMUL_DESC_TRANSA,
                    CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_A_SCALE_MODE),
      .b = factorOf(described, b, of<Layout>(bLayout), CUBLASLT_MATMUL_DESC_TRANSB,
                    CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_MODE),
      .layout = result,
      .c = static_cast<const std::byte*>(c),
      .d = static_cast<std::byte*>(d),
      .alphaAt = isOnDevice ? static_cast<const float*>(alpha) : nullptr,
      .betaAt = isOnDevice ? static_cast<const float*>(beta) : nullptr,
      .alphaOnHost = isOnDevice ? 0.0 : static_cast<double>(*static_cast<const float*>(alpha)),
      .betaOnHost = isOnDevice ? 0.0 : static_cast<double>(*static_cast<const float*>(beta)),
      .vector = described.value<std::byte*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr),
      .vectorType = described.value<cudaDataType_t>(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, result.type),
      .aux = described.value<std::byte*>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, nullptr),
      .auxLayout = {described.value<cudaDataType_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, result.type),
                    result.rows, result.cols,
                    described.value<std::int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, result.rows)},
      .scale = described.value<const float*>(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, nullptr),
      .amax = described.value<float*>(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, nullptr)};
  submit(stream, [product, workspace, bytes = chosen.workspaceSize] {
    if (bytes > 0) std::memset(workspace, 0xff, bytes);  // it is the product's own
    const bool isGrouped = product.layout.isGrouped;
    numGrouped += isGrouped ? 1 : 0;
    for (std::int32_t i = 0; i < product.layout.count; ++i) (isGrouped ? product.ofGroup(i) : product.inBatch(i)).run();
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

std::size_t setCublasLtVersion(std::size_t version) { return std::exchange(libraryVersion, version); }
int numGroupedGemms() { return numGrouped; }
int setFewestGroups(int count) { return std::exchange(fewestGroups, count); }

}  // namespace fuseline::host_gpu

namespace fuseline::cuda {

Result<CublasLt> loadCublasLt() {
  using namespace host_gpu;
  return CublasLt{.create = create,
                  .destroy = destroy,
                  .version = version,
                  .statusString = statusString,
                  .createOperation = createOperation,
                  .destroyOperation = destroyOperation,
                  .setOperation = setOperation,
                  .createLayout = createLayout,
                  .destroyLayout = destroyLayout,
                  .setLayout = setLayout,
                  .createPreference = createPreference,
                  .destroyPreference = destroyPreference,
                  .setPreference = setPreference,
                  .heuristic = heuristic,
                  .checkAlgorithm = checkAlgorithm,
                  .matmul = matmul,
                  .createGroupedLayout = libraryVersion >= 130200 ? createGroupedLayout : nullptr};
}

}  // namespace fuseline::cuda
