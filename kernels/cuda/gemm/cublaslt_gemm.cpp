// Opens the library at the first GEMM, and reports its limitations.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/cublaslt_gemm.h"

#include "kernels/cuda/gemm/cublaslt_choice.h"
#include "kernels/cuda/gemm/cublaslt_groups.h"
#include "kernels/cuda/gemm/gemm_epilogue.h"
#include "kernels/cuda/gemm/gemm_refusal.h"
#include "kernels/cuda/stream/launch_count.h"
#include "kernels/cuda/support/check.h"

#include <mutex>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

/// 0 where CUDA does not say.
int computeMajor() {
  int device = 0;
  int major = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 0;
  return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess ? major : 0;
}

/// The opened library, and the known algorithms.
struct Opened {
  Opened(const CublasLt& library, Stream stream, const AlgorithmPolicy& policy, const std::string& deviceName)
      : session(library, stream), chooser(policy, originOf(deviceName, library)) {}
  CublasLtSession session;
  CublasLtChooser chooser;
};

class CublasLtGemm final : public Gemm {
 public:
  CublasLtGemm(std::shared_ptr<Opened> library, std::unique_ptr<CublasLtProduct> product)
      : m_library(std::move(library)), m_product(std::move(product)) {}

  /// False when the library has no algorithm.
  bool choose() {
    m_candidates = m_library->chooser.choose(*m_product);
    return !m_candidates.empty();
  }

  std::size_t workspaceBytes() const override { return m_product->workspaceBytes(m_candidates.front()); }

  void multiply(const GemmPointers& pointers, std::byte* workspace, Stream stream) override {
    const auto numRefused =
        static_cast<std::ptrdiff_t>(m_product->multiplyByFirst(m_candidates, pointers, workspace, stream));
    m_candidates.erase(m_candidates.begin(), m_candidates.begin() + numRefused);
  }

 private:
  std::shared_ptr<Opened> m_library;
  std::unique_ptr<CublasLtProduct> m_product;
  std::vector<CublasLtCandidate> m_candidates;  // the first runs, as far as is known
};

std::int64_t resultBytes(const GemmProblem& problem) { return problem.cFormat ? 1 : sizeBytes(problem.cType); }

/// Nothing to add up: c is the addend, or zero, or there is no c.
class EmptyGemm final : public Gemm {
 public:
  explicit EmptyGemm(const GemmProblem& problem)
      : m_hasAddend(problem.hasAddend),
        m_sizeBytes(static_cast<std::size_t>(problem.m * problem.n * resultBytes(problem))) {}
  std::size_t workspaceBytes() const override { return 0; }
  void multiply(const GemmPointers& pointers, std::byte*, Stream stream) override {
    if (m_sizeBytes == 0 || pointers.addend == pointers.c) return;
    ++numLaunched;
    if (m_hasAddend)
      check(cudaMemcpyAsync(pointers.c, pointers.addend, m_sizeBytes, cudaMemcpyDeviceToDevice, stream),
            "copy a matrix");
    else
      check(cudaMemsetAsync(pointers.c, 0, m_sizeBytes, stream), "clear a matrix");
  }

 private:
  bool m_hasAddend;
  std::size_t m_sizeBytes;
};

class CublasLtGemms final : public GemmLibrary {
 public:
  CublasLtGemms(Stream stream, AlgorithmPolicy policy, std::string deviceName)
      : m_stream(stream), m_policy(std::move(policy)), m_deviceName(std::move(deviceName)) {}

  Result<std::unique_ptr<Gemm>> prepare(const GemmProblem& problem) override {
    if (const Verdict fits = fitsEpilogue(problem); !fits) return refused(fits, problem);
    const bool isEmpty = problem.m == 0 || problem.n == 0 || problem.k == 0;
    if (isEmpty && (problem.batch.count > 1 || (problem.batch.cRow > 0 && problem.m * problem.n > 0)))
      return refused(Verdict::no("A batched GEMM needs non-empty operands."), problem);
    if (isEmpty) return std::unique_ptr<Gemm>(std::make_unique<EmptyGemm>(problem));
    if (Result<void> started = start(); !started) return started.error();
    if (const Verdict proven = isEpilogueProven(problem, m_opened->session.library().version()); !proven)
      return refused(proven, problem);
    const GemmProblem meant = withPolicy(problem);
    Result<std::unique_ptr<CublasLtProduct>> product = describeProduct(m_opened->session, meant, termsOf(meant));
    if (!product) return product.error();
    auto gemm = std::make_unique<CublasLtGemm>(m_opened, std::move(*product));
    if (gemm->choose()) return std::unique_ptr<Gemm>(std::move(gemm));
    return Error{refusalOf(problem, computeMajor()), ErrorKind::RunFailed};
  }

  Result<std::unique_ptr<GroupedGemm>> prepareGrouped(const GemmProblem& problem, GroupExtent extent,
                                                      std::size_t numGroups) override {
    if (Result<void> started = start(); !started) return started.error();
    return prepareGroups(m_opened->session, problem, extent, numGroups);
  }

  std::size_t maxWorkspaceBytes() const override { return kMaxWorkspaceBytes + kEpilogueBytes; }

  std::size_t fastest(const GemmProblem& problem, std::span<Gemm* const> ways) override {
    return m_opened ? m_opened->chooser.chooseWay(withPolicy(problem), ways, m_stream) : 0;
  }
  std::size_t fastest(const TimedStep& step) override {
    return start() ? m_opened->chooser.chooseWay(step, m_stream) : 0;
  }

 private:
  static Error refused(const Verdict& verdict, const GemmProblem& problem) {
    return {fmt::format("{} The GEMM is {}.", verdict.reason(), describe(problem)), ErrorKind::RunFailed};
  }

  GemmProblem withPolicy(GemmProblem problem) const {
    problem.isTf32 = m_policy.usesTf32 && !problem.aCodes && problem.factorType == DType::F32;
    return problem;
  }

  Result<void> start() {
    const std::lock_guard lock(m_mutex);
    if (m_opened) return {};
    const Result<CublasLt> library = loadCublasLt();
    if (!library) return library.error();
    m_opened = std::make_shared<Opened>(*library, m_stream, m_policy, m_deviceName);
    return {};
  }

  Stream m_stream;
  AlgorithmPolicy m_policy;
  std::string m_deviceName;
  std::mutex m_mutex;
  std::shared_ptr<Opened> m_opened;
};

}  // namespace

std::unique_ptr<GemmLibrary> makeCublasLtGemms(Stream stream, const AlgorithmPolicy& policy,
                                               const std::string& deviceName) {
  return std::make_unique<CublasLtGemms>(stream, policy, deviceName);
}

}  // namespace fuseline::cuda
