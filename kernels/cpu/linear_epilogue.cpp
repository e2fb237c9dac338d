// Kernel "linear_epilogue": a linear layer and the elementwise ops behind it. The program reads the product's float32
// sums while they are in the cache, so that every stored value is rounded once.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/linear_parts.h"
#include "kernels/cpu/panel_gemm.h"
#include "kernels/cpu/strip_step.h"

namespace fuseline::cpu::kernels {

namespace {

/// Names the float32 sums in the program; the linear's own output may be an operand too, when it is saved.
constexpr OperandKey kSums{.member = -1, .kind = OperandKind::Output, .slot = 0};
constexpr OperandKey kLinearOutput{.member = 0, .kind = OperandKind::Output, .slot = 0};

class LinearEpilogue final : public Kernel {
 public:
  LinearEpilogue(PanelGemm gemm, Binding x, Binding weight)
      : m_gemm(std::move(gemm)), m_x(std::move(x)), m_weight(std::move(weight)) {}
  std::size_t workspaceBytes() const override { return m_gemm.workspaceBytes(); }
  void run(Pointers operands, std::byte* workspace) override {
    m_gemm.run(m_x.at(operands), m_weight.at(operands), operands, workspace);
  }

 private:
  PanelGemm m_gemm;
  Binding m_x, m_weight;
};

/// The epilogue with the product's result named kSums, and stored too if the step wants it.
ElementwiseProgram epilogueProgram(const CompileRequest& request) {
  ElementwiseProgram program = composeProgram(request.graph, request.step, 1);
  for (Instruction& instruction : program.code)
    if (instruction.opcode == Opcode::Load && instruction.place.operand == kLinearOutput)
      instruction.place.operand = kSums;
  if (!findOperand(request, kLinearOutput)) return program;
  program.code.push_back({.opcode = Opcode::Load, .place = {.operand = kSums}});
  program.stores.push_back(
      {.value = static_cast<ValueIndex>(program.code.size()) - 1, .place = {.operand = kLinearOutput}});
  return program;
}

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  const Result<Binding> x = requireOperand(request, {0, OperandKind::Input, 0});
  if (!x) return x.error();
  const Result<Binding> weight = requireOperand(request, {0, OperandKind::Parameter, 0});
  if (!weight) return weight.error();
  const ElementwiseProgram program = epilogueProgram(request);
  Result<std::vector<PanelOperand>> operands = panelOperands(request, program, {kSums});
  if (!operands) return operands.error();
  const LinearSize size = linearSize(request.member(0), x->spec);
  PanelGemm gemm(forwardProblem(request, size, x->spec.dtype, weight->spec.dtype, DType::F32), kSums, program,
                 std::move(*operands), request.settings.threads);
  return std::unique_ptr<Kernel>(std::make_unique<LinearEpilogue>(std::move(gemm), *x, *weight));
}

}  // namespace

KernelDef linear_epilogue();

KernelDef linear_epilogue() {
  return {
      .name = "linear_epilogue",
      .phases = {Phase::Forward},
      .supports = [](const KernelQuery& query) { return areElementwise(query.graph, query.members.subspan(1)); },
      .compile = compile,
  };
}

}  // namespace fuseline::cpu::kernels
