// Normalizations, whole or in pieces.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_pattern_parts.h"

#include <algorithm>

namespace fuseline::patterns {

namespace {

/// gamma: a weight, or a weight to which 1 is added.
struct Gamma {
  const ::onnx::TensorProto* weight = nullptr;
  bool isZeroCentred = false;
  DType dtype = DType::F32;  // in which it is read
  explicit operator bool() const { return weight != nullptr; }
};

Gamma gammaAt(Reading graph, Name tensor) {
  if (const auto* const proto = weight(graph, tensor)) return {proto, false, dtypeRead(graph, tensor, *proto)};
  return ofTwo(graph, "Add", tensor, [&](Name vector, Name one) -> Gamma {
    const auto* const proto = graph.isNumber(one, 1.0) ? weight(graph, vector) : nullptr;
    return proto ? Gamma{proto, true, dtypeRead(graph, vector, *proto)} : Gamma{};
  });
}

/// The constant's shape without leading extents of 1: [1, 1, H] is [H].
Shape normalizedShape(const ::onnx::TensorProto& gamma, std::size_t numAxes) {
  Shape shape = shapeOf(gamma);
  while (shape.size() > numAxes && shape.front() == 1) shape.erase(shape.begin());
  return shape;
}

FoundOperation normalization(const char* operation, Name x, const Gamma& gamma, std::size_t numAxes, double eps) {
  FoundOperation found{
      .operation = operation,
      .attributes = {{"normalized_shape", normalizedShape(*gamma.weight, numAxes)}, {"eps", shortest(eps)}},
      .inputs = {{"x", x}},
      .dtype = gamma.dtype,
      .weights = {{.parameter = "weight", .constant = gamma.weight, .isSpread = true}}};
  if (gamma.isZeroCentred) found.attributes["zero_centered_gamma"] = true;
  return found;
}

/// One element for each of the last axes of x, as far as the graph knows these.
bool fits(Reading graph, Name x, const ::onnx::TensorProto& gamma, std::size_t numAxes) {
  const Shape shape = normalizedShape(gamma, numAxes);
  if (shape.size() != numAxes) return false;
  const auto* const type = graph.type(x);
  if (!type || !type->has_shape()) return true;
  const auto& extents = type->shape().dim();
  if (extents.size() < static_cast<int>(numAxes)) return false;
  for (std::size_t i = 0; i < numAxes; ++i) {
    const auto& extent = extents.Get(extents.size() - static_cast<int>(numAxes - i));
    if (extent.has_dim_value() && extent.dim_value() != shape[i]) return false;
  }
  return true;
}

/// How many of the last axes a node normalizes; 0 where the graph does not say.
std::size_t numNormalized(Reading graph, const ::onnx::NodeProto& node) {
  const auto axis = graph.axisFromEnd(inputOf(node, 0), integerOf(node, "axis", -1));
  return axis && *axis < 0 ? static_cast<std::size_t>(-*axis) : 0;
}

Found wholeLayerNorm(Reading graph, Name tensor) {
  const auto* const node = graph.makerOf("LayerNormalization", tensor);
  if (!node || graph.source(tensor) != node->output(0)) return std::nullopt;
  const Gamma gamma = gammaAt(graph, inputOf(*node, 1));
  const std::size_t numAxes = gamma ? numNormalized(graph, *node) : 0;
  if (numAxes == 0 || !fits(graph, inputOf(*node, 0), *gamma.weight, numAxes)) return std::nullopt;
  const auto* const beta = weight(graph, inputOf(*node, 2));
  if (!beta && !inputOf(*node, 2).empty()) return std::nullopt;  // it is computed
  const bool isVector = !beta || numElements(shapeOf(*beta)) == 1 || fits(graph, inputOf(*node, 0), *beta, numAxes);
  if (!isVector) return std::nullopt;
  FoundOperation found = normalization("LayerNorm", inputOf(*node, 0), gamma, numAxes, realOf(*node, "epsilon", 1e-5));
  found.weights.push_back({.parameter = "bias", .constant = beta, .isSpread = true});
  return found;
}

/// The op of opset 23, and the one by which onnxruntime had it before.
Found wholeRmsNorm(Reading graph, Name tensor) {
  const ::onnx::NodeProto* node = graph.makerOf("RMSNormalization", tensor);
  if (!node) node = graph.makerOf("SimplifiedLayerNormalization", tensor);
  if (!node || graph.source(tensor) != node->output(0)) return std::nullopt;
  const Gamma gamma = gammaAt(graph, inputOf(*node, 1));
  const std::size_t numAxes = gamma ? numNormalized(graph, *node) : 0;
  if (numAxes == 0 || !fits(graph, inputOf(*node, 0), *gamma.weight, numAxes)) return std::nullopt;
  return normalization("RMSNorm", inputOf(*node, 0), gamma, numAxes, realOf(*node, "epsilon", 1e-5));
}

// ---- in pieces

/// x / sqrt(reduced(x^2) + eps), and how many of the last axes are reduced.
struct ByRoot {
  std::string x;
  double eps = 0.0;
  std::size_t numAxes = 0;
};

/// How many of the last axes of x it reduces, if they stay with one element.
std::size_t numKeptLastAxes(Reading graph, const ::onnx::NodeProto& node, Name x) {
  return integerOf(node, "keepdims", 1) == 1 ? numLastAxes(graph, node, x) : 0;
}

/// Are both one tensor, or differences of the same two?
bool isAlike(Reading graph, Name a, Name b) {
  if (isSame(graph, a, b)) return true;
  const auto *const one = graph.makerOf("Sub", a), *const other = graph.makerOf("Sub", b);
  return one && other && isSame(graph, one->input(0), other->input(0)) && isSame(graph, one->input(1), other->input(1));
}

bool isSquareOf(Reading graph, Name tensor, Name x) {
  if (const auto* const node = graph.makerOf("Mul", tensor))
    return isAlike(graph, inputOf(*node, 0), x) && isAlike(graph, inputOf(*node, 1), x);
  const auto* const node = graph.makerOf("Pow", tensor);
  return node && isAlike(graph, inputOf(*node, 0), x) && graph.isNumber(inputOf(*node, 1), 2.0);
}

/// The base of a power.
std::optional<std::string> powerOf(Reading graph, Name tensor, double exponent) {
  const auto* const node = graph.makerOf("Pow", tensor);
  return node && graph.isNumber(inputOf(*node, 1), exponent) ? std::optional(inputOf(*node, 0)) : std::nullopt;
}

std::optional<std::string> rootOf(Reading graph, Name tensor) {
  const auto* const node = graph.makerOf("Sqrt", tensor);
  return node ? std::optional(inputOf(*node, 0)) : powerOf(graph, tensor, 0.5);
}

/// 1 / sqrt(.), as a tensor by which something is multiplied.
std::optional<std::string> reciprocalRootOf(Reading graph, Name tensor) {
  if (const auto* const node = graph.makerOf("Reciprocal", tensor)) return rootOf(graph, inputOf(*node, 0));
  if (const auto* const node = graph.makerOf("Div", tensor))
    return graph.isNumber(inputOf(*node, 0), 1.0) ? rootOf(graph, inputOf(*node, 1)) : std::nullopt;
  if (const auto* const node = graph.makerOf("Sqrt", tensor)) {
    const auto* const inner = graph.makerOf("Reciprocal", inputOf(*node, 0));
    return inner ? std::optional(inputOf(*inner, 0)) : std::nullopt;
  }
  return powerOf(graph, tensor, -0.5);
}

/// reduced(x^2) + eps.
std::optional<ByRoot> reducedSquares(Reading graph, const char* reduction, Name x, Name sum) {
  return ofTwo(graph, "Add", sum, [&](Name reduced, Name eps) -> std::optional<ByRoot> {
    const auto* const node = graph.makerOf(reduction, reduced);
    const std::optional<double> number = graph.number(eps);
    if (!node || !number || *number < 0.0 || !isSquareOf(graph, inputOf(*node, 0), x)) return std::nullopt;
    const std::size_t numAxes = numKeptLastAxes(graph, *node, x);
    return numAxes == 0 ? std::nullopt : std::optional(ByRoot{x, *number, numAxes});
  });
}

/// x / root, or x times its reciprocal.
std::optional<ByRoot> byRoot(Reading graph, const char* reduction, Name tensor) {
  if (const auto* const node = graph.makerOf("Div", tensor)) {
    const auto sum = rootOf(graph, inputOf(*node, 1));
    return sum ? reducedSquares(graph, reduction, inputOf(*node, 0), *sum) : std::nullopt;
  }
  return ofTwo(graph, "Mul", tensor, [&](Name x, Name factor) -> std::optional<ByRoot> {
    const auto sum = reciprocalRootOf(graph, factor);
    return sum ? reducedSquares(graph, reduction, x, *sum) : std::nullopt;
  });
}

/// x, if the tensor is x - mean(x) over the last numAxes axes.
std::optional<std::string> centredOf(Reading graph, Name tensor, std::size_t numAxes) {
  const auto* const node = graph.makerOf("Sub", tensor);
  const auto* const mean = node ? graph.makerOf("ReduceMean", inputOf(*node, 1)) : nullptr;
  if (!mean || !isSame(graph, inputOf(*mean, 0), inputOf(*node, 0))) return std::nullopt;
  return numKeptLastAxes(graph, *mean, inputOf(*node, 0)) == numAxes ? std::optional(inputOf(*node, 0)) : std::nullopt;
}

/// (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps).
std::optional<ByRoot> centredByRoot(Reading graph, Name tensor) {
  std::optional<ByRoot> found = byRoot(graph, "ReduceMean", tensor);
  const auto x = found ? centredOf(graph, found->x, found->numAxes) : std::nullopt;
  if (!x) return std::nullopt;
  found->x = *x;
  return found;
}

/// normalized times gamma, with beta added by its caller.
Found scaledNorm(Reading graph, Name tensor, const char* operation,
                 std::optional<ByRoot> (*normalizedAt)(Reading graph, Name tensor)) {
  return ofTwo(graph, "Mul", tensor, [&](Name normalized, Name factor) -> Found {
    const Gamma gamma = gammaAt(graph, factor);
    if (!gamma) return std::nullopt;
    const auto found = normalizedAt(graph, normalized);
    if (!found || !fits(graph, found->x, *gamma.weight, found->numAxes)) return std::nullopt;
    return normalization(operation, found->x, gamma, found->numAxes, found->eps);
  });
}

/// A norm without eps makes zeros of a row of zeros.
constexpr double kLeastEps = 1e-30;

std::optional<ByRoot> byRootOfMean(Reading graph, Name tensor) { return byRoot(graph, "ReduceMean", tensor); }

Found layerNormWithoutBias(Reading graph, Name tensor) {
  Found found = scaledNorm(graph, tensor, "LayerNorm", centredByRoot);
  if (found) found->weights.push_back({.parameter = "bias"});
  return found;
}

/// The extents of the last axes, where the graph says them.
std::optional<Shape> lastExtents(Reading graph, Name x, std::size_t numAxes) {
  const auto* const type = graph.type(x);
  if (!type || !type->has_shape() || type->shape().dim_size() < static_cast<int>(numAxes)) return std::nullopt;
  Shape shape;
  for (int i = type->shape().dim_size() - static_cast<int>(numAxes); i < type->shape().dim_size(); ++i) {
    if (!type->shape().dim(i).has_dim_value()) return std::nullopt;
    shape.push_back(type->shape().dim(i).dim_value());
  }
  return shape;
}

Found withoutWeights(Reading graph, const char* operation, const std::optional<ByRoot>& found) {
  const auto shape = found ? lastExtents(graph, found->x, found->numAxes) : std::nullopt;
  if (!shape) return std::nullopt;
  return FoundOperation{.operation = operation,
                        .attributes = {{"normalized_shape", *shape}, {"eps", shortest(found->eps)}},
                        .inputs = {{"x", found->x}},
                        .weights = {{.parameter = "weight", .fill = 1.0}, {.parameter = "bias"}}};
}

}  // namespace

std::size_t numLastAxes(Reading graph, const ::onnx::NodeProto& reduction, Name x) {
  std::vector<std::int64_t> axes;
  if (const auto* const attribute = findAttribute(reduction, "axes"))
    axes.assign(attribute->ints().begin(), attribute->ints().end());
  else if (const auto values = graph.integers(inputOf(reduction, 1)))
    axes = *values;
  for (std::int64_t& axis : axes) axis = graph.axisFromEnd(x, axis).value_or(0);
  std::ranges::sort(axes);
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<std::int64_t>(i) - static_cast<std::int64_t>(axes.size())) return 0;
  return axes.size();
}

