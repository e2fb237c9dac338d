// Gated SiLU: the first half of the last axis is activated and multiplied by the second half.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/operation.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <fmt/format.h>

namespace fuseline::ops {

namespace {

// By element of the output, exp counted as one operation.
constexpr std::int64_t kForwardFlops = 5;
constexpr std::int64_t kBackwardFlops = 12;

// The lanes of x: a is activated, b is the linear half.
constexpr int kActivated = 0;
constexpr int kLinear = 1;

Result<OperationSpecs> infer(const Attributes&, std::span<const TensorSpec> inputs) {
  TensorSpec y = inputs[0];
  if (y.shape.empty()) return Error{"SwiGLU: x is a scalar, but its last axis is to be split in two halves."};
  if (y.cols() % 2 != 0)
    return Error{
        fmt::format("SwiGLU: the last axis of x has {} elements, but it is split in two halves and must be "
                    "even.",
                    y.cols())};
  y.shape.back() /= 2;
  return OperationSpecs{.outputs = {y}};
}

FlopCount flops(const Attributes&, std::span<const TensorSpec> inputs) {
  const std::int64_t elements = inputs[0].numElements() / 2;
  return {.forward = kForwardFlops * elements, .backward = kBackwardFlops * elements};
}

/// Calls f(a, b, index of the output element) for every pair of halves. x: [..., 2H].
template <class Function>
void forEachPair(const ReferenceTensor& x, Function f) {
  const auto H = static_cast<std::size_t>(x.cols() / 2);
  const auto rows = static_cast<std::size_t>(x.rows());
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t col = 0; col < H; ++col) f(row * 2 * H + col, row * 2 * H + H + col, row * H + col);
}

ReferenceForward forward(const Attributes&, std::span<const ReferenceTensor> inputs, std::span<const ReferenceTensor>) {
  const ReferenceTensor& x = inputs[0];
  Shape shape = x.shape;
  shape.back() /= 2;
  ReferenceTensor y = referenceZeros(shape);
  forEachPair(x, [&](std::size_t a, std::size_t b, std::size_t out) {
    y.values[out] = reference::silu(x.values[a]) * x.values[b];
  });
  return {.outputs = {y}};
}

ReferenceBackward backward(const Attributes&, const SavedValues& saved, std::span<const ReferenceTensor> gradOutputs) {
  const ReferenceTensor& x = saved.input();
  const std::vector<double>& dy = gradOutputs[0].values;
  ReferenceTensor dx = referenceZeros(x.shape);
  forEachPair(x, [&](std::size_t a, std::size_t b, std::size_t out) {
    dx.values[a] = reference::siluGrad(x.values[a]) * dy[out] * x.values[b];
    dx.values[b] = reference::silu(x.values[a]) * dy[out];
  });
  return {.inputs = {dx}};
}

void defineForward(ElementwiseBuilder& e, const Attributes&) {
  const ValueIndex a = e.input(0, kActivated);
  const ValueIndex b = e.input(0, kLinear);
  e.output(0, e.mul(e.unary(Opcode::Silu, a), b));
}

void defineBackward(ElementwiseBuilder& e, const Attributes&) {
  const ValueIndex a = e.savedInput(0, kActivated);
  const ValueIndex b = e.savedInput(0, kLinear);
  const ValueIndex dy = e.gradOutput();
  e.gradInput(0, e.mul(e.mul(e.unary(Opcode::SiluGrad, a), dy), b), kActivated);
  e.gradInput(0, e.mul(e.unary(Opcode::Silu, a), dy), kLinear);
}

}  // namespace

BasicOperation swiglu() {
  return {
      .name = "SwiGLU",
      .category = "Activation",
      .summary = "Gated SiLU: the first half of each row is activated and multiplied by the second half.",
      .formula = "y = silu(a) b, a and b the halves of x, silu(a) = a sigmoid(a)",
      .derivative = "da = silu'(a) dy b; db = silu(a) dy, silu'(a) = a s (1 - s) + s, s = sigmoid(a)",
      .source = "Shazeer 2020, arXiv:2002.05202",
      .keywords = {"activation", "glu", "gated", "swish", "silu", "llama"},
      .inputs = {{"x", "[..., 2H]",
                  "The FIRST half is activated, the second multiplies it: the opposite of PyTorch's GLU."}},
      .outputs = {{"y", "[..., H]", "Half as wide as x, in its dtype."}},
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveInput,
      .backwardCompute = backward,
      .elementwise = {.forward = defineForward, .backward = defineBackward, .isGated = true},
  };
}

}  // namespace fuseline::ops
