// Kernel "linear_epilogue": a linear layer whose GEMM adds a bias or is scaled, adds a residual, and applies GELU or
// ReLU.
//
// Limited to operations of cuBLASLt on its float32 accumulator: any later one would be a separate pass over y, which
// costs as much as the separate ops.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/shared_attributes.h"
#include "core/quant/apply_recipe.h"
#include "kernels/cuda/gemm/gemm_epilogue.h"
#include "kernels/cuda/gemm/linear_parts.h"
#include "kernels/cuda/gemm/quantized_result.h"

#include <fmt/format.h>

namespace fuseline::cuda::kernels {

namespace {
namespace linear_epilogue_parts {

/// The members after the linear layer; -1: there is none.
struct Epilogue {
  int bias = -1;
  int scale = -1;
  int add = -1;
  int activation = -1;
};

GemmActivation activationOf(const Node& node) {
  if (node.operation->name == "GELU" && !isExactGelu(node.attributes)) return GemmActivation::Gelu;
  return node.operation->name == "ReLU" ? GemmActivation::Relu : GemmActivation::None;
}

/// Errors: an op that the GEMM does not support.
Result<Epilogue> epilogueOf(const Graph& graph, std::span<const NodeId> members) {
  Epilogue epilogue;
  for (int member = 1; member < static_cast<int>(members.size()); ++member) {
    const Node& node = graph.node(members[static_cast<std::size_t>(member)]);
    const std::string& name = node.operation->name;
    const bool isFirst = member == 1;
    const bool isLast = member + 1 == static_cast<int>(members.size());
    if (name == "Bias" && isFirst)
      epilogue.bias = member;
    else if (name == "ConstantScale" && isFirst)
      epilogue.scale = member;
    else if (name == "AddExtraInput" && epilogue.add < 0)
      epilogue.add = member;
    else if (activationOf(node) != GemmActivation::None && isLast)
      epilogue.activation = member;
    else
      return Error{
          fmt::format("On the GPU {} \"{}\" after a linear op would be a separate pass over the GEMM's result, which "
                      "saves nothing.",
                      name, node.id)};
  }
  return epilogue;
}

/// Whether the GEMM can write the input of the activation, which backward reads.
Verdict keepsPreActivation(const Graph& graph, const Node& activation) {
  const std::int64_t cols = graph.value(activation.inputs.front()).spec.cols();
  if (activation.context.tensors.empty()) return Verdict::yes();
  if (activationOf(activation) == GemmActivation::Relu)
    return Verdict::no(fmt::format(
        "Backward of \"{}\" needs its input, but cuBLASLt's ReLU keeps only one bit per element.", activation.id));
  if (cols % kPreActivationColumns == 0) return Verdict::yes();
  return Verdict::no(
      fmt::format("Backward of \"{}\" needs its input, which cuBLASLt's GELU stores in rows of multiples of {} "
                  "elements, not of {}.",
                  activation.id, kPreActivationColumns, cols));
}

/// A scale that follows from the whole tensor is not known before all of it is there, and groups of rows are quantized
/// one by one.
bool isQuantizedAsMade(const Graph& graph, const Node& reader) {
  if (!reader.operation->isQuantizable || rowGroups(reader) > 0) return false;
  const TensorQuantizers& quantizers = quantizersOf(reader, TensorType::Input);
  const auto& quantizer = quantizers.rowwise ? quantizers.rowwise : quantizers.columnwise;
  if (!quantizer || isNvfp4(quantizer->scaling)) return false;
  return quantizer->scaling != Scaling::PerTensor || graph.delayedScaling();
}

/// The elementwise kernel quantizes its own result; a GEMM would write it, to be read again.
Verdict isNotQuantized(const Graph& graph, const Node& activation) {
  for (const Use& use : graph.value(activation.outputs.front()).uses)
    if (const Node& reader = graph.node(use.node); isQuantizedAsMade(graph, reader))
      return Verdict::no(
          fmt::format("{} \"{}\" consumes the quantized result of \"{}\". \"{}\" quantizes it while computing; after a "
                      "cuBLASLt GEMM, quantization would take another pass.",
                      reader.operation->name, reader.id, activation.id, activation.id));
  return Verdict::yes();
}

Verdict supportsActivation(const Graph& graph, const Node& activation) {
  if (const Verdict keeps = keepsPreActivation(graph, activation); !keeps) return keeps;
  return isNotQuantized(graph, activation);
}

Verdict supports(const KernelQuery& query) {
  if (const Verdict fits = fitsLibrary(query.graph, query.graph.node(query.members[0])); !fits) return fits;
  const Result<Epilogue> epilogue = epilogueOf(query.graph, query.members);
  if (!epilogue) return Verdict::no(epilogue.error().message);
  if (epilogue->scale > 0)
    if (const Verdict scales =
            scalesProduct(query.graph.node(query.members[static_cast<std::size_t>(epilogue->scale)]));
        !scales)
      return scales;
  if (epilogue->activation > 0)
    if (const Verdict fits = supportsActivation(query.graph, query.graph.node(query.members.back())); !fits)
      return fits;
  return haveDTypeOfProduct(query.graph, query.members);
}

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  const Result<Epilogue> epilogue = epilogueOf(request.graph, request.step.nodes);
  if (!epilogue) return epilogue.error();
  const int last = static_cast<int>(request.step.nodes.size()) - 1;
  const Result<LinearForwardStep> step = readLinearForward(request);
  if (!step) return step.error();
  Product product{.problem = forwardProblem(step->size, step->x, step->weight, step->y.spec),
                  .a = step->x,
                  .b = step->weight,
                  .c = step->y,
                  .isQuantized = !request.step.copies.empty()};
  setRows(product.problem, product.a, product.b, product.c);
  if (epilogue->bias > 0) product.bias = findOperand(request, {epilogue->bias, OperandKind::Parameter, 0});
  if (epilogue->scale > 0)
    product.problem.alpha =
        static_cast<float>(request.member(static_cast<std::size_t>(epilogue->scale)).attributes.real("scale"));
  if (epilogue->add > 0) {
    const Result<Binding> residual = residualOf(request, epilogue->add);
    if (!residual) return residual.error();
    product.addend = *residual;
  }
  if (epilogue->activation > 0) {
    product.problem.activation = activationOf(request.member(static_cast<std::size_t>(last)));
    product.preActivation = findOperand(request, {last - 1, OperandKind::Output, 0});
  }
  product.problem.hasPreActivation = static_cast<bool>(product.preActivation);
  product.problem.hasBias = static_cast<bool>(product.bias);
  product.problem.hasAddend = static_cast<bool>(product.addend);
  return makeProducts(request, {product});
}

}  // namespace linear_epilogue_parts
}  // namespace

KernelDef linear_epilogue();

KernelDef linear_epilogue() {
  using namespace linear_epilogue_parts;
  return {.name = "linear_epilogue",
          .phases = {Phase::Forward},
          .supports = supports,
          .compile = compile,
          .supportsCopies = canQuantizeResult};
}

}  // namespace fuseline::cuda::kernels
