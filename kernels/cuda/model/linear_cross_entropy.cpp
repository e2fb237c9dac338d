// Kernel "linear_cross_entropy": a linear layer and its CrossEntropy, some rows of logits at a time.
//
// Forward keeps the log-sum-exp of each row. Backward computes the logits of the same rows again, turns them into their
// gradient in place, and adds to the gradient of the weight in float32.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/loss_head_step.h"
#include "kernels/cuda/attention/run_counts.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/gemm/linear_parts.h"
#include "kernels/cuda/model/cross_entropy_launch.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace fuseline::cuda::kernels {

KernelDef linear_cross_entropy();

namespace {

/// The logits that are in memory at a time.
constexpr std::int64_t kLogitBytes = std::int64_t{64} << 20U;
/// Rows of any width then begin at multiples of the alignment that GEMMs count on.
constexpr std::int64_t kRowStep = 64;

std::size_t aligned(std::int64_t bytes) { return static_cast<std::size_t>((bytes + 255) / 256 * 256); }

struct HeadParts : LossHeadStep {
  DType dtype = DType::F32;  // of the logits
  std::int64_t chunk = kRowStep;

  std::size_t logitBytes() const { return aligned(std::min(chunk, size.m) * size.n * sizeBytes(dtype)); }
  LinearSize sizeOf(std::int64_t rows) const { return {.m = rows, .n = size.n, .k = size.k}; }
};

/// The same GEMM for whole chunks, and for the rest of the rows.
class ChunkGemms {
 public:
  /// problemOf: for a number of rows. Errors: the library refuses one.
  template <class Function>
  static Result<ChunkGemms> make(const CompileRequest& request, const HeadParts& parts, const Function& problemOf) {
    ChunkGemms gemms;
    const std::pair<std::int64_t, std::unique_ptr<Gemm>*> sizes[] = {
        {parts.size.m / parts.chunk > 0 ? parts.chunk : 0, &gemms.m_whole},
        {parts.size.m % parts.chunk, &gemms.m_rest}};
    for (const auto& [rows, gemm] : sizes) {
      if (rows == 0) continue;
      Result<std::unique_ptr<Gemm>> prepared = request.device.gemms->prepare(problemOf(rows));
      if (!prepared) return prepared.error();
      *gemm = std::move(*prepared);
    }
    gemms.m_chunk = parts.chunk;
    return gemms;
  }

  std::size_t workspaceBytes() const {
    return std::max(m_whole ? m_whole->workspaceBytes() : 0, m_rest ? m_rest->workspaceBytes() : 0);
  }
  void run(std::int64_t rows, const GemmPointers& pointers, std::byte* workspace, Stream stream) const {
    (rows == m_chunk ? m_whole : m_rest)->multiply(pointers, workspace, stream);
  }

 private:
  std::unique_ptr<Gemm> m_whole, m_rest;
  std::int64_t m_chunk = 0;
};

class HeadKernel final : public Kernel {
 public:
  HeadKernel(HeadParts parts, ChunkGemms logits, std::optional<ChunkGemms> inputGrad,
             std::optional<ChunkGemms> weightGrad, const DeviceContext& device)
      : m(std::move(parts)),
        m_logits(std::move(logits)),
        m_inputGrad(std::move(inputGrad)),
        m_weightGrad(std::move(weightGrad)),
        m_device(device) {}

  /// The logits of some rows, the losses of all or the sums for the weight, and what the GEMMs need.
  std::size_t workspaceBytes() const override {
    std::size_t gemm = m_logits.workspaceBytes();
    for (const auto* each : {&m_inputGrad, &m_weightGrad})
      if (*each) gemm = std::max(gemm, (*each)->workspaceBytes());
    return m.logitBytes() + resultBytes() + gemm;
  }

