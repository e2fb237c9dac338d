// Kernel "embedding_norm": Embedding, an optional MakeExtraOutput, and a norm that reads the rows of the table. The
// result equals that of the separate ops.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/elementwise_launch.h"
#include "kernels/cuda/model/checked_rows.h"
#include "kernels/cuda/norm/embedding_norm_launch.h"
#include "kernels/cuda/norm/norm_steps.h"
#include "kernels/cuda/quantize/step_copies.h"
#include "kernels/cuda/support/workspace.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

namespace fuseline::cuda::kernels {

KernelDef embedding_norm();

namespace {

class EmbeddingNormKernel final : public Kernel {
 public:
  EmbeddingNormKernel(NormForwardStep step, std::optional<StepCopies> copies, const DeviceContext& device)
      : m_rows(step.table, step.ids), m_step(std::move(step)), m_copies(std::move(copies)), m_device(device) {}

  std::size_t workspaceBytes() const override { return quantizesApart() ? rowBytes() + resultBytes() : 0; }

  void run(Pointers pointers, std::byte* workspace) override {
    EmbeddingNorm task{.norm = normForwardOf(m_step, pointers),
                       .ids = m_rows.at(pointers, m_device),
                       .tokens = m_rows.tokens(),
                       .rows = m_step.sum.at(pointers)};
    if (m_copies && m_copies->isAmaxOnly()) task.norm.amax = m_copies->clearedAmax(pointers, m_device);
    quantizesApart() ? runApart(task, pointers, workspace) : launchEmbeddingNorm(task, m_device.stream);
  }

 private:
  /// Do other kernels quantize the result, or compute and quantize it from the stored rows?
  bool quantizesApart() const { return m_copies && !m_copies->isAmaxOnly(); }
  bool isMadeInTiles() const { return m_copies->fitsKernel(); }
  std::size_t rowBytes() const { return m_step.sum ? 0 : workspacePart(numRows() * rowWidth()); }
  /// Row statistics of tiles, or the result.
  std::size_t resultBytes() const {
    return isMadeInTiles() ? 2 * numRows() * sizeof(float) : static_cast<std::size_t>(m_copies->spec().bytes());
  }
  std::size_t numRows() const { return static_cast<std::size_t>(m_step.norm.rows); }
  std::size_t rowWidth() const { return static_cast<std::size_t>(m_step.norm.cols * sizeBytes(m_step.norm.x)); }

  void runApart(EmbeddingNorm task, Pointers pointers, std::byte* workspace) const {
    std::byte* const result = workspace + rowBytes();
    if (isMadeInTiles()) return runTiles(task, pointers, workspace, reinterpret_cast<float*>(result));
    if (!task.norm.y) task.norm.y = result;
    launchEmbeddingNorm(task, m_device.stream);
    m_copies->launchFrom(static_cast<const std::byte*>(task.norm.y), pointers, m_device);
  }

  /// Tiles read the rows again.
  void runTiles(EmbeddingNorm task, Pointers pointers, std::byte* rows, float* factors) const {
    if (!task.rows) task.rows = rows;
    if (!task.norm.rstd) task.norm.rstd = factors;
    if (!task.norm.mean && task.norm.problem.kind == device::NormKind::Layer) task.norm.mean = factors + numRows();
    void* const y = std::exchange(task.norm.y, nullptr);
    launchEmbeddingNorm(task, m_device.stream);
    task.norm.x = task.rows;
    task.norm.y = y;
    launchMeasuredNormTiles(task.norm, m_copies->at(pointers), m_device.stream);
  }

  CheckedRows m_rows;
  NormForwardStep m_step;
  std::optional<StepCopies> m_copies;
  const DeviceContext& m_device;
};

/// Other rows would be read element by element, for which the lookup leaves no registers.
Verdict supports(const KernelQuery& query) {
  const std::int64_t cols = query.graph.node(query.members.front()).parameters.front().shape.back();
  if (cols % kVectorWidth == 0) return Verdict::yes();
  return Verdict::no(
      fmt::format("On CUDA, norms look up rows of a multiple of {} columns; this table has {}.", kVectorWidth, cols));
}

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  Result<NormForwardStep> step = readEmbeddingNormForward(request);
  if (!step) return step.error();
  Result<std::optional<StepCopies>> copies = StepCopies::ifAny(request);
  if (!copies) return copies.error();
  return std::unique_ptr<Kernel>(
      std::make_unique<EmbeddingNormKernel>(std::move(*step), std::move(*copies), request.device));
}

}  // namespace

KernelDef embedding_norm() {
  return {
      .name = "embedding_norm",
      .phases = {Phase::Forward},
      .supports = supports,
      .compile = compile,
      .supportsCopies = canMakeNormCopies,
  };
}

}  // namespace fuseline::cuda::kernels
