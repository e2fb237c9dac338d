// Kernel "linear_epilogue": a linear layer and the downstream elementwise ops, in one program on the GEMM's result.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise/strip_step.h"
#include "kernels/cpu/gemm/linear_parts.h"
#include "kernels/cpu/gemm/panel_gemm.h"
#include "kernels/cpu/quantize/row_copies.h"
#include "kernels/cpu/workspace.h"

namespace fuseline::cpu::kernels {

namespace {
namespace linear_epilogue_parts {

/// Names the GEMM's result in the program; the linear's own output may be an operand too, when it is saved.
constexpr OperandKey kSums{.member = -1, .kind = OperandKind::Output, .slot = 0};
constexpr OperandKey kLinearOutput{.member = 0, .kind = OperandKind::Output, .slot = 0};
constexpr OperandKey kBiasOutput{.member = 1, .kind = OperandKind::Output, .slot = 0};

class LinearEpilogue final : public Kernel {
 public:
  LinearEpilogue(PanelGemm gemm, Binding x, Binding weight, std::optional<RowCopies> copies)
      : m_gemm(std::move(gemm)), m_x(std::move(x)), m_weight(std::move(weight)), m_copies(std::move(copies)) {}
  std::size_t workspaceBytes() const override { return gemmBytes() + (m_copies ? m_copies->scratchBytes() : 0); }
  void run(Pointers operands, std::byte* workspace) override {
    const RowSink* const sink = m_copies ? &m_copies->begin(operands, workspace + gemmBytes()) : nullptr;
    m_gemm.run(m_x.at(operands), m_weight.at(operands), operands, workspace, sink);
    if (m_copies) m_copies->finish();
  }

 private:
  std::size_t gemmBytes() const { return workspacePart(m_gemm.workspaceBytes()); }

  PanelGemm m_gemm;
  Binding m_x, m_weight;
  std::optional<RowCopies> m_copies;
};

/// The bias that the GEMM itself can add; absent if it must be an instruction of the program.
Binding productBias(const CompileRequest& request, const GemmProblem& problem) {
  const bool isBias = request.step.nodes.size() > 1 && request.member(1).operation->name == "Bias";
  if (!isBias || findOperand(request, kLinearOutput)) return {};
  const Binding bias = findOperand(request, {1, OperandKind::Parameter, 0});
  return bias && canAdd(problem, bias.spec.dtype) ? bias : Binding{};
}

/// Dtype of the GEMM's result: a result with a bias that is quantized before it is rounded is not rounded at all.
DType sumsType(const CompileRequest& request) {
  const Step& step = request.step;
  const bool isWhole = step.nodes.size() == 2 && request.member(1).operation->name == "Bias";
  if (isWhole && !step.copies.empty() && step.copies.front().isUnrounded) return DType::F32;
  return request.graph.spec(step.nodes.front(), OperandKind::Output, 0).dtype;
}

/// The places where the program reads the GEMM's result, or would: two if a gated op does.
std::vector<OperandPlace> readPlaces(const ElementwiseProgram& program, const OperandKey& product) {
  std::vector<OperandPlace> places;
  for (const Instruction& instruction : program.code)
    if (instruction.opcode == Opcode::Load && instruction.place.operand == product) places.push_back(instruction.place);
  return places.empty() ? std::vector{OperandPlace{.operand = product}} : places;
}

/// The remaining work after the GEMM, whose result is `product`; it is stored too if the step requests it.
ElementwiseProgram epilogueProgram(const CompileRequest& request, const OperandKey& product) {
  ElementwiseProgram program = composeProgram(request.graph, request.step, product.member + 1);
  if (findOperand(request, product)) {
    for (const OperandPlace& place : readPlaces(program, product)) {
      program.code.push_back({.opcode = Opcode::Load, .place = place});
      program.stores.push_back({.value = static_cast<ValueIndex>(program.code.size()) - 1, .place = place});
    }
  }
  for (Instruction& instruction : program.code)
    if (instruction.opcode == Opcode::Load && instruction.place.operand == product) instruction.place.operand = kSums;
  return program;
}

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  const Result<Binding> x = requireOperand(request, {0, OperandKind::Input, 0});
  if (!x) return x.error();
  const Result<Binding> weight = requireOperand(request, {0, OperandKind::Parameter, 0});
  if (!weight) return weight.error();
  const LinearSize size = linearSize(request.member(0), x->spec);
  GemmProblem problem = forwardProblem(request, size, *x, *weight, sumsType(request));
  const Binding bias = productBias(request, problem);
  if (bias) problem.biasType = bias.spec.dtype;
  const ElementwiseProgram program = epilogueProgram(request, bias ? kBiasOutput : kLinearOutput);
  Result<std::vector<PanelOperand>> operands = panelOperands(request, program, {kSums});
  if (!operands) return operands.error();
  std::optional<RowCopies> copies = rowCopiesOf(request);
  const auto drained = copies ? std::optional(copies->source()) : std::nullopt;
  PanelGemm gemm(problem, kSums, program, std::move(*operands), request.settings.threads, bias, drained);
  return std::unique_ptr<Kernel>(std::make_unique<LinearEpilogue>(std::move(gemm), *x, *weight, std::move(copies)));
}

}  // namespace linear_epilogue_parts
}  // namespace

KernelDef linear_epilogue();

KernelDef linear_epilogue() {
  using namespace linear_epilogue_parts;
  return {
      .name = "linear_epilogue",
      .phases = {Phase::Forward},
      .supports = [](const KernelQuery& query) { return areElementwise(query.graph, query.members.subspan(1)); },
      .compile = compile,
      .writesCopies = true,
      .multipliesCodes = true,
  };
}

}  // namespace fuseline::cpu::kernels
