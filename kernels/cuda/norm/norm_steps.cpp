// Binds norms to step operands.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm/norm_steps.h"

#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/norm/norm_launch.h"
#include "kernels/cuda/quantize/step_copies.h"
#include "kernels/cuda/support/workspace.h"

#include <optional>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

NormKind kindOf(const Node& node) {
  if (node.operation->name == "LayerNorm") return NormKind::Layer;
  return node.operation->name == "RMSNorm" ? NormKind::Rms : NormKind::L2;
}

/// x: the normalized tensor. Its trailing axes are the weight's; without a weight, the last axis.
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

/// Forward of a norm with its step's fused quantization, if it has any.
class NormForwardLaunch {
 public:
  NormForwardLaunch(NormProblem problem, NormForwardOperands operands, std::optional<StepCopies> copies,
                    const DeviceContext& device)
      : m_problem(problem), m_operands(std::move(operands)), m_copies(std::move(copies)), m_device(device) {}

  /// For tiles two floats per row, its factors; for separate kernels the result.
  std::size_t workspaceBytes() const {
    if (!m_copies || m_copies->isAmaxOnly() || m_copies->areOfRows()) return 0;
    if (!m_copies->fitsKernel()) return m_copies->spec().bytes();
    return 2 * static_cast<std::size_t>(m_problem.rows) * sizeof(float);
  }

  void run(const void* x, const NormAddend& addend, Pointers pointers, std::byte* workspace) const {
    NormForward norm = launchOf(m_problem, m_operands, pointers);
    norm.x = x;
    norm.addend = addend;
    if (m_copies && m_copies->isAmaxOnly()) norm.amax = m_copies->clearedAmax(pointers, m_device);
    if (!m_copies || norm.amax) return launchNormForward(norm, m_device.stream);
    if (m_copies->areOfRows()) return runRows(norm, pointers);
    m_copies->fitsKernel() ? runTiles(norm, pointers, workspace) : runApart(norm, pointers, workspace);
  }

 private:
  void runRows(const NormForward& norm, Pointers pointers) const {
    launchNormForwardRows(norm, m_copies->at(pointers), m_device.stream);
    m_copies->launchTransposes(pointers, m_device);
  }

  /// Row statistics that are not saved go to the workspace.
  void runTiles(NormForward norm, Pointers pointers, std::byte* workspace) const {
    auto* const factors = reinterpret_cast<float*>(workspace);
    if (!norm.rstd) norm.rstd = factors;
    if (!norm.mean && m_problem.kind == NormKind::Layer) norm.mean = factors + m_problem.rows;
    launchNormForwardTiles(norm, m_copies->at(pointers), m_device.stream);
  }

  void runApart(NormForward norm, Pointers pointers, std::byte* workspace) const {
    if (!norm.y) norm.y = workspace;
    launchNormForward(norm, m_device.stream);
    m_copies->launchFrom(static_cast<const std::byte*>(norm.y), pointers, nullptr, m_device);
  }

  NormProblem m_problem;
  NormForwardOperands m_operands;
  std::optional<StepCopies> m_copies;
  const DeviceContext& m_device;
};

class NormForwardKernel final : public Kernel {
 public:
  NormForwardKernel(Binding x, NormForwardLaunch launch) : m_x(std::move(x)), m_launch(std::move(launch)) {}
  std::size_t workspaceBytes() const override { return m_launch.workspaceBytes(); }
  void run(Pointers operands, std::byte* workspace) override {
    m_launch.run(m_x.at(operands), {}, operands, workspace);
  }

 private:
  Binding m_x;
  NormForwardLaunch m_launch;
};

class AddNormForwardKernel final : public Kernel {
 public:
  AddNormForwardKernel(Binding a, Binding b, Binding sum, NormForwardLaunch launch)
      : m_a(std::move(a)), m_b(std::move(b)), m_sum(std::move(sum)), m_launch(std::move(launch)) {}
  std::size_t workspaceBytes() const override { return m_launch.workspaceBytes(); }
  void run(Pointers operands, std::byte* workspace) override {
    const NormAddend addend{.left = elementOf(m_a.spec.dtype),
                            .right = elementOf(m_b.spec.dtype),
                            .rightData = m_b.at(operands),
                            .sum = m_sum.at(operands)};
    m_launch.run(m_a.at(operands), addend, operands, workspace);
  }

 private:
  Binding m_a, m_b, m_sum;
  NormForwardLaunch m_launch;
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
  NormBackwardKernel(NormProblem problem, NormBackwardOperands bindings, std::optional<StepCopies> copies,
                     const DeviceContext& device)
      : m_problem(problem), m_bindings(std::move(bindings)), m_copies(std::move(copies)), m_device(device) {}

  /// The parts of the parameter gradients and, where separate kernels quantize, the result.
  std::size_t workspaceBytes() const override {
    const bool isApart = m_copies && !m_copies->isAmaxOnly() && !m_copies->areOfRows();
    return partsBytes() + (isApart ? m_copies->spec().bytes() : 0);
  }

  void run(Pointers operands, std::byte* workspace) override {
    NormBackward norm = launchOf(m_problem, m_bindings, operands);
    norm.parts = reinterpret_cast<float*>(workspace);
    if (!m_copies) return launch(norm);
    if (m_copies->isAmaxOnly()) return runWithAmax(norm, operands);
    m_copies->areOfRows() ? runRows(norm, operands) : runApart(norm, operands, workspace + partsBytes());
  }

