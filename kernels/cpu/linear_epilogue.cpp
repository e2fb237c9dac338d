// Kernel "linear_epilogue": a linear layer and the elementwise ops behind it, in one program on the product's result.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/linear_parts.h"
#include "kernels/cpu/panel_gemm.h"
#include "kernels/cpu/strip_step.h"

namespace fuseline::cpu::kernels {

namespace {

/// Names the product's result in the program; the linear's own output may be an operand too, when it is saved.
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

bool isMember(const CompileRequest& request, int member, std::string_view operation) {
  return member < static_cast<int>(request.step.nodes.size()) &&
         request.member(static_cast<std::size_t>(member)).operation->name == operation;
}

/// What the product does itself: its terms, and the tensor that it gives.
struct Product {
  ProductTerms terms;
  OperandKey result = kLinearOutput;
};

/// The operand as a term of the product, if the library can add it and nobody wants the sum without it.
Binding termOf(const CompileRequest& request, const GemmProblem& problem, const OperandKey& without,
               const OperandKey& key) {
  const Binding term = findOperand(request, key);
  const bool isAddable = term && canAdd(problem, term.spec.dtype) && !findOperand(request, without);
  return isAddable ? term : Binding{};
}

/// A Bias and an AddExtraInput behind the linear layer are terms of its product.
Product productOf(const CompileRequest& request, const GemmProblem& problem) {
  Product product;
  if (isMember(request, 1, "Bias"))
    product.terms.bias = termOf(request, problem, product.result, {1, OperandKind::Parameter, 0});
  if (product.terms.bias) product.result.member = 1;
  const int next = product.result.member + 1;
  if (isMember(request, next, "AddExtraInput"))
    product.terms.addend = termOf(request, problem, product.result, {next, OperandKind::Input, 1});
  if (product.terms.addend) product.result.member = next;
  return product;
}

/// What is left after the product, which gives `product`; stored too if the step wants it.
ElementwiseProgram epilogueProgram(const CompileRequest& request, const OperandKey& product) {
  ElementwiseProgram program = composeProgram(request.graph, request.step, product.member + 1);
  for (Instruction& instruction : program.code)
    if (instruction.opcode == Opcode::Load && instruction.place.operand == product) instruction.place.operand = kSums;
  if (!findOperand(request, product)) return program;
  program.code.push_back({.opcode = Opcode::Load, .place = {.operand = kSums}});
  program.stores.push_back({.value = static_cast<ValueIndex>(program.code.size()) - 1, .place = {.operand = product}});
  return program;
}

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  const Result<Binding> x = requireOperand(request, {0, OperandKind::Input, 0});
  if (!x) return x.error();
  const Result<Binding> weight = requireOperand(request, {0, OperandKind::Parameter, 0});
  if (!weight) return weight.error();
  const LinearSize size = linearSize(request.member(0), x->spec);
  const DType separate = request.graph.spec(request.step.nodes.front(), OperandKind::Output, 0).dtype;
  GemmProblem problem = forwardProblem(request, size, x->spec.dtype, weight->spec.dtype, separate);
  const Product product = productOf(request, problem);
  if (product.terms.bias) problem.biasType = separate;
  if (product.terms.addend) problem.addendType = separate;
  const ElementwiseProgram program = epilogueProgram(request, product.result);
  Result<std::vector<PanelOperand>> operands = panelOperands(request, program, {kSums});
  if (!operands) return operands.error();
  PanelGemm gemm(problem, kSums, program, std::move(*operands), request.settings.threads, product.terms);
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
