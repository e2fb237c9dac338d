// Element types of tensors and their names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fuseline {

/// Ops compute with the first three. I64 holds counts, such as the sizes of groups. E4M3 is for tensors that ops keep
/// for backward, U8 for bytes in files, such as the values of quantized tensors.
enum class DType : std::uint8_t { F32, F16, BF16, I64, E4M3, U8 };

/// "f32", "f16", "bf16", "i64", "e4m3", "u8".
std::string_view dtypeName(DType dtype);

/// The dtype of a pipeline's tensor. Accepts the short names and "float32", "float16", "bfloat16", "int64".
std::optional<DType> parseDType(std::string_view name);

/// Do ops compute with it? The others have no gradients.
constexpr bool isFloat(DType dtype) { return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16; }

constexpr std::int64_t sizeBytes(DType dtype) {
  switch (dtype) {
    case DType::E4M3:
    case DType::U8: return 1;
    case DType::F16:
    case DType::BF16: return 2;
    case DType::F32: return 4;
    case DType::I64: return 8;
  }
  return 0;
}

}  // namespace fuseline
