// Element types of tensors and their names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fuseline {

enum class DType : std::uint8_t { F32, F16, BF16 };

/// "f32", "f16", "bf16".
std::string_view dtypeName(DType dtype);

/// Accepts the short names and "float32", "float16", "bfloat16".
std::optional<DType> parseDType(std::string_view name);

constexpr std::int64_t sizeBytes(DType dtype) { return dtype == DType::F32 ? 4 : 2; }

}  // namespace fuseline
