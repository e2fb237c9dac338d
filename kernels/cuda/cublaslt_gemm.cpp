// Descriptors, the choice of an algorithm, and the call.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cublaslt_gemm.h"

#include "core/tensor/scaling.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/cublaslt.h"
#include "kernels/cuda/gemm_layout.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <span>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

/// NVIDIA recommends 32 MiB from Hopper on (cuBLAS, "cublasSetWorkspace").
constexpr std::uint64_t kMaxWorkspaceBytes = std::uint64_t{32} << 20;
constexpr int kMaxCandidates = 8;
/// An epilogue may write a little beyond what its algorithm asks for (nvmath-python allots as much).
constexpr std::size_t kEpilogueBytes = 16;

using Candidate = cublasLtMatmulHeuristicResult_t;

void checkBlas(const CublasLt& library, cublasStatus_t status, const char* action) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceFault(fmt::format("cuBLASLt could not {}: {}.", action, library.statusString(status)));
}

cudaDataType_t typeOf(DType dtype) {
  if (dtype == DType::F16) return CUDA_R_16F;
  return dtype == DType::BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

cudaDataType_t typeOf(const std::optional<FactorCodes>& codes, DType dtype) {
  if (!codes) return typeOf(dtype);
  return codes->format == ElementFormat::E5M2 ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3;
}

cublasLtMatmulMatrixScale_t scaleModeOf(Scaling scaling) {
  switch (scaling) {
    case Scaling::Block1x128: return CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
    case Scaling::Block128x128: return CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
    case Scaling::Mx1x32:
    case Scaling::Mx32x32: return CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
    case Scaling::Nv1x16:
    case Scaling::Nv16x16: return CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3;
    case Scaling::PerTensor: break;
  }
  return CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
}

std::string describe(const GemmProblem& problem) {
  const std::string size = fmt::format("{} x {} x {}", problem.m, problem.n, problem.k);
  if (!problem.aCodes) return fmt::format("{} in {}", size, dtypeName(problem.factorType));
  const auto codes = [](const FactorCodes& factor) {
    return fmt::format("{} ({})", formatName(factor.format), traitsOf(factor.scaling).name);
  };
  return fmt::format("{} of {} and {} to {}", size, codes(*problem.aCodes), codes(*problem.bCodes),
                     dtypeName(problem.cType));
}

/// What extents must be multiples of for every algorithm to be there.
std::int64_t alignmentOf(const GemmProblem& problem) {
  constexpr std::int64_t kPlain = 8;
  if (!problem.aCodes) return kPlain;
  return std::max(traitsOf(problem.aCodes->scaling).gemmAlignment, traitsOf(problem.bCodes->scaling).gemmAlignment);
}

/// A descriptor with an owner.
template <class T>
using Owned = std::unique_ptr<T, cublasStatus_t (*)(T*)>;
using Operation = Owned<cublasLtMatmulDescOpaque_t>;
using Layout = Owned<cublasLtMatrixLayoutOpaque_t>;
using Preference = Owned<cublasLtMatmulPreferenceOpaque_t>;

Layout makeLayout(const CublasLt& library, const ColumnMajor& matrix, cudaDataType_t type) {
  cublasLtMatrixLayout_t layout = nullptr;
  checkBlas(library,
            library.createLayout(&layout, type, static_cast<std::uint64_t>(matrix.rows),
                                 static_cast<std::uint64_t>(matrix.cols), matrix.leadingDimension),
            "describe a matrix");
  return {layout, library.destroyLayout};
}

template <class T>
void set(const CublasLt& library, const Operation& operation, cublasLtMatmulDescAttributes_t attribute, T value) {
  checkBlas(library, library.setOperation(operation.get(), attribute, &value, sizeof(value)), "describe a product");
}

/// The factors are swapped: A is b.
void setCodes(const CublasLt& library, const Operation& operation, const GemmProblem& problem) {
  set(library, operation, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, scaleModeOf(problem.bCodes->scaling));
  set(library, operation, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, scaleModeOf(problem.aCodes->scaling));
  set(library, operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{problem.isFastAccumulated});
}

/// The search reads the pointers' alignment, not what they point to, and takes null for absent.
void setStandIns(const CublasLt& library, const Operation& operation, const GemmProblem& problem) {
  const void* const aligned = reinterpret_cast<const void*>(std::uintptr_t{problem.alignmentBytes});
  if (problem.hasBias) set(library, operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned);
  if (!problem.aCodes) return;
  set(library, operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, aligned);
  set(library, operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, aligned);
}

Operation makeOperation(const CublasLt& library, const GemmProblem& problem, const CublasLayout& layout) {
  cublasLtMatmulDesc_t made = nullptr;
  checkBlas(library, library.createOperation(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describe a product");
  Operation operation(made, library.destroyOperation);
  set(library, operation, CUBLASLT_MATMUL_DESC_TRANSA, layout.isATransposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(library, operation, CUBLASLT_MATMUL_DESC_TRANSB, layout.isBTransposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (problem.hasBias) {
    set(library, operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(library, operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, typeOf(problem.cType));
  }
  if (problem.aCodes) setCodes(library, operation, problem);
  setStandIns(library, operation, problem);
  return operation;
}

Preference makePreference(const CublasLt& library, std::uint32_t alignmentBytes) {
  cublasLtMatmulPreference_t made = nullptr;
  checkBlas(library, library.createPreference(&made), "make a preference");
  Preference preference(made, library.destroyPreference);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    checkBlas(library, library.setPreference(made, attribute, &value, sizeof(value)), "set a preference");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMaxWorkspaceBytes);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignmentBytes);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignmentBytes);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignmentBytes);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignmentBytes);
  return preference;
}

/// The library sorts by its own estimate, the fastest first.
const Candidate* chooseByEstimate(std::span<const Candidate> candidates) {
  for (const Candidate& candidate : candidates)
    if (candidate.state == CUBLAS_STATUS_SUCCESS) return &candidate;
  return nullptr;
}

/// A handle and what it was made by.
class Session {
 public:
  Session(const CublasLt& library, Stream stream) : m_library(library), m_stream(stream) {
    checkBlas(library, library.create(&m_handle), "start");
  }
  ~Session() { m_library.destroy(m_handle); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const CublasLt& library() const { return m_library; }
  cublasLtHandle_t handle() const { return m_handle; }
  Stream stream() const { return m_stream; }

 private:
  CublasLt m_library;
  Stream m_stream;
  cublasLtHandle_t m_handle = nullptr;
};

class CublasLtGemm final : public Gemm {
 public:
  CublasLtGemm(std::shared_ptr<const Session> session, const GemmProblem& problem)
      : CublasLtGemm(std::move(session), problem, layoutOf(problem)) {}

  /// False when the library has no algorithm.
  bool choose() {
    const CublasLt& library = m_session->library();
    const Preference preference = makePreference(library, m_problem.alignmentBytes);
    std::array<Candidate, kMaxCandidates> candidates{};
    int found = 0;
    const cublasStatus_t status =
        library.heuristic(m_session->handle(), m_operation.get(), m_a.get(), m_b.get(), m_d.get(), m_d.get(),
                          preference.get(), kMaxCandidates, candidates.data(), &found);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return false;
    checkBlas(library, status, "look for an algorithm");
    const Candidate* chosen = chooseByEstimate({candidates.data(), static_cast<std::size_t>(found)});
    if (chosen) m_algorithm = *chosen;
    return chosen != nullptr;
  }

  std::size_t workspaceBytes() const override {
    return m_algorithm.workspaceSize + (m_problem.hasBias ? kEpilogueBytes : 0);
  }

  void multiply(const GemmPointers& pointers, std::byte* workspace) override {
    const CublasLt& library = m_session->library();
    if (m_problem.hasBias) set(library, m_operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointers.bias);
    if (m_problem.aCodes) {  // the factors are swapped
      set(library, m_operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, pointers.bScales);
      set(library, m_operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, pointers.aScales);
    }
    const float beta = m_problem.hasAddend ? 1.0F : 0.0F;
    const std::byte* const addend = m_problem.hasAddend ? pointers.addend : pointers.c;
    checkBlas(library,
              library.matmul(m_session->handle(), m_operation.get(), &m_problem.alpha, pointers.b, m_a.get(),
                             pointers.a, m_b.get(), &beta, addend, m_d.get(), pointers.c, m_d.get(), &m_algorithm.algo,
                             workspace, m_algorithm.workspaceSize, m_session->stream()),
              "multiply");
  }

 private:
  CublasLtGemm(std::shared_ptr<const Session> session, const GemmProblem& problem, const CublasLayout& layout)
      : m_session(std::move(session)),
        m_problem(problem),
        m_operation(makeOperation(m_session->library(), problem, layout)),
        m_a(makeLayout(m_session->library(), layout.a, typeOf(problem.bCodes, problem.factorType))),
        m_b(makeLayout(m_session->library(), layout.b, typeOf(problem.aCodes, problem.factorType))),
        m_d(makeLayout(m_session->library(), layout.d, typeOf(problem.cType))) {}

  std::shared_ptr<const Session> m_session;
  GemmProblem m_problem;
  Operation m_operation;
  Layout m_a, m_b, m_d;
  Candidate m_algorithm{};
};

/// Nothing to add up: c is the addend, or zero, or there is no c.
class EmptyGemm final : public Gemm {
 public:
  EmptyGemm(const GemmProblem& problem, Stream stream)
      : m_hasAddend(problem.hasAddend),
        m_sizeBytes(static_cast<std::size_t>(problem.m * problem.n * sizeBytes(problem.cType))),
        m_stream(stream) {}
  std::size_t workspaceBytes() const override { return 0; }
  void multiply(const GemmPointers& pointers, std::byte*) override {
    if (m_sizeBytes == 0 || pointers.addend == pointers.c) return;
    if (m_hasAddend)
      check(cudaMemcpyAsync(pointers.c, pointers.addend, m_sizeBytes, cudaMemcpyDeviceToDevice, m_stream),
            "copy a matrix");
    else
      check(cudaMemsetAsync(pointers.c, 0, m_sizeBytes, m_stream), "clear a matrix");
  }

 private:
  bool m_hasAddend;
  std::size_t m_sizeBytes;
  Stream m_stream;
};

class CublasLtGemms final : public GemmLibrary {
 public:
  explicit CublasLtGemms(Stream stream) : m_stream(stream) {}

  Result<std::unique_ptr<Gemm>> prepare(const GemmProblem& problem) override {
    const bool hasResult = problem.m > 0 && problem.n > 0;
    if (hasResult && problem.k == 0 && problem.hasBias)
      return Error{fmt::format("The product {} adds nothing up but its bias, which is not what cuBLASLt does.",
                               describe(problem)),
                   ErrorKind::RunFailed};
    if (!hasResult || problem.k == 0) return std::unique_ptr<Gemm>(std::make_unique<EmptyGemm>(problem, m_stream));
    if (Result<void> started = start(); !started) return started.error();
    auto gemm = std::make_unique<CublasLtGemm>(m_session, problem);
    if (gemm->choose()) return std::unique_ptr<Gemm>(std::move(gemm));
    return Error{
        fmt::format("cuBLASLt has no algorithm for the product {} on this GPU. Make its extents multiples of {}{}.",
                    describe(problem), alignmentOf(problem), problem.aCodes ? ", or choose another recipe" : ""),
        ErrorKind::RunFailed};
  }

  std::size_t maxWorkspaceBytes() const override { return kMaxWorkspaceBytes + kEpilogueBytes; }

 private:
  Result<void> start() {
    const std::lock_guard lock(m_mutex);
    if (m_session) return {};
    const Result<CublasLt> library = loadCublasLt();
    if (!library) return library.error();
    m_session = std::make_shared<const Session>(*library, m_stream);
    return {};
  }

  Stream m_stream;
  std::mutex m_mutex;
  std::shared_ptr<const Session> m_session;
};

}  // namespace

std::unique_ptr<GemmLibrary> makeCublasLtGemms(Stream stream) { return std::make_unique<CublasLtGemms>(stream); }

}  // namespace fuseline::cuda
