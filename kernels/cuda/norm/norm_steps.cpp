// Binds norms to step operands.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm/norm_steps.h"

#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/norm/norm_cluster.h"
#include "kernels/cuda/norm/norm_launch.h"
#include "kernels/cuda/quantize/step_copies.h"
#include "kernels/cuda/support/workspace.h"

#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

static_assert(static_cast<int>(NormKind::Layer) == static_cast<int>(fuseline::NormKind::Layer) &&
              static_cast<int>(NormKind::L2) == static_cast<int>(fuseline::NormKind::L2));

std::int64_t rowOf(const Binding& tensor, const NormGeometry& norm) {
  return tensor.rowStride > 0 ? tensor.rowStride : norm.cols;
}

/// y: of y, or of dy. dx: absent in forward.
NormProblem problemOf(const NormGeometry& norm, const Binding& x, const TensorSpec& y, const Binding& dx = {}) {
  return {.kind = static_cast<NormKind>(norm.kind),
          .rows = norm.rows,
          .cols = norm.cols,
          .rowOfX = rowOf(x, norm),
          .rowOfDx = rowOf(dx, norm),
          .x = elementOf(norm.x),
          .y = elementOf(y.dtype),
          .parameter = elementOf(norm.parameter),
          .eps = norm.eps,
          .isGammaZeroCentred = norm.isGammaZeroCentred};
}

NormAddend addendOf(const NormForwardStep& norm, Pointers operands) {
  if (!norm.addend) return {};
  return {.left = elementOf(norm.x.spec.dtype),
          .right = elementOf(norm.addend.spec.dtype),
          .rightData = norm.addend.at(operands),
          .sum = norm.sum.at(operands)};
}

}  // namespace

NormForward normForwardOf(const NormForwardStep& norm, Pointers operands) {
  return {.problem = problemOf(norm.norm, norm.x, norm.y.spec),
          .addend = addendOf(norm, operands),
          .x = norm.x.at(operands),
          .gamma = norm.gamma.at(operands),
          .beta = norm.beta.at(operands),
          .y = norm.y.at(operands),
          .mean = reinterpret_cast<float*>(norm.mean.at(operands)),
          .rstd = reinterpret_cast<float*>(norm.rstd.at(operands))};
}

namespace {

/// With its step's fused quantization, if it has any.
class NormForwardKernel final : public Kernel {
 public:
  NormForwardKernel(NormForwardStep step, std::optional<StepCopies> copies, const DeviceContext& device)
      : m_step(std::move(step)),
        m_copies(std::move(copies)),
        m_device(device),
        m_problem(problemOf(m_step.norm, m_step.x, m_step.y.spec)) {}

  /// In one pass, where the device runs such clusters and they are not slower. operandBytes: of the step's operands.
  void choosePass(std::vector<std::size_t> operandBytes) {
    m_cluster = runningCluster();
    if (!m_cluster || !m_device.timer) return;
    const auto launch = [this, cluster = m_cluster](std::size_t way, Pointers operands, std::byte* workspace) {
      run(operands, workspace, way == 0 ? cluster : std::nullopt);
    };
    const TimedStep step{.key = keyOfPass(),
                         .operandBytes = std::move(operandBytes),
                         .workspaceBytes = {workspaceBytes(m_cluster), workspaceBytes(std::nullopt)},
                         .launch = launch};
    m_isSlowerInOnePass = m_device.timer->fastest(step) > 0;
    if (m_isSlowerInOnePass) m_cluster.reset();
  }

  std::size_t workspaceBytes() const override { return workspaceBytes(m_cluster); }
  void run(Pointers pointers, std::byte* workspace) override { run(pointers, workspace, m_cluster); }

  std::vector<std::string> ways() const override {
    if (m_isSlowerInOnePass) return {"quantized in a second pass, which was faster"};
    return {};
  }

 private:
  std::optional<NormCluster> runningCluster() const {
    const bool hasRows = m_problem.rows > 0 && m_problem.rowOfX == m_problem.cols;
    if (!hasRows || !m_copies || m_copies->isAmaxOnly() || !m_copies->fitsKernel() || !m_copies->hasColumns())
      return std::nullopt;
    const auto cluster =
        normClusterOf(m_problem.cols, isNarrowNorm(m_problem), {m_copies->kind(), m_copies->numPairs()},
                      clusterLimitsOf(m_device.capability, m_device.maxSharedBytes));
    return cluster && canLaunchNormClusters(m_problem, m_copies->kind(), *cluster) ? cluster : std::nullopt;
  }

  std::string keyOfPass() const {
    const auto number = [](auto value) { return static_cast<int>(value); };
    return fmt::format("norm {} of {} x {}, {} to {} by {}, {}{}{}quantized as {} for {}, in one pass or two",
                       number(m_problem.kind), m_problem.rows, m_problem.cols, number(m_problem.x), number(m_problem.y),
                       number(m_problem.parameter), m_step.addend ? "addend, " : "", m_step.sum ? "sum, " : "",
                       m_step.y ? "result, " : "", number(m_copies->kind()), m_copies->numPairs());
  }

  /// For tiles two floats per row, its factors; for separate kernels the result.
  std::size_t workspaceBytes(const std::optional<NormCluster>& cluster) const {
    if (cluster || !m_copies || m_copies->isAmaxOnly() || m_copies->areOfRows()) return 0;
    if (!m_copies->fitsKernel()) return m_copies->spec().bytes();
    return 2 * static_cast<std::size_t>(m_step.norm.rows) * sizeof(float);
  }

