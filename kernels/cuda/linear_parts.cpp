// Problems of linear layers in the terms of Gemm.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/linear_parts.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

class Products final : public Kernel {
 public:
  void add(Product product, std::unique_ptr<Gemm> gemm) {
    m_products.push_back(std::move(product));
    m_gemms.push_back(std::move(gemm));
  }

  std::size_t workspaceBytes() const override {
    std::size_t bytes = 0;
    for (const auto& gemm : m_gemms) bytes = std::max(bytes, gemm->workspaceBytes());
    return bytes;
  }

  void run(Pointers pointers, std::byte* workspace) override {
    for (std::size_t i = 0; i < m_gemms.size(); ++i)
      m_gemms[i]->multiply({.a = m_products[i].a.at(pointers),
                            .b = m_products[i].b.at(pointers),
                            .bias = m_products[i].bias.at(pointers),
                            .addend = m_products[i].addend.at(pointers),
                            .c = m_products[i].c.at(pointers)},
                           workspace);
  }

 private:
  std::vector<Product> m_products;
  std::vector<std::unique_ptr<Gemm>> m_gemms;
};

Result<Product> inputGrad(const CompileRequest& request, const LinearBackwardOptions& options,
                          const Binding& gradInput) {
  const Result<Binding> dy = requireOperand(request, {options.gradOutput, OperandKind::GradOutput, 0});
  if (!dy) return dy.error();
  const Result<Binding> weight = requireOperand(request, {options.linear, OperandKind::Parameter, 0});
  if (!weight) return weight.error();
  const Node& node = request.member(static_cast<std::size_t>(options.linear));
  Product product{.problem = inputGradProblem(linearSize(node, gradInput.spec), dy->spec, gradInput.spec),
                  .a = *dy,
                  .b = *weight,
                  .c = gradInput};
  product.problem.alpha = options.alpha;
  if (options.extraGradient) product.addend = findOperand(request, *options.extraGradient);
  product.problem.hasAddend = static_cast<bool>(product.addend);
  return product;
}

Result<Product> weightGrad(const CompileRequest& request, const LinearBackwardOptions& options,
                           const Binding& gradWeight) {
  const Result<Binding> dy = requireOperand(request, {options.gradOutput, OperandKind::GradOutput, 0});
  if (!dy) return dy.error();
  const Result<Binding> x = requireOperand(request, {options.linear, OperandKind::Input, 0});
  if (!x) return x.error();
  const Node& node = request.member(static_cast<std::size_t>(options.linear));
  Product product{.problem = weightGradProblem(linearSize(node, x->spec), dy->spec, gradWeight),
                  .a = *dy,
                  .b = *x,
                  .c = gradWeight};
  product.problem.alpha = options.alpha;
  if (product.problem.hasAddend) product.addend = gradWeight;
  return product;
}

}  // namespace

LinearSize linearSize(const Node& node, const TensorSpec& x) {
  const Shape& weight = node.parameters.front().shape;
  return {.m = x.rows(), .n = weight[0], .k = weight[1]};
}

GemmProblem forwardProblem(const LinearSize& size, const TensorSpec& x, const TensorSpec& y) {
  return {.m = size.m, .n = size.n, .k = size.k, .b = Storage2d::Transposed, .factorType = x.dtype, .cType = y.dtype};
}

GemmProblem inputGradProblem(const LinearSize& size, const TensorSpec& dy, const TensorSpec& dx) {
  return {.m = size.m, .n = size.k, .k = size.n, .factorType = dy.dtype, .cType = dx.dtype};
}

GemmProblem weightGradProblem(const LinearSize& size, const TensorSpec& dy, const Binding& dw) {
  return {.m = size.n,
          .n = size.k,
          .k = size.m,
          .a = Storage2d::Transposed,
          .factorType = dy.dtype,
          .cType = dw.spec.dtype,
          .hasAddend = dw.access == OperandAccess::Accumulate};
}

Result<std::unique_ptr<Kernel>> makeProducts(const CompileRequest& request, const std::vector<Product>& products) {
  auto kernel = std::make_unique<Products>();
  for (const Product& product : products) {
    Result<std::unique_ptr<Gemm>> gemm = request.device.gemms->prepare(product.problem);
    if (!gemm) return gemm.error();
    kernel->add(product, std::move(*gemm));
  }
  return std::unique_ptr<Kernel>(std::move(kernel));
}

Result<std::unique_ptr<Kernel>> compileLinearBackward(const CompileRequest& request,
                                                      const LinearBackwardOptions& options) {
  std::vector<Product> products;
  if (const Binding dx = findOperand(request, {options.gradInput, OperandKind::GradInput, 0})) {
    Result<Product> product = inputGrad(request, options, dx);
    if (!product) return product.error();
    products.push_back(std::move(*product));
  }
  if (const Binding dw = findOperand(request, {options.linear, OperandKind::GradParameter, 0})) {
    Result<Product> product = weightGrad(request, options, dw);
    if (!product) return product.error();
    products.push_back(std::move(*product));
  }
  return makeProducts(request, products);
}

Verdict fitsLibrary(const Graph& graph, const Node& linear) {
  if (linear.quantizers.any())
    return Verdict::no(
        fmt::format("{} \"{}\" multiplies quantized copies, which the CUDA backend cannot do yet. Run "
                    "on the device cpu, or without a recipe.",
                    linear.operation->name, linear.id));
  const DType x = graph.value(linear.inputs.front()).spec.dtype;
  const DType y = graph.value(linear.outputs.front()).spec.dtype;
  const DType weight = linear.parameters.front().dtype;
  if (x == weight && x == y) return Verdict::yes();
  return Verdict::no(
      fmt::format("{} \"{}\" has x in {}, the weight in {} and y in {}, but cuBLASLt multiplies "
                  "matrices of one dtype. Give all three the same.",
                  linear.operation->name, linear.id, dtypeName(x), dtypeName(weight), dtypeName(y)));
}

}  // namespace fuseline::cuda
