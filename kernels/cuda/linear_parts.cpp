// Problems of linear layers in the terms of Gemm.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/linear_parts.h"

#include "core/quant/scale_layout.h"
#include "core/tensor/scaling.h"
#include "kernels/cuda/scale_launch.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

/// Columnwise copies stand as their transposes.
Storage2d storageOf(const Binding& factor, Storage2d plain) {
  const auto& form = factor.spec.quantized;
  const bool isFlipped =
      form && form->direction == Direction::Columnwise && traitsOf(form->scaling).isColumnwiseTransposed;
  if (!isFlipped) return plain;
  return plain == Storage2d::AsRead ? Storage2d::Transposed : Storage2d::AsRead;
}

std::optional<FactorCodes> codesOf(const Binding& factor) {
  const auto& form = factor.spec.quantized;
  return form ? std::optional(FactorCodes{form->format, form->scaling}) : std::nullopt;
}

/// The scales of one factor: those behind its codes, or a copy of them in the workspace, in cuBLASLt's layout.
class FactorScales {
 public:
  explicit FactorScales(Binding factor) : m_factor(std::move(factor)) {
    const auto& form = m_factor.spec.quantized;
    if (!form || form->scaling == Scaling::PerTensor) return;
    m_map = scaleMapOf(m_factor.spec, form->scaling, form->direction);
    m_scaleBytes = traitsOf(form->scaling).scaleFormat == ScaleFormat::F32 ? sizeof(float) : 1;
  }

  std::size_t workspaceBytes() const {
    if (!m_map) return 0;
    const auto scales = static_cast<std::size_t>(m_map->paddedOuter() * m_map->paddedInner());
    return roundedUp(scales * m_scaleBytes);
  }

  /// workspace: as many bytes as asked for.
  const std::byte* arrange(Pointers pointers, std::byte* workspace, Stream stream) const {
    const std::byte* const copy = m_factor.at(pointers);
    if (!copy || !m_factor.spec.quantized) return nullptr;
    const std::byte* const scales = copy + partsOf(m_factor.spec).scalesOffset;
    if (!m_map) return scales;
    launchArrangeScales({.from = scales, .to = workspace, .scaleBytes = static_cast<int>(m_scaleBytes), .map = *m_map},
                        stream);
    return workspace;
  }

 private:
  /// Products read their scales in whole accesses.
  static std::size_t roundedUp(std::size_t bytes) {
    constexpr std::size_t kAlignment = 256;
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  Binding m_factor;
  std::optional<ScaleMap> m_map;
  std::size_t m_scaleBytes = 0;
};

class Products final : public Kernel {
 public:
  explicit Products(Stream stream) : m_stream(stream) {}

  void add(Product product, std::unique_ptr<Gemm> gemm) {
    FactorScales aScales(product.a);
    FactorScales bScales(product.b);
    m_parts.push_back({std::move(product), std::move(gemm), std::move(aScales), std::move(bScales)});
  }

  std::size_t workspaceBytes() const override {
    std::size_t bytes = 0;
    for (const Part& part : m_parts) bytes = std::max(bytes, part.scalesBytes() + part.gemm->workspaceBytes());
    return bytes;
  }

  void run(Pointers pointers, std::byte* workspace) override {
    for (const Part& part : m_parts) {
      const Product& product = part.product;
      std::byte* const bScales = workspace + part.aScales.workspaceBytes();
      part.gemm->multiply({.a = product.a.at(pointers),
                           .b = product.b.at(pointers),
                           .bias = product.bias.at(pointers),
                           .addend = product.addend.at(pointers),
                           .aScales = part.aScales.arrange(pointers, workspace, m_stream),
                           .bScales = part.bScales.arrange(pointers, bScales, m_stream),
                           .c = product.c.at(pointers)},
                          workspace + part.scalesBytes());
    }
  }

 private:
  struct Part {
    Product product;
    std::unique_ptr<Gemm> gemm;
    FactorScales aScales;
    FactorScales bScales;
    std::size_t scalesBytes() const { return aScales.workspaceBytes() + bScales.workspaceBytes(); }
  };

  std::vector<Part> m_parts;
  Stream m_stream;
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
  return {.m = x.rows(), .n = weight[0], .k = weight[1], .split = node.quantizers.splitAccumulators};
}

GemmProblem forwardProblem(const LinearSize& size, const Binding& x, const Binding& weight, const TensorSpec& y) {
  return {.m = size.m,
          .n = size.n,
          .k = size.k,
          .a = storageOf(x, Storage2d::AsRead),
          .b = storageOf(weight, Storage2d::Transposed),
          .factorType = x.spec.dtype,
          .aCodes = codesOf(x),
          .bCodes = codesOf(weight),
          .isFastAccumulated = x.spec.quantized && !size.split.fprop,
          .cType = y.dtype};
}

GemmProblem inputGradProblem(const LinearSize& size, const Binding& dy, const Binding& weight, const TensorSpec& dx) {
  return {.m = size.m,
          .n = size.k,
          .k = size.n,
          .a = storageOf(dy, Storage2d::AsRead),
          .b = storageOf(weight, Storage2d::AsRead),
          .factorType = dy.spec.dtype,
          .aCodes = codesOf(dy),
          .bCodes = codesOf(weight),
          .isFastAccumulated = dy.spec.quantized && !size.split.dgrad,
          .cType = dx.dtype};
}

GemmProblem weightGradProblem(const LinearSize& size, const Binding& dy, const Binding& x, const Binding& dw) {
  return {.m = size.n,
          .n = size.k,
          .k = size.m,
          .a = storageOf(dy, Storage2d::Transposed),
          .b = storageOf(x, Storage2d::AsRead),
          .factorType = dy.spec.dtype,
          .aCodes = codesOf(dy),
          .bCodes = codesOf(x),
          .isFastAccumulated = dy.spec.quantized && !size.split.wgrad,
          .cType = dw.spec.dtype,
          .hasAddend = dw.access == OperandAccess::Accumulate};
}

Result<std::unique_ptr<Kernel>> makeProducts(const CompileRequest& request, const std::vector<Product>& products) {
  auto kernel = std::make_unique<Products>(request.device.stream);
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
  if (!quantizer || quantizer->format == ElementFormat::E4M3 || quantizer->format == ElementFormat::E5M2)
    return Verdict::yes();
  return Verdict::no(
      fmt::format("The CUDA backend has no kernels for {} with {} yet. Choose a recipe of FP8, or run on the device "
                  "cpu.",
                  formatName(quantizer->format), traitsOf(quantizer->scaling).name));
}

Verdict fitsLibrary(const Graph& graph, const Node& linear) {
  const auto& [input, weight, gradOutput, splitAccumulators] = linear.quantizers;
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