  void run(Pointers pointers, std::byte* workspace, const std::optional<NormCluster>& cluster) const {
    NormForward norm = normForwardOf(m_step, pointers);
    if (m_copies && m_copies->isAmaxOnly()) norm.amax = m_copies->clearedAmax(pointers, m_device);
    if (!m_copies || norm.amax) return launchNormForward(norm, m_device.stream);
    if (cluster) return launchNormForwardClusters(norm, m_copies->at(pointers), *cluster, m_device.stream);
    if (m_copies->areOfRows()) return runRows(norm, pointers);
    m_copies->fitsKernel() ? runTiles(norm, pointers, workspace) : runApart(norm, pointers, workspace);
  }

  void runRows(const NormForward& norm, Pointers pointers) const {
    launchNormForwardRows(norm, m_copies->at(pointers), m_device.stream);
    m_copies->launchTransposes(pointers, m_device);
  }

  /// Row statistics that are not saved go to the workspace.
  void runTiles(NormForward norm, Pointers pointers, std::byte* workspace) const {
    auto* const factors = reinterpret_cast<float*>(workspace);
    if (!norm.rstd) norm.rstd = factors;
    if (!norm.mean && norm.problem.kind == NormKind::Layer) norm.mean = factors + norm.problem.rows;
    launchNormForwardTiles(norm, m_copies->at(pointers), m_device.stream);
  }

  void runApart(NormForward norm, Pointers pointers, std::byte* workspace) const {
    if (!norm.y) norm.y = workspace;
    launchNormForward(norm, m_device.stream);
    m_copies->launchFrom(static_cast<const std::byte*>(norm.y), pointers, m_device);
  }

  NormForwardStep m_step;
  std::optional<StepCopies> m_copies;
  const DeviceContext& m_device;
  NormProblem m_problem;
  std::optional<NormCluster> m_cluster;  // nothing: two passes
  bool m_isSlowerInOnePass = false;
};

NormBackward launchOf(const NormProblem& problem, const NormBackwardStep& norm, Pointers operands) {
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
  NormBackwardKernel(NormProblem problem, NormBackwardStep step, std::optional<StepCopies> copies,
                     const DeviceContext& device)
      : m_problem(problem), m_step(std::move(step)), m_copies(std::move(copies)), m_device(device) {}

  /// The parts of the parameter gradients and, where separate kernels quantize, the result.
  std::size_t workspaceBytes() const override {
    const bool isApart = m_copies && !m_copies->isAmaxOnly() && !m_copies->areOfRows();
    return partsBytes() + (isApart ? m_copies->spec().bytes() : 0);
  }

  void run(Pointers operands, std::byte* workspace) override {
    NormBackward norm = launchOf(m_problem, m_step, operands);
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
    m_copies->launchFrom(static_cast<const std::byte*>(norm.dx), operands, m_device);
  }

  std::size_t partsBytes() const {
    const auto parts = static_cast<std::size_t>(numNormParts(m_problem, m_device.numMultiprocessors));
    return workspacePart(parts * sizeof(float));
  }

  NormProblem m_problem;
  NormBackwardStep m_step;
  std::optional<StepCopies> m_copies;
  const DeviceContext& m_device;
};

std::vector<std::size_t> operandBytesOf(const CompileRequest& request) {
  std::vector<std::size_t> bytes;
  for (const StepOperand& operand : request.step.operands)
    bytes.push_back(static_cast<std::size_t>(request.plan.spec(operand).bytes()));
  return bytes;
}

Result<std::unique_ptr<Kernel>> makeForward(const CompileRequest& request, Result<NormForwardStep> step) {
  if (!step) return step.error();
  Result<std::optional<StepCopies>> copies = StepCopies::ifAny(request);
  if (!copies) return copies.error();
  auto kernel = std::make_unique<NormForwardKernel>(std::move(*step), std::move(*copies), request.device);
  kernel->choosePass(operandBytesOf(request));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeNormForward(const CompileRequest& request, int norm) {
  return makeForward(request, readNormForward(request, norm));
}

Result<std::unique_ptr<Kernel>> makeAddNormForward(const CompileRequest& request) {
  return makeForward(request, readAddNormForward(request));
}

Result<std::unique_ptr<Kernel>> makeNormBackward(const CompileRequest& request, int norm,
                                                 const NormGradientKeys& keys) {
  Result<NormBackwardStep> step = readNormBackward(request, norm, keys);
  if (!step) return step.error();
  Result<std::optional<StepCopies>> copies = StepCopies::ifAny(request);
  if (!copies) return copies.error();
  const NormProblem problem = problemOf(step->norm, step->x, step->gradOutput.spec, step->gradInput);
  return std::unique_ptr<Kernel>(
      std::make_unique<NormBackwardKernel>(problem, std::move(*step), std::move(*copies), request.device));
}

/// A row of the norm must be a row of the tensor. In backward, tiles would read x and dy again, which moves as many
/// bytes as writing and reading the gradient: nothing would be saved.
Verdict canMakeNormCopies(const KernelQuery& query) {
  if (query.copies->isAmaxOnly()) return Verdict::yes();
  if (query.phase == Phase::Backward && !areOfRows(query.copies->quantizers))
    return Verdict::no(
        "The CUDA backend quantizes norm gradients in the producing kernel only with one scale per tensor; with block "
        "scales it would save nothing.");
  if (const Node* const norm = normOfSeveralAxes(query))
    return Verdict::no(
        fmt::format("{} normalizes several axes at once, but quantization needs only the last.", norm->id));
  return canMakeCopies(query);
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
      .supportsCopies = canMakeNormCopies,
  };
}

}  // namespace fuseline::cuda
