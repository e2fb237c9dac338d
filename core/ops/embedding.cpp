// Embedding: rows of a table by number, such as the vectors of tokens.
// SPDX-License-Identifier: Apache-2.0
#include "core/numerics/random.h"
#include "core/ops/embedding_form.h"
#include "core/ops/parameters.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace fuseline::ops {

namespace {
namespace embedding_parts {

constexpr const char* kName = "Embedding";

std::optional<Error> checkAttributes(const EmbeddingForm& form) {
  if (!form.paddingIndex || *form.paddingIndex < form.numRows) return std::nullopt;
  return Error{.message = fmt::format("{}: padding_idx is {}, but num_embeddings is {}; expected a row of the table.",
                                      kName, *form.paddingIndex, form.numRows),
               .subject = "padding_idx"};
}

std::optional<Error> checkPositions(const EmbeddingForm& form, const Shape& x) {
  if (!form.usesPositions) return std::nullopt;
  if (x.empty())
    return Error{fmt::format("{}: positions is on, but x is a scalar; it needs an axis of tokens.", kName)};
  if (x.back() <= form.numRows) return std::nullopt;
  return Error{
      fmt::format("{}: the last axis of x has {} tokens, but num_embeddings is {}; expected a row for every position.",
                  kName, x.back(), form.numRows)};
}

Result<OperationSpecs> infer(const Attributes& attributes, Specs inputs) {
  const EmbeddingForm form = embeddingForm(attributes);
  if (auto error = checkAttributes(form)) return *error;
  if (auto error = checkPositions(form, inputs[0].shape)) return *error;
  const DType dtype = attributes.has("dtype") ? *parseDType(attributes.text("dtype")) : DType::F32;
  const TensorSpec weight{.dtype = dtype, .shape = {form.numRows, form.width}};
  TensorSpec y{.dtype = dtype, .shape = inputs[0].shape};
  y.shape.push_back(form.width);
  OperationSpecs specs{.outputs = {y}, .parameters = {weight}};
  if (form.sharesWeight) specs.outputs.push_back(weight);
  return specs;
}

/// An addition for each element of the gradient.
FlopCount flops(const Attributes& attributes, Specs inputs) {
  const std::int64_t width = embeddingForm(attributes).width;
  return {.forward = 0, .backward = saturatedProduct(inputs[0].numElements(), width)};
}

/// Throws for a number that is no row: it is known at run time only.
std::int64_t rowOf(const EmbeddingForm& form, const ReferenceTensor& ids, std::size_t index) {
  if (form.usesPositions) return static_cast<std::int64_t>(index) % ids.cols();
  const auto row = static_cast<std::int64_t>(ids.values[index]);
  if (!form.hasRow(row)) throw std::invalid_argument(missingRowText(form, static_cast<std::int64_t>(index), row));
  return row;
}

ReferenceForward forward(const Attributes& attributes, References inputs, References parameters) {
  const EmbeddingForm form = embeddingForm(attributes);
  Shape shape = inputs[0].shape;
  shape.push_back(form.width);
  ReferenceForward result{.outputs = {referenceZeros(std::move(shape))}};
  for (std::size_t i = 0; i < inputs[0].values.size(); ++i)
    std::ranges::copy(referenceRow(parameters[0], rowOf(form, inputs[0], i), form.width),
                      referenceRow(result.outputs[0], static_cast<std::int64_t>(i), form.width).begin());
  if (form.sharesWeight) result.outputs.push_back(parameters[0]);
  return result;
}

/// Only the numbers.
OperationContext saveContext(const SaveArguments& arguments) {
  OperationContext context;
  if (arguments.needs.parameters[0]) context.tensors.push_back({OperandKind::Input, 0});
  return context;
}

ReferenceBackward backward(const Attributes& attributes, const SavedValues& saved, References gradOutputs) {
  const EmbeddingForm form = embeddingForm(attributes);
  ReferenceBackward gradients{.inputs = {{}}, .parameters = {{}}};
  if (!saved.has({OperandKind::Input, 0})) return gradients;
  ReferenceTensor weight = form.sharesWeight ? gradOutputs[1] : referenceZeros({form.numRows, form.width});
  const ReferenceTensor& ids = saved.input();
  for (std::size_t i = 0; i < ids.values.size(); ++i) {
    const std::int64_t row = rowOf(form, ids, i);
    if (row == form.paddingIndex) continue;
    const std::span<double> sum = referenceRow(weight, row, form.width);
    std::ranges::transform(sum, referenceRow(gradOutputs[0], static_cast<std::int64_t>(i), form.width), sum.begin(),
                           std::plus<>());
  }
  gradients.parameters[0] = std::move(weight);
  return gradients;
}

/// Models start their tables at about N(0, 0.02).
Initialisation initialiseWeight(const Attributes&, const TensorSpec&) {
  constexpr double kBound = 0.0346;  // the standard deviation of U(-a, a) is a / sqrt(3)
  return {.kind = Initialisation::Kind::Uniform, .value = kBound};
}

Tensor drawRows(const DrawArguments& arguments) {
  const auto numRows = static_cast<double>(embeddingForm(arguments.attributes).numRows);
  std::vector<double> rows(static_cast<std::size_t>(arguments.inputs[0].numElements()));
  RandomStream(arguments.seed, arguments.name).uniforms(0, rows);
  for (double& row : rows) row = std::floor(row * numRows);
  return Tensor::fromDoubles(arguments.inputs[0], rows);
}

std::vector<AttributeSpec> attributes() {
  return {featuresAttribute("num_embeddings", "Rows of the table, V, such as the size of a vocabulary."),
          featuresAttribute("embedding_dim", "Elements of a row, H."),
          {.name = "padding_idx",
           .type = AttributeType::Integer,
           .optional = true,
           .minimum = 0,
           .help = "Row that gets no gradient from y, such as that of a padding token."},
          {.name = "dtype",
           .type = AttributeType::Text,
           .optional = true,
           .choices = {"f32", "f16", "bf16"},
           .help = "Type of the table and of y. Not set: f32."},
          booleanAttribute("positions", false,
                           "Looks up the position of each token (0, 1, 2 and so on along the last axis of x) instead "
                           "of its index: a learned position embedding."),
          booleanAttribute("shares_weight", false,
                           "Passes the table on as a second output, for a TiedLinear. Nothing is copied."),
          requiresGradAttribute("weight")};
}

std::vector<Port> outputsOf(const EmbeddingForm& form) {
  std::vector<Port> outputs = {{"y", "[..., H]", "One row for each element of x."}};
  if (form.sharesWeight)
    outputs.push_back(
        {"weight", "[V, H]", "The table itself: an output with the name of a parameter is that parameter."});
  return outputs;
}

Result<FusibleOperation> specialise(const Attributes& given) {
  return BasicOperation{
      .name = kName,
      .category = "Model",
      .summary = "Looks up rows of a table by index, such as token embeddings.",
      .formula = "y[i] = weight[x[i]]",
      .derivative = "dweight[v] = the sum of dy[i] over all i with x[i] = v",
      .source = "torch.nn.Embedding",
      .details =
          "The gradient is summed in float32 in the order of the positions, so it is bitwise identical in every "
          "run.\nWith shares_weight the gradient of the table is added to it.",
      .keywords = {"embedding", "token", "vocabulary", "lookup", "gather", "wte", "wpe", "position", "tied"},
      .inputs = {{.name = "x",
                  .shape = "[...]",
                  .help = "Indices of rows, such as token ids, i64. Not given: random.",
                  .elements = PortElements::Counts,
                  .draw = drawRows}},
      .parameters = {{"weight", "[V, H]", "The table.", initialiseWeight}},
      .outputs = outputsOf(embeddingForm(given)),
      .attributes = attributes(),
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveContext,
      .backwardCompute = backward,
  };
}

OperationCall exampleCall(std::int64_t elements, DType dtype) {
  constexpr std::int64_t kRows = 32768;
  constexpr std::int64_t kWidth = 1024;
  OperationCall call{.attributes = defaultAttributes({.attributes = attributes()})};
  call.attributes.set("num_embeddings", kRows);
  call.attributes.set("embedding_dim", kWidth);
  call.attributes.set("dtype", std::string(dtypeName(dtype)));
  call.inputs = {{.dtype = DType::I64, .shape = {std::max<std::int64_t>(1, elements / kWidth)}}};
  return call;
}

}  // namespace embedding_parts
}  // namespace

BasicOperation embedding() {
  using namespace embedding_parts;
  return structuredOperation(attributes(), specialise, exampleCall);
}

}  // namespace fuseline::ops
