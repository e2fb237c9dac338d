// Binds norms to step operands.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm_steps.h"

#include "kernels/cuda/elementwise_program.h"
#include "kernels/cuda/norm_launch.h"

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

NormForward launchOf(const NormProblem& problem, const NormForwardOperands& norm, Pointers operands) {
  return {.problem = problem,
          .gamma = norm.gamma.at(operands),
          .beta = norm.beta.at(operands),
          .y = norm.y.at(operands),
          .mean = reinterpret_cast<float*>(norm.mean.at(operands)),
          .rstd = reinterpret_cast<float*>(norm.rstd.at(operands))};
}

class NormForwardKernel final : public Kernel {
 public:
  NormForwardKernel(NormProblem problem, Binding x, NormForwardOperands others, Stream stream)
      : m_problem(problem), m_x(std::move(x)), m_others(std::move(others)), m_stream(stream) {}
  void run(Pointers operands, std::byte*) override {
    NormForward norm = launchOf(m_problem, m_others, operands);
    norm.x = m_x.at(operands);
    launchNormForward(norm, m_stream);
  }

 private:
  NormProblem m_problem;
  Binding m_x;
  NormForwardOperands m_others;
  Stream m_stream;
};

class AddNormForwardKernel final : public Kernel {
 public:
  AddNormForwardKernel(NormProblem problem, Binding a, Binding b, Binding sum, NormForwardOperands others,
                       Stream stream)
      : m_problem(problem),
        m_a(std::move(a)),
        m_b(std::move(b)),
        m_sum(std::move(sum)),
        m_others(std::move(others)),
        m_stream(stream) {}
  void run(Pointers operands, std::byte*) override {
    NormForward norm = launchOf(m_problem, m_others, operands);
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
  NormForwardOperands m_others;
  Stream m_stream;
};

NormBackward launchOf(const NormProblem& problem, const NormBackwardOperands& norm, Pointers operands) {
  return {.problem = problem,
          .x = norm.x.at(operands),
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
  NormBackwardKernel(NormProblem problem, NormBackwardOperands bindings, const DeviceContext& device)
      : m_problem(problem), m_bindings(std::move(bindings)), m_device(device) {}
  std::size_t workspaceBytes() const override {
    return static_cast<std::size_t>(numNormParts(m_problem, m_device.numMultiprocessors)) * sizeof(float);
  }
  void run(Pointers operands, std::byte* workspace) override {
    launchNormBackward(launchOf(m_problem, m_bindings, operands), m_device.numMultiprocessors,
                       reinterpret_cast<float*>(workspace), m_device.stream);
  }

 private:
  NormProblem m_problem;
  NormBackwardOperands m_bindings;
  const DeviceContext& m_device;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeNormForward(const CompileRequest& request, int norm) {
  const Result<Binding> x = requireOperand(request, {norm, OperandKind::Input, 0});
  if (!x) return x.error();
  Result<NormForwardOperands> others = bindNormForward(request, norm);
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
  Result<NormForwardOperands> others = bindNormForward(request, norm);
  if (!others) return others.error();
  const TensorSpec& sum = request.graph.spec(request.step.nodes.front(), OperandKind::Output, 0);
  const Node& node = request.member(static_cast<std::size_t>(norm));
  const NormProblem problem = problemOf(node, sum, others->y.spec);
  return std::unique_ptr<Kernel>(std::make_unique<AddNormForwardKernel>(problem, *a, *b, findNormSum(request, norm),
                                                                        std::move(*others), request.device.stream));
}

Result<std::unique_ptr<Kernel>> makeNormBackward(const CompileRequest& request, int norm,
                                                 const NormGradientKeys& keys) {
  Result<NormBackwardOperands> bindings = bindNormBackward(request, norm, keys);
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
            return makeNormBackward(request, 0, ownNormGradients());
          },
  };
}

}  // namespace fuseline::cuda
