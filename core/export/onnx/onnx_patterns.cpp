// Linear layers, biases, sums, and the order in which the functions for all ops are tried.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_patterns.h"

#include "core/export/onnx/onnx_pattern_parts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

namespace fuseline {

namespace patterns {

double shortest(double value) {
  const std::string text = fmt::format("{}", static_cast<float>(value));
  double result = value;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

/// More than a number, and no shape that an op computes with.
const ::onnx::TensorProto* weight(Reading graph, Name tensor) {
  const ::onnx::TensorProto* const proto = graph.constant(tensor);
  return proto && floatTypeOf(proto->data_type()) ? proto : nullptr;
}

const ::onnx::TensorProto* vectorWeight(Reading graph, Name tensor) {
  const ::onnx::TensorProto* const proto = weight(graph, tensor);
  if (!proto || proto->dims_size() == 0) return nullptr;
  const auto last = proto->dims().end() - 1;
  return std::all_of(proto->dims().begin(), last, [](std::int64_t extent) { return extent == 1; }) ? proto : nullptr;
}

DType dtypeRead(Reading graph, Name tensor, const ::onnx::TensorProto& constant) {
  const std::optional<DType> read = floatTypeOf(graph.elementType(tensor));
  return read ? *read : floatTypeOf(constant.data_type()).value_or(DType::F32);
}

namespace {

/// A constant as it is, or one that a DequantizeLinear reads.
std::optional<FoundWeight> weightAt(Reading graph, Name tensor, const char* parameter) {
  if (const auto* const proto = weight(graph, tensor)) return FoundWeight{.parameter = parameter, .constant = proto};
  const auto* const node = graph.makerOf("DequantizeLinear", tensor);
  const auto* const codes = node ? graph.constant(inputOf(*node, 0)) : nullptr;
  const auto* const scale = node ? weight(graph, inputOf(*node, 1)) : nullptr;
  const std::int64_t blockSize = node ? integerOf(*node, "block_size", 0) : 0;
  if (!codes || !scale || (blockSize == 0 && scale->dims_size() > 1)) return std::nullopt;
  const auto* const zeroPoint = graph.constant(inputOf(*node, 2));
  if (!zeroPoint && !inputOf(*node, 2).empty()) return std::nullopt;
  const std::int64_t axis = integerOf(*node, "axis", 1);
  return FoundWeight{.parameter = parameter,
                     .constant = codes,
                     .codes = WeightCodes{scale, zeroPoint, axis < 0 ? axis + codes->dims_size() : axis, blockSize}};
}

DType typeOf(const FoundWeight& found) {
  return *floatTypeOf(found.codes ? found.codes->scale->data_type() : found.constant->data_type());
}

}  // namespace

std::optional<FoundWeight> rowWeight(Reading graph, Name tensor, const char* parameter, std::int64_t extent) {
  std::optional<FoundWeight> found = weightAt(graph, tensor, parameter);
  if (!found) return std::nullopt;
  const auto& dims = found->constant->dims();
  const bool isRow = dims.size() > 0 && *(dims.end() - 1) == extent && numElements(shapeOf(*found->constant)) == extent;
  if (!isRow && numElements(shapeOf(*found->constant)) != 1) return std::nullopt;
  found->isSpread = true;
  return found;
}

std::optional<std::int64_t> lastExtent(Reading graph, Name tensor) {
  const auto* const type = graph.type(tensor);
  const int rank = type && type->has_shape() ? type->shape().dim_size() : 0;
  if (rank == 0 || !type->shape().dim(rank - 1).has_dim_value()) return std::nullopt;
  return type->shape().dim(rank - 1).dim_value();
}

namespace {

// ---- linear layers

struct Product {
  std::string x;
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::optional<FoundWeight> bias = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
  FoundWeight matrix = {};
  bool isInputQuantized = false;
};

std::optional<Product> productWith(Reading graph, Name x, Name matrix, bool isTransposed) {
  std::optional<FoundWeight> found = weightAt(graph, matrix, "weight");
  if (!found || found->constant->dims_size() != 2 || graph.constant(x)) return std::nullopt;
  found->isTransposed = !isTransposed;
  const std::int64_t rows = found->constant->dims(0), cols = found->constant->dims(1);
  return Product{.x = x,
                 .in = isTransposed ? cols : rows,
                 .out = isTransposed ? rows : cols,
                 .dtype = typeOf(*found),
                 .matrix = std::move(*found)};
}

std::optional<Product> matMul(Reading graph, const ::onnx::NodeProto& node) {
  const ::onnx::NodeProto* const transpose = graph.makerOf("Transpose", inputOf(node, 1));
  return transpose ? productWith(graph, inputOf(node, 0), inputOf(*transpose, 0), true)
                   : productWith(graph, inputOf(node, 0), inputOf(node, 1), false);
}

/// alpha and beta become part of the weights.
std::optional<Product> gemm(Reading graph, const ::onnx::NodeProto& node) {
  if (integerOf(node, "transA", 0) != 0) return std::nullopt;
  auto product = productWith(graph, inputOf(node, 0), inputOf(node, 1), integerOf(node, "transB", 0) != 0);
  if (!product) return std::nullopt;
  product->matrix.factor = realOf(node, "alpha", 1.0);
  if (inputOf(node, 2).empty()) return product;
  product->bias = rowWeight(graph, inputOf(node, 2), "bias", product->out);
  if (!product->bias) return std::nullopt;
  product->bias->factor = realOf(node, "beta", 1.0);
  return product;
}

/// The codes of a weight, whose scale is a factor behind the product.
std::optional<FoundWeight> codedFactor(Reading graph, const ::onnx::NodeProto& product, Name scale) {
  const auto *const codes = graph.constant(inputOf(product, 1)), *const scales = weight(graph, scale);
  const auto* const zeroPoint = graph.constant(inputOf(product, 3));
  if (!codes || codes->dims_size() != 2 || !scales || (!zeroPoint && !inputOf(product, 3).empty())) return std::nullopt;
  const Shape shape = shapeOf(*scales);
  const bool isRow =
      numElements(shape) == 1 || (numElements(shape) == codes->dims(1) && shape.back() == codes->dims(1));
  if (!isRow) return std::nullopt;  // rows of the result have factors of their own
  return FoundWeight{.parameter = "weight",
                     .constant = codes,
                     .isTransposed = true,
                     .codes = WeightCodes{.scale = scales, .zeroPoint = zeroPoint, .axis = 1}};
}

/// onnxruntime's dynamic quantization: x is quantized, multiplied as integers, and both scales are factors of the sum.
std::optional<Product> integerProduct(Reading graph, Name tensor) {
  return ofTwo(graph, "Mul", tensor, [&](Name converted, Name factor) -> std::optional<Product> {
    const auto* const cast = graph.makerOf("Cast", converted);
    const auto* const node = graph.makerOf("MatMulInteger", cast ? inputOf(*cast, 0) : converted);
    const auto* const quantized = node ? graph.makerOf("DynamicQuantizeLinear", inputOf(*node, 0)) : nullptr;
    if (!quantized || quantized->output_size() < 3) return std::nullopt;
    if (graph.source(inputOf(*node, 2)) != quantized->output(2)) return std::nullopt;
    return ofTwo(graph, "Mul", factor, [&](Name scaleOfX, Name scale) -> std::optional<Product> {
      const auto found =
          graph.source(scaleOfX) == quantized->output(1) ? codedFactor(graph, *node, scale) : std::nullopt;
      if (!found) return std::nullopt;
      return Product{.x = inputOf(*quantized, 0),
                     .in = found->constant->dims(0),
                     .out = found->constant->dims(1),
                     .dtype = floatTypeOf(found->codes->scale->data_type()),
                     .matrix = *found,
                     .isInputQuantized = true};
    });
  });
}

/// Does it exchange the last two axes?
bool turnsMatrices(Reading graph, const ::onnx::NodeProto& transpose) {
  const auto* const perm = findAttribute(transpose, "perm");
  const auto* const type = graph.type(inputOf(transpose, 0));
  if (!perm) return type && type->has_shape() && type->shape().dim_size() == 2;
  const int rank = perm->ints_size();
  for (int axis = 0; axis < rank; ++axis) {
    const int from = axis == rank - 2 ? rank - 1 : axis == rank - 1 ? rank - 2 : axis;
    if (perm->ints(axis) != from) return false;
  }
  return rank >= 2;
}

/// x W^T as the transposed product of W and the transposed x.
std::optional<Product> turnedProduct(Reading graph, Name tensor) {
  const auto* const outer = graph.makerOf("Transpose", tensor);
  const auto* const node =
      outer && turnsMatrices(graph, *outer) ? graph.makerOf("MatMul", inputOf(*outer, 0)) : nullptr;
  const auto* const inner = node ? graph.makerOf("Transpose", inputOf(*node, 1)) : nullptr;
  if (!inner || !turnsMatrices(graph, *inner)) return std::nullopt;
  return productWith(graph, inputOf(*inner, 0), inputOf(*node, 0), true);
}

/// A weight that the model converts is multiplied in the type to which it is converted.
std::optional<Product> product(Reading graph, Name tensor) {
  const auto *const multiplied = graph.makerOf("MatMul", tensor), *const added = graph.makerOf("Gemm", tensor);
  if (!multiplied && !added) {
    auto turned = turnedProduct(graph, tensor);
    return turned ? turned : integerProduct(graph, tensor);
  }
  std::optional<Product> found = multiplied ? matMul(graph, *multiplied) : gemm(graph, *added);
  const auto type = floatTypeOf(graph.elementType(inputOf(multiplied ? *multiplied : *added, 1)));
  if (found && type) found->dtype = type;
  return found;
}

/// With a downstream bias, unless the tensor between the two has other consumers.
std::optional<Product> biasedProduct(Reading graph, Name tensor) {
  return ofTwo(graph, "Add", tensor, [&](Name made, Name bias) -> std::optional<Product> {
    auto found = product(graph, made);
    if (!found || found->bias || graph.numReaders(made) > 1) return std::nullopt;
    found->bias = rowWeight(graph, bias, "bias", found->out);
    return found->bias ? found : std::nullopt;
  });
}

std::string noteOf(Reading graph, const Product& product) {
  const bool isWeightCoded = product.matrix.codes.has_value(),
             isInputCoded = product.isInputQuantized || graph.isRequantized(product.x);
  if (!isWeightCoded && !isInputCoded) return {};
  return fmt::format(
      "{} quantized in the model, but in high precision and full range here. Choose a recipe to quantize.",
      isWeightCoded && isInputCoded ? "x and the weight are"
      : isWeightCoded               ? "the weight is"
                                    : "x is");
}

Found linear(Reading graph, Name tensor) {
  std::optional<Product> found = biasedProduct(graph, tensor);
  if (!found) found = product(graph, tensor);
  if (!found) return std::nullopt;
  std::vector<FoundWeight> weights = {found->matrix};
  if (found->bias) weights.push_back(*found->bias);
  return FoundOperation{
      .operation = "Linear",
      .attributes = {{"in_features", found->in}, {"out_features", found->out}, {"bias", found->bias.has_value()}},
      .inputs = {{"x", found->x}},
      .dtype = found->dtype,
      .weights = std::move(weights),
      .note = noteOf(graph, *found)};
}

/// One element would be added to all columns.
Found bias(Reading graph, Name tensor) {
  return ofTwo(graph, "Add", tensor, [&](Name x, Name vector) -> Found {
    const auto* const proto = vectorWeight(graph, vector);
    if (!proto || graph.constant(x)) return std::nullopt;
    const std::int64_t size = *(proto->dims().end() - 1);
    const std::optional<std::int64_t> extent = lastExtent(graph, x);
    if (extent ? *extent != size : size == 1) return std::nullopt;
    return FoundOperation{.operation = "Bias",
                          .attributes = {{"size", size}},
                          .inputs = {{"x", x}},
                          .dtype = dtypeRead(graph, vector, *proto),
                          .weights = {{.parameter = "bias", .constant = proto, .isSpread = true}}};
  });
}

// ---- the rest, node by node

Found scale(Reading graph, Name tensor) {
  const auto scaled = [](Name x, double factor) {
    return FoundOperation{.operation = "ConstantScale", .attributes = {{"scale", factor}}, .inputs = {{"x", x}}};
  };
  if (const auto* const quotient = graph.makerOf("Div", tensor)) {
    const std::optional<double> divisor = graph.number(inputOf(*quotient, 1));
    const bool isScaled = divisor && *divisor != 0.0 && !graph.constant(inputOf(*quotient, 0));
    return isScaled ? Found(scaled(inputOf(*quotient, 0), 1.0 / shortest(*divisor))) : std::nullopt;
  }
  return ofTwo(graph, "Mul", tensor, [&](Name x, Name factor) -> Found {
    const std::optional<double> number = graph.number(factor);
    return number && !graph.constant(x) ? Found(scaled(x, shortest(*number))) : std::nullopt;
  });
}

Found sum(Reading graph, Name tensor) {
  const auto* const node = graph.makerOf("Add", tensor);
  if (!node || node->input_size() != 2) return std::nullopt;
  if (graph.constant(node->input(0)) || graph.constant(node->input(1))) return std::nullopt;
  if (!mayHaveSameShape(graph, node->input(0), node->input(1))) return std::nullopt;
  return FoundOperation{.operation = "AddExtraInput", .inputs = {{"x", node->input(0)}, {"extra", node->input(1)}}};
}

/// The extents that a node writes with 0 are those of its input.
std::optional<Shape> writtenShape(Reading graph, const ::onnx::NodeProto& node) {
  std::optional<Shape> shape = graph.integers(inputOf(node, 1));
  if (!shape || integerOf(node, "allowzero", 0) != 0) return shape;
  const auto* const type = graph.type(inputOf(node, 0));
  for (std::size_t axis = 0; axis < shape->size(); ++axis) {
    if ((*shape)[axis] != 0) continue;
    const bool isKnown = type && type->has_shape() && type->shape().dim_size() > static_cast<int>(axis) &&
                         type->shape().dim(static_cast<int>(axis)).has_dim_value();
    if (isKnown)
      (*shape)[axis] = type->shape().dim(static_cast<int>(axis)).dim_value();
    else if (std::ranges::count(*shape, -1) == 0)
      (*shape)[axis] = -1;
    else
      return std::nullopt;
  }
  return shape;
}

/// The shape of the result, with -1 for one extent that is not known.
std::optional<Shape> madeShape(Reading graph, Name tensor) {
  const auto* const type = graph.type(tensor);
  if (!type || !type->has_shape()) return std::nullopt;
  Shape shape;
  for (const auto& extent : type->shape().dim()) shape.push_back(extent.has_dim_value() ? extent.dim_value() : -1);
  return std::ranges::count(shape, -1) > 1 ? std::nullopt : std::optional(shape);
}

Found reshape(Reading graph, Name tensor) {
  const ::onnx::NodeProto* node = graph.makerOf("Reshape", tensor);
  std::optional<Shape> shape = node ? writtenShape(graph, *node) : std::nullopt;
  for (const char* const type : {"Reshape", "Squeeze", "Unsqueeze", "Flatten"})
    if (!node) node = graph.makerOf(type, tensor);
  if (node && !shape) shape = madeShape(graph, tensor);
  if (!shape || graph.constant(inputOf(*node, 0))) return std::nullopt;
  return FoundOperation{
      .operation = "Reshape", .attributes = {{"shape", *shape}}, .inputs = {{"x", inputOf(*node, 0)}}};
}

constexpr std::array kPatterns = {wholeOperation,    layerNorm,    rmsNorm, plainNorm, l2Normalization,
                                  sampledNorm,       linear,       bias,    gate,      activation,
                                  sampledActivation, scale,        sum,     reshape,   splitColumns,
                                  joinColumns,       crossEntropy, formula};

}  // namespace

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

}  // namespace patterns

std::optional<FoundOperation> operationAt(const OnnxReading& graph, const std::string& tensor) {
  for (const auto pattern : patterns::kPatterns)
    if (patterns::Found found = pattern(graph, tensor)) return found;
  return std::nullopt;
}

}  // namespace fuseline
