// Makes ops of scalar functions.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation.h"

#include "core/ops/cached_input.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <array>
#include <functional>
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

using FunctionOf = std::function<ScalarFunction(const Attributes&)>;

void setMathematics(BasicOperation& op, const UnaryActivation& activation) {
  op.infer = [check = activation.check](const Attributes& attributes, Specs inputs) -> Result<OperationSpecs> {
    if (std::optional<Error> error = check ? check(attributes) : std::nullopt) return *error;
    return OperationSpecs{.outputs = {inputs[0]}};
  };
  op.flops = [function = activation.function](const Attributes& attributes, Specs inputs) -> FlopCount {
    const ScalarFunction f = function(attributes);
    const std::int64_t elements = inputs[0].numElements();
    return {.forward = f.valueFlops * elements, .backward = (f.slopeFlops + 1) * elements};
  };
  op.forwardCompute = [function = activation.function](const Attributes& attributes, References inputs,
                                                       References) -> ReferenceForward {
    return {.outputs = {mapped(inputs[0], function(attributes).value)}};
  };
  op.backwardCompute = [function = activation.function](const Attributes& attributes, const SavedValues& saved,
                                                        References gradOutputs) -> ReferenceBackward {
    const ScalarFunction f = function(attributes);
    return {.inputs = {combined(gradOutputs[0], saved.input(), [&](double dy, double x) { return dy * f.slope(x); })}};
  };
}

/// An activation in the elementwise language: its value, and its gradients from that of the value.
struct Expressions {
  std::function<ValueIndex(ElementwiseBuilder&, const Attributes&)> value;
  std::function<void(ElementwiseBuilder&, const Attributes&, ValueIndex dy)> writeGradients;
};

Expressions unaryExpressions(const FunctionOf& function) {
  return {
      .value = [function](ElementwiseBuilder& e,
                          const Attributes& attributes) { return function(attributes).valueExpression(e, e.input()); },
      .writeGradients =
          [function](ElementwiseBuilder& e, const Attributes& attributes, ValueIndex dy) {
            e.gradInput(0, e.mul(dy, function(attributes).slopeExpression(e, e.savedInput())));
          }};
}

ElementwiseDefinition definitionOf(const Expressions& activation) {
  return {.forward = [activation](ElementwiseBuilder& e,
                                  const Attributes& attributes) { e.output(0, activation.value(e, attributes)); },
          .backward = [activation](
                          ElementwiseBuilder& e,
                          const Attributes& attributes) { activation.writeGradients(e, attributes, e.gradOutput()); }};
}

// ---- gated

constexpr const char* kInterleave = "glu_interleave_size";
constexpr const char* kRecompute = "activation_recompute_in_mlp";
/// TransformerEngine's kernels for scaled gates copy blocks of this number of elements.
constexpr std::int64_t kScaledBlock = 32;

/// 0: a and b are halves.
std::int64_t interleaveOf(const Attributes& attributes) {
  return attributes.has(kInterleave) ? attributes.integer(kInterleave) : 0;
}

std::optional<Error> checkInterleave(const std::string& name, const Attributes& attributes, const TensorSpec& x) {
  const std::int64_t interleave = interleaveOf(attributes);
  if (interleave == 0 || x.cols() % (2 * interleave) == 0) return std::nullopt;
  return Error{
      fmt::format("{}: the last axis of x has {} elements, but with {} {} it must be a multiple of {} (a block of a "
                  "and a block of b).",
                  name, x.cols(), kInterleave, interleave, 2 * interleave)};
}

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

/// Calls f(a, b, out) with the indices of every pair and of its output element. x: [..., 2H], in halves or in blocks.
template <class Function>
void forEachPair(const ReferenceTensor& x, std::int64_t interleave, Function f) {
  const std::int64_t H = x.cols() / 2;
  const std::int64_t block = interleave == 0 ? H : interleave;
  for (std::int64_t row = 0; row < x.rows(); ++row)
    for (std::int64_t col = 0; col < H; ++col) {
      const std::int64_t a = row * 2 * H + col / block * 2 * block + col % block;
      f(static_cast<std::size_t>(a), static_cast<std::size_t>(a + block), static_cast<std::size_t>(row * H + col));
    }
}

