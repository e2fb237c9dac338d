// Tensors of random numbers, for data and parameters that a run was not given.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

#include <cstdint>
#include <string_view>

namespace fuseline {

/// N(0, 1), rounded once to the dtype. The same (spec, seed, name) gives the same bits, on any number of threads.
Tensor randomNormal(TensorSpec spec, std::uint64_t seed, std::string_view name);

/// Uniform in [-bound, bound), rounded once to the dtype. Reproducible like randomNormal.
Tensor randomUniform(TensorSpec spec, double bound, std::uint64_t seed, std::string_view name);

/// The same value everywhere.
Tensor filled(TensorSpec spec, double value);

}  // namespace fuseline
