// oneDNN matmul primitives, packing and dtype conversions.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/gemm.h"

#include "kernels/cpu/elementwise/strip_functions.h"
#include "kernels/cpu/gemm/coded_gemm.h"
#include "kernels/cpu/machine/cpu_memory.h"
#include "kernels/cpu/workspace.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <unordered_map>

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl.hpp>

namespace fuseline::cpu {

namespace {

/// Elements that one thread converts at a time.
constexpr std::int64_t kConversionChunk = 16384;

dnnl::memory::data_type dnnlType(DType dtype) {
  return dtype == DType::BF16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

// Calls that differ between oneDNN 2 and 3.
#if DNNL_VERSION_MAJOR >= 3

template <class... Descriptors>
dnnl::matmul::primitive_desc matmulOf(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                      const Descriptors&... descriptors) {
  return {engine, descriptors..., attributes};
}

dnnl::inner_product_backward_weights::primitive_desc weightGradientOf(const dnnl::engine& engine,
                                                                      const dnnl::memory::desc& x,
                                                                      const dnnl::memory::desc& weight,
                                                                      const dnnl::memory::desc& dw,
                                                                      const dnnl::memory::desc& dy) {
  return {engine, x, dw, dy, {engine, dnnl::prop_kind::forward_training, x, weight, dy}};
}

void appendFactor(dnnl::post_ops& operations, float factor) {
  operations.append_eltwise(dnnl::algorithm::eltwise_linear, factor, 0.0F);
}

#else

template <class... Descriptors>
dnnl::matmul::primitive_desc matmulOf(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                      const Descriptors&... descriptors) {
  return {dnnl::matmul::desc(descriptors...), attributes, engine};
}

dnnl::inner_product_backward_weights::primitive_desc weightGradientOf(const dnnl::engine& engine,
                                                                      const dnnl::memory::desc& x,
                                                                      const dnnl::memory::desc& weight,
                                                                      const dnnl::memory::desc& dw,
                                                                      const dnnl::memory::desc& dy) {
  return {{x, dw, dy}, engine, {{dnnl::prop_kind::forward_training, x, weight, dy}, engine}};
}

void appendFactor(dnnl::post_ops& operations, float factor) {
  operations.append_eltwise(1.0F, dnnl::algorithm::eltwise_linear, factor, 0.0F);
}

#endif

/// Descriptor of a [rows, cols] operand. stride: from one stored row to the next.
dnnl::memory::desc describe(std::int64_t rows, std::int64_t cols, DType dtype, Storage2d storage, std::int64_t stride) {
  const dnnl::memory::dims strides =
      storage == Storage2d::AsRead ? dnnl::memory::dims{stride, 1} : dnnl::memory::dims{1, stride};
  return {{rows, cols}, dnnlType(dtype), strides};
}

/// Rows from which packing B anew in every run costs less than it gains, for a B that is stored as it is read. A
/// transposed B never gains: its packing is twice as slow (measured 2026-11, Zen 5, N and K of 1024 and 4096: at 256
/// rows 407 packed against 473 GFLOP/s plain, at 1024 rows 471 against 469, beyond that packed wins).
constexpr std::int64_t kMinRowsToPack = 1024;

/// Rows from which the library's sgemm is faster than its matmul for a transposed B. For a B that is stored as it is
/// read it is from 1 row on (float32, measured 2026-11, Zen 5, one thread, N and K of 768 to 4096, time of matmul over
/// that of sgemm: A B 1.00 to 1.14 from 512 rows and up to 3 below, A^T B 1.10 to 1.25, A B^T 0.70 to 1.00 from 8 to
/// 512 rows, 1.03 to 1.06 at 2048).
constexpr std::int64_t kMinRowsForTransposedSgemm = 2048;

/// Number of summed rows (A^T B) from which the library's inner product is at least as fast as its matmul in bf16. In
/// float32 it always is (231 to 250 against 200 to 246 GFLOP/s, same measurement).
constexpr std::int64_t kMinRowsForInnerProduct = 1024;

bool worthPacking(const GemmProblem& problem) {
  if (problem.packing == Packing::OnceForever) return true;
  return problem.b == Storage2d::AsRead && problem.a == Storage2d::AsRead && problem.m >= kMinRowsToPack;
}

/// One of the dtypes is float32.
void convertElements(const std::byte* from, DType fromType, std::byte* to, DType toType, std::int64_t count) {
  const StripFunction function = fromType == DType::F32 ? encodeFunction(toType) : decodeFunction(fromType);
  const std::int64_t numChunks = (count + kConversionChunk - 1) / kConversionChunk;
#pragma omp parallel for schedule(static) if (numChunks > 1)
  for (std::int64_t chunk = 0; chunk < numChunks; ++chunk) {
    const std::int64_t first = chunk * kConversionChunk;
    const auto length = static_cast<std::size_t>(std::min(kConversionChunk, count - first));
    function(to + first * sizeBytes(toType), from + first * sizeBytes(fromType), nullptr, length);
  }
}

/// Rows of `cols` elements, of which one side may be columns of a wider matrix.
struct ConvertedRows {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t fromStride = 0;
  std::int64_t toStride = 0;
};

void convertRows(const std::byte* from, DType fromType, std::byte* to, DType toType, const ConvertedRows& shape) {
  const auto& [rows, cols, fromStride, toStride] = shape;
  if (fromStride == cols && toStride == cols) return convertElements(from, fromType, to, toType, rows * cols);
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < rows; ++row)
    convertElements(from + row * fromStride * sizeBytes(fromType), fromType, to + row * toStride * sizeBytes(toType),
                    toType, cols);
}

}  // namespace

struct Gemm::State {
  explicit State(const GemmProblem& given) : problem(given) {
    const bool isBf16 = problem.aType == DType::BF16 && problem.bType == DType::BF16 && problem.isBf16Native;
    inputType = isBf16 ? DType::BF16 : DType::F32;
    outputType = isBf16 && problem.cType == DType::BF16 ? DType::BF16 : DType::F32;
    if (problem.maxPanelRows <= 0) problem.maxPanelRows = problem.m;
    problem.maxPanelRows = std::min(problem.maxPanelRows, problem.m);
    if (isEmpty()) return;
    if (problem.bCodes)
      createCoded();
    else if (isSgemm())
      plainB = packedB = bDescriptor();
    else if (isWeightGradient())
      createInnerProduct();
    else
      createMatmuls();
    layOut();
  }

