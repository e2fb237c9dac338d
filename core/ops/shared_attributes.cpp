// Attributes and checks that several ops share.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/shared_attributes.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr double kLargestExtent = 1 << 24;

}  // namespace

AttributeSpec featuresAttribute(std::string name, std::string help) {
  return {.name = std::move(name),
          .type = AttributeType::Integer,
          .minimum = 1,
          .maximum = kLargestExtent,
          .unit = "elements",
          .help = std::move(help)};
}

AttributeSpec dtypeAttribute() {
  return {.name = "dtype",
          .type = AttributeType::Text,
          .optional = true,
          .choices = {"f32", "f16", "bf16"},
          .help =
              "Type of the op's parameters. Not set: that of the input x. (TransformerEngine's own default is the "
              "framework's default dtype.)"};
}

AttributeSpec tensorParallelModeAttribute() {
  return {.name = "tensor_parallel_mode",
          .type = AttributeType::Text,
          .defaultValue = std::string("none"),
          .choices = {"none", "column", "row"},
          .help =
              "Split of the weight over ranks: column by out_features, row by in_features; both must be multiples of "
              "the number of ranks. On one rank it changes no value, and TransformerEngine ignores it. Fusion rules "
              "use it, so the plan is that of the sharded model."};
}

AttributeSpec approximateAttribute() {
  return {
      .name = "approximate",
      .type = AttributeType::Text,
      .defaultValue = std::string("tanh"),
      .choices = {"none", "tanh"},
      .help =
          "GELU variant, named as in torch.nn.functional.gelu. none: exact, x (1 + erf(x / sqrt(2))) / 2; tanh: tanh "
          "approximation, the only one in te.ops."};
}

bool isExactGelu(const Attributes& given) { return given.has("approximate") && given.text("approximate") == "none"; }

AttributeSpec inPlaceAttribute(std::string help) { return booleanAttribute("in_place", false, std::move(help)); }

AttributeSpec booleanAttribute(std::string name, bool defaultValue, std::string help) {
  return {
      .name = std::move(name), .type = AttributeType::Boolean, .defaultValue = defaultValue, .help = std::move(help)};
}

namespace {

Error mustBe(std::string_view operation, std::string_view attribute, double value, std::string_view expected) {
  return Error{fmt::format("{}: {} is {}, but it must be {}.", operation, attribute, value, expected)};
}

}  // namespace

std::optional<Error> checkNotNegative(std::string_view operation, std::string_view attribute, const Attributes& given) {
  const double value = given.real(attribute);
  if (std::isfinite(value) && value >= 0.0) return std::nullopt;
  return mustBe(operation, attribute, value, "finite and at least 0");
}

std::optional<Error> checkPositive(std::string_view operation, std::string_view attribute, const Attributes& given) {
  const double value = given.real(attribute);
  if (std::isfinite(value) && value > 0.0) return std::nullopt;
  return mustBe(operation, attribute, value, "finite and more than 0");
}

std::optional<Error> checkFinite(std::string_view operation, std::string_view attribute, const Attributes& given) {
  const double value = given.real(attribute);
  if (std::isfinite(value)) return std::nullopt;
  return mustBe(operation, attribute, value, "finite");
}

DType parameterDType(const Attributes& attributes, const TensorSpec& input) {
  if (!attributes.has("dtype")) return input.dtype;
  return parseDType(attributes.text("dtype")).value_or(input.dtype);
}

DType promoted(DType a, DType b) { return a == b ? a : DType::F32; }

std::optional<Error> checkLastAxis(std::string_view operation, std::string_view attribute, std::int64_t expected,
                                   const TensorSpec& x) {
  if (x.shape.empty())
    return Error{
        fmt::format("{}: {} is {}, but x is a scalar; it needs at least one axis.", operation, attribute, expected)};
  if (x.cols() == expected) return std::nullopt;
  return Error{
      fmt::format("{}: {} is {}, but the last axis of x has {} elements.", operation, attribute, expected, x.cols())};
}

std::optional<Error> checkScales(std::string_view operation, const TensorSpec& x, const TensorSpec& scales) {
  if (x.shape.empty())
    return Error{fmt::format(
        "{}: x is a scalar; it needs at least one axis, because the input scales has one value for each row of x.",
        operation)};
  const Shape expected(x.shape.begin(), x.shape.end() - 1);
  if (scales.shape == expected) return std::nullopt;
  return Error{
      fmt::format("{}: scales has the shape {}, but x has the shape {}; scales must have one value for each "
                  "row, the shape {}.",
                  operation, toString(scales.shape), toString(x.shape), toString(expected))};
}

OperationContext saveNothing(const SaveArguments&) { return {}; }

OperationContext saveInput(const SaveArguments& arguments) {
  if (!arguments.needs.inputs[0]) return {};
  return {.tensors = {{OperandKind::Input, 0}}};
}

}  // namespace fuseline
