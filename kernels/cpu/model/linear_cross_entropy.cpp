// Kernel "linear_cross_entropy": a linear layer and its CrossEntropy, some rows of logits at a time.
//
// Forward keeps the log-sum-exp of each row. Backward computes the logits of the same rows again, turns them into their
// gradient in place, and adds to the gradient of the weight in float32.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/loss_head_step.h"
#include "kernels/cpu/attention/attention_functions.h"
#include "kernels/cpu/gemm/linear_parts.h"
#include "kernels/cpu/model/loss_rows.h"
#include "kernels/cpu/workspace.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include <omp.h>

namespace fuseline::cpu::kernels {

KernelDef linear_cross_entropy();

namespace {

/// The logits that are in memory at a time.
constexpr std::int64_t kLogitBytes = std::int64_t{4} << 20U;
constexpr std::int64_t kFewestRows = 16;

struct HeadParts : LossHeadStep {
  LogitRows logits;
  std::int64_t chunk = 1;  // rows at a time
  int threads = 1;

  std::span<const std::int64_t> targets(Pointers pointers) const {
    return {reinterpret_cast<const std::int64_t*>(target.at(pointers)), static_cast<std::size_t>(size.m)};
  }
  std::size_t logitBytes() const { return workspacePart(static_cast<std::size_t>(chunk * logits.bytes())); }
  /// f(first row, number of rows) for all rows.
  template <class Function>
  void forChunks(const Function& f) const {
    for (std::int64_t first = 0; first < size.m; first += chunk) f(first, std::min(chunk, size.m - first));
  }
};

/// Computes rows of logits. The packed weight is in its workspace.
class LogitGemm {
 public:
  LogitGemm(const CompileRequest& request, const HeadParts& parts) : m_gemm(problemFor(request, parts)) {}
  std::size_t workspaceBytes() const { return workspacePart(m_gemm.workspaceBytes()); }
  void prepare(const std::byte* weight, std::byte* workspace) { m_gemm.prepareB(weight, workspace); }
  void run(const HeadParts& parts, const std::byte* x, std::int64_t first, std::int64_t rows, std::byte* logits,
           std::byte* workspace) {
    m_gemm.multiplyRows(x + first * parts.size.k * sizeBytes(parts.x.spec.dtype), logits, rows, workspace);
  }

 private:
  static GemmProblem problemFor(const CompileRequest& request, const HeadParts& parts) {
    GemmProblem problem = forwardProblem(request, parts.size, parts.x, parts.weight, parts.logits.dtype);
    problem.packing = Packing::EveryRun;
    problem.maxPanelRows = parts.chunk;
    return problem;
  }

  Gemm m_gemm;
};

class HeadForward final : public Kernel {
 public:
  HeadForward(const CompileRequest& request, HeadParts parts) : m(std::move(parts)), m_logits(request, m) {}

  /// The losses of all rows, the logits of some, and the packed weight.
  std::size_t workspaceBytes() const override { return lossBytes() + m.logitBytes() + m_logits.workspaceBytes(); }

  void run(Pointers pointers, std::byte* workspace) override {
    const std::span<const std::int64_t> targets = m.targets(pointers);
    const std::int64_t counted = checkedTargets(m.form, targets, m.logits.classes);
    auto* const losses = reinterpret_cast<float*>(workspace);
    auto* const lse = reinterpret_cast<float*>(m.lse.at(pointers));
    std::byte* const logits = workspace + lossBytes();
    std::byte* const gemmWorkspace = logits + m.logitBytes();
    if (m.size.m > 0) m_logits.prepare(m.weight.at(pointers), gemmWorkspace);
    m.forChunks([&](std::int64_t first, std::int64_t rows) {
      m_logits.run(m, m.x.at(pointers), first, rows, logits, gemmWorkspace);
#pragma omp parallel for num_threads(m.threads) if (m.threads > 1)
      for (std::int64_t row = 0; row < rows; ++row)
        losses[first + row] =
            lossOfRow(m.form, m.logits, logits + row * m.logits.bytes(), targets[static_cast<std::size_t>(first + row)],
                      lse ? lse + first + row : nullptr);
    });
    if (m.y) writeLoss({losses, targets.size()}, counted, reinterpret_cast<float*>(m.y.at(pointers)));
  }

