// Makes ops of scalar functions.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation.h"

#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr const char* kCategory = "Activation";

// The lanes of a gate's x: a is activated, b is the linear half.
constexpr int kActivated = 0;
constexpr int kLinear = 1;

using References = std::span<const ReferenceTensor>;
using Specs = std::span<const TensorSpec>;

// ---- unary

void setMathematics(BasicOperation& op, const ScalarFunction& f) {
  op.infer = [](const Attributes&, Specs inputs) -> Result<OperationSpecs> {
    return OperationSpecs{.outputs = {inputs[0]}};
  };
  op.flops = [f](const Attributes&, Specs inputs) -> FlopCount {
    const std::int64_t elements = inputs[0].numElements();
    return {.forward = f.valueFlops * elements, .backward = (f.slopeFlops + 1) * elements};
  };
  op.forwardCompute = [f](const Attributes&, References inputs, References) -> ReferenceForward {
    return {.outputs = {mapped(inputs[0], f.value)}};
  };
  op.backwardCompute = [f](const Attributes&, const SavedValues& saved, References gradOutputs) -> ReferenceBackward {
    return {.inputs = {combined(gradOutputs[0], saved.input(), [&](double dy, double x) { return dy * f.slope(x); })}};
  };
}

ElementwiseDefinition unaryDefinition(const ScalarFunction& f) {
  return {.forward = [f](ElementwiseBuilder& e, const Attributes&) { e.output(0, f.valueExpression(e, e.input())); },
          .backward =
              [f](ElementwiseBuilder& e, const Attributes&) {
                const ValueIndex dy = e.gradOutput();
                e.gradInput(0, e.mul(dy, f.slopeExpression(e, e.savedInput())));
              }};
}

// ---- gated

Result<OperationSpecs> inferHalved(const std::string& name, const TensorSpec& x) {
  if (x.shape.empty())
    return Error{fmt::format("{}: x is a scalar, but its last axis is to be split in two halves.", name)};
  if (x.cols() % 2 != 0)
    return Error{fmt::format("{}: the last axis of x has {} elements, but it is split in two halves and must be even.",
                             name, x.cols())};
  TensorSpec y = x;
  y.shape.back() /= 2;
  return OperationSpecs{.outputs = {y}};
}

FlopCount gatedFlops(const GateFunctions& gate, std::int64_t elements) {
  const ScalarFunction& f = gate.activated;
  FlopCount each{.forward = f.valueFlops + 1, .backward = f.valueFlops + f.slopeFlops + 3};
  if (gate.linear) {
    each.forward += gate.linear->valueFlops;
    each.backward += gate.linear->valueFlops + gate.linear->slopeFlops + 1;
  }
  return {.forward = each.forward * elements, .backward = each.backward * elements};
}

/// Calls f(a, b, out) with the indices of every pair of halves and of its output element. x: [..., 2H].
template <class Function>
void forEachPair(const ReferenceTensor& x, Function f) {
  const auto H = static_cast<std::size_t>(x.cols() / 2);
  const auto rows = static_cast<std::size_t>(x.rows());
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t col = 0; col < H; ++col) f(row * 2 * H + col, row * 2 * H + H + col, row * H + col);
}

ReferenceForward gatedForward(const GateFunctions& gate, const ReferenceTensor& x) {
  Shape shape = x.shape;
  shape.back() /= 2;
  ReferenceTensor y = referenceZeros(shape);
  forEachPair(x, [&](std::size_t a, std::size_t b, std::size_t out) {
    const double linear = gate.linear ? gate.linear->value(x.values[b]) : x.values[b];
    y.values[out] = gate.activated.value(x.values[a]) * linear;
  });
  return {.outputs = {y}};
}

ReferenceBackward gatedBackward(const GateFunctions& gate, const ReferenceTensor& x, const std::vector<double>& dy) {
  ReferenceTensor dx = referenceZeros(x.shape);
  forEachPair(x, [&](std::size_t a, std::size_t b, std::size_t out) {
    const double linear = gate.linear ? gate.linear->value(x.values[b]) : x.values[b];
    const double linearSlope = gate.linear ? gate.linear->slope(x.values[b]) : 1.0;
    dx.values[a] = gate.activated.slope(x.values[a]) * dy[out] * linear;
    dx.values[b] = gate.activated.value(x.values[a]) * dy[out] * linearSlope;
  });
  return {.inputs = {dx}};
}

