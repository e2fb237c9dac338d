// Element types of tensors and their names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fuseline {

/// U8 is for bytes in files, such as the codes of quantized tensors. No op computes with it.
enum class DType : std::uint8_t { F32, F16, BF16, U8 };

/// "f32", "f16", "bf16", "u8".
std::string_view dtypeName(DType dtype);

/// A dtype that ops compute with. Accepts the short names and "float32", "float16", "bfloat16".
std::optional<DType> parseDType(std::string_view name);

constexpr std::int64_t sizeBytes(DType dtype) {
  if (dtype == DType::U8) return 1;
  return dtype == DType::F32 ? 4 : 2;
}

}  // namespace fuseline
