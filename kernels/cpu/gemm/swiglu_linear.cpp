// Kernel "swiglu_linear": SwiGLU, a linear layer and an optional AddExtraInput, forward and backward together.
//
// Forward computes SwiGLU's output panel by panel, directly before the GEMM reads it; it never exists as a whole.
// Backward computes a panel of dy W, rounded as the separate ops would round it (half the cache traffic of float32
// sums), from which one elementwise pass computes SwiGLU's input gradient and, for the weight gradient, its output
// again. Only SwiGLU's input is kept between the two.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/swiglu_linear_step.h"
#include "kernels/cpu/elementwise/strip_step.h"
#include "kernels/cpu/gemm/linear_parts.h"
#include "kernels/cpu/gemm/panel_gemm.h"
#include "kernels/cpu/workspace.h"

#include <algorithm>
#include <optional>

namespace fuseline::cpu::kernels {

namespace {
namespace swiglu_linear_parts {

using namespace swiglu_linear;

constexpr OperandKey kLinearOutput{kLinear, OperandKind::Output, 0};
constexpr OperandKey kSums{.member = -1, .kind = OperandKind::Output, .slot = 0};

void renameLoads(ElementwiseProgram& program, const OperandKey& from, const OperandKey& to) {
  for (Instruction& instruction : program.code)
    if (instruction.opcode == Opcode::Load && instruction.place.operand == from) instruction.place.operand = to;
}

/// The program after the GEMM: the addition, or a plain store.
ElementwiseProgram outputProgram(const CompileRequest& request) {
  ElementwiseProgram program;
  if (request.step.nodes.size() > kAdd) {
    program = composeProgram(request.graph, request.step, kAdd);
    renameLoads(program, kLinearOutput, kSums);
  }
  if (!findOperand(request, kLinearOutput)) return program;
  program.code.push_back({.opcode = Opcode::Load, .place = {.operand = kSums}});
  program.stores.push_back(
      {.value = static_cast<ValueIndex>(program.code.size()) - 1, .place = {.operand = kLinearOutput}});
  return program;
}

/// SwiGLU over rows of x, into a buffer.
class Activation {
 public:
  Activation(const CompileRequest& request, Binding x)
      : m_x(std::move(x)),
        m_output(activatedSpec(request)),
        m_engine(activationProgram(request, {.hasOutput = true}), m_output.cols(), request.settings.threads,
                 [this](const OperandKey& key) {
                   return key == kInput ? StripOperand{m_x.spec.dtype, 0} : StripOperand{m_output.dtype, 1};
                 }) {}

  std::size_t workspaceBytes(std::int64_t rows) const { return m_engine.workspaceBytes(rows); }
  std::size_t outputBytes(std::int64_t rows) const {
    return workspacePart(static_cast<std::size_t>(rows * m_output.cols() * sizeBytes(m_output.dtype)));
  }

  void run(Pointers operands, std::int64_t firstRow, std::int64_t rows, std::byte* output, std::byte* workspace) const {
    std::byte* const x = m_x.at(operands) + firstRow * m_x.spec.cols() * sizeBytes(m_x.spec.dtype);
    std::byte* const slots[] = {x, output};
    m_engine.run(slots, rows, workspace);
  }

 private:
  Binding m_x;
  TensorSpec m_output;
  StripEngine m_engine;
};

class SwiGluLinearForward final : public Kernel {
 public:
  SwiGluLinearForward(std::unique_ptr<Activation> activation, PanelGemm gemm, Binding weight)
      : m_activation(std::move(activation)), m_gemm(std::move(gemm)), m_weight(std::move(weight)) {}

  std::size_t workspaceBytes() const override {
    const std::int64_t rows = m_gemm.panelRows();
    return m_activation->outputBytes(rows) + workspacePart(m_gemm.workspaceBytes()) +
           m_activation->workspaceBytes(rows);
  }

