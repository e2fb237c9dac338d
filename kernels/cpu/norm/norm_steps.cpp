// Binds norms to step operands.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/norm/norm_steps.h"

#include "kernels/cpu/quantize/row_copies.h"

#include <optional>

namespace fuseline::cpu {

namespace {

NormKind kindOf(const Node& node) {
  if (node.operation->name == "LayerNorm") return NormKind::Layer;
  return node.operation->name == "RMSNorm" ? NormKind::Rms : NormKind::L2;
}

/// x: the normalized tensor. Its trailing axes are the weight's; without a weight, the last axis. yDType: of the rows
/// of y that are computed, or of dy.
NormProblem problemOf(const CompileRequest& request, const Node& node, const TensorSpec& x, DType yDType) {
  const bool hasWeight = !node.parameters.empty();
  const std::int64_t cols = hasWeight ? node.parameters.front().numElements() : x.cols();
  return {.kind = kindOf(node),
          .rows = cols == 0 ? 0 : x.numElements() / cols,
          .cols = cols,
          .xDType = x.dtype,
          .yDType = yDType,
          .parameterDType = hasWeight ? node.parameters.front().dtype : DType::F32,
          .eps = static_cast<float>(node.attributes.real("eps")),
          .isGammaZeroCentred = hasWeight && node.attributes.boolean("zero_centered_gamma"),
          .threads = request.settings.threads};
}

DType rowsOf(const fuseline::Binding& y, const std::optional<RowCopies>& copies) {
  return copies ? copies->spec().dtype : y.spec.dtype;
}

NormForwardPointers pointersOf(const NormForwardOperands& norm, Pointers operands) {
  return {.gamma = norm.gamma.at(operands),
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
  NormForwardKernel(NormProblem problem, Binding x, NormForwardOperands others, std::optional<RowCopies> copies)
      : m_problem(problem), m_x(std::move(x)), m_others(std::move(others)), m_copies(std::move(copies)) {}
  std::size_t workspaceBytes() const override {
    return copyingWorkspaceBytes(normForwardWorkspaceBytes(m_problem), m_copies);
  }
  void run(Pointers operands, std::byte* workspace) override {
    NormForwardPointers pointers = pointersOf(m_others, operands);
    pointers.x = m_x.at(operands);
    runWithCopies(m_copies, operands, workspace + normForwardWorkspaceBytes(m_problem), pointers,
                  [&](const NormForwardPointers& all) { normForward(m_problem, all, workspace); });
  }

 private:
  NormProblem m_problem;
  Binding m_x;
  NormForwardOperands m_others;
  std::optional<RowCopies> m_copies;
};

class AddNormForwardKernel final : public Kernel {
 public:
  AddNormForwardKernel(NormProblem problem, Binding a, Binding b, Binding sum, NormForwardOperands others,
                       std::optional<RowCopies> copies)
      : m_problem(problem),
        m_a(std::move(a)),
        m_b(std::move(b)),
        m_sum(std::move(sum)),
        m_others(std::move(others)),
        m_copies(std::move(copies)) {}
  std::size_t workspaceBytes() const override {
    return copyingWorkspaceBytes(normForwardWorkspaceBytes(m_problem), m_copies);
  }
  void run(Pointers operands, std::byte* workspace) override {
    const NormAddend addend{.a = m_a.at(operands),
                            .b = m_b.at(operands),
                            .aDType = m_a.spec.dtype,
                            .bDType = m_b.spec.dtype,
                            .sum = m_sum.at(operands)};
    runWithCopies(m_copies, operands, workspace + normForwardWorkspaceBytes(m_problem), pointersOf(m_others, operands),
                  [&](const NormForwardPointers& all) { addNormForward(m_problem, addend, all, workspace); });
  }

 private:
  NormProblem m_problem;
  Binding m_a, m_b, m_sum;
  NormForwardOperands m_others;
  std::optional<RowCopies> m_copies;
};

NormBackwardPointers pointersOf(const NormBackwardOperands& norm, Pointers operands) {
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
  NormBackwardKernel(NormProblem problem, NormBackwardOperands bindings, std::optional<RowCopies> copies)
      : m_problem(problem), m_bindings(std::move(bindings)), m_copies(std::move(copies)) {}
  std::size_t workspaceBytes() const override {
    return copyingWorkspaceBytes(normBackwardWorkspaceBytes(m_problem), m_copies);
  }
  void run(Pointers operands, std::byte* workspace) override {
    runWithCopies(m_copies, operands, workspace + normBackwardWorkspaceBytes(m_problem),
                  pointersOf(m_bindings, operands),
                  [&](const NormBackwardPointers& all) { normBackward(m_problem, all, workspace); });
  }

 private:
  NormProblem m_problem;
  NormBackwardOperands m_bindings;
  std::optional<RowCopies> m_copies;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeNormForward(const CompileRequest& request, int norm) {
  const Result<Binding> x = requireOperand(request, {norm, OperandKind::Input, 0});
  if (!x) return x.error();
  Result<NormForwardOperands> others = bindNormForward(request, norm);
  if (!others) return others.error();
  const Node& node = request.member(static_cast<std::size_t>(norm));
  std::optional<RowCopies> copies = rowCopiesOf(request);
  const NormProblem problem = problemOf(request, node, x->spec, rowsOf(others->y, copies));
  return std::unique_ptr<Kernel>(
      std::make_unique<NormForwardKernel>(problem, *x, std::move(*others), std::move(copies)));
}

Result<std::unique_ptr<Kernel>> makeAddNormForward(const CompileRequest& request) {
  const int norm = static_cast<int>(request.step.nodes.size()) - 1;
  const Result<Binding> a = requireOperand(request, {0, OperandKind::Input, 0});
  if (!a) return a.error();
  const Result<Binding> b = requireOperand(request, {0, OperandKind::Input, 1});
  if (!b) return b.error();
  Result<NormForwardOperands> others = bindNormForward(request, norm);
  if (!others) return others.error();
  const TensorSpec& sum = request.graph.spec(request.step.nodes.front(), OperandKind::Output, 0);
  const Node& node = request.member(static_cast<std::size_t>(norm));
  std::optional<RowCopies> copies = rowCopiesOf(request);
  const NormProblem problem = problemOf(request, node, sum, rowsOf(others->y, copies));
  return std::unique_ptr<Kernel>(std::make_unique<AddNormForwardKernel>(problem, *a, *b, findNormSum(request, norm),
                                                                        std::move(*others), std::move(copies)));
}

Result<std::unique_ptr<Kernel>> makeNormBackward(const CompileRequest& request, int norm,
                                                 const NormGradientKeys& keys) {
  Result<NormBackwardOperands> bindings = bindNormBackward(request, norm, keys);
  if (!bindings) return bindings.error();
  const Node& node = request.member(static_cast<std::size_t>(norm));
  const NormProblem problem = problemOf(request, node, bindings->x.spec, bindings->gradOutput.spec.dtype);
  return std::unique_ptr<Kernel>(
      std::make_unique<NormBackwardKernel>(problem, std::move(*bindings), rowCopiesOf(request)));
}

KernelDef normKernel(std::string operation) {
  return {
      .name = std::move(operation),
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery&) { return Verdict::yes(); },
      .compile =
          [](const CompileRequest& request) {
            if (request.step.phase == Phase::Forward) return makeNormForward(request, 0);
            return makeNormBackward(request, 0, ownNormGradients());
          },
      .writesCopies = true,
  };
}

}  // namespace fuseline::cpu
