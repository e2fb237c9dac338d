// Attributes, checks and functions of gates.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_gates.h"

#include "core/ops/activation_functions.h"
#include "core/ops/shared_attributes.h"

namespace fuseline::gates {

namespace {

AttributeSpec real(std::string name, double value, std::optional<double> minimum, std::string help) {
  return {.name = std::move(name),
          .type = AttributeType::Real,
          .defaultValue = value,
          .minimum = minimum,
          .help = std::move(help)};
}

}  // namespace

std::vector<AttributeSpec> clampedAttributes() {
  return {real("limit", 7.0, 0.0, "Upper bound of a, and bound of the magnitude of b."),
          real("alpha", 1.702, std::nullopt, "Factor inside the sigmoid."),
          real("glu_linear_offset", 1.0, std::nullopt, "Added to the clamped second half.")};
}

Check clampedCheck(std::string operation) {
  return [operation = std::move(operation)](const Attributes& attributes) {
    if (auto error = checkNotNegative(operation, "limit", attributes)) return error;
    if (auto error = checkFinite(operation, "alpha", attributes)) return error;
    return checkFinite(operation, "glu_linear_offset", attributes);
  };
}

GateFunctions clamped(const Attributes& attributes) {
  const double limit = attributes.real("limit");
  return {.activated = functions::clampedSilu(limit, attributes.real("alpha")),
          .linear = functions::clampedLinear(limit, attributes.real("glu_linear_offset"))};
}

std::vector<AttributeSpec> situAttributes() {
  return {real("beta1", 4.0, 0.0, "Limit of the first half, finite and more than 0."),
          real("beta2", 25.0, 0.0, "Limit of the second half, finite and more than 0.")};
}

Check situCheck(std::string operation) {
  return [operation = std::move(operation)](const Attributes& attributes) {
    if (auto error = checkPositive(operation, "beta1", attributes)) return error;
    return checkPositive(operation, "beta2", attributes);
  };
}

GateFunctions situ(const Attributes& attributes) {
  return {.activated = functions::situGate(attributes.real("beta1")),
          .linear = functions::softLimit(attributes.real("beta2"))};
}

std::vector<AttributeSpec> joined(std::vector<AttributeSpec> attributes, std::vector<AttributeSpec> others) {
  for (AttributeSpec& other : others) attributes.push_back(std::move(other));
  return attributes;
}

}  // namespace fuseline::gates
