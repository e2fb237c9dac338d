// Plain data of a tensor in NVFP4 that the host passes to the device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuseline::cuda::device {

/// The fields of RandomBytes.
struct RoundingBytes {
  std::uint32_t key[2] = {};
  std::uint32_t stream[2] = {};
};

/// Two E2M1 values per byte, rows of whole bytes; one E4M3 scale per block; and the amax of the quantized tensor. codes
/// null: this tensor is not produced.
struct Nvfp4Copy {
  std::uint8_t* codes = nullptr;
  std::uint8_t* scales = nullptr;
  float* amax = nullptr;
  bool isTransformed = false;  // the random Hadamard transform of the columns of x is quantized
  bool isStochastic = false;
  RoundingBytes random;
};

}  // namespace fuseline::cuda::device