  void run(Pointers operands, std::byte* workspace) override {
    std::byte* const panel = workspace;
    std::byte* const gemmWorkspace = panel + m_activation->outputBytes(m_gemm.panelRows());
    std::byte* const stripWorkspace = gemmWorkspace + workspacePart(m_gemm.workspaceBytes());
    const auto activatedPanel = [&](std::int64_t first, std::int64_t count) {
      m_activation->run(operands, first, count, panel, stripWorkspace);
      return panel;
    };
    m_gemm.run(activatedPanel, m_weight.at(operands), operands, gemmWorkspace);
  }

 private:
  std::unique_ptr<Activation> m_activation;
  PanelGemm m_gemm;
  Binding m_weight;
};

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request) {
  const Result<Binding> x = requireOperand(request, kInput);
  if (!x) return x.error();
  const Result<Binding> weight = requireOperand(request, kWeight);
  if (!weight) return weight.error();
  const ElementwiseProgram program = outputProgram(request);
  Result<std::vector<PanelOperand>> operands = panelOperands(request, program, {kSums});
  if (!operands) return operands.error();
  const TensorSpec& activated = activatedSpec(request);
  const LinearSize size = linearSize(request.member(kLinear), activated);
  PanelGemm gemm(forwardProblem(request, size, activated.dtype, weight->spec.dtype, DType::F32), kSums, program,
                 std::move(*operands), request.settings.threads);
  return std::unique_ptr<Kernel>(
      std::make_unique<SwiGluLinearForward>(std::make_unique<Activation>(request, *x), std::move(gemm), *weight));
}

/// The backward of SwiGLU from the GEMM's sums, and its forward again. Results that are not requested are left out.
ElementwiseProgram gradientProgram(const CompileRequest& request, bool wantsActivated) {
  ElementwiseProgram program = activationProgram(request, {.hasOutput = wantsActivated, .hasGradient = true});
  renameLoads(program, kActivatedGradient, kSums);
  return program;
}

/// Parts of a backward step; each is absent if its result is not requested.
struct BackwardParts {
  std::optional<PanelGemm> inputGrad;      // with SwiGLU's gradient, and its output if weightGrad is requested
  std::unique_ptr<Activation> activation;  // if only the weight gradient is requested
  std::optional<Gemm> weightGrad;
  std::unique_ptr<Kernel> extraGradient;  // a copy of dy in another dtype
  std::size_t activatedBytes = 0;
  std::int64_t rows = 0;
};

class SwiGluLinearBackward final : public Kernel {
 public:
  SwiGluLinearBackward(BackwardParts parts, Binding gradOutput, Binding weight, Binding gradWeight)
      : m_parts(std::move(parts)),
        m_gradOutput(std::move(gradOutput)),
        m_weight(std::move(weight)),
        m_gradWeight(std::move(gradWeight)) {}

  std::size_t workspaceBytes() const override {
    const std::size_t inputGrad = m_parts.inputGrad ? m_parts.inputGrad->workspaceBytes() : 0;
    const std::size_t weightGrad = m_parts.weightGrad ? m_parts.weightGrad->workspaceBytes() : 0;
    const std::size_t activation = m_parts.activation ? m_parts.activation->workspaceBytes(m_parts.rows) : 0;
    const std::size_t extra = m_parts.extraGradient ? m_parts.extraGradient->workspaceBytes() : 0;
    return m_parts.activatedBytes + std::max({inputGrad, weightGrad, activation, extra});
  }

  void run(Pointers operands, std::byte* workspace) override {
    std::byte* const activated = workspace;
    std::byte* const rest = workspace + m_parts.activatedBytes;
    m_pointers.assign(operands.begin(), operands.end());
    m_pointers.push_back(activated);  // the binding after the step's own operands
    if (m_parts.inputGrad) m_parts.inputGrad->run(m_gradOutput.at(operands), m_weight.at(operands), m_pointers, rest);
    if (m_parts.activation) m_parts.activation->run(operands, 0, m_parts.rows, activated, rest);
    if (m_parts.weightGrad)
      m_parts.weightGrad->multiply(m_gradOutput.at(operands), activated, m_gradWeight.at(operands), rest);
    if (m_parts.extraGradient) m_parts.extraGradient->run(operands, rest);
  }

