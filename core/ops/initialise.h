// Starting values of an op's parameters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"
#include "core/tensor/tensor.h"

#include <cstdint>
#include <string_view>

namespace fuseline {

/// Parameter `slot` as the op initializes it, rounded once to the dtype of spec. `name` is the parameter's name in the
/// pipeline, such as "fc1.weight": the same (seed, name) gives the same bits.
Tensor initialParameter(const FusibleOperation& operation, const Attributes& attributes, int slot, TensorSpec spec,
                        std::uint64_t seed, std::string_view name);

}  // namespace fuseline
