// Kernel "swiglu_linear": SwiGLU, a linear layer and an optional AddExtraInput, forward and backward together.
//
// Only SwiGLU's input is kept between the two. Its output exists while the step runs: backward writes the gradient of
// it there, from which one pass gives the gradient of the input and, in its place, the output again for the weight's
// gradient.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/swiglu_linear_step.h"
#include "kernels/cuda/elementwise/elementwise_step.h"
#include "kernels/cuda/elementwise/program_pass.h"
#include "kernels/cuda/gemm/linear_parts.h"
#include "kernels/cuda/support/workspace.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace fuseline::cuda::kernels {

namespace {
namespace swiglu_linear_parts {

using namespace swiglu_linear;

/// A GEMM and its cost, prepared for this device.
Result<std::unique_ptr<Gemm>> prepare(const CompileRequest& request, const GemmProblem& problem) {
  return request.device.gemms->prepare(problem);
}

/// SwiGLU forward, backward, or both in one pass.
class ActivationPass {
 public:
  static Result<ActivationPass> make(const CompileRequest& request, const ActivationResults& results) {
    const TensorSpec& activated = activatedSpec(request);
    const auto dtypeOf = [&](const OperandKey& key) {
      const bool isInside = key == kActivated || key == kActivatedGradient;
      return isInside ? activated.dtype : findOperand(request, key).spec.dtype;
    };
    Result<ProgramPass> pass = ProgramPass::make(activationProgram(request, results),
                                                 {activated.rows(), activated.cols()}, dtypeOf, request.device);
    if (!pass) return pass.error();
    return ActivationPass(std::move(*pass), findOperand(request, kInput), findOperand(request, kGradInput),
                          request.device.stream);
  }

  std::size_t workspaceBytes() const { return m_pass.workspaceBytes(); }

  /// activated: the gradient of the output before, the output after, as far as the pass has them.
  void run(Pointers pointers, std::byte* activated, std::byte* workspace) {
    m_pass.run(
        [&](const OperandKey& key) {
          if (key == kInput) return m_x.at(pointers);
          return key == kGradInput ? m_gradX.at(pointers) : activated;
        },
        workspace, m_stream);
  }

 private:
  ActivationPass(ProgramPass pass, Binding x, Binding gradX, Stream stream)
      : m_pass(std::move(pass)), m_x(std::move(x)), m_gradX(std::move(gradX)), m_stream(stream) {}

  ProgramPass m_pass;
  Binding m_x, m_gradX;
  Stream m_stream;
};

/// A GEMM with one matrix that exists only inside the step.
struct InnerProduct {
  Stream stream = nullptr;
  std::unique_ptr<Gemm> gemm;
  Binding a, b, c;  // absent: the matrix inside the step
  Binding addend = {};

  void run(Pointers pointers, std::byte* activated, std::byte* workspace) const {
    const auto at = [&](const Binding& matrix) { return matrix ? matrix.at(pointers) : activated; };
    gemm->multiply({.a = at(a), .b = at(b), .addend = addend.at(pointers), .c = at(c)}, workspace, stream);
  }
};

/// Scratch memory that a pass and the GEMMs share: they run one after the other.
class Scratch {
 public:
  explicit Scratch(const TensorSpec& activated)
      : m_activated(workspacePart(static_cast<std::size_t>(activated.bytes()))) {}
  void add(std::size_t bytes) { m_rest = std::max(m_rest, bytes); }
  std::size_t bytes() const { return m_activated + m_rest; }
  std::byte* rest(std::byte* workspace) const { return workspace + m_activated; }

 private:
  std::size_t m_activated;
  std::size_t m_rest = 0;
};

class SwiGluLinearForward final : public Kernel {
 public:
  SwiGluLinearForward(ActivationPass activation, InnerProduct product, const TensorSpec& activated)
      : m_activation(std::move(activation)), m_product(std::move(product)), m_scratch(activated) {
    m_scratch.add(m_activation.workspaceBytes());
    m_scratch.add(m_product.gemm->workspaceBytes());
  }

  std::size_t workspaceBytes() const override { return m_scratch.bytes(); }

  void run(Pointers pointers, std::byte* workspace) override {
    m_activation.run(pointers, workspace, m_scratch.rest(workspace));
    m_product.run(pointers, workspace, m_scratch.rest(workspace));
  }