 private:
  BackwardParts m_parts;
  Binding m_gradOutput, m_weight, m_gradWeight;
  std::vector<std::byte*> m_pointers;
};

/// dy converted for the extra input, where that gradient is not simply a view of dy.
ElementwiseProgram copyProgram(const OperandKey& from, const OperandKey& to) {
  return {.code = {{.opcode = Opcode::Load, .place = {.operand = from}}},
          .stores = {{.value = 0, .place = {.operand = to}}}};
}

Result<std::optional<PanelGemm>> makeInputGrad(const CompileRequest& request, const LinearSize& size,
                                               const Binding& gradOutput, bool wantsActivated) {
  const Result<Binding> weight = requireOperand(request, kWeight);
  if (!weight) return weight.error();
  const ElementwiseProgram program = gradientProgram(request, wantsActivated);
  Result<std::vector<PanelOperand>> operands = panelOperands(request, program, {kSums, kActivated});
  if (!operands) return operands.error();
  const Binding scratch{static_cast<int>(request.step.operands.size()), activatedSpec(request)};
  if (wantsActivated) operands->push_back({kActivated, scratch});
  return std::optional<PanelGemm>(
      std::in_place,
      inputGradProblem(request, size, gradOutput.spec.dtype, weight->spec.dtype, activatedSpec(request).dtype), kSums,
      program, std::move(*operands), request.settings.threads);
}

Result<std::unique_ptr<Kernel>> compileBackward(const CompileRequest& request) {
  const OperandKey gradOutputKey{lastMember(request), OperandKind::GradOutput, 0};
  const Result<Binding> gradOutput = requireOperand(request, gradOutputKey);
  if (!gradOutput) return gradOutput.error();
  const Result<Binding> x = requireOperand(request, kInput);
  if (!x) return x.error();
  const Binding gradWeight = findOperand(request, kGradWeight);
  const TensorSpec& activated = activatedSpec(request);
  const LinearSize size = linearSize(request.member(kLinear), activated);

  BackwardParts parts{.rows = size.m};
  if (findOperand(request, kGradInput)) {
    auto inputGrad = makeInputGrad(request, size, *gradOutput, static_cast<bool>(gradWeight));
    if (!inputGrad) return inputGrad.error();
    parts.inputGrad = std::move(*inputGrad);
  } else if (gradWeight) {
    parts.activation = std::make_unique<Activation>(request, *x);
  }
  if (gradWeight) {
    parts.weightGrad.emplace(weightGradProblem(request, size, gradOutput->spec.dtype, activated.dtype, gradWeight));
    parts.activatedBytes = workspacePart(static_cast<std::size_t>(activated.bytes()));
  }
  // The gradient of the residual, which is in either slot.
  for (const int slot : {0, 1}) {
    const OperandKey extraKey{kAdd, OperandKind::GradInput, slot};
    if (!findOperand(request, extraKey)) continue;
    auto copy = makeStripKernel(request, copyProgram(gradOutputKey, extraKey));
    if (!copy) return copy.error();
    parts.extraGradient = std::move(*copy);
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<SwiGluLinearBackward>(std::move(parts), *gradOutput, findOperand(request, kWeight), gradWeight));
}

}  // namespace swiglu_linear_parts
}  // namespace

KernelDef swiglu_linear();

KernelDef swiglu_linear() {
  using namespace swiglu_linear_parts;
  return {
      .name = "swiglu_linear",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery& query) { return areElementwise(query.graph, query.members.first(1)); },
      .compile = byPhase(compileForward, compileBackward),
  };
}

}  // namespace fuseline::cpu::kernels