ReferenceForward gatedForward(const GateFunctions& gate, const ReferenceTensor& x, std::int64_t interleave) {
  Shape shape = x.shape;
  shape.back() /= 2;
  ReferenceTensor y = referenceZeros(shape);
  forEachPair(x, interleave, [&](std::size_t a, std::size_t b, std::size_t out) {
    const double linear = gate.linear ? gate.linear->value(x.values[b]) : x.values[b];
    y.values[out] = gate.activated.value(x.values[a]) * linear;
  });
  return {.outputs = {y}};
}

ReferenceBackward gatedBackward(const GateFunctions& gate, const ReferenceTensor& x, const std::vector<double>& dy,
                                std::int64_t interleave) {
  ReferenceTensor dx = referenceZeros(x.shape);
  forEachPair(x, interleave, [&](std::size_t a, std::size_t b, std::size_t out) {
    const double linear = gate.linear ? gate.linear->value(x.values[b]) : x.values[b];
    const double linearSlope = gate.linear ? gate.linear->slope(x.values[b]) : 1.0;
    dx.values[a] = gate.activated.slope(x.values[a]) * dy[out] * linear;
    dx.values[b] = gate.activated.value(x.values[a]) * dy[out] * linearSlope;
  });
  return {.inputs = {dx}};
}

ValueIndex gatedValue(ElementwiseBuilder& e, const GateFunctions& gate) {
  const ValueIndex a = e.input(0, kActivated);
  const ValueIndex b = e.input(0, kLinear);
  const ValueIndex activated = gate.activated.valueExpression(e, a);
  return e.mul(activated, gate.linear ? gate.linear->valueExpression(e, b) : b);
}

void writeGatedGradients(ElementwiseBuilder& e, const GateFunctions& gate, ValueIndex dy) {
  const ValueIndex a = e.savedInput(0, kActivated);
  const ValueIndex b = e.savedInput(0, kLinear);
  const ValueIndex linear = gate.linear ? gate.linear->valueExpression(e, b) : b;
  e.gradInput(0, e.mul(e.mul(gate.activated.slopeExpression(e, a), dy), linear), kActivated);
  const ValueIndex activated = e.mul(gate.activated.valueExpression(e, a), dy);
  e.gradInput(0, gate.linear ? e.mul(activated, gate.linear->slopeExpression(e, b)) : activated, kLinear);
}

void setMathematics(BasicOperation& op, const GatedActivation& activation) {
  op.infer = [name = activation.name, check = activation.check](const Attributes& attributes,
                                                                Specs inputs) -> Result<OperationSpecs> {
    if (std::optional<Error> error = check ? check(attributes) : std::nullopt) return *error;
    if (auto error = checkInterleave(name, attributes, inputs[0])) return *error;
    return inferHalved(name, inputs[0]);
  };
  op.flops = [functions = activation.functions](const Attributes& attributes, Specs inputs) {
    return gatedFlops(functions(attributes), inputs[0].numElements() / 2);
  };
  op.forwardCompute = [functions = activation.functions](const Attributes& attributes, References inputs, References) {
    return gatedForward(functions(attributes), inputs[0], interleaveOf(attributes));
  };
  op.backwardCompute = [functions = activation.functions](const Attributes& attributes, const SavedValues& saved,
                                                          References gradOutputs) {
    return gatedBackward(functions(attributes), saved.input(), gradOutputs[0].values, interleaveOf(attributes));
  };
}

Expressions gatedExpressions(const std::function<GateFunctions(const Attributes&)>& functions) {
  return {.value = [functions](ElementwiseBuilder& e,
                               const Attributes& attributes) { return gatedValue(e, functions(attributes)); },
          .writeGradients = [functions](ElementwiseBuilder& e, const Attributes& attributes,
                                        ValueIndex dy) { writeGatedGradients(e, functions(attributes), dy); }};
}

ElementwiseDefinition gatedDefinition(const Expressions& gate) {
  ElementwiseDefinition definition = definitionOf(gate);
  definition.isGated = true;
  definition.interleave = interleaveOf;
  return definition;
}

