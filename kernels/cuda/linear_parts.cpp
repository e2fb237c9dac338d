// Problems of linear layers in the terms of Gemm.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/linear_parts.h"

#include "core/tensor/scaling.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

/// The scale that stands behind the codes of a quantized copy.
const float* scaleAt(const Binding& factor, Pointers pointers) {
  const std::byte* const copy = factor.at(pointers);
  if (!copy || !factor.spec.quantized) return nullptr;
  return reinterpret_cast<const float*>(copy + partsOf(factor.spec).scalesOffset);
}

/// Columnwise copies stand as their transposes.
Storage2d storageOf(const Binding& factor, Storage2d plain) {
  const auto& form = factor.spec.quantized;
  const bool isFlipped =
      form && form->direction == Direction::Columnwise && traitsOf(form->scaling).isColumnwiseTransposed;
  if (!isFlipped) return plain;
  return plain == Storage2d::AsRead ? Storage2d::Transposed : Storage2d::AsRead;
}

std::optional<ElementFormat> codeOf(const Binding& factor) {
  return factor.spec.quantized ? std::optional(factor.spec.quantized->format) : std::nullopt;
}

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
                            .aScale = scaleAt(m_products[i].a, pointers),
                            .bScale = scaleAt(m_products[i].b, pointers),
                            .c = m_products[i].c.at(pointers)},
                           workspace);
  }

 private:
  std::vector<Product> m_products;
  std::vector<std::unique_ptr<Gemm>> m_gemms;
};

Result<Product> inputGrad(const CompileRequest& request, const LinearBackwardOptions& options,
                          const Binding& gradInput) {
  const Result<Binding> dy =
      requireOperand(request, {options.gradOutput, OperandKind::GradOutput, 0}, Direction::Rowwise);
  if (!dy) return dy.error();
  const Result<Binding> weight = requireOperand(request, {options.linear, OperandKind::Parameter, 0});
  if (!weight) return weight.error();
  const Node& node = request.member(static_cast<std::size_t>(options.linear));
  Product product{.problem = inputGradProblem(linearSize(node, gradInput.spec), *dy, *weight, gradInput.spec),
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
  const Result<Binding> dy =
      requireOperand(request, {options.gradOutput, OperandKind::GradOutput, 0}, Direction::Columnwise);
  if (!dy) return dy.error();
  const Result<Binding> x = requireOperand(request, {options.linear, OperandKind::Input, 0});
  if (!x) return x.error();
  const Node& node = request.member(static_cast<std::size_t>(options.linear));
  Product product{
      .problem = weightGradProblem(linearSize(node, x->spec), *dy, *x, gradWeight), .a = *dy, .b = *x, .c = gradWeight};
  product.problem.alpha = options.alpha;
  if (product.problem.hasAddend) product.addend = gradWeight;
  return product;
}

}  // namespace

LinearSize linearSize(const Node& node, const TensorSpec& x) {
  const Shape& weight = node.parameters.front().shape;
  return {.m = x.rows(), .n = weight[0], .k = weight[1]};
}

GemmProblem forwardProblem(const LinearSize& size, const Binding& x, const Binding& weight, const TensorSpec& y) {
  return {.m = size.m,
          .n = size.n,
          .k = size.k,
          .a = storageOf(x, Storage2d::AsRead),
          .b = storageOf(weight, Storage2d::Transposed),
          .factorType = x.spec.dtype,
          .aCode = codeOf(x),
          .bCode = codeOf(weight),
          .cType = y.dtype};
}

GemmProblem inputGradProblem(const LinearSize& size, const Binding& dy, const Binding& weight, const TensorSpec& dx) {
  return {.m = size.m,
          .n = size.k,
          .k = size.n,
          .a = storageOf(dy, Storage2d::AsRead),
          .b = storageOf(weight, Storage2d::AsRead),
          .factorType = dy.spec.dtype,
          .aCode = codeOf(dy),
          .bCode = codeOf(weight),
          .cType = dx.dtype};
}

GemmProblem weightGradProblem(const LinearSize& size, const Binding& dy, const Binding& x, const Binding& dw) {
  return {.m = size.n,
          .n = size.k,
          .k = size.m,
          .a = storageOf(dy, Storage2d::Transposed),
          .b = storageOf(x, Storage2d::AsRead),
          .factorType = dy.spec.dtype,
          .aCode = codeOf(dy),
          .bCode = codeOf(x),
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

namespace {

Verdict haveOneDType(const Graph& graph, const Node& linear) {
  const DType x = graph.value(linear.inputs.front()).spec.dtype;
  const DType y = graph.value(linear.outputs.front()).spec.dtype;
  const DType weight = linear.parameters.front().dtype;
  if (x == weight && x == y) return Verdict::yes();
  return Verdict::no(
      fmt::format("{} \"{}\" has x in {}, the weight in {} and y in {}, but cuBLASLt multiplies "
                  "matrices of one dtype. Give all three the same.",
                  linear.operation->name, linear.id, dtypeName(x), dtypeName(weight), dtypeName(y)));
}

/// Both factors of a product, or none.
Verdict arePair(const Node& linear, const std::optional<QuantizerSpec>& a, const std::optional<QuantizerSpec>& b) {
  const bool isMixed = a.has_value() != b.has_value();
  const bool areE5m2 = a && b && a->format == ElementFormat::E5M2 && b->format == ElementFormat::E5M2;
  if (!isMixed && !areE5m2) return fitsLibrary(a) ? fitsLibrary(b) : fitsLibrary(a);
  return Verdict::no(fmt::format("{} \"{}\" multiplies {}, which cuBLASLt cannot do. Choose another recipe.",
                                 linear.operation->name, linear.id,
                                 isMixed ? "a quantized matrix with a plain one" : "two matrices in e5m2"));
}

}  // namespace

Verdict fitsLibrary(const std::optional<QuantizerSpec>& quantizer) {
  if (!quantizer || quantizer->scaling == Scaling::PerTensor) return Verdict::yes();
  return Verdict::no(
      fmt::format("The CUDA backend quantizes with one scale a tensor only, not with {}. Choose the "
                  "recipe Float8CurrentScaling or DelayedScaling, or run on the device cpu.",
                  traitsOf(quantizer->scaling).name));
}

Verdict fitsLibrary(const Graph& graph, const Node& linear) {
  if (!linear.quantizers.any()) return haveOneDType(graph, linear);
  return Verdict::no(
      fmt::format("{} \"{}\" multiplies FP8 codes, which the CUDA backend does not fuse with other ops "
                  "yet.",
                  linear.operation->name, linear.id));
}

Verdict fitsLibraryOrIsQuantized(const Graph& graph, const Node& linear) {
  if (!linear.quantizers.any()) return fitsLibrary(graph, linear);
  const auto& [input, weight, gradOutput] = linear.quantizers;
  for (const TensorQuantizers* quantizers : {&input, &weight, &gradOutput})
    if (quantizers->isDequantizedInBackward)
      return Verdict::no(
          fmt::format("{} \"{}\" reads dequantized copies in backward, which the CUDA backend cannot do "
                      "yet. Run on the device cpu.",
                      linear.operation->name, linear.id));
  for (const Verdict& pair :
       {arePair(linear, input.rowwise, weight.rowwise), arePair(linear, gradOutput.rowwise, weight.columnwise),
        arePair(linear, gradOutput.columnwise, input.columnwise)})
    if (!pair) return pair;
  return haveOneDType(graph, linear);
}

}  // namespace fuseline::cuda
