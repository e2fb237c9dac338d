// Draws parameters as their op says.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/initialise.h"

#include "core/tensor/random_tensor.h"

#include <utility>

namespace fuseline {

Tensor initialParameter(const FusibleOperation& operation, const Attributes& attributes, int slot, TensorSpec spec,
                        std::uint64_t seed, std::string_view name) {
  const ParameterSpec& parameter = operation.parameters[static_cast<std::size_t>(slot)];
  const Initialisation start = parameter.initialise ? parameter.initialise(attributes, spec) : Initialisation{};
  if (start.kind == Initialisation::Kind::Constant) return filled(std::move(spec), start.value);
  return randomUniform(std::move(spec), start.value, seed, name);
}

}  // namespace fuseline