  void run(Pointers pointers, std::byte* workspace) override {
    countOnce(pointers);
    CrossEntropyTask task{.x = workspace,
                          .element = elementOf(m.dtype),
                          .classes = m.size.n,
                          .ignoreIndex = m.form.ignoreIndex,
                          .smoothing = static_cast<float>(m.form.smoothing),
                          .lseSquareScale = static_cast<float>(m.form.lseSquareScale),
                          .scale = static_cast<float>(m.form.rowScale(m_numCounted))};
    if (m.dy)
      runBackward(task, pointers, workspace);
    else
      runForward(task, pointers, workspace);
  }

 private:
  bool hasOwnSums() const { return m.dWeight && m.dWeight.spec.dtype != DType::F32; }
  std::int64_t numSums() const { return m.size.n * m.size.k; }
  std::size_t resultBytes() const {
    if (m.dy) return hasOwnSums() ? aligned(numSums() * static_cast<std::int64_t>(sizeof(float))) : 0;
    return m.isByRow() ? 0 : aligned(m.size.m * static_cast<std::int64_t>(sizeof(float)));
  }
  std::byte* gemmWorkspace(std::byte* workspace) const { return workspace + m.logitBytes() + resultBytes(); }

  void countOnce(Pointers pointers) {
    if (std::exchange(m_isChecked, true)) return;
    const Result<std::int64_t> counted = countTargets(m.form, readCounts(m.target, pointers, m_device), m.size.n);
    if (!counted) throw std::runtime_error(counted.error().message);
    m_numCounted = *counted;
  }

  /// f(first row, number of rows), with the logits of these rows in the workspace.
  template <class Function>
  void forChunks(CrossEntropyTask& task, Pointers pointers, std::byte* workspace, const Function& f) const {
    for (std::int64_t first = 0; first < m.size.m; first += m.chunk) {
      const std::int64_t rows = std::min(m.chunk, m.size.m - first);
      m_logits.run(rows, {.a = rowOf(m.x, first, pointers), .b = m.weight.at(pointers), .c = workspace},
                   gemmWorkspace(workspace), m_device.stream);
      task.rows = rows;
      task.target = countsAt(m.target, pointers) + first;
      auto* const lse = reinterpret_cast<float*>(m.lse.at(pointers));
      task.lse = lse ? lse + first : nullptr;
      f(first, rows);
    }
  }

  std::byte* rowOf(const Binding& binding, std::int64_t row, Pointers pointers) const {
    return binding.at(pointers) + row * m.size.k * sizeBytes(binding.spec.dtype);
  }

  void runForward(CrossEntropyTask& task, Pointers pointers, std::byte* workspace) const {
    auto* const y = reinterpret_cast<float*>(m.y.at(pointers));
    float* const losses = m.isByRow() ? y : reinterpret_cast<float*>(workspace + m.logitBytes());
    forChunks(task, pointers, workspace, [&](std::int64_t first, std::int64_t) {
      task.losses = losses + first;
      launchRowLosses(task, m_device.stream);
    });
    if (m.isByRow()) return;
    task.rows = m.size.m;
    task.losses = losses;
    task.loss = y;
    launchLossSum(task, m_device.stream);
  }

  void runBackward(CrossEntropyTask& task, Pointers pointers, std::byte* workspace) const {
    const auto* const dy = reinterpret_cast<const float*>(m.dy.at(pointers));
    std::byte* const sums = hasOwnSums() ? workspace + m.logitBytes() : m.dWeight.at(pointers);
    if (m_weightGrad && m.dWeight.access != OperandAccess::Accumulate)
      launchZeros(reinterpret_cast<float*>(sums), numSums(), m_device.stream);
    task.isDyByRow = m.isByRow();
    task.dx = workspace;
    forChunks(task, pointers, workspace, [&](std::int64_t first, std::int64_t rows) {
      task.dy = dy + (m.isByRow() ? first : 0);
      launchCrossEntropyGradient(task, m_device.stream);
      if (m_inputGrad)
        m_inputGrad->run(rows, {.a = workspace, .b = m.weight.at(pointers), .c = rowOf(m.dx, first, pointers)},
                         gemmWorkspace(workspace), m_device.stream);
      if (m_weightGrad)
        m_weightGrad->run(rows, {.a = workspace, .b = rowOf(m.x, first, pointers), .addend = sums, .c = sums},
                          gemmWorkspace(workspace), m_device.stream);
    });
    if (hasOwnSums())
      launchRounding(reinterpret_cast<const float*>(sums), m.dWeight.at(pointers), elementOf(m.dWeight.spec.dtype),
                     numSums(), m_device.stream);
  }