// ---- scaled: y = activation(x) scales, a scale for each row

constexpr int kScales = 1;  // slot of the extra input

Expressions scaledExpressions(const Expressions& activation) {
  return {.value =
              [activation](ElementwiseBuilder& e, const Attributes& attributes) {
                return e.mul(activation.value(e, attributes), e.inputColumn(kScales));
              },
          .writeGradients =
              [activation](ElementwiseBuilder& e, const Attributes& attributes, ValueIndex dy) {
                activation.writeGradients(e, attributes, e.mul(dy, e.inputColumn(kScales)));
                e.gradInputRowSum(kScales, e.mul(dy, activation.value(e, attributes)));
              }};
}

/// Each row of x, [..., H], times its scale, [...].
ReferenceTensor rowsTimes(ReferenceTensor x, const ReferenceTensor& scales) {
  const std::int64_t H = x.cols();
  for (std::int64_t row = 0; row < x.rows(); ++row)
    for (double& value : referenceRow(x, row, H)) value *= scales.values[static_cast<std::size_t>(row)];
  return x;
}

/// Sums over the last axis. x: [..., H]; result: [...].
ReferenceTensor rowSums(const ReferenceTensor& x) {
  ReferenceTensor sums = referenceZeros(Shape(x.shape.begin(), x.shape.end() - 1));
  for (std::int64_t row = 0; row < x.rows(); ++row)
    for (const double value : referenceRow(x, row, x.cols())) sums.values[static_cast<std::size_t>(row)] += value;
  return sums;
}

OperationContext saveInputAndScales(const SaveArguments& arguments) {
  OperationContext context;
  if (arguments.needs.anyInput()) context.tensors.push_back({OperandKind::Input, 0});
  if (arguments.needs.inputs[0]) context.tensors.push_back({OperandKind::Input, kScales});
  return context;
}

void setScaledCompute(BasicOperation& op, const BasicOperation& plain) {
  op.forwardCompute = [plain](const Attributes& attributes, References inputs, References) -> ReferenceForward {
    const ReferenceForward activated = plain.forwardCompute(attributes, inputs.first(1), {});
    return {.outputs = {rowsTimes(activated.outputs[0], inputs[kScales])}};
  };
  op.backwardCompute = [plain](const Attributes& attributes, const SavedValues& saved,
                               References gradOutputs) -> ReferenceBackward {
    const ReferenceTensor& dy = gradOutputs[0];
    const std::array x{saved.input()};
    const ReferenceTensor activated = plain.forwardCompute(attributes, x, {}).outputs[0];
    ReferenceBackward backward{.inputs = {{}, rowSums(combined(dy, activated, std::multiplies<>()))}};
    if (!saved.has({OperandKind::Input, kScales})) return backward;  // dx is then not requested
    const std::array scaled{rowsTimes(dy, saved.input(kScales))};
    backward.inputs[0] = plain.backwardCompute(attributes, saved, scaled).inputs[0];
    return backward;
  };
}

/// Multiplies the rows of an activation by scales.
BasicOperation scaledByRow(const BasicOperation& plain, const Expressions& activation) {
  BasicOperation op = plain;
  op.inputs.push_back({"scales", "[...]", "One value for each row of x, such as a router's probability."});
  op.infer = [plain](const Attributes& attributes, Specs inputs) -> Result<OperationSpecs> {
    if (auto error = checkScales(plain.name, inputs[0], inputs[kScales])) return *error;
    return plain.infer(attributes, inputs.first(1));
  };
  op.flops = [plain](const Attributes& attributes, Specs inputs) -> FlopCount {
    const FlopCount each = plain.flops(attributes, inputs.first(1));
    const std::int64_t elements = plain.infer(attributes, inputs.first(1))->outputs[0].numElements();
    return {.forward = each.forward + elements, .backward = each.forward + each.backward + 3 * elements};
  };
  op.saveContext = saveInputAndScales;
  setScaledCompute(op, plain);
  op.elementwise = plain.elementwise.isGated ? gatedDefinition(scaledExpressions(activation))
                                             : definitionOf(scaledExpressions(activation));
  return op;
}

