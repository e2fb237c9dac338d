// Problems of linear layers in the terms of Gemm.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/linear_parts.h"

#include "core/plan/column_views.h"
#include "core/tensor/scaling.h"
#include "kernels/cuda/gemm/factor.h"
#include "kernels/cuda/gemm/quantized_result.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

/// Columnwise quantized tensors are stored transposed.
Storage2d storageOf(const Binding& factor, Storage2d plain) {
  const auto& form = factor.spec.quantized;
  const bool isFlipped = form && form->direction == Usage::Columnwise && traitsOf(form->scaling).isColumnwiseTransposed;
  if (!isFlipped) return plain;
  return plain == Storage2d::AsRead ? Storage2d::Transposed : Storage2d::AsRead;
}

std::optional<FactorCodes> codesOf(const Binding& factor) {
  const auto& form = factor.spec.quantized;
  return form ? std::optional(FactorCodes{form->format, form->scaling, form->isTransformed}) : std::nullopt;
}

struct PreparedProduct {
  std::unique_ptr<Gemm> gemm;
  GemmProblem solved;
  FactorWay way = FactorWay::AsTheyAre;
};

class Products final : public Kernel {
 public:
  explicit Products(Stream stream) : m_stream(stream) {}

  /// prepared: its problem is that of the GEMM in this form.
  void add(Product product, PreparedProduct prepared, std::optional<QuantizedResult> result) {
    FactorPair factors(product.a.spec, product.b.spec, prepared.way, prepared.solved);
    m_parts.push_back(
        {std::move(product), std::move(prepared.gemm), prepared.way, std::move(factors), std::move(result)});
  }

  std::size_t workspaceBytes() const override {
    std::size_t bytes = 0;
    for (const Part& part : m_parts)
      bytes = std::max(bytes, part.resultBytes() + part.factors.workspaceBytes() + part.gemm->workspaceBytes());
    return bytes;
  }

  std::vector<std::string> ways() const override {
    std::vector<std::string> ways;
    for (const Part& part : m_parts) {
      ways.push_back(describe(part.way));
      ways.push_back(part.gemm->way());
      if (part.result) ways.push_back(part.result->way());
    }
    std::erase(ways, "");
    return ways;
  }

  void run(Pointers pointers, std::byte* workspace) override {
    for (const Part& part : m_parts) {
      const Product& product = part.product;
      GemmPointers memory{.a = product.a.at(pointers),
                          .b = product.b.at(pointers),
                          .bias = product.bias.at(pointers),
                          .addend = product.addend.at(pointers),
                          .geluInput = product.geluInput.at(pointers),
                          .c = product.c.at(pointers),
                          .preActivation = product.preActivation.at(pointers),
                          .biasGrad = product.biasGrad.at(pointers)};
      std::byte* const factors = workspace + part.resultBytes();
      if (part.result) part.result->place(memory, pointers, workspace);
      part.factors.prepare(memory, factors, m_stream);
      part.gemm->multiply(memory, factors + part.factors.workspaceBytes(), m_stream);
      if (part.result) part.result->finish(memory, pointers);
    }
  }

 private:
  struct Part {
    Product product;
    std::unique_ptr<Gemm> gemm;
    FactorWay way;
    FactorPair factors;
    std::optional<QuantizedResult> result;

    std::size_t resultBytes() const { return result ? result->workspaceBytes() : 0; }
  };

  std::vector<Part> m_parts;
  Stream m_stream;
};

Result<PreparedProduct> prepareInWay(const GemmProblem& problem, FactorWay way, const DeviceContext& device) {
  const GemmProblem solved = inWay(problem, way);
  Result<std::unique_ptr<Gemm>> gemm = device.gemms->prepare(solved);
  if (!gemm) return gemm.error();
  return PreparedProduct{std::move(*gemm), solved, way};
}

/// Quantized factors that the library refuses are dequantized first; callers that do not want that ask
/// Backend::multiplies() before.
Result<PreparedProduct> prepareProduct(const GemmProblem& problem, const DeviceContext& device) {
  const FactorWay way = factorWayOf(problem, device.capability);
  Result<PreparedProduct> prepared = prepareInWay(problem, way, device);
  if (prepared || way == FactorWay::Decoded || !problem.aCodes) return prepared;
  return prepareInWay(problem, FactorWay::Decoded, device);
}

/// The GEMM writes a quantized result itself, if only the quantized one is read, of values that are not rounded before,
/// and the library can.
Result<PreparedProduct> prepareResult(const Product& product, const StepCopies& copies, const DeviceContext& device) {
  if (!copies.isUnrounded()) return prepareProduct(product.problem, device);
  GemmProblem quantizing = product.problem;
  quantizing.cFormat = copies.format();
  const FactorWay way = factorWayOf(quantizing, device.capability);
  if (!product.c && way == FactorWay::AsTheyAre)
    if (Result<PreparedProduct> prepared = prepareInWay(quantizing, way, device)) return prepared;
  return prepareProduct(product.problem, device);
}

Result<void> addTo(Products& kernel, const Product& product, const CompileRequest& request) {
  std::optional<StepCopies> copies;
  if (product.isQuantized) {
    Result<StepCopies> made = StepCopies::make(request);
    if (!made) return made.error();
    copies.emplace(std::move(*made));
  }
  Result<PreparedProduct> prepared =
      copies ? prepareResult(product, *copies, request.device) : prepareProduct(product.problem, request.device);
  if (!prepared) return prepared.error();
  std::optional<QuantizedResult> result;
  if (copies) result.emplace(std::move(*copies), prepared->solved, static_cast<bool>(product.c), request.device);
  kernel.add(product, std::move(*prepared), std::move(result));
  return {};
}