Found layerNorm(Reading graph, Name tensor) {
  if (Found found = wholeLayerNorm(graph, tensor)) return found;
  Found found = ofTwo(graph, "Add", tensor, [&](Name scaled, Name beta) -> Found {
    const auto* const constant = weight(graph, beta);
    if (!constant || graph.numReaders(scaled) > 1) return std::nullopt;
    Found norm = scaledNorm(graph, scaled, "LayerNorm", centredByRoot);
    if (!norm) return std::nullopt;
    const std::size_t numAxes = norm->attributes["normalized_shape"].size();
    if (!fits(graph, norm->inputs[0].second, *constant, numAxes)) return std::nullopt;
    norm->weights.push_back({.parameter = "bias", .constant = constant, .isSpread = true});
    return norm;
  });
  return found ? found : layerNormWithoutBias(graph, tensor);
}

Found rmsNorm(Reading graph, Name tensor) {
  if (Found found = wholeRmsNorm(graph, tensor)) return found;
  return scaledNorm(graph, tensor, "RMSNorm", byRootOfMean);
}

Found plainNorm(Reading graph, Name tensor) {
  if (Found found = withoutWeights(graph, "LayerNorm", centredByRoot(graph, tensor))) return found;
  return withoutWeights(graph, "RMSNorm", byRootOfMean(graph, tensor));
}

Found l2Normalization(Reading graph, Name tensor) {
  if (const auto* const node = graph.makerOf("LpNormalization", tensor))
    if (integerOf(*node, "p", 2) == 2 && graph.axisFromEnd(inputOf(*node, 0), integerOf(*node, "axis", -1)) == -1)
      return FoundOperation{
          .operation = "L2Normalization", .attributes = {{"eps", kLeastEps}}, .inputs = {{"x", inputOf(*node, 0)}}};
  const auto found = byRoot(graph, "ReduceSum", tensor);
  if (!found || found->numAxes != 1) return std::nullopt;
  return FoundOperation{
      .operation = "L2Normalization", .attributes = {{"eps", shortest(found->eps)}}, .inputs = {{"x", found->x}}};
}

}  // namespace fuseline::patterns
