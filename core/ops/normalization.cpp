// The common part of LayerNorm and RMSNorm.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/normalization.h"

#include "core/ops/shared_attributes.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

std::vector<AttributeSpec> normalizationAttributes() {
  return {
      {.name = "normalized_shape",
       .type = AttributeType::IntegerList,
       .minimum = 1,
       .unit = "elements",
       .help = "The trailing axes of x that are normalized together, and the shape of the parameters."},
      {.name = "eps",
       .type = AttributeType::Real,
       .defaultValue = 1e-5,
       .minimum = 0.0,
       .help = "Added under the square root, for rows near zero."},
      booleanAttribute("zero_centered_gamma", false,
                       "The weight is stored as its difference from 1 and starts at 0. The 1 is added in f32."),
      dtypeAttribute(),
      {.name = "sm_margin",
       .type = AttributeType::Integer,
       .defaultValue = std::int64_t{0},
       .minimum = 0,
       .unit = "SMs",
       .help =
           "Number of streaming multiprocessors (SMs) of a GPU to leave free for other kernels. No effect on a CPU."}};
}

namespace {

bool endsWith(const Shape& shape, const Shape& tail) {
  return shape.size() >= tail.size() && std::equal(tail.rbegin(), tail.rend(), shape.rbegin());
}

}  // namespace

Result<OperationSpecs> inferNormalization(std::string_view operation, const Attributes& attributes, const TensorSpec& x,
                                          std::size_t numParameters, std::size_t numStatistics) {
  const Shape& normalized = attributes.integers("normalized_shape");
  if (normalized.empty())
    return Error{
        fmt::format("{}: normalized_shape is empty; it needs at least one axis, such as [{}].", operation, x.cols())};
  if (!endsWith(x.shape, normalized))
    return Error{fmt::format("{}: normalized_shape is {}, but x has the shape {}; its last axes must be the same.",
                             operation, toString(normalized), toString(x.shape))};
  const DType dtype = parameterDType(attributes, x);
  const TensorSpec parameter{.dtype = dtype, .shape = normalized};
  const TensorSpec statistic{.dtype = DType::F32, .shape = statisticsShape(attributes, x.shape)};
  return OperationSpecs{.outputs = {{.dtype = dtype, .shape = x.shape}},
                        .parameters = std::vector(numParameters, parameter),
                        .residuals = std::vector(numStatistics, statistic)};
}

Initialisation initialiseGamma(const Attributes& attributes, const TensorSpec&) {
  return {.value = attributes.boolean("zero_centered_gamma") ? 0.0 : 1.0};
}

std::int64_t normalizedSize(const Attributes& attributes) {
  return numElements(attributes.integers("normalized_shape"));
}

Shape statisticsShape(const Attributes& attributes, const Shape& x) {
  const auto numNormalized = static_cast<std::ptrdiff_t>(attributes.integers("normalized_shape").size());
  return {x.begin(), x.end() - numNormalized};
}

std::vector<double> effectiveGamma(const Attributes& attributes, const ReferenceTensor& weight) {
  std::vector<double> gamma = weight.values;
  if (attributes.boolean("zero_centered_gamma"))
    for (double& value : gamma) value += 1.0;
  return gamma;
}

OperationContext saveNormalization(const SaveArguments& arguments, int numStatistics) {
  if (!arguments.needs.anyInput() && !arguments.needs.anyParameter()) return {};
  OperationContext context{.tensors = {{OperandKind::Input, 0}, {OperandKind::Parameter, 0}}};
  for (int slot = 0; slot < numStatistics; ++slot) context.tensors.push_back({OperandKind::Residual, slot});
  return context;
}

}  // namespace fuseline
