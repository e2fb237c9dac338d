// Binds norms to step operands.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/norm/norm_steps.h"

#include "kernels/cpu/quantize/row_copies.h"

#include <optional>

namespace fuseline::cpu {

namespace {

/// yDType: of the rows of y that are computed, or of dy. dx: absent in forward.
NormProblem problemOf(const CompileRequest& request, const NormGeometry& norm, const Binding& x, DType yDType,
                      const Binding& dx = {}) {
  return {.kind = norm.kind,
          .rows = norm.rows,
          .cols = norm.cols,
          .rowOfX = x.rowStride,
          .rowOfDx = dx.rowStride,
          .xDType = norm.x,
          .yDType = yDType,
          .parameterDType = norm.parameter,
          .eps = norm.eps,
          .isGammaZeroCentred = norm.isGammaZeroCentred,
          .threads = request.settings.threads};
}

NormForwardPointers pointersOf(const NormForwardStep& norm, Pointers operands) {
  return {.x = norm.addend ? nullptr : norm.x.at(operands),
          .gamma = norm.gamma.at(operands),
          .beta = norm.beta.at(operands),
          .y = norm.y.at(operands),
          .mean = reinterpret_cast<float*>(norm.mean.at(operands)),
          .rstd = reinterpret_cast<float*>(norm.rstd.at(operands))};
}

/// The workspace of a norm, followed by the scratch rows of the quantized tensor.
std::size_t copyingWorkspaceBytes(std::size_t normBytes, const std::optional<RowCopies>& copies) {
  return normBytes + (copies ? copies->scratchBytes() : 0);
}

/// Runs a norm with the sink of its step's fused quantization, if it has any.
template <class NormPointers, class Run>
void runWithCopies(std::optional<RowCopies>& copies, Pointers operands, std::byte* scratch, NormPointers pointers,
                   Run run) {
  if (copies) pointers.sink = &copies->begin(operands, scratch);
  run(pointers);
  if (copies) copies->finish();
}

class NormForwardKernel final : public Kernel {
 public:
  NormForwardKernel(NormProblem problem, NormForwardStep step, std::optional<RowCopies> copies)
      : m_problem(problem), m_step(std::move(step)), m_copies(std::move(copies)) {}
  std::size_t workspaceBytes() const override {
    return copyingWorkspaceBytes(normForwardWorkspaceBytes(m_problem), m_copies);
  }
  void run(Pointers operands, std::byte* workspace) override {
    runWithCopies(m_copies, operands, workspace + normForwardWorkspaceBytes(m_problem), pointersOf(m_step, operands),
                  [&](const NormForwardPointers& all) { run(all, operands, workspace); });
  }

 private:
  void run(const NormForwardPointers& all, Pointers operands, std::byte* workspace) const {
    if (m_step.ids) return lookUpNormForward(m_problem, lookUpOf(operands), all, workspace);
    if (!m_step.addend) return normForward(m_problem, all, workspace);
    const NormAddend addend{.a = m_step.x.at(operands),
                            .b = m_step.addend.at(operands),
                            .aDType = m_step.x.spec.dtype,
                            .bDType = m_step.addend.spec.dtype,
                            .sum = m_step.sum.at(operands)};
    addNormForward(m_problem, addend, all, workspace);
  }

  NormLookUp lookUpOf(Pointers operands) const {
    return {.table = m_step.x.at(operands),
            .ids = reinterpret_cast<const std::int64_t*>(m_step.ids.at(operands)),
            .rows = RowNumbers(m_step.table, m_step.ids.spec),
            .copy = m_step.sum.at(operands)};
  }

  NormProblem m_problem;
  NormForwardStep m_step;
  std::optional<RowCopies> m_copies;
};

NormBackwardPointers pointersOf(const NormBackwardStep& norm, Pointers operands) {
  return {.x = norm.x.at(operands),
          .dy = norm.gradOutput.at(operands),
          .extra = norm.extra.at(operands),
          .gamma = norm.gamma.at(operands),
          .mean = reinterpret_cast<const float*>(norm.mean.at(operands)),
          .rstd = reinterpret_cast<const float*>(norm.rstd.at(operands)),
          .dx = norm.gradInput.at(operands),
          .dgamma = norm.gradGamma.at(operands),
          .dbeta = norm.gradBeta.at(operands)};
}

class NormBackwardKernel final : public Kernel {
 public:
  NormBackwardKernel(NormProblem problem, NormBackwardStep step, std::optional<RowCopies> copies)
      : m_problem(problem), m_step(std::move(step)), m_copies(std::move(copies)) {}
  std::size_t workspaceBytes() const override {
    return copyingWorkspaceBytes(normBackwardWorkspaceBytes(m_problem), m_copies);
  }
  void run(Pointers operands, std::byte* workspace) override {
    runWithCopies(m_copies, operands, workspace + normBackwardWorkspaceBytes(m_problem), pointersOf(m_step, operands),
                  [&](const NormBackwardPointers& all) { normBackward(m_problem, all, workspace); });
  }

 private:
  NormProblem m_problem;
  NormBackwardStep m_step;
  std::optional<RowCopies> m_copies;
};

}  // namespace

namespace {

Result<std::unique_ptr<Kernel>> makeForward(const CompileRequest& request, Result<NormForwardStep> step) {
  if (!step) return step.error();
  std::optional<RowCopies> copies = rowCopiesOf(request);
  const NormProblem problem =
      problemOf(request, step->norm, step->x, copies ? copies->spec().dtype : step->y.spec.dtype);
  return std::unique_ptr<Kernel>(std::make_unique<NormForwardKernel>(problem, std::move(*step), std::move(copies)));
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeNormForward(const CompileRequest& request, int norm) {
  return makeForward(request, readNormForward(request, norm));
}

Result<std::unique_ptr<Kernel>> makeAddNormForward(const CompileRequest& request) {
  return makeForward(request, readAddNormForward(request));
}

Result<std::unique_ptr<Kernel>> makeEmbeddingNormForward(const CompileRequest& request) {
  return makeForward(request, readEmbeddingNormForward(request));
}

Result<std::unique_ptr<Kernel>> makeNormBackward(const CompileRequest& request, int norm,
                                                 const NormGradientKeys& keys) {
  Result<NormBackwardStep> step = readNormBackward(request, norm, keys);
  if (!step) return step.error();
  const NormProblem problem = problemOf(request, step->norm, step->x, step->gradOutput.spec.dtype, step->gradInput);
  return std::unique_ptr<Kernel>(std::make_unique<NormBackwardKernel>(problem, std::move(*step), rowCopiesOf(request)));
}

KernelDef normKernel(std::string operation) {
  return {
      .name = std::move(operation),
      .phases = {Phase::Forward, Phase::Backward},
      .compile =
          [](const CompileRequest& request) {
            if (request.step.phase == Phase::Forward) return makeNormForward(request, 0);
            return makeNormBackward(request, 0, ownNormGradients());
          },
      .writesCopies = true,
  };
}

}  // namespace fuseline::cpu