  HeadParts m;
  ChunkGemms m_logits;
  std::optional<ChunkGemms> m_inputGrad, m_weightGrad;
  const DeviceContext& m_device;
  std::int64_t m_numCounted = 0;
  bool m_isChecked = false;
};

Result<HeadParts> partsOf(const CompileRequest& request) {
  Result<LossHeadStep> step = readLossHead(request);
  if (!step) return step.error();
  if (request.step.phase == Phase::Forward && !step->y) return missingOperand(request, {1, OperandKind::Output, 0});
  HeadParts parts{std::move(*step)};
  parts.dtype = parts.weight.spec.dtype;
  const std::int64_t rowBytes = std::max<std::int64_t>(1, parts.size.n * sizeBytes(parts.dtype));
  parts.chunk = std::max<std::int64_t>(1, kLogitBytes / rowBytes / kRowStep) * kRowStep;
  return parts;
}

Result<std::optional<ChunkGemms>> inputGradOf(const CompileRequest& request, const HeadParts& parts) {
  if (!parts.dx) return std::optional<ChunkGemms>();
  const Binding logits{.index = 0, .spec = {.dtype = parts.dtype, .shape = {}}};
  Result<ChunkGemms> gemms = ChunkGemms::make(request, parts, [&](std::int64_t rows) {
    return inputGradProblem(parts.sizeOf(rows), logits, parts.weight, parts.dx.spec);
  });
  if (!gemms) return gemms.error();
  return std::optional(std::move(*gemms));
}

Result<std::optional<ChunkGemms>> weightGradOf(const CompileRequest& request, const HeadParts& parts) {
  if (!parts.dWeight) return std::optional<ChunkGemms>();
  const Binding logits{.index = 0, .spec = {.dtype = parts.dtype, .shape = {}}};
  Result<ChunkGemms> gemms = ChunkGemms::make(request, parts, [&](std::int64_t rows) {
    GemmProblem problem = weightGradProblem(parts.sizeOf(rows), logits, parts.x, parts.dWeight);
    problem.cType = DType::F32;
    problem.hasAddend = true;
    return problem;
  });
  if (!gemms) return gemms.error();
  return std::optional(std::move(*gemms));
}

Result<std::unique_ptr<Kernel>> compileHead(const CompileRequest& request) {
  Result<HeadParts> parts = partsOf(request);
  if (!parts) return parts.error();
  const TensorSpec logits{.dtype = parts->dtype, .shape = {}};
  Result<ChunkGemms> product = ChunkGemms::make(request, *parts, [&](std::int64_t rows) {
    return forwardProblem(parts->sizeOf(rows), parts->x, parts->weight, logits);
  });
  if (!product) return product.error();
  Result<std::optional<ChunkGemms>> inputGrad = inputGradOf(request, *parts);
  if (!inputGrad) return inputGrad.error();
  Result<std::optional<ChunkGemms>> weightGrad = weightGradOf(request, *parts);
  if (!weightGrad) return weightGrad.error();
  return std::unique_ptr<Kernel>(std::make_unique<HeadKernel>(
      std::move(*parts), std::move(*product), std::move(*inputGrad), std::move(*weightGrad), request.device));
}

}  // namespace

KernelDef linear_cross_entropy() {
  return {
      .name = "linear_cross_entropy",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = compileHead,
  };
}

}  // namespace fuseline::cuda::kernels