 private:
  std::size_t lossBytes() const { return workspacePart(static_cast<std::size_t>(m.size.m) * sizeof(float)); }

  void writeLoss(std::span<const float> losses, std::int64_t counted, float* y) const {
    if (m.isByRow())
      std::ranges::copy(losses, y);
    else
      *y = reducedLoss(m.form, losses, counted);
  }

  HeadParts m;
  LogitGemm m_logits;
};

/// dW += dlogits^T x of some rows, in float32; at the end it is rounded to its dtype.
class WeightSum {
 public:
  WeightSum(const CompileRequest& request, const HeadParts& parts)
      : m_isInPlace(parts.dWeight.spec.dtype == DType::F32),
        m_accumulates(parts.dWeight.access == OperandAccess::Accumulate) {
    m_whole.emplace(problemFor(request, parts, parts.chunk));
    if (const std::int64_t rest = parts.size.m % parts.chunk; rest > 0)
      m_rest.emplace(problemFor(request, parts, rest));
  }

  std::size_t workspaceBytes(const HeadParts& parts) const {
    const std::size_t gemm = std::max(m_whole->workspaceBytes(), m_rest ? m_rest->workspaceBytes() : 0);
    return sumBytes(parts) + workspacePart(gemm);
  }

  void begin(const HeadParts& parts, Pointers pointers, std::byte* workspace) {
    m_sum = m_isInPlace ? parts.dWeight.at(pointers) : workspace;
    if (!m_accumulates && m_sum) std::memset(m_sum, 0, numElements(parts) * sizeof(float));
  }

  void add(const HeadParts& parts, const std::byte* gradient, const std::byte* x, std::int64_t rows,
           std::byte* workspace) {
    Gemm& gemm = rows == parts.chunk ? *m_whole : *m_rest;
    gemm.multiply(gradient, x, m_sum, workspace + sumBytes(parts));
  }

  void finish(const HeadParts& parts, Pointers pointers) const {
    if (m_isInPlace || parts.size.n == 0) return;
    const RowsOf to{.data = parts.dWeight.at(pointers), .stride = parts.size.k};
    const auto* const sum = reinterpret_cast<const float*>(m_sum);
    const HeadRowFunctions& rows = headRowFunctions(parts.dWeight.spec.dtype);
#pragma omp parallel for num_threads(parts.threads) if (parts.threads > 1)
    for (std::int64_t row = 0; row < parts.size.n; ++row)
      rows.write(sum + row * parts.size.k, parts.size.k, 1, parts.size.k, nullptr, 1.0F,
                 {.data = to.data + row * parts.size.k * sizeBytes(parts.dWeight.spec.dtype), .stride = to.stride});
  }

 private:
  static GemmProblem problemFor(const CompileRequest& request, const HeadParts& parts, std::int64_t rows) {
    LinearSize size = parts.size;
    size.m = rows;
    GemmProblem problem = weightGradProblem(request, size, parts.logits.dtype, parts.x, parts.dWeight);
    problem.cType = DType::F32;
    problem.accumulates = true;
    return problem;
  }
  static std::size_t numElements(const HeadParts& parts) {
    return static_cast<std::size_t>(parts.size.n * parts.size.k);
  }
  /// Rows are written in whole vectors.
  std::size_t sumBytes(const HeadParts& parts) const {
    return m_isInPlace ? 0 : workspacePart((numElements(parts) + static_cast<std::size_t>(kLanePad)) * sizeof(float));
  }

  bool m_isInPlace;
  bool m_accumulates;
  std::byte* m_sum = nullptr;
  std::optional<Gemm> m_whole, m_rest;
};

class HeadBackward final : public Kernel {
 public:
  HeadBackward(const CompileRequest& request, HeadParts parts) : m(std::move(parts)), m_logits(request, m) {
    if (m.dx) {
      GemmProblem problem = inputGradProblem(request, m.size, m.logits.dtype, m.weight, m.dx.spec.dtype);
      problem.packing = Packing::EveryRun;
      problem.maxPanelRows = m.chunk;
      m_inputGrad.emplace(problem);
    }
    if (m.dWeight) m_weightSum.emplace(request, m);
  }

