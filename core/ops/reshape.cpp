// Gives a tensor another shape with the same number of elements.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/view.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace fuseline::ops {

namespace {
namespace reshape_parts {

constexpr std::int64_t kInferred = -1;

/// The product of all extents except the inferred one; nothing if it exceeds 64 bits.
std::optional<std::int64_t> knownElements(const Shape& shape) {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape)
    if (extent != kInferred && __builtin_mul_overflow(product, extent, &product)) return std::nullopt;
  return product;
}

Error refusal(const Shape& wanted, const TensorSpec& x, std::string_view reason) {
  return Error{
      fmt::format("Reshape: shape is {}, but x has the shape {}: {}", toString(wanted), toString(x.shape), reason)};
}

Result<Shape> reshaped(const Shape& wanted, const TensorSpec& x) {
  const auto numInferred = std::ranges::count(wanted, kInferred);
  if (numInferred > 1) return refusal(wanted, x, "only one dimension may be -1, which is then inferred.");
  const std::int64_t elements = x.numElements();
  const std::optional<std::int64_t> known = knownElements(wanted);
  if (numInferred == 0 && known == elements) return wanted;
  if (numInferred == 0)
    return refusal(wanted, x,
                   known ? fmt::format("it has {} elements, but x has {}. Set one dimension to -1.", *known, elements)
                         : fmt::format("it has more than {} elements. Set one dimension to -1.", elements));
  if (known == 0) return refusal(wanted, x, "next to a dimension of 0, -1 is ambiguous; give its value.");
  if (!known || elements % *known != 0)
    return refusal(
        wanted, x,
        fmt::format("its {} elements are not a multiple of the product of the other dimensions. Change these.",
                    elements));
  Shape shape = wanted;
  std::ranges::replace(shape, kInferred, elements / *known);
  return shape;
}

Result<OperationSpecs> infer(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  Result<Shape> shape = reshaped(attributes.integers("shape"), inputs[0]);
  if (!shape) return shape.error();
  return OperationSpecs{.outputs = {{.dtype = inputs[0].dtype, .shape = std::move(*shape)}}};
}

}  // namespace reshape_parts
}  // namespace

BasicOperation reshape() {
  using namespace reshape_parts;
  return viewOperation({
      .name = "Reshape",
      .category = "Structure",
      .summary = "Changes the shape and keeps the elements in order. A view: nothing is copied.",
      .formula = "y = x, its elements in the same order",
      .derivative = "dx = dy in the shape of x",
      .source = "TransformerEngine te.ops.Reshape",
      .keywords = {"view", "shape", "flatten", "heads", "squeeze"},
      .inputs = {{"x", "[...]", "Any shape."}},
      .outputs = {{"y", "[...]", "x in the new shape."}},
      .attributes = {{.name = "shape",
                      .type = AttributeType::IntegerList,
                      .minimum = static_cast<double>(kInferred),
                      .unit = "elements",
                      .help = "The shape of y. One dimension may be -1: it is inferred from the number of elements."}},
      .infer = infer,
  });
}

}  // namespace fuseline::ops
