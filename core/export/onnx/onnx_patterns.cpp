// One function an op, or a family of ops. Each begins at the last node and looks back.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_patterns.h"

#include <algorithm>
#include <array>
#include <numbers>
#include <string_view>

#include <fmt/format.h>

namespace fuseline {

namespace {

using Reading = const OnnxReading&;
using Found = std::optional<FoundOperation>;
using Name = const std::string&;

// ---- pieces

/// Calls f(a, b), then f(b, a), with the inputs of a node of two, until one finds something.
template <class Function>
auto eitherWay(const ::onnx::NodeProto& node, Function f) -> decltype(f(node.input(0), node.input(0))) {
  if (node.input_size() != 2) return {};
  if (auto found = f(node.input(0), node.input(1))) return found;
  return f(node.input(1), node.input(0));
}

/// The two inputs of a node of this type, as f finds them in either order.
template <class Function>
auto ofTwo(Reading graph, const char* type, Name tensor, Function f) -> decltype(f(std::string(), std::string())) {
  const ::onnx::NodeProto* const node = graph.makerOf(type, tensor);
  if (!node) return {};
  return eitherWay(*node, f);
}

/// The factors of two products, one of the other: f(a, b, c) in all orders, until one finds something.
template <class Function>
auto ofThree(Reading graph, Name tensor, Function f) -> decltype(f(tensor, tensor, tensor)) {
  return ofTwo(graph, "Mul", tensor, [&](Name product, Name c) {
    return ofTwo(graph, "Mul", product, [&](Name a, Name b) {
      if (auto found = f(a, b, c)) return found;
      if (auto found = f(a, c, b)) return found;
      return f(c, a, b);
    });
  });
}

bool isSame(Reading graph, Name a, Name b) { return graph.source(a) == graph.source(b); }

/// A weight: more than a number, and no shape that an op computes with.
const ::onnx::TensorProto* weight(Reading graph, Name tensor) {
  const ::onnx::TensorProto* const proto = graph.constant(tensor);
  return proto && floatTypeOf(proto->data_type()) ? proto : nullptr;
}

const ::onnx::TensorProto* vectorWeight(Reading graph, Name tensor) {
  const ::onnx::TensorProto* const proto = weight(graph, tensor);
  return proto && proto->dims_size() == 1 ? proto : nullptr;
}

// ---- linear layers

struct Product {
  std::string x;
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::string bias = {};
  std::optional<DType> dtype = std::nullopt;
  FoundWeight matrix = {};
};

std::optional<Product> productWith(Reading graph, Name x, Name matrix, bool isTransposed) {
  const ::onnx::TensorProto* const proto = weight(graph, matrix);
  if (!proto || proto->dims_size() != 2) return std::nullopt;
  const std::int64_t rows = proto->dims(0), cols = proto->dims(1);
  return Product{.x = x,
                 .in = isTransposed ? cols : rows,
                 .out = isTransposed ? rows : cols,
                 .dtype = floatTypeOf(proto->data_type()),
                 .matrix = {"weight", proto, !isTransposed}};
}

std::optional<Product> matMul(Reading graph, const ::onnx::NodeProto& node) {
  const ::onnx::NodeProto* const transpose = graph.makerOf("Transpose", inputOf(node, 1));
  return transpose ? productWith(graph, inputOf(node, 0), inputOf(*transpose, 0), true)
                   : productWith(graph, inputOf(node, 0), inputOf(node, 1), false);
}

std::optional<Product> gemm(Reading graph, const ::onnx::NodeProto& node) {
  const bool isPlain = realOf(node, "alpha", 1.0) == 1.0 && realOf(node, "beta", 1.0) == 1.0;
  if (!isPlain || integerOf(node, "transA", 0) != 0) return std::nullopt;
  auto product = productWith(graph, inputOf(node, 0), inputOf(node, 1), integerOf(node, "transB", 0) != 0);
  if (!product || inputOf(node, 2).empty()) return product;
  product->bias = inputOf(node, 2);
  return vectorWeight(graph, product->bias) ? product : std::nullopt;
}

std::optional<Product> product(Reading graph, Name tensor) {
  if (const auto* const node = graph.makerOf("MatMul", tensor)) return matMul(graph, *node);
  if (const auto* const node = graph.makerOf("Gemm", tensor)) return gemm(graph, *node);
  return std::nullopt;
}

/// With a bias behind it, unless somebody also reads what stands between the two.
std::optional<Product> biasedProduct(Reading graph, Name tensor) {
  return ofTwo(graph, "Add", tensor, [&](Name made, Name bias) -> std::optional<Product> {
    auto found = product(graph, made);
    const auto* const vector = vectorWeight(graph, bias);
    if (!found || !vector || !found->bias.empty() || vector->dims(0) != found->out) return std::nullopt;
    if (graph.numReaders(made) > 1) return std::nullopt;
    found->bias = bias;
    return found;
  });
}

Found linear(Reading graph, Name tensor) {
  std::optional<Product> found = biasedProduct(graph, tensor);
  if (!found) found = product(graph, tensor);
  if (!found) return std::nullopt;
  std::vector<FoundWeight> weights = {found->matrix};
  if (!found->bias.empty()) weights.push_back({"bias", vectorWeight(graph, found->bias)});
  return FoundOperation{
      .operation = "Linear",
      .attributes = {{"in_features", found->in}, {"out_features", found->out}, {"bias", !found->bias.empty()}},
      .inputs = {{"x", found->x}},
      .dtype = found->dtype,
      .weights = std::move(weights)};
}

/// One element would be added to all columns.
bool isLastExtent(Reading graph, Name tensor, std::int64_t extent) {
  const auto* const type = graph.type(tensor);
  const int rank = type && type->has_shape() ? type->shape().dim_size() : 0;
  if (rank == 0 || !type->shape().dim(rank - 1).has_dim_value()) return extent != 1;
  return type->shape().dim(rank - 1).dim_value() == extent;
}

Found bias(Reading graph, Name tensor) {
  return ofTwo(graph, "Add", tensor, [&](Name x, Name vector) -> Found {
    const auto* const proto = vectorWeight(graph, vector);
    if (!proto || graph.constant(x) || !isLastExtent(graph, x, proto->dims(0))) return std::nullopt;
    return FoundOperation{.operation = "Bias",
                          .attributes = {{"size", proto->dims(0)}},
                          .inputs = {{"x", x}},
                          .dtype = floatTypeOf(proto->data_type()),
                          .weights = {{"bias", proto}}};
  });
}

// ---- normalizations

/// gamma: a weight, or a weight to which 1 is added.
struct Gamma {
  const ::onnx::TensorProto* weight = nullptr;
  bool isZeroCentred = false;
  explicit operator bool() const { return weight != nullptr; }
};

Gamma gammaAt(Reading graph, Name tensor) {
  if (const auto* const proto = weight(graph, tensor)) return {proto, false};
  return ofTwo(graph, "Add", tensor, [&](Name vector, Name one) -> Gamma {
    return graph.isNumber(one, 1.0) ? Gamma{weight(graph, vector), true} : Gamma{};
  });
}

FoundOperation normalization(const char* operation, Name x, const Gamma& gamma, double eps) {
  FoundOperation found{.operation = operation,
                       .attributes = {{"normalized_shape", shapeOf(*gamma.weight)}, {"eps", eps}},
                       .inputs = {{"x", x}},
                       .dtype = floatTypeOf(gamma.weight->data_type()),
                       .weights = {{"weight", gamma.weight}}};
  if (gamma.isZeroCentred) found.attributes["zero_centered_gamma"] = true;
  return found;
}

bool normalizesLastAxes(Reading graph, const ::onnx::NodeProto& node, const Gamma& gamma) {
  const auto axis = graph.axisFromEnd(inputOf(node, 0), integerOf(node, "axis", -1));
  return axis == -static_cast<std::int64_t>(gamma.weight->dims_size());
}

Found layerNorm(Reading graph, Name tensor) {
  const auto* const node = graph.makerOf("LayerNormalization", tensor);
  if (!node || graph.source(tensor) != node->output(0)) return std::nullopt;
  const Gamma gamma = gammaAt(graph, inputOf(*node, 1));
  if (!gamma || !normalizesLastAxes(graph, *node, gamma)) return std::nullopt;
  const auto* const beta = weight(graph, inputOf(*node, 2));
  if (!beta && !inputOf(*node, 2).empty()) return std::nullopt;  // it is computed
  FoundOperation found = normalization("LayerNorm", inputOf(*node, 0), gamma, realOf(*node, "epsilon", 1e-5));
  found.weights.push_back({"bias", beta});
  return found;
}

/// The op of opset 23, and the one by which onnxruntime had it before.
Found wholeRmsNorm(Reading graph, Name tensor) {
  const ::onnx::NodeProto* node = graph.makerOf("RMSNormalization", tensor);
  if (!node) node = graph.makerOf("SimplifiedLayerNormalization", tensor);
  if (!node || graph.source(tensor) != node->output(0)) return std::nullopt;
  const Gamma gamma = gammaAt(graph, inputOf(*node, 1));
  if (!gamma || !normalizesLastAxes(graph, *node, gamma)) return std::nullopt;
  return normalization("RMSNorm", inputOf(*node, 0), gamma, realOf(*node, "epsilon", 1e-5));
}

/// x / sqrt(reduced(x^2) + eps), and how many of the last axes are reduced.
struct ByRoot {
  std::string x;
  double eps = 0.0;
  std::size_t numAxes = 0;
};

bool isSquareOf(Reading graph, Name tensor, Name x) {
  if (const auto* const node = graph.makerOf("Mul", tensor))
    return isSame(graph, inputOf(*node, 0), x) && isSame(graph, inputOf(*node, 1), x);
  const auto* const node = graph.makerOf("Pow", tensor);
  return node && isSame(graph, inputOf(*node, 0), x) && graph.isNumber(inputOf(*node, 1), 2.0);
}

/// -2, -1 is 2; 0 for axes that are not the last ones of x.
std::size_t numLastAxes(Reading graph, const ::onnx::NodeProto& node, Name x) {
  std::vector<std::int64_t> axes;
  if (const auto* const attribute = findAttribute(node, "axes"))
    axes.assign(attribute->ints().begin(), attribute->ints().end());
  else if (const auto values = graph.integers(inputOf(node, 1)))
    axes = *values;
  for (std::int64_t& axis : axes) axis = graph.axisFromEnd(x, axis).value_or(0);
  std::ranges::sort(axes);
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<std::int64_t>(i) - static_cast<std::int64_t>(axes.size())) return 0;
  return integerOf(node, "keepdims", 1) == 1 ? axes.size() : 0;
}

/// sqrt(reduced(x^2) + eps).
std::optional<ByRoot> rootOver(Reading graph, const char* reduction, Name x, Name root) {
  const auto* const sqrt = graph.makerOf("Sqrt", root);
  if (!sqrt) return std::nullopt;
  return ofTwo(graph, "Add", inputOf(*sqrt, 0), [&](Name reduced, Name eps) -> std::optional<ByRoot> {
    const auto* const node = graph.makerOf(reduction, reduced);
    const std::optional<double> number = graph.number(eps);
    if (!node || !number || !isSquareOf(graph, inputOf(*node, 0), x)) return std::nullopt;
    const std::size_t numAxes = numLastAxes(graph, *node, x);
    return numAxes == 0 ? std::nullopt : std::optional(ByRoot{x, *number, numAxes});
  });
}

/// x / root, or x times its reciprocal.
std::optional<ByRoot> byRoot(Reading graph, const char* reduction, Name tensor) {
  if (const auto* const node = graph.makerOf("Div", tensor))
    return rootOver(graph, reduction, inputOf(*node, 0), inputOf(*node, 1));
  return ofTwo(graph, "Mul", tensor, [&](Name x, Name factor) -> std::optional<ByRoot> {
    if (const auto* const node = graph.makerOf("Reciprocal", factor))
      return rootOver(graph, reduction, x, inputOf(*node, 0));
    const auto* const node = graph.makerOf("Div", factor);
    if (!node || !graph.isNumber(inputOf(*node, 0), 1.0)) return std::nullopt;
    return rootOver(graph, reduction, x, inputOf(*node, 1));
  });
}

Found rmsNorm(Reading graph, Name tensor) {
  if (Found found = wholeRmsNorm(graph, tensor)) return found;
  return ofTwo(graph, "Mul", tensor, [&](Name normalized, Name weight) -> Found {
    const Gamma gamma = gammaAt(graph, weight);
    if (!gamma) return std::nullopt;
    const auto found = byRoot(graph, "ReduceMean", normalized);
    if (!found || found->numAxes != static_cast<std::size_t>(gamma.weight->dims_size())) return std::nullopt;
    return normalization("RMSNorm", found->x, gamma, found->eps);
  });
}

Found l2Normalization(Reading graph, Name tensor) {
  const auto found = byRoot(graph, "ReduceSum", tensor);
  if (!found || found->numAxes != 1) return std::nullopt;
  return FoundOperation{
      .operation = "L2Normalization", .attributes = {{"eps", found->eps}}, .inputs = {{"x", found->x}}};
}

// ---- activations

/// A function of one tensor, and the op that is it, and the one that multiplies by it.
struct Activation {
  const char* unary;
  const char* gated;
  std::optional<std::string> (*argument)(Reading graph, Name tensor);
  const char* note = "";  // FoundOperation::note
};

using Argument = std::optional<std::string>;

Argument ofSigmoid(Reading graph, Name tensor) {
  const auto* const node = graph.makerOf("Sigmoid", tensor);
  return node ? Argument(inputOf(*node, 0)) : std::nullopt;
}

// GELU. Source: Hendrycks & Gimpel 2016, "Gaussian error linear units": x / 2 (1 + erf(x / sqrt(2))), and its
// approximation, x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), which te.ops has.

Argument geluNode(Reading graph, Name tensor, std::string_view approximation) {
  const auto* const node = graph.makerOf("Gelu", tensor);
  return node && textOf(*node, "approximate", "none") == approximation ? Argument(inputOf(*node, 0)) : std::nullopt;
}

/// x / 2 (1 + f(x)); inner: the x of an f(x).
Argument geluInPieces(Reading graph, Name tensor, Argument (*inner)(Reading graph, Name tensor)) {
  return ofThree(graph, tensor, [&](Name x, Name half, Name sum) -> Argument {
    if (!graph.isNumber(half, 0.5)) return std::nullopt;
    const Argument argument = ofTwo(graph, "Add", sum, [&](Name one, Name function) {
      return graph.isNumber(one, 1.0) ? inner(graph, function) : std::nullopt;
    });
    return argument && isSame(graph, *argument, x) ? argument : std::nullopt;
  });
}

/// Of the product of a tensor with a number.
Argument timesNumber(Reading graph, Name tensor, double number) {
  return ofTwo(graph, "Mul", tensor,
               [&](Name x, Name factor) { return graph.isNumber(factor, number) ? Argument(x) : std::nullopt; });
}

/// erf(x / sqrt(2))
Argument ofScaledErf(Reading graph, Name tensor) {
  const auto* const node = graph.makerOf("Erf", tensor);
  if (!node) return std::nullopt;
  const auto* const quotient = graph.makerOf("Div", inputOf(*node, 0));
  if (quotient && graph.isNumber(inputOf(*quotient, 1), std::numbers::sqrt2)) return inputOf(*quotient, 0);
  return timesNumber(graph, inputOf(*node, 0), 1.0 / std::numbers::sqrt2);
}

/// x^3
Argument ofCube(Reading graph, Name tensor) {
  const auto* const power = graph.makerOf("Pow", tensor);
  if (power && graph.isNumber(inputOf(*power, 1), 3.0)) return inputOf(*power, 0);
  return ofThree(graph, tensor, [&](Name a, Name b, Name c) {
    return isSame(graph, a, b) && isSame(graph, b, c) ? Argument(a) : std::nullopt;
  });
}

/// tanh(sqrt(2 / pi) (x + 0.044715 x^3))
Argument ofCubicTanh(Reading graph, Name tensor) {
  const auto* const node = graph.makerOf("Tanh", tensor);
  const Argument sum =
      node ? timesNumber(graph, inputOf(*node, 0), std::numbers::sqrt2 * std::numbers::inv_sqrtpi) : std::nullopt;
  if (!sum) return std::nullopt;
  return ofTwo(graph, "Add", *sum, [&](Name x, Name cubic) -> Argument {
    const Argument cube = timesNumber(graph, cubic, 0.044715);
    const Argument argument = cube ? ofCube(graph, *cube) : std::nullopt;
    return argument && isSame(graph, *argument, x) ? argument : std::nullopt;
  });
}

Argument ofGelu(Reading graph, Name tensor) {
  const Argument whole = geluNode(graph, tensor, "tanh");
  return whole ? whole : geluInPieces(graph, tensor, ofCubicTanh);
}

constexpr const char* kExactGeluNote =
    "GELU by the error function in the model; te.ops has its approximation by tanh, at most 0.0005 away.";

Argument ofExactGelu(Reading graph, Name tensor) {
  const Argument whole = geluNode(graph, tensor, "none");
  return whole ? whole : geluInPieces(graph, tensor, ofScaledErf);
}

Argument ofRelu(Reading graph, Name tensor) {
  if (const auto* const node = graph.makerOf("Relu", tensor)) return inputOf(*node, 0);
  return ofTwo(graph, "Max", tensor,
               [&](Name x, Name zero) { return graph.isNumber(zero, 0.0) ? Argument(x) : std::nullopt; });
}

Argument ofSquaredRelu(Reading graph, Name tensor) {
  const auto* const node = graph.makerOf("Mul", tensor);
  if (!node || node->input_size() != 2 || !isSame(graph, node->input(0), node->input(1))) return std::nullopt;
  return ofRelu(graph, node->input(0));
}

Argument ofSilu(Reading graph, Name tensor) {
  return ofTwo(graph, "Mul", tensor, [&](Name x, Name gate) {
    const Argument argument = ofSigmoid(graph, gate);
    return argument && isSame(graph, *argument, x) ? argument : std::nullopt;
  });
}

/// 1.702 x
Argument ofQuick(Reading graph, Name tensor) { return timesNumber(graph, tensor, 1.702); }

/// x sigmoid(1.702 x), or silu(1.702 x) / 1.702.
Argument ofQuickGelu(Reading graph, Name tensor) {
  return ofTwo(graph, "Mul", tensor, [&](Name x, Name factor) -> Argument {
    if (const Argument gate = ofSigmoid(graph, factor)) {
      const Argument argument = ofQuick(graph, *gate);
      return argument && isSame(graph, *argument, x) ? argument : std::nullopt;
    }
    if (!graph.isNumber(factor, 1.0 / 1.702)) return std::nullopt;
    const Argument scaled = ofSilu(graph, x);
    return scaled ? ofQuick(graph, *scaled) : std::nullopt;
  });
}

constexpr std::array kActivations = {
    Activation{"GELU", "GEGLU", ofGelu},   Activation{"SReLU", "SReGLU", ofSquaredRelu},
    Activation{"ReLU", "ReGLU", ofRelu},   Activation{"QGELU", "QGEGLU", ofQuickGelu},
    Activation{"SiLU", "SwiGLU", ofSilu},  Activation{"GELU", "GEGLU", ofExactGelu, kExactGeluNote},
    Activation{nullptr, "GLU", ofSigmoid},
};

/// The tensor of which the two are the halves of the last axis.
Argument halvesOf(Reading graph, Name first, Name second) {
  const auto* const node = graph.makerOf("Split", first);
  const bool isSplit = node && node->output_size() == 2 && graph.maker(second) == node &&
                       graph.source(first) == node->output(0) && graph.source(second) == node->output(1);
  if (!isSplit || graph.axisFromEnd(inputOf(*node, 0), integerOf(*node, "axis", 0)) != -1) return std::nullopt;
  const auto sizes = graph.integers(inputOf(*node, 1));
  const bool isUneven = !inputOf(*node, 1).empty() && (!sizes || sizes->size() != 2 || (*sizes)[0] != (*sizes)[1]);
  return isUneven ? std::nullopt : Argument(inputOf(*node, 0));
}

Found gate(Reading graph, Name tensor) {
  return ofTwo(graph, "Mul", tensor, [&](Name activated, Name linear) -> Found {
    for (const Activation& activation : kActivations) {
      const Argument argument = activation.argument(graph, activated);
      const Argument whole = argument ? halvesOf(graph, *argument, linear) : std::nullopt;
      if (whole)
        return FoundOperation{.operation = activation.gated, .inputs = {{"x", *whole}}, .note = activation.note};
    }
    return std::nullopt;
  });
}

Found activation(Reading graph, Name tensor) {
  for (const Activation& each : kActivations) {
    const Argument argument = each.unary ? each.argument(graph, tensor) : std::nullopt;
    if (argument && !graph.constant(*argument))
      return FoundOperation{.operation = each.unary, .inputs = {{"x", *argument}}, .note = each.note};
  }
  return std::nullopt;
}

// ---- the rest, node by node

Found scale(Reading graph, Name tensor) {
  const auto scaled = [](Name x, double factor) {
    return FoundOperation{.operation = "ConstantScale", .attributes = {{"scale", factor}}, .inputs = {{"x", x}}};
  };
  return ofTwo(graph, "Mul", tensor, [&](Name x, Name factor) -> Found {
    const std::optional<double> number = graph.number(factor);
    return number && !graph.constant(x) ? Found(scaled(x, *number)) : std::nullopt;
  });
}

/// Are the shapes the same, as far as the graph knows? Fuseline's ops do not repeat the smaller one.
bool mayHaveSameShape(Reading graph, Name a, Name b) {
  const auto *const one = graph.type(a), *const other = graph.type(b);
  if (!one || !other || !one->has_shape() || !other->has_shape()) return true;
  const auto &left = one->shape().dim(), &right = other->shape().dim();
  const auto isSameExtent = [](const auto& p, const auto& q) {
    return p.dim_value() == q.dim_value() && p.dim_param() == q.dim_param();
  };
  return std::ranges::equal(left, right, isSameExtent);
}

Found sum(Reading graph, Name tensor) {
  const auto* const node = graph.makerOf("Add", tensor);
  if (!node || node->input_size() != 2) return std::nullopt;
  if (graph.constant(node->input(0)) || graph.constant(node->input(1))) return std::nullopt;
  if (!mayHaveSameShape(graph, node->input(0), node->input(1))) return std::nullopt;
  return FoundOperation{.operation = "AddExtraInput", .inputs = {{"x", node->input(0)}, {"extra", node->input(1)}}};
}

/// A formula of two tensors; Fuseline has no op for their product.
Found productOfTensors(Reading graph, Name tensor) {
  const auto* const node = graph.makerOf("Mul", tensor);
  if (!node || node->input_size() != 2) return std::nullopt;
  if (graph.constant(node->input(0)) || graph.constant(node->input(1))) return std::nullopt;
  if (!mayHaveSameShape(graph, node->input(0), node->input(1))) return std::nullopt;
  if (isSame(graph, node->input(0), node->input(1)))
    return FoundOperation{.operation = "Formula", .attributes = {{"y", "x * x"}}, .inputs = {{"x", node->input(0)}}};
  return FoundOperation{.operation = "Formula",
                        .attributes = {{"y", "x * b"}, {"inputs", "b"}},
                        .inputs = {{"x", node->input(0)}, {"b", node->input(1)}}};
}

Found unaryFormula(Reading graph, Name tensor) {
  constexpr std::array kFormulas = {std::pair("Sigmoid", "sigmoid(x)"),
                                    std::pair("Tanh", "tanh(x)"),
                                    std::pair("Exp", "exp(x)"),
                                    std::pair("Log", "log(x)"),
                                    std::pair("Sqrt", "sqrt(x)"),
                                    std::pair("Abs", "abs(x)"),
                                    std::pair("Neg", "-x"),
                                    std::pair("Reciprocal", "1 / x"),
                                    std::pair("Softplus", "softplus(x)")};
  for (const auto& [type, formula] : kFormulas) {
    const auto* const node = graph.makerOf(type, tensor);
    if (node && !graph.constant(inputOf(*node, 0)))
      return FoundOperation{
          .operation = "Formula", .attributes = {{"y", formula}}, .inputs = {{"x", inputOf(*node, 0)}}};
  }
  return std::nullopt;
}

/// An extent of 0 is that of the input, which stands nowhere here.
Found reshape(Reading graph, Name tensor) {
  const auto* const node = graph.makerOf("Reshape", tensor);
  const auto shape = node ? graph.integers(inputOf(*node, 1)) : std::nullopt;
  if (!shape || std::ranges::count(*shape, 0) > 0) return std::nullopt;
  return FoundOperation{
      .operation = "Reshape", .attributes = {{"shape", *shape}}, .inputs = {{"x", inputOf(*node, 0)}}};
}

constexpr std::array kPatterns = {linear,     bias,  layerNorm, rmsNorm, l2Normalization,  gate,
                                  activation, scale, sum,       reshape, productOfTensors, unaryFormula};

}  // namespace

std::string gatedForm(const FoundOperation& activation) {
  const bool isSigmoid = activation.operation == "Formula" && activation.attributes.value("y", "") == "sigmoid(x)";
  const auto isMeant = [&](const Activation& each) {
    return each.unary ? each.unary == activation.operation : isSigmoid;
  };
  const auto* const found = std::ranges::find_if(kActivations, isMeant);
  return found == kActivations.end() ? "" : found->gated;
}

std::optional<FoundOperation> operationAt(const OnnxReading& graph, const std::string& tensor) {
  for (const auto pattern : kPatterns)
    if (Found found = pattern(graph, tensor)) return found;
  return std::nullopt;
}

}  // namespace fuseline