 private:
  ActivationPass m_activation;
  InnerProduct m_product;
  Scratch m_scratch;
};

Result<InnerProduct> forwardProduct(const CompileRequest& request) {
  const Result<Binding> weight = requireOperand(request, kWeight);
  if (!weight) return weight.error();
  const Result<Binding> y = requireOperand(request, {lastMember(request), OperandKind::Output, 0});
  if (!y) return y.error();
  const Binding x{.spec = activatedSpec(request)};
  InnerProduct product{.stream = request.device.stream, .a = x, .b = *weight, .c = *y};
  if (lastMember(request) >= kAdd) {
    const Result<Binding> residual = residualOf(request, kAdd);
    if (!residual) return residual.error();
    product.addend = *residual;
  }
  GemmProblem problem = forwardProblem(linearSize(request.member(kLinear), x.spec), x, *weight, y->spec);
  problem.hasAddend = static_cast<bool>(product.addend);
  Result<std::unique_ptr<Gemm>> gemm = prepare(request, problem);
  if (!gemm) return gemm.error();
  product.gemm = std::move(*gemm);
  return product;
}

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request) {
  if (const Result<Binding> x = requireOperand(request, kInput); !x) return x.error();
  Result<ActivationPass> activation = ActivationPass::make(request, {.hasOutput = true});
  if (!activation) return activation.error();
  Result<InnerProduct> product = forwardProduct(request);
  if (!product) return product.error();
  return std::unique_ptr<Kernel>(
      std::make_unique<SwiGluLinearForward>(std::move(*activation), std::move(*product), activatedSpec(request)));
}

struct BackwardParts {
  InnerProduct inputGrad;  // of SwiGLU's output
  ActivationPass activation;
  std::optional<InnerProduct> weightGrad;  // absent: not requested
};

class SwiGluLinearBackward final : public Kernel {
 public:
  SwiGluLinearBackward(BackwardParts parts, const TensorSpec& activated)
      : m_parts(std::move(parts)), m_scratch(activated) {
    m_scratch.add(m_parts.inputGrad.gemm->workspaceBytes());
    m_scratch.add(m_parts.activation.workspaceBytes());
    if (m_parts.weightGrad) m_scratch.add(m_parts.weightGrad->gemm->workspaceBytes());
  }

  std::size_t workspaceBytes() const override { return m_scratch.bytes(); }

  void run(Pointers pointers, std::byte* workspace) override {
    std::byte* const rest = m_scratch.rest(workspace);
    m_parts.inputGrad.run(pointers, workspace, rest);
    m_parts.activation.run(pointers, workspace, rest);
    if (m_parts.weightGrad) m_parts.weightGrad->run(pointers, workspace, rest);
  }

 private:
  BackwardParts m_parts;
  Scratch m_scratch;
};

Result<InnerProduct> inputGradProduct(const CompileRequest& request, const LinearSize& size, const Binding& dy) {
  const Result<Binding> weight = requireOperand(request, kWeight);
  if (!weight) return weight.error();
  auto gemm = prepare(request, inputGradProblem(size, dy, *weight, activatedSpec(request)));
  if (!gemm) return gemm.error();
  return InnerProduct{.stream = request.device.stream, .gemm = std::move(*gemm), .a = dy, .b = *weight, .c = {}};
}

Result<InnerProduct> weightGradProduct(const CompileRequest& request, const LinearSize& size, const Binding& dy,
                                       const Binding& gradWeight) {
  const GemmProblem problem = weightGradProblem(size, dy, {.spec = activatedSpec(request)}, gradWeight);
  auto gemm = prepare(request, problem);
  if (!gemm) return gemm.error();
  InnerProduct product{.stream = request.device.stream, .gemm = std::move(*gemm), .a = dy, .b = {}, .c = gradWeight};
  if (problem.hasAddend) product.addend = gradWeight;
  return product;
}

Result<std::unique_ptr<Kernel>> compileBackward(const CompileRequest& request) {
  const Result<Binding> dy = requireOperand(request, {lastMember(request), OperandKind::GradOutput, 0});
  if (!dy) return dy.error();
  for (const OperandKey& key : {kInput, kGradInput})
    if (const Result<Binding> there = requireOperand(request, key); !there) return there.error();
  const Binding gradWeight = findOperand(request, kGradWeight);
  const LinearSize size = linearSize(request.member(kLinear), activatedSpec(request));
  Result<InnerProduct> inputGrad = inputGradProduct(request, size, *dy);
  if (!inputGrad) return inputGrad.error();
  Result<ActivationPass> pass =
      ActivationPass::make(request, {.hasOutput = static_cast<bool>(gradWeight), .hasGradient = true});
  if (!pass) return pass.error();
  BackwardParts parts{std::move(*inputGrad), std::move(*pass), std::nullopt};
  if (gradWeight) {
    Result<InnerProduct> product = weightGradProduct(request, size, *dy, gradWeight);
    if (!product) return product.error();
    parts.weightGrad = std::move(*product);
  }
  return std::unique_ptr<Kernel>(std::make_unique<SwiGluLinearBackward>(std::move(parts), activatedSpec(request)));
}

Verdict supports(const KernelQuery& query) {
  if (const Verdict fits = areElementwise(query.graph, query.members.first(1)); !fits) return fits;
  if (const Verdict fits = fitsLibrary(query.graph, query.graph.node(query.members[kLinear])); !fits) return fits;
  return haveDTypeOfProduct(query.graph, query.members.subspan(kLinear));
}

}  // namespace swiglu_linear_parts
}  // namespace

KernelDef swiglu_linear();

KernelDef swiglu_linear() {
  using namespace swiglu_linear_parts;
  return {
      .name = "swiglu_linear",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = supports,
      .compile = byPhase(compileForward, compileBackward),
  };
}

}  // namespace fuseline::cuda::kernels