  /// In float32, all rows at once, with a B that may change from run to run.
  bool isSgemm() const {
    const bool isPlain = !problem.bCodes && !problem.biasType && !isScaled() && problem.packing == Packing::EveryRun;
    const bool isFast = problem.b == Storage2d::AsRead || problem.m == 1 || problem.m >= kMinRowsForTransposedSgemm;
    return inputType == DType::F32 && isPlain && isFast && problem.maxPanelRows == problem.m;
  }

  /// A^T B over all rows at once. The library's inner product can neither scale nor accumulate.
  bool isWeightGradient() const {
    return problem.alpha == 1.0F && !isScaled() && !problem.accumulates && problem.a == Storage2d::Transposed &&
           problem.b == Storage2d::AsRead && problem.maxPanelRows == problem.m && areRowsContiguous() &&
           (inputType == DType::F32 || problem.k >= kMinRowsForInnerProduct);
  }

  bool areRowsContiguous() const { return problem.aRow == 0 && problem.bRow == 0 && problem.cRow == 0; }

  void createCoded() {
    coded.emplace(problem.maxPanelRows, problem.n, problem.k, *problem.bCodes);
    keptB = allocateKeptB(coded->packedBytes());
  }

  void createMatmuls() {
    plainB = packedB = bDescriptor();
    if (worthPacking(problem)) {
      const dnnl::memory::desc any{{problem.k, problem.n}, dnnlType(inputType), dnnl::memory::format_tag::any};
      packedB = makeDescriptor(problem.maxPanelRows, any).weights_desc();
    }
    if (packedB != plainB) packer = dnnl::reorder(dnnl::reorder::primitive_desc(engine, plainB, engine, packedB));
    const bool isPrepared = packer || convertsB();
    if (problem.packing == Packing::OnceForever && isPrepared) keptB = allocateKeptB(packedB.get_size());
    matmulFor(problem.maxPanelRows);
    if (const std::int64_t tail = problem.m % problem.maxPanelRows) matmulFor(tail);
  }

