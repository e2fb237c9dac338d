// Kernel "TiedLinear": the GEMMs of BasicLinear with a weight that is an input.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/tied_linear_step.h"
#include "kernels/cpu/gemm/linear_parts.h"

#include <algorithm>
#include <optional>

namespace fuseline::cpu::kernels {

KernelDef tied_linear();

namespace {
namespace tied_linear_parts {

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

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request) {
  const Result<LinearForwardStep> step = readTiedForward(request);
  if (!step) return step.error();
  GemmProblem problem = forwardProblem(request, step->size, step->x, step->weight, step->y.spec.dtype);
  problem.packing = Packing::EveryRun;
  std::vector<BoundProduct> products;
  products.emplace_back(problem, step->x, step->weight, step->y);
  return std::unique_ptr<Kernel>(std::make_unique<Products>(std::move(products)));
}

Result<std::unique_ptr<Kernel>> compileBackward(const CompileRequest& request) {
  const Result<LinearGradStep> x = readTiedInputGrad(request);
  if (!x) return x.error();
  const Result<LinearGradStep> weight = readTiedWeightGrad(request);
  if (!weight) return weight.error();
  std::vector<BoundProduct> products;
  if (x->result)
    products.emplace_back(inputGradProblem(request, x->size, x->gradOutput, x->factor, x->result.spec.dtype),
                          x->gradOutput, x->factor, x->result);
  if (weight->result)
    products.emplace_back(weightGradProblem(request, weight->size, weight->gradOutput, weight->factor, weight->result),
                          weight->gradOutput, weight->factor, weight->result);
  return std::unique_ptr<Kernel>(std::make_unique<Products>(std::move(products)));
}

}  // namespace tied_linear_parts
}  // namespace

KernelDef tied_linear() {
  using namespace tied_linear_parts;
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
