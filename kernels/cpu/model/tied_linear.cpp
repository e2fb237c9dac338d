// Kernel "TiedLinear": the GEMMs of BasicLinear with a weight that is an input.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/linear_parts.h"

#include <algorithm>
#include <optional>

namespace fuseline::cpu::kernels {

KernelDef tied_linear();

namespace {

/// C = A B of the step's operands.
class BoundProduct {
 public:
  BoundProduct(const GemmProblem& problem, Binding a, Binding b, Binding c)
      : m_gemm(problem), m_a(std::move(a)), m_b(std::move(b)), m_c(std::move(c)) {}
  std::size_t workspaceBytes() const { return m_gemm.workspaceBytes(); }
  void run(Pointers pointers, std::byte* workspace) {
    m_gemm.multiply(m_a.at(pointers), m_b.at(pointers), m_c.at(pointers), workspace);
  }

 private:
  Gemm m_gemm;
  Binding m_a, m_b, m_c;
};

class Products final : public Kernel {
 public:
  explicit Products(std::vector<BoundProduct> products) : m_products(std::move(products)) {}
  std::size_t workspaceBytes() const override {
    std::size_t most = 0;
    for (const BoundProduct& product : m_products) most = std::max(most, product.workspaceBytes());
    return most;
  }
  void run(Pointers pointers, std::byte* workspace) override {
    for (BoundProduct& product : m_products) product.run(pointers, workspace);
  }

 private:
  std::vector<BoundProduct> m_products;
};

LinearSize sizeOf(const CompileRequest& request) {
  const std::vector<TensorSpec> inputs = request.graph.inputSpecs(request.step.nodes.front());
  return {.m = inputs[0].rows(), .n = inputs[1].shape[0], .k = inputs[1].shape[1]};
}

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request) {
  const Result<Binding> x = requireOperand(request, {0, OperandKind::Input, 0});
  if (!x) return x.error();
  const Result<Binding> weight = requireOperand(request, {0, OperandKind::Input, 1});
  if (!weight) return weight.error();
  const Result<Binding> y = requireOperand(request, {0, OperandKind::Output, 0});
  if (!y) return y.error();
  GemmProblem problem = forwardProblem(request, sizeOf(request), *x, *weight, y->spec.dtype);
  problem.packing = Packing::EveryRun;
  std::vector<BoundProduct> products;
  products.emplace_back(problem, *x, *weight, *y);
  return std::unique_ptr<Kernel>(std::make_unique<Products>(std::move(products)));
}

Result<std::unique_ptr<Kernel>> compileBackward(const CompileRequest& request) {
  const Result<Binding> dy = requireOperand(request, {0, OperandKind::GradOutput, 0});
  if (!dy) return dy.error();
  const LinearSize size = sizeOf(request);
  std::vector<BoundProduct> products;
  if (const Binding dx = findOperand(request, {0, OperandKind::GradInput, 0})) {
    const Result<Binding> weight = requireOperand(request, {0, OperandKind::Input, 1});
    if (!weight) return weight.error();
    products.emplace_back(inputGradProblem(request, size, *dy, *weight, dx.spec.dtype), *dy, *weight, dx);
  }
  if (const Binding dw = findOperand(request, {0, OperandKind::GradInput, 1})) {
    const Result<Binding> x = requireOperand(request, {0, OperandKind::Input, 0});
    if (!x) return x.error();
    products.emplace_back(weightGradProblem(request, size, *dy, *x, dw), *dy, *x, dw);
  }
  return std::unique_ptr<Kernel>(std::make_unique<Products>(std::move(products)));
}

}  // namespace

KernelDef tied_linear() {
  return {
      .name = "TiedLinear",
      .phases = {Phase::Forward, Phase::Backward},
      .compile =
          [](const CompileRequest& request) {
            return request.step.phase == Phase::Forward ? compileForward(request) : compileBackward(request);
          },
  };
}

}  // namespace fuseline::cpu::kernels
