// Element types of tensors and their names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fuseline {

/// E4M3 is for what ops keep for backward; nothing computes in it.
enum class DType : std::uint8_t { F32, F16, BF16, E4M3 };

/// "f32", "f16", "bf16", "e4m3".
std::string_view dtypeName(DType dtype);

/// A dtype to compute in. Accepts the short names and "float32", "float16", "bfloat16".
std::optional<DType> parseDType(std::string_view name);

constexpr std::int64_t sizeBytes(DType dtype) {
  switch (dtype) {
    case DType::E4M3: return 1;
    case DType::F16:
    case DType::BF16: return 2;
    case DType::F32: return 4;
  }
  return 0;
}

}  // namespace fuseline