  /// On huge pages, unlike memory that the library would allocate.
  static std::unique_ptr<DeviceMemory> allocateKeptB(std::size_t size) {
    auto memory = allocateCpuMemory(size);
    if (!memory) throw std::runtime_error(memory.error().message);
    return std::move(*memory);
  }

  /// In the library's terms: x = B [K, N], dy = A as stored [K, M], dW = C [M, N].
  void createInnerProduct() {
    const auto x = bDescriptor();
    const auto dy = storedA();
    const auto dw = cDescriptor(problem.m);
    const dnnl::memory::desc weight{{problem.m, problem.n}, dnnlType(inputType), dnnl::memory::format_tag::any};
    innerProduct = dnnl::inner_product_backward_weights(weightGradientOf(engine, x, weight, dw, dy));
    plainB = packedB = x;
  }

  bool isScaled() const { return problem.aFactor || problem.bFactor; }
  float scale() const {
    return (problem.aFactor ? *problem.aFactor : 1.0F) * (problem.bFactor ? *problem.bFactor : 1.0F);
  }
  static dnnl::memory::desc scaleDescriptor() {
    return {{1, 1}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ab};
  }

  bool isEmpty() const { return problem.m == 0 || problem.n == 0 || problem.k == 0; }

  dnnl::matmul::primitive_desc makeDescriptor(std::int64_t rows, const dnnl::memory::desc& b) const {
    dnnl::primitive_attr attributes;
    if (problem.biasType)
      return matmulOf(engine, attributes, aDescriptor(rows), b, biasDescriptor(), cDescriptor(rows));
    attributes.set_post_ops(postOperations());
    return matmulOf(engine, attributes, aDescriptor(rows), b, cDescriptor(rows));
  }
  dnnl::post_ops postOperations() const {
    dnnl::post_ops operations;
    if (isScaled()) operations.append_binary(dnnl::algorithm::binary_mul, scaleDescriptor());
    if (problem.alpha != 1.0F) appendFactor(operations, problem.alpha);
    if (problem.accumulates) operations.append_sum(1.0F);
    return operations;
  }
  dnnl::memory::desc biasDescriptor() const {
    return describe(1, problem.n, *problem.biasType, Storage2d::AsRead, problem.n);
  }
  /// A transposed A is one panel.
  dnnl::memory::desc aDescriptor(std::int64_t rows) const {
    return describe(rows, problem.k, inputType, problem.a, aStride());
  }
  dnnl::memory::desc storedA() const { return describe(problem.k, problem.m, inputType, Storage2d::AsRead, aStride()); }
  dnnl::memory::desc bDescriptor() const { return describe(problem.k, problem.n, inputType, problem.b, bStride()); }
  dnnl::memory::desc cDescriptor(std::int64_t rows) const {
    return describe(rows, problem.n, outputType, Storage2d::AsRead, cStride());
  }

  // Converted matrices are contiguous.
  std::int64_t aStride() const { return convertsA() ? problem.aCols() : problem.aStride(); }
  std::int64_t bStride() const { return convertsB() ? problem.bCols() : problem.bStride(); }
  std::int64_t cStride() const { return convertsC() ? problem.n : problem.cStride(); }

  /// The packed layout does not depend on the number of rows, so that all panels share it.
  dnnl::matmul& matmulFor(std::int64_t rows) {
    auto found = matmuls.find(rows);
    if (found == matmuls.end()) found = matmuls.emplace(rows, dnnl::matmul(makeDescriptor(rows, packedB))).first;
    return found->second;
  }

