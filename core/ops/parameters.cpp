// Reads the attributes that are about parameters.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/parameters.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr const char* kAll = "requires_grad";
constexpr const char* kAccumulate = "accumulate_into_main_grad";
constexpr const char* kOverwrite = "overwrite_main_grad";
constexpr const char* kDelay = "delay_wgrad_compute";

bool isOn(const Attributes& attributes, std::string_view name, bool otherwise) {
  return attributes.has(name) ? attributes.boolean(name) : otherwise;
}

std::string_view withoutNumber(std::string_view name) {
  const auto last = name.find_last_not_of("0123456789");
  return last == std::string_view::npos ? name : name.substr(0, last + 1);
}

const ParameterSpec& specOf(const FusibleOperation& operation, int parameter) {
  return operation.parameters[static_cast<std::size_t>(parameter)];
}

}  // namespace

std::string requiresGradName(std::string_view parameter) {
  return fmt::format("{}_requires_grad", withoutNumber(parameter));
}

AttributeSpec requiresGradAttribute(std::string_view parameter) {
  return {
      .name = requiresGradName(parameter),
      .type = AttributeType::Boolean,
      .defaultValue = true,
      .help = fmt::format(
          "Off: {} is frozen. Its gradient is not computed, and tensors that only this gradient needs are not kept.",
          withoutNumber(parameter))};
}

void declareRequiresGrad(FusibleOperation& operation) {
  for (const ParameterSpec& parameter : operation.parameters)
    if (!operation.attribute(requiresGradName(parameter.name)))
      operation.attributes.push_back(requiresGradAttribute(parameter.name));
}

bool isTrained(const FusibleOperation& operation, const Attributes& attributes, int parameter) {
  return isOn(attributes, requiresGradName(specOf(operation, parameter).name), true) && isOn(attributes, kAll, true);
}

std::vector<AttributeSpec> mainGradAttributes() {
  return {
      {.name = kAccumulate,
       .type = AttributeType::Boolean,
       .defaultValue = false,
       .help = "The weight's gradient is added, in float32, to the buffer main_grad.<op>.weight, as Megatron-LM "
               "does over micro-batches. The buffer starts at 0 or is given with --tensors."},
      {.name = kOverwrite,
       .type = AttributeType::Boolean,
       .defaultValue = false,
       .help = "With accumulate_into_main_grad: the gradient is written to the buffer, not added. (TransformerEngine "
               "reads this from the parameter.)"}};
}

AttributeSpec delayedGradientAttribute() {
  return {.name = kDelay,
          .type = AttributeType::Boolean,
          .defaultValue = false,
          .help =
              "The weight gradient is a separate step after the rest of backward, as if TransformerEngine's "
              "backward_dw() were called there; x and dy are kept until then. Bias gradients are not delayed."};
}

bool isGradientDelayed(const FusibleOperation& operation, const Attributes& attributes, int parameter) {
  return specOf(operation, parameter).hasMainGrad && isOn(attributes, kDelay, false);
}

GradientSink gradientSink(const FusibleOperation& operation, const Attributes& attributes, int parameter) {
  if (!specOf(operation, parameter).hasMainGrad || !isOn(attributes, kAccumulate, false)) return GradientSink::Own;
  return isOn(attributes, kOverwrite, false) ? GradientSink::Overwrite : GradientSink::Accumulate;
}

}  // namespace fuseline