/// Nothing if it is not requested.
Result<std::optional<Product>> inputGrad(const CompileRequest& request, const LinearBackwardOptions& options) {
  const Result<LinearGradStep> step = readInputGrad(request, options.members);
  if (!step) return step.error();
  if (!step->isRequested) return std::optional<Product>();
  Product product{.problem = inputGradProblem(step->size, step->gradOutput, step->factor, step->result.spec),
                  .a = step->gradOutput,
                  .b = step->factor,
                  .c = step->result,
                  .isQuantized = !request.step.copies.empty()};
  setRows(product.problem, product.a, product.b, product.c);
  product.problem.alpha = options.alpha;
  if (options.extraGradient) product.addend = findOperand(request, *options.extraGradient);
  if (step->result.access == OperandAccess::Accumulate) product.addend = step->result;
  product.problem.hasAddend = static_cast<bool>(product.addend);
  if (options.geluInput) {
    const Result<Binding> x = requireOperand(request, *options.geluInput);
    if (!x) return x.error();
    product.geluInput = *x;
    product.problem.hasGeluGrad = true;
  }
  return std::optional(std::move(product));
}

/// Nothing if it is not requested.
Result<std::optional<Product>> weightGrad(const CompileRequest& request, const LinearBackwardOptions& options) {
  const Result<LinearGradStep> step = readWeightGrad(request, options.members);
  if (!step) return step.error();
  if (!step->isRequested) return std::optional<Product>();
  Product product{.problem = weightGradProblem(step->size, step->gradOutput, step->factor, step->result),
                  .a = step->gradOutput,
                  .b = step->factor,
                  .c = step->result};
  setRows(product.problem, product.a, product.b, product.c);
  product.problem.alpha = options.alpha;
  if (product.problem.hasAddend) product.addend = step->result;
  if (options.gradBias) product.biasGrad = findOperand(request, *options.gradBias);
  if (product.biasGrad) product.problem.biasGradType = product.biasGrad.spec.dtype;
  return std::optional(std::move(product));
}

}  // namespace

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

void setRows(GemmProblem& problem, const Binding& a, const Binding& b, const Binding& c) {
  problem.batch.aRow = a.rowStride;
  problem.batch.bRow = b.rowStride;
  problem.batch.cRow = c.rowStride;
  for (const Binding* const matrix : {&a, &b, &c})
    if (matrix->rowStride > 0)
      problem.alignmentBytes =
          std::gcd(problem.alignmentBytes, static_cast<std::uint32_t>(columnAlignment(matrix->spec)));
}

Result<std::unique_ptr<Kernel>> makeProducts(const CompileRequest& request, const std::vector<Product>& products) {
  auto kernel = std::make_unique<Products>(request.device.stream);
  for (const Product& product : products)
    if (Result<void> added = addTo(*kernel, product, request); !added) return added.error();
  return std::unique_ptr<Kernel>(std::move(kernel));
}

Result<std::unique_ptr<Kernel>> compileLinearBackward(const CompileRequest& request,
                                                      const LinearBackwardOptions& options) {
  std::vector<Product> products;
  for (const auto& gradient : {inputGrad, weightGrad}) {
    Result<std::optional<Product>> product = gradient(request, options);
    if (!product) return product.error();
    if (*product) products.push_back(std::move(**product));
  }
  return makeProducts(request, products);
}

Result<Binding> residualOf(const CompileRequest& request, int add) {
  if (const Binding swapped = findOperand(request, {add, OperandKind::Input, 0})) return swapped;
  return requireOperand(request, {add, OperandKind::Input, 1});
}

Verdict haveDTypeOfProduct(const Graph& graph, std::span<const NodeId> members) {
  const DType wanted = graph.value(graph.node(members.front()).outputs.front()).spec.dtype;
  for (const NodeId id : members.subspan(1)) {
    const Node& node = graph.node(id);
    bool fits = graph.value(node.outputs.front()).spec.dtype == wanted;
    for (const ValueId input : node.inputs) fits = fits && graph.value(input).spec.dtype == wanted;
    for (const TensorSpec& parameter : node.parameters) fits = fits && parameter.dtype == wanted;
    if (!fits)
      return Verdict::no(
          fmt::format("{} \"{}\" has tensors of another dtype than the GEMM's {}, which cuBLASLt cannot add. Give both "
                      "the same dtype.",
                      node.operation->name, node.id, dtypeName(wanted)));
  }
  return Verdict::yes();
}

Verdict scalesProduct(const Node& scale) {
  if (static_cast<float>(scale.attributes.real("scale")) != 0.0F) return Verdict::yes();
  return Verdict::no(fmt::format(
      "ConstantScale \"{}\" multiplies by 0, for which cuBLASLt skips the GEMM, so NaN and infinity would be lost.",
      scale.id));
}

Verdict fitsLibrary(const Graph& graph, const Node& linear) {
  const DType x = graph.value(linear.inputs.front()).spec.dtype;
  const DType y = graph.value(linear.outputs.front()).spec.dtype;
  const DType weight = linear.parameters.front().dtype;
  if (x == weight && x == y) return Verdict::yes();
  return Verdict::no(fmt::format(
      "{} \"{}\" has x in {}, the weight in {} and y in {}, but cuBLASLt needs one dtype. Give all three the same.",
      linear.operation->name, linear.id, dtypeName(x), dtypeName(weight), dtypeName(y)));
}

}  // namespace fuseline::cuda