 private:
  void launch(const NormBackward& norm) const {
    launchNormBackward(norm, m_device.numMultiprocessors, m_device.stream);
  }

  void runWithAmax(NormBackward norm, Pointers operands) const {
    norm.amax = m_copies->clearedAmax(operands, m_device);
    launch(norm);
  }

  void runRows(const NormBackward& norm, Pointers operands) const {
    launchNormBackwardRows(norm, m_copies->at(operands), m_device.numMultiprocessors, m_device.stream);
    m_copies->launchTransposes(operands, m_device);
  }

  /// For more consumers than a kernel supports.
  void runApart(NormBackward norm, Pointers operands, std::byte* result) const {
    if (!norm.dx) norm.dx = result;
    launch(norm);
    m_copies->launchFrom(static_cast<const std::byte*>(norm.dx), operands, nullptr, m_device);
  }

  std::size_t partsBytes() const {
    const auto parts = static_cast<std::size_t>(numNormParts(m_problem, m_device.numMultiprocessors));
    return workspacePart(parts * sizeof(float));
  }

  NormProblem m_problem;
  NormBackwardOperands m_bindings;
  std::optional<StepCopies> m_copies;
  const DeviceContext& m_device;
};

Result<std::optional<StepCopies>> copiesOf(const CompileRequest& request) {
  if (request.step.copies.empty()) return std::optional<StepCopies>();
  Result<StepCopies> copies = StepCopies::make(request);
  if (!copies) return copies.error();
  return std::optional(std::move(*copies));
}

Result<NormForwardLaunch> forwardLaunch(const CompileRequest& request, int norm, const TensorSpec& x) {
  Result<NormForwardOperands> operands = bindNormForward(request, norm);
  if (!operands) return operands.error();
  const NormProblem problem = problemOf(request.member(static_cast<std::size_t>(norm)), x, operands->y.spec);
  Result<std::optional<StepCopies>> copies = copiesOf(request);
  if (!copies) return copies.error();
  return NormForwardLaunch(problem, std::move(*operands), std::move(*copies), request.device);
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeNormForward(const CompileRequest& request, int norm) {
  const Result<Binding> x = requireOperand(request, {norm, OperandKind::Input, 0});
  if (!x) return x.error();
  Result<NormForwardLaunch> launch = forwardLaunch(request, norm, x->spec);
  if (!launch) return launch.error();
  return std::unique_ptr<Kernel>(std::make_unique<NormForwardKernel>(*x, std::move(*launch)));
}

Result<std::unique_ptr<Kernel>> makeAddNormForward(const CompileRequest& request) {
  const int norm = static_cast<int>(request.step.nodes.size()) - 1;
  const Result<Binding> a = requireOperand(request, {0, OperandKind::Input, 0});
  if (!a) return a.error();
  const Result<Binding> b = requireOperand(request, {0, OperandKind::Input, 1});
  if (!b) return b.error();
  const TensorSpec& sum = request.graph.spec(request.step.nodes.front(), OperandKind::Output, 0);
  Result<NormForwardLaunch> launch = forwardLaunch(request, norm, sum);
  if (!launch) return launch.error();
  return std::unique_ptr<Kernel>(
      std::make_unique<AddNormForwardKernel>(*a, *b, findNormSum(request, norm), std::move(*launch)));
}

Result<std::unique_ptr<Kernel>> makeNormBackward(const CompileRequest& request, int norm,
                                                 const NormGradientKeys& keys) {
  Result<NormBackwardOperands> bindings = bindNormBackward(request, norm, keys);
  if (!bindings) return bindings.error();
  const Node& node = request.member(static_cast<std::size_t>(norm));
  const NormProblem problem = problemOf(node, bindings->x.spec, bindings->gradOutput.spec);
  Result<std::optional<StepCopies>> copies = copiesOf(request);
  if (!copies) return copies.error();
  return std::unique_ptr<Kernel>(
      std::make_unique<NormBackwardKernel>(problem, std::move(*bindings), std::move(*copies), request.device));
}

/// A row of the norm must be a row of the tensor. In backward, tiles would read x and dy again, which moves as many
/// bytes as writing and reading the gradient: nothing would be saved.
Verdict canMakeNormCopies(const KernelQuery& query) {
  if (query.copies->isAmaxOnly()) return Verdict::yes();
  if (query.phase == Phase::Backward && !areOfRows(query.copies->quantizers))
    return Verdict::no(
        "The CUDA backend quantizes gradients of norms as they are made where a tensor has one scale; with scales of "
        "blocks that would save nothing.");
  for (const NodeId id : query.members) {
    const Node& node = query.graph.node(id);
    const bool isNorm = node.operation->category == "Normalization";
    if (isNorm && !node.parameters.empty() && node.parameters.front().numElements() != query.copies->spec.cols())
      return Verdict::no(
          fmt::format("{} normalizes several axes at once, of which the copies would need the last.", node.id));
  }
  return canMakeCopies(query);
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
      .supportsCopies = canMakeNormCopies,
  };
}

}  // namespace fuseline::cuda
