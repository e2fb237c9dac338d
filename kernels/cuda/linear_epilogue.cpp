// Kernel "linear_epilogue": a linear layer whose product adds a bias or is scaled, and adds a residual.
//
// Only what cuBLASLt does on its float32 accumulator: anything behind that would be a pass of its own over y, which is
// what the separate ops cost.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/linear_parts.h"

#include <fmt/format.h>

namespace fuseline::cuda::kernels {

namespace {

/// The members behind the linear layer; -1: there is none.
struct Epilogue {
  int bias = -1;
  int scale = -1;
  int add = -1;
};

/// Errors: an op that the product cannot do.
Result<Epilogue> epilogueOf(const Graph& graph, std::span<const NodeId> members) {
  Epilogue epilogue;
  for (int member = 1; member < static_cast<int>(members.size()); ++member) {
    const Node& node = graph.node(members[static_cast<std::size_t>(member)]);
    const std::string& name = node.operation->name;
    const bool isFirst = member == 1;
    if (name == "Bias" && isFirst)
      epilogue.bias = member;
    else if (name == "ConstantScale" && isFirst)
      epilogue.scale = member;
    else if (name == "AddExtraInput" && epilogue.add < 0)
      epilogue.add = member;
    else
      return Error{
          fmt::format("On the GPU {} \"{}\" behind a linear op would be a pass of its own over the product, "
                      "which saves nothing.",
                      name, node.id)};
  }
  return epilogue;
}

Verdict supports(const KernelQuery& query) {
  if (const Verdict fits = fitsLibrary(query.graph, query.graph.node(query.members[0])); !fits) return fits;
  if (const Result<Epilogue> epilogue = epilogueOf(query.graph, query.members); !epilogue)
    return Verdict::no(epilogue.error().message);
  return haveDTypeOfProduct(query.graph, query.members);
}

/// The input of the addition that is not the product.
Result<Binding> residualOf(const CompileRequest& request, int add) {
  if (const Binding swapped = findOperand(request, {add, OperandKind::Input, 0})) return swapped;
  return requireOperand(request, {add, OperandKind::Input, 1});
}

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  const Result<Epilogue> epilogue = epilogueOf(request.graph, request.step.nodes);
  if (!epilogue) return epilogue.error();
  const int last = static_cast<int>(request.step.nodes.size()) - 1;
  const Result<Binding> x = requireOperand(request, {0, OperandKind::Input, 0});
  if (!x) return x.error();
  const Result<Binding> weight = requireOperand(request, {0, OperandKind::Parameter, 0});
  if (!weight) return weight.error();
  const Result<Binding> y = requireOperand(request, {last, OperandKind::Output, 0});
  if (!y) return y.error();
  Product product{.problem = forwardProblem(linearSize(request.member(0), x->spec), *x, *weight, y->spec),
                  .a = *x,
                  .b = *weight,
                  .c = *y};
  if (epilogue->bias > 0) product.bias = findOperand(request, {epilogue->bias, OperandKind::Parameter, 0});
  if (epilogue->scale > 0)
    product.problem.alpha =
        static_cast<float>(request.member(static_cast<std::size_t>(epilogue->scale)).attributes.real("scale"));
  if (epilogue->add > 0) {
    const Result<Binding> residual = residualOf(request, epilogue->add);
    if (!residual) return residual.error();
    product.addend = *residual;
  }
  product.problem.hasBias = static_cast<bool>(product.bias);
  product.problem.hasAddend = static_cast<bool>(product.addend);
  return makeProducts(request, {product});
}

}  // namespace

KernelDef linear_epilogue();

KernelDef linear_epilogue() {
  return {.name = "linear_epilogue", .phases = {Phase::Forward}, .supports = supports, .compile = compile};
}

}  // namespace fuseline::cuda::kernels
