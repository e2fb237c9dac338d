// Binds norms to step operands.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm_steps.h"

#include "kernels/cuda/elementwise_program.h"
#include "kernels/cuda/norm_launch.h"
#include "kernels/cuda/step_operand.h"

namespace fuseline::cuda {

namespace {

NormKind kindOf(const Node& node) {
  if (node.operation->name == "LayerNorm") return NormKind::Layer;
  return node.operation->name == "RMSNorm" ? NormKind::Rms : NormKind::L2;
}

/// x: what is normalized. Its trailing axes are the weight's; without a weight it is the last one.
NormProblem problemOf(const Node& node, const TensorSpec& x, const TensorSpec& y) {
  const bool hasWeight = !node.parameters.empty();
  const std::int64_t cols = hasWeight ? node.parameters.front().numElements() : x.cols();
  return {.kind = kindOf(node),
          .rows = cols == 0 ? 0 : x.numElements() / cols,
          .cols = cols,
          .x = elementOf(x.dtype),
          .y = elementOf(y.dtype),
          .parameter = elementOf(hasWeight ? node.parameters.front().dtype : DType::F32),
          .eps = static_cast<float>(node.attributes.real("eps")),
          .isGammaZeroCentred = hasWeight && node.attributes.boolean("zero_centered_gamma")};
}

/// The operands of a norm's forward besides what it normalizes.
struct ForwardBindings {
  Binding gamma, beta, y, mean, rstd;

  NormForward at(const NormProblem& problem, Pointers operands) const {
    return {.problem = problem,
            .gamma = gamma.at(operands),
            .beta = beta.at(operands),
            .y = y.at(operands),
            .mean = reinterpret_cast<float*>(mean.at(operands)),
            .rstd = reinterpret_cast<float*>(rstd.at(operands))};
  }
};

/// LayerNorm's mean; the others have none.
Binding findMean(const CompileRequest& request, int norm) {
  const Node& node = request.member(static_cast<std::size_t>(norm));
  return findOperand(request, {norm, OperandKind::Residual, residualSlot(*node.operation, "mean")});
}

/// The factor of every row is the last residual: rstd, or rnorm.
OperandKey factorKey(const CompileRequest& request, int norm) {
  const Node& node = request.member(static_cast<std::size_t>(norm));
  return {norm, OperandKind::Residual, static_cast<int>(node.residuals.size()) - 1};
}

/// Absent where the norm has no weight.
Result<Binding> bindGamma(const CompileRequest& request, int norm) {
  if (request.member(static_cast<std::size_t>(norm)).parameters.empty()) return Binding{};
  return requireOperand(request, {norm, OperandKind::Parameter, 0});
}

Result<ForwardBindings> bindForward(const CompileRequest& request, int norm) {
  const Result<Binding> gamma = bindGamma(request, norm);
  if (!gamma) return gamma.error();
  const Result<Binding> y = requireOperand(request, {norm, OperandKind::Output, 0});
  if (!y) return y.error();
  return ForwardBindings{.gamma = *gamma,
                         .beta = findOperand(request, {norm, OperandKind::Parameter, 1}),
                         .y = *y,
                         .mean = findMean(request, norm),
                         .rstd = findOperand(request, factorKey(request, norm))};
}

class NormForwardKernel final : public Kernel {
 public:
  NormForwardKernel(NormProblem problem, Binding x, ForwardBindings others, Stream stream)
      : m_problem(problem), m_x(std::move(x)), m_others(std::move(others)), m_stream(stream) {}
  void run(Pointers operands, std::byte*) override {
    NormForward norm = m_others.at(m_problem, operands);
    norm.x = m_x.at(operands);
    launchNormForward(norm, m_stream);
  }

 private:
  NormProblem m_problem;
  Binding m_x;
  ForwardBindings m_others;
  Stream m_stream;
};

class AddNormForwardKernel final : public Kernel {
 public:
  AddNormForwardKernel(NormProblem problem, Binding a, Binding b, Binding sum, ForwardBindings others, Stream stream)
      : m_problem(problem),
        m_a(std::move(a)),
        m_b(std::move(b)),
        m_sum(std::move(sum)),
        m_others(std::move(others)),
        m_stream(stream) {}
  void run(Pointers operands, std::byte*) override {
    NormForward norm = m_others.at(m_problem, operands);
    norm.x = m_a.at(operands);
    norm.addend = {.left = elementOf(m_a.spec.dtype),
                   .right = elementOf(m_b.spec.dtype),
                   .rightData = m_b.at(operands),
                   .sum = m_sum.at(operands)};
    launchNormForward(norm, m_stream);
  }

 private:
  NormProblem m_problem;
  Binding m_a, m_b, m_sum;
  ForwardBindings m_others;
  Stream m_stream;
};

/// The sum is an output of any op before the norm, if anybody wants it; the planner makes further ones views of it.
Binding findSum(const CompileRequest& request, int norm) {
  for (int member = 0; member < norm; ++member)
    for (int slot = 0; slot < 2; ++slot)
      if (const Binding sum = findOperand(request, {member, OperandKind::Output, slot})) return sum;
  return {};
}

struct BackwardBindings {
  Binding x, gradOutput, extra, gamma, mean, rstd, gradInput, gradGamma, gradBeta;