  std::size_t workspaceBytes() const override {
    return m.logitBytes() + m_logits.workspaceBytes() + inputGradBytes() +
           (m_weightSum ? m_weightSum->workspaceBytes(m) : 0);
  }

  void run(Pointers pointers, std::byte* workspace) override {
    std::byte* const logits = workspace;
    std::byte* const logitWorkspace = logits + m.logitBytes();
    std::byte* const inputWorkspace = logitWorkspace + m_logits.workspaceBytes();
    std::byte* const sumWorkspace = inputWorkspace + inputGradBytes();
    const double scale = m.form.rowScale(checkedTargets(m.form, m.targets(pointers), m.logits.classes));
    if (m_weightSum) m_weightSum->begin(m, pointers, sumWorkspace);
    if (m.size.m > 0) prepare(m.weight.at(pointers), logitWorkspace, inputWorkspace);
    m.forChunks([&](std::int64_t first, std::int64_t rows) {
      const std::byte* const x = m.x.at(pointers) + first * m.size.k * sizeBytes(m.x.spec.dtype);
      m_logits.run(m, m.x.at(pointers), first, rows, logits, logitWorkspace);
      turnIntoGradients(logits, first, rows, scale, pointers);
      if (m_inputGrad)
        m_inputGrad->multiplyRows(logits, m.dx.at(pointers) + first * m.size.k * sizeBytes(m.dx.spec.dtype), rows,
                                  inputWorkspace);
      if (m_weightSum) m_weightSum->add(m, logits, x, rows, sumWorkspace);
    });
    if (m_weightSum) m_weightSum->finish(m, pointers);
  }

 private:
  std::size_t inputGradBytes() const { return m_inputGrad ? workspacePart(m_inputGrad->workspaceBytes()) : 0; }

  void prepare(const std::byte* weight, std::byte* logitWorkspace, std::byte* inputWorkspace) {
    m_logits.prepare(weight, logitWorkspace);
    if (m_inputGrad) m_inputGrad->prepareB(weight, inputWorkspace);
  }

  void turnIntoGradients(std::byte* logits, std::int64_t first, std::int64_t rows, double scale,
                         Pointers pointers) const {
    const std::span<const std::int64_t> targets = m.targets(pointers);
    const auto* const lse = reinterpret_cast<const float*>(m.lse.at(pointers));
    const auto* const dy = reinterpret_cast<const float*>(m.dy.at(pointers));
#pragma omp parallel for num_threads(m.threads) if (m.threads > 1)
    for (std::int64_t row = 0; row < rows; ++row) {
      std::byte* const ofRow = logits + row * m.logits.bytes();
      writeLossGradient(m.form, m.logits, ofRow, targets[static_cast<std::size_t>(first + row)], lse[first + row],
                        scale * static_cast<double>(dy[m.isByRow() ? first + row : 0]), ofRow);
    }
  }

  HeadParts m;
  LogitGemm m_logits;
  std::optional<Gemm> m_inputGrad;
  std::optional<WeightSum> m_weightSum;
};

Result<std::unique_ptr<Kernel>> compileHead(const CompileRequest& request) {
  Result<LossHeadStep> step = readLossHead(request);
  if (!step) return step.error();
  HeadParts parts{std::move(*step)};
  parts.threads = request.settings.threads;
  parts.logits = {parts.weight.spec.dtype, parts.size.n};
  const std::int64_t rows = std::max(kFewestRows, kLogitBytes / std::max<std::int64_t>(1, parts.logits.bytes()));
  parts.chunk = std::clamp<std::int64_t>(parts.size.m, 1, rows);
  if (request.step.phase == Phase::Forward)
    return std::unique_ptr<Kernel>(std::make_unique<HeadForward>(request, std::move(parts)));
  return std::unique_ptr<Kernel>(std::make_unique<HeadBackward>(request, std::move(parts)));
}

}  // namespace

KernelDef linear_cross_entropy() {
  return {
      .name = "linear_cross_entropy",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = compileHead,
  };
}

}  // namespace fuseline::cpu::kernels
