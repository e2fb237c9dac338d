// What the host tells the device of a copy in NVFP4: plain data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuseline::cuda::device {

/// The fields of RandomBytes.
struct RoundingBytes {
  std::uint32_t key[2] = {};
  std::uint32_t stream[2] = {};
};

/// Two codes of E2M1 a byte, rows of whole bytes; an E4M3 code for every block; and the amax of what is coded. codes
/// null: this copy is not made.
struct Nvfp4Copy {
  std::uint8_t* codes = nullptr;
  std::uint8_t* scales = nullptr;
  float* amax = nullptr;
  bool isTransformed = false;  // coded is the random Hadamard transform of the columns of x
  bool isStochastic = false;
  RoundingBytes random;
};

}  // namespace fuseline::cuda::device