void defineGatedForward(ElementwiseBuilder& e, const GateFunctions& gate) {
  const ValueIndex a = e.input(0, kActivated);
  const ValueIndex b = e.input(0, kLinear);
  const ValueIndex activated = gate.activated.valueExpression(e, a);
  e.output(0, e.mul(activated, gate.linear ? gate.linear->valueExpression(e, b) : b));
}

void defineGatedBackward(ElementwiseBuilder& e, const GateFunctions& gate) {
  const ValueIndex a = e.savedInput(0, kActivated);
  const ValueIndex b = e.savedInput(0, kLinear);
  const ValueIndex dy = e.gradOutput();
  const ValueIndex linear = gate.linear ? gate.linear->valueExpression(e, b) : b;
  e.gradInput(0, e.mul(e.mul(gate.activated.slopeExpression(e, a), dy), linear), kActivated);
  const ValueIndex activated = e.mul(gate.activated.valueExpression(e, a), dy);
  e.gradInput(0, gate.linear ? e.mul(activated, gate.linear->slopeExpression(e, b)) : activated, kLinear);
}

void setMathematics(BasicOperation& op, const GatedActivation& activation) {
  op.infer = [name = activation.name, check = activation.check](const Attributes& attributes,
                                                                Specs inputs) -> Result<OperationSpecs> {
    if (std::optional<Error> error = check ? check(attributes) : std::nullopt) return *error;
    return inferHalved(name, inputs[0]);
  };
  op.flops = [functions = activation.functions](const Attributes& attributes, Specs inputs) {
    return gatedFlops(functions(attributes), inputs[0].numElements() / 2);
  };
  op.forwardCompute = [functions = activation.functions](const Attributes& attributes, References inputs, References) {
    return gatedForward(functions(attributes), inputs[0]);
  };
  op.backwardCompute = [functions = activation.functions](const Attributes& attributes, const SavedValues& saved,
                                                          References gradOutputs) {
    return gatedBackward(functions(attributes), saved.input(), gradOutputs[0].values);
  };
}

ElementwiseDefinition gatedDefinition(const std::function<GateFunctions(const Attributes&)>& functions) {
  return {.forward = [functions](ElementwiseBuilder& e,
                                 const Attributes& attributes) { defineGatedForward(e, functions(attributes)); },
          .backward = [functions](ElementwiseBuilder& e,
                                  const Attributes& attributes) { defineGatedBackward(e, functions(attributes)); },
          .isGated = true};
}

}  // namespace

BasicOperation unaryActivation(UnaryActivation activation) {
  BasicOperation op{.name = std::move(activation.name),
                    .category = kCategory,
                    .summary = std::move(activation.summary),
                    .formula = std::move(activation.formula),
                    .derivative = std::move(activation.derivative),
                    .source = std::move(activation.source),
                    .keywords = std::move(activation.keywords),
                    .inputs = {{"x", "[...]", "Any shape."}},
                    .outputs = {{"y", "[...]", "The shape and dtype of x."}},
                    .saveContext = saveInput,
                    .elementwise = unaryDefinition(activation.function)};
  setMathematics(op, activation.function);
  return op;
}

BasicOperation gatedActivation(GatedActivation activation) {
  BasicOperation op{.name = activation.name,
                    .category = kCategory,
                    .summary = std::move(activation.summary),
                    .formula = std::move(activation.formula),
                    .derivative = std::move(activation.derivative),
                    .source = std::move(activation.source),
                    .keywords = std::move(activation.keywords),
                    .inputs = {{"x", "[..., 2H]",
                                "The FIRST half, a, is activated; the second, b, multiplies it: the opposite of "
                                "PyTorch's GLU."}},
                    .outputs = {{"y", "[..., H]", "Half as wide as x, in its dtype."}},
                    .attributes = std::move(activation.attributes),
                    .saveContext = saveInput,
                    .elementwise = gatedDefinition(activation.functions)};
  setMathematics(op, activation);
  return op;
}

std::function<GateFunctions(const Attributes&)> activatedBy(ScalarFunction function) {
  return [function = std::move(function)](const Attributes&) { return GateFunctions{.activated = function}; };
}

}  // namespace fuseline