  NormBackward at(const NormProblem& problem, Pointers operands) const {
    return {.problem = problem,
            .x = x.at(operands),
            .dy = gradOutput.at(operands),
            .extra = extra.at(operands),
            .gamma = gamma.at(operands),
            .mean = reinterpret_cast<const float*>(mean.at(operands)),
            .rstd = reinterpret_cast<const float*>(rstd.at(operands)),
            .dx = gradInput.at(operands),
            .dgamma = gradGamma.at(operands),
            .dbeta = gradBeta.at(operands)};
  }
};

class NormBackwardKernel final : public Kernel {
 public:
  NormBackwardKernel(NormProblem problem, BackwardBindings bindings, const DeviceContext& device)
      : m_problem(problem), m_bindings(std::move(bindings)), m_device(device) {}
  std::size_t workspaceBytes() const override {
    return static_cast<std::size_t>(numNormParts(m_problem, m_device.numMultiprocessors)) * sizeof(float);
  }
  void run(Pointers operands, std::byte* workspace) override {
    launchNormBackward(m_bindings.at(m_problem, operands), m_device.numMultiprocessors,
                       reinterpret_cast<float*>(workspace), m_device.stream);
  }

 private:
  NormProblem m_problem;
  BackwardBindings m_bindings;
  const DeviceContext& m_device;
};

Result<BackwardBindings> bindBackward(const CompileRequest& request, int norm, const NormGradientKeys& keys) {
  const Result<Binding> x = requireOperand(request, {norm, OperandKind::Input, 0});
  if (!x) return x.error();
  const Result<Binding> gamma = bindGamma(request, norm);
  if (!gamma) return gamma.error();
  const Result<Binding> gradOutput = requireOperand(request, {norm, OperandKind::GradOutput, 0});
  if (!gradOutput) return gradOutput.error();
  const Result<Binding> rstd = requireOperand(request, factorKey(request, norm));
  if (!rstd) return rstd.error();
  return BackwardBindings{.x = *x,
                          .gradOutput = *gradOutput,
                          .extra = findOperand(request, keys.extraGradient),
                          .gamma = *gamma,
                          .mean = findMean(request, norm),
                          .rstd = *rstd,
                          .gradInput = findOperand(request, keys.gradInput),
                          .gradGamma = findOperand(request, {norm, OperandKind::GradParameter, 0}),
                          .gradBeta = findOperand(request, {norm, OperandKind::GradParameter, 1})};
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeNormForward(const CompileRequest& request, int norm) {
  const Result<Binding> x = requireOperand(request, {norm, OperandKind::Input, 0});
  if (!x) return x.error();
  Result<ForwardBindings> others = bindForward(request, norm);
  if (!others) return others.error();
  const Node& node = request.member(static_cast<std::size_t>(norm));
  const NormProblem problem = problemOf(node, x->spec, others->y.spec);
  return std::unique_ptr<Kernel>(
      std::make_unique<NormForwardKernel>(problem, *x, std::move(*others), request.device.stream));
}

Result<std::unique_ptr<Kernel>> makeAddNormForward(const CompileRequest& request) {
  const int norm = static_cast<int>(request.step.nodes.size()) - 1;
  const Result<Binding> a = requireOperand(request, {0, OperandKind::Input, 0});
  if (!a) return a.error();
  const Result<Binding> b = requireOperand(request, {0, OperandKind::Input, 1});
  if (!b) return b.error();
  Result<ForwardBindings> others = bindForward(request, norm);
  if (!others) return others.error();
  const TensorSpec& sum = request.graph.spec(request.step.nodes.front(), OperandKind::Output, 0);
  const Node& node = request.member(static_cast<std::size_t>(norm));
  const NormProblem problem = problemOf(node, sum, others->y.spec);
  return std::unique_ptr<Kernel>(std::make_unique<AddNormForwardKernel>(problem, *a, *b, findSum(request, norm),
                                                                        std::move(*others), request.device.stream));
}

Result<std::unique_ptr<Kernel>> makeNormBackward(const CompileRequest& request, int norm,
                                                 const NormGradientKeys& keys) {
  Result<BackwardBindings> bindings = bindBackward(request, norm, keys);
  if (!bindings) return bindings.error();
  const Node& node = request.member(static_cast<std::size_t>(norm));
  const NormProblem problem = problemOf(node, bindings->x.spec, bindings->gradOutput.spec);
  return std::unique_ptr<Kernel>(std::make_unique<NormBackwardKernel>(problem, std::move(*bindings), request.device));
}

KernelDef normKernel(std::string operation) {
  return {
      .name = std::move(operation),
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery&) { return Verdict::yes(); },
      .compile =
          [](const CompileRequest& request) {
            if (request.step.phase == Phase::Forward) return makeNormForward(request, 0);
            return makeNormBackward(request, 0, {.gradInput = {0, OperandKind::GradInput, 0}, .extraGradient = {-1}});
          },
  };
}

}  // namespace fuseline::cuda