  bool convertsA() const { return problem.aType != inputType; }
  bool convertsB() const { return problem.bType != inputType; }
  bool convertsC() const { return problem.cType != outputType; }

  void layOut() {
    const auto take = [this](std::int64_t bytes) {
      const std::int64_t start = totalBytes;
      totalBytes += static_cast<std::int64_t>(workspacePart(static_cast<std::size_t>(bytes)));
      return start;
    };
    const std::int64_t rows = problem.maxPanelRows;
    if (coded) {
      take(static_cast<std::int64_t>(coded->workspaceBytes()));
      return;
    }
    if (packer && !keptB) packedOffset = take(static_cast<std::int64_t>(packedB.get_size()));
    if (convertsB()) bOffset = take(problem.k * problem.n * sizeBytes(inputType));
    if (convertsA()) aOffset = take(rows * problem.k * sizeBytes(inputType));
    if (convertsC()) cOffset = take(rows * problem.n * sizeBytes(outputType));
  }

  void prepareB(const std::byte* b, std::byte* workspace) {
    if (isKeptBReady) return;
    std::byte* const kept = keptB ? keptB->data() : nullptr;
    currentB = const_cast<std::byte*>(b);
    if (!coded && convertsB()) {
      currentB = kept && !packer ? kept : workspace + bOffset;
      convertRows(b, problem.bType, currentB, inputType,
                  {.rows = problem.k * problem.n / problem.bCols(),
                   .cols = problem.bCols(),
                   .fromStride = problem.bStride(),
                   .toStride = problem.bCols()});
    }
    if (coded) coded->pack(b, kept);
    if (packer) pack(kept ? kept : workspace + packedOffset);
    isKeptBReady = kept != nullptr;
  }

  void pack(std::byte* packed) {
    dnnl::memory from(plainB, engine, currentB);
    dnnl::memory to(packedB, engine, packed);
    packer.execute(stream, from, to);
    currentB = packed;
  }

  void multiplyRows(const std::byte* a, std::byte* c, std::int64_t rows, std::byte* workspace) {
    if (coded) return coded->multiply(a, keptB->data(), problem.alpha * scale(), c, problem.cType, rows, workspace);
    const std::byte* input = a;
    if (convertsA()) {
      convertRows(a, problem.aType, workspace + aOffset, inputType,
                  {.rows = rows * problem.k / problem.aCols(),
                   .cols = problem.aCols(),
                   .fromStride = problem.aStride(),
                   .toStride = problem.aCols()});
      input = workspace + aOffset;
    }
    std::byte* const output = convertsC() ? workspace + cOffset : c;
    if (convertsC() && problem.accumulates)
      convertRows(c, problem.cType, output, outputType,
                  {.rows = rows, .cols = problem.n, .fromStride = problem.cStride(), .toStride = problem.n});
    execute(input, output, rows);
    if (convertsC())
      convertRows(output, outputType, c, problem.cType,
                  {.rows = rows, .cols = problem.n, .fromStride = problem.n, .toStride = problem.cStride()});
  }

  void executeSgemm(const std::byte* input, std::byte* output, std::int64_t rows) const {
    const auto floats = [](const std::byte* data) { return reinterpret_cast<const float*>(data); };
    const bool isTransposedA = problem.a == Storage2d::Transposed;
    const bool isTransposedB = problem.b == Storage2d::Transposed;
    dnnl::error::wrap_c_api(dnnl_sgemm(isTransposedA ? 'T' : 'N', isTransposedB ? 'T' : 'N', rows, problem.n, problem.k,
                                       problem.alpha, floats(input), aStride(), floats(currentB), bStride(),
                                       problem.accumulates ? 1.0F : 0.0F, reinterpret_cast<float*>(output), cStride()),
                            "sgemm refused the GEMM");
  }

