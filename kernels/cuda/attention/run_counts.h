// Inputs of counts, such as prefix sums of sequence lengths: on the device, and as the host reads them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/kernel_def.h"

#include <cstdint>
#include <vector>

namespace fuseline::cuda {

/// nullptr: absent.
inline const std::int64_t* countsAt(const Binding& counts, Pointers pointers) {
  return reinterpret_cast<const std::int64_t*>(counts.at(pointers));
}

/// Waits for the device, so only for first runs. Empty: absent.
inline std::vector<std::int64_t> readCounts(const Binding& counts, Pointers pointers, const DeviceContext& device) {
  std::vector<std::int64_t> values(counts ? static_cast<std::size_t>(counts.spec.numElements()) : 0);
  if (!values.empty()) device.readBack(values.data(), counts.at(pointers), values.size() * sizeof(std::int64_t));
  return values;
}

}  // namespace fuseline::cuda
