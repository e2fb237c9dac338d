// The entry point of every fuzz target: the function that libFuzzer calls, and replay.cpp without it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

/// Reads bytes as a file of the target's kind. Any bytes are safe: no crash, no endless loop, no exception. Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace fuseline::fuzz {

inline std::string_view textOf(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// A property that any bytes have: the fuzzer reports where it does not hold.
inline void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace fuseline::fuzz