std::optional<Error> checkScaledGate(const std::string& name, const Attributes& attributes) {
  if (attributes.boolean(kRecompute))
    return Error{fmt::format(
        "{}: {} is true, but only an activation without a gate can be recomputed; set it to false.", name, kRecompute)};
  const std::int64_t interleave = interleaveOf(attributes);
  if (interleave % kScaledBlock == 0) return std::nullopt;
  return Error{
      fmt::format("{}: {} is {}, but it must be a multiple of {} here.", name, kInterleave, interleave, kScaledBlock)};
}

}  // namespace

namespace {

BasicOperation plainUnary(UnaryActivation activation) {
  BasicOperation op{.name = std::move(activation.name),
                    .category = kCategory,
                    .summary = std::move(activation.summary),
                    .formula = std::move(activation.formula),
                    .derivative = std::move(activation.derivative),
                    .source = std::move(activation.source),
                    .keywords = std::move(activation.keywords),
                    .inputs = {{"x", "[...]", "Any shape."}},
                    .outputs = {{"y", "[...]", "The shape and dtype of x."}},
                    .attributes = std::move(activation.attributes),
                    .saveContext = saveInput,
                    .elementwise = definitionOf(unaryExpressions(activation.function))};
  setMathematics(op, activation);
  return op;
}

BasicOperation plainGated(GatedActivation activation) {
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
                    .elementwise = gatedDefinition(gatedExpressions(activation.functions))};
  setMathematics(op, activation);
  return op;
}

}  // namespace

BasicOperation unaryActivation(UnaryActivation activation) {
  return withCachedInput(plainUnary(std::move(activation)));
}

BasicOperation gatedActivation(GatedActivation activation) {
  return withCachedInput(plainGated(std::move(activation)));
}

BasicOperation scaledUnaryActivation(UnaryActivation activation) {
  const Expressions expressions = unaryExpressions(activation.function);
  BasicOperation plain = plainUnary(std::move(activation));
  plain.inputs = {{"x", "[..., H]", "Input whose rows are scaled."}};
  plain.outputs = {{"y", "[..., H]", "The shape and dtype of x."}};
  return scaledByRow(plain, expressions);
}

BasicOperation scaledGatedActivation(GatedActivation activation) {
  const Expressions expressions = gatedExpressions(activation.functions);
  activation.check = [name = activation.name,
                      check = activation.check](const Attributes& attributes) -> std::optional<Error> {
    if (auto error = checkScaledGate(name, attributes)) return error;
    return check ? check(attributes) : std::nullopt;
  };
  return scaledByRow(plainGated(std::move(activation)), expressions);
}

AttributeSpec interleaveAttribute(std::string help) {
  return {.name = kInterleave,
          .type = AttributeType::Integer,
          .optional = true,
          .minimum = 1,
          .maximum = 1 << 24,
          .unit = "elements",
          .help =
              "Block size in elements, if the last axis of x interleaves blocks of a and b: a0 b0 a1 b1 and so on. Not "
              "set: a is the first half." +
              (help.empty() ? "" : " " + help)};
}

AttributeSpec recomputeAttribute() {
  return {.name = kRecompute,
          .type = AttributeType::Boolean,
          .defaultValue = false,
          .help =
              "Between two fused grouped linears, backward recomputes y, so forward does not keep it. "
              "TransformerEngine supports this for ScaledSReLU, and otherwise ignores it with a warning."};
}

AttributeSpec noRecomputeAttribute() {
  return {.name = kRecompute,
          .type = AttributeType::Boolean,
          .defaultValue = false,
          .help = "Must be false: TransformerEngine has it for ScaledSReLU only."};
}

std::function<ScalarFunction(const Attributes&)> always(ScalarFunction function) {
  return [function = std::move(function)](const Attributes&) { return function; };
}

std::function<GateFunctions(const Attributes&)> activatedBy(ScalarFunction function) {
  return [function = std::move(function)](const Attributes&) { return GateFunctions{.activated = function}; };
}

}  // namespace fuseline