  void execute(const std::byte* input, std::byte* output, std::int64_t rows) {
    if (isSgemm()) return executeSgemm(input, output, rows);
    if (innerProduct) return executeInnerProduct(input, output);
    std::unordered_map<int, dnnl::memory> arguments = {
        {DNNL_ARG_SRC, dnnl::memory(aDescriptor(rows), engine, const_cast<std::byte*>(input))},
        {DNNL_ARG_WEIGHTS, dnnl::memory(packedB, engine, currentB)},
        {DNNL_ARG_DST, dnnl::memory(cDescriptor(rows), engine, output)}};
    float factor = scale();
    if (isScaled())
      arguments.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
                        dnnl::memory(scaleDescriptor(), engine, &factor));
    if (problem.biasType)
      arguments.emplace(DNNL_ARG_BIAS, dnnl::memory(biasDescriptor(), engine, const_cast<std::byte*>(bias)));
    matmulFor(rows).execute(stream, arguments);
  }

  void executeInnerProduct(const std::byte* input, std::byte* output) {
    const auto dy = storedA();
    innerProduct.execute(stream, {{DNNL_ARG_SRC, dnnl::memory(plainB, engine, currentB)},
                                  {DNNL_ARG_DIFF_DST, dnnl::memory(dy, engine, const_cast<std::byte*>(input))},
                                  {DNNL_ARG_DIFF_WEIGHTS, dnnl::memory(cDescriptor(problem.m), engine, output)}});
  }

  GemmProblem problem;
  DType inputType = DType::F32;
  DType outputType = DType::F32;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::memory::desc plainB;
  dnnl::memory::desc packedB;
  std::map<std::int64_t, dnnl::matmul> matmuls;       // by number of rows
  dnnl::inner_product_backward_weights innerProduct;  // empty unless this is A^T B
  dnnl::reorder packer;                               // empty if B is used unpacked
  std::optional<CodedGemm> coded;                     // empty unless B is quantized
  std::unique_ptr<DeviceMemory> keptB;                // null unless B is prepared once
  bool isKeptBReady = false;
  std::byte* currentB = nullptr;
  const std::byte* bias = nullptr;
  std::int64_t packedOffset = 0;
  std::int64_t aOffset = 0;
  std::int64_t bOffset = 0;
  std::int64_t cOffset = 0;
  std::int64_t totalBytes = 0;
};

Gemm::Gemm(const GemmProblem& problem) : m_state(std::make_unique<State>(problem)) {}
Gemm::~Gemm() = default;
Gemm::Gemm(Gemm&&) noexcept = default;
Gemm& Gemm::operator=(Gemm&&) noexcept = default;

const GemmProblem& Gemm::problem() const { return m_state->problem; }

std::size_t Gemm::workspaceBytes() const { return static_cast<std::size_t>(m_state->totalBytes); }

void Gemm::setBias(const std::byte* bias) { m_state->bias = bias; }

void Gemm::prepareB(const std::byte* b, std::byte* workspace) {
  if (!m_state->isEmpty()) m_state->prepareB(b, workspace);
}

void Gemm::multiplyRows(const std::byte* a, std::byte* c, std::int64_t rows, std::byte* workspace) {
  const GemmProblem& problem = m_state->problem;
  if (rows == 0 || problem.n == 0) return;
  if (problem.k == 0) {
    if (problem.accumulates) return;
    for (std::int64_t row = 0; row < rows; ++row)
      std::memset(c + row * problem.cStride() * sizeBytes(problem.cType), 0,
                  static_cast<std::size_t>(problem.n * sizeBytes(problem.cType)));
    return;
  }
  m_state->multiplyRows(a, c, rows, workspace);
}

void Gemm::multiply(const std::byte* a, const std::byte* b, std::byte* c, std::byte* workspace) {
  const GemmProblem& problem = m_state->problem;
  prepareB(b, workspace);
  for (std::int64_t row = 0; row < problem.m; row += problem.maxPanelRows) {
    const std::int64_t rows = std::min(problem.maxPanelRows, problem.m - row);
    const std::byte* const panelA = a ? a + row * problem.aStride() * sizeBytes(problem.aType) : nullptr;
    multiplyRows(panelA, c + row * problem.cStride() * sizeBytes(problem.cType), rows, workspace);
  }
}

}  // namespace fuseline::cpu
